"""The samples of the 2022 report are read, verbatim."""

from __future__ import annotations

from datetime import UTC, datetime

from gwmond.model.pilots.file_facts import CentralKind, Jobs
from gwmond.sources.gwms import central_log, completed_jobs, result_xml, starter_log
from gwmond.sources.gwms.texts import Zone
from tests.build.gwms.figures import FIGURE_5, FIGURE_7, FIGURE_8, FIGURE_9

PACIFIC = Zone(((1_564_440_000, -7 * 3600),))


def us(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp() * 10**6)  # type: ignore[arg-type, misc]


def test_figure_5_a_starter_log() -> None:
    """A program that was asked to end is not one that ended itself, whatever its status.

    Lines of other starters, whose jobs are not in the sample, make no run.
    """
    log = starter_log.parse(FIGURE_5.encode(), PACIFIC, 1_564_440_000)
    (run,) = log.runs
    assert (run.start_us, run.end_us) == (us(2019, 7, 29, 22, 38, 54), us(2019, 7, 29, 23, 1, 42))
    assert (run.ending.exit_code, run.ending.exit_signal) == (0, None)
    assert (run.ending.own_accord, run.ending.began, run.ending.over) == (False, True, True)
    assert (run.unsent, log.wrong) == (False, None)


def test_figure_7_a_central_log() -> None:
    """Starters that lost their shadow, pilots that ended, a container that could not be made."""
    lines = central_log.parse("central", FIGURE_7.encode())
    assert lines.wrong == {}
    unsent, end, container = (
        CentralKind.EXIT_UNSENT,
        CentralKind.PILOT_END,
        CentralKind.CONTAINER_FAILURE,
    )
    assert [one.kind for one in lines.facts] == [unsent] * 4 + [end, container, end]
    first = lines.facts[0]
    assert first.at_us == us(2022, 1, 28, 0, 23, 36) + 804_000
    assert (first.program, first.slot) == ("condor_starter", "slot1_1")
    assert first.message == "Failed to send job exit status to shadow"
    name = first.name
    assert (name.startd, name.node, name.site) == (
        "glidein_24261_217254492",
        "petes-36",
        "SLATE_US_NMSU_AGGIE_GRID",
    )
    assert lines.facts[3].name.site == "Texas Advanced Computing Center"
    assert lines.facts[3].name.startd == ""
    assert (lines.facts[4].name.resource, lines.facts[4].exit_code) == (
        "TIGER-OSG-BACKFILL-PROD",
        0,
    )
    failed = lines.facts[5]
    assert failed.at_us == us(2022, 1, 28, 8, 0, 13) + 800_588
    assert failed.name.startd == "glidein_10386_583716042"
    assert failed.message.startswith("FATAL:   Unable to handle docker://hub.opensciencegrid.org")


def test_figure_8_metrics() -> None:
    """A part of a result, with quotation marks that no XML has, is read by name."""
    parsed = result_xml.parse(FIGURE_8.encode())
    assert parsed.wrong == "xml_malformed"
    result = parsed.result
    assert result is not None
    assert (result.ok, result.condor_s) == (True, 169_993)
    assert {offset for _, offset in result.offsets} == {-8 * 3600}
    jobs = result.jobs
    assert jobs is not None
    assert jobs.total == Jobs(31, 133_428)
    assert (jobs.good_zero, jobs.good_nonzero) == (Jobs(7, 4448), Jobs(23, 109_782))
    assert jobs.factor is None


def test_figure_8_as_xml() -> None:
    """With the marks that a pilot writes, within its element, the same comes out as XML."""
    text = FIGURE_8.replace("”", '"')
    whole = f'<OSGTestResult id="x" version="4.3.1">\n  <result>\n{text}</OSGTestResult>\n'
    parsed = result_xml.parse(whole.encode())
    assert parsed.wrong is None
    assert parsed.result == result_xml.parse(FIGURE_8.encode()).result


def test_figure_9_completed_jobs() -> None:
    """A pilot without jobs: all of it is idle or validation; per-mille are not seconds."""
    lines = completed_jobs.parse("completed_jobs_20220209.log", FIGURE_9.encode())
    (pilot,) = lines.facts
    assert lines.wrong == {}
    assert pilot.written_us == us(2022, 2, 9, 13, 55, 38)
    assert (pilot.name.cluster, pilot.name.proc, pilot.name.user) == (6767402, 0, "fefermilab")
    assert pilot.name.frontend == "fermilab_okd_gpfe01_frontend"
    assert (pilot.duration_s, pilot.condor_started, pilot.condor_s) == (1359, True, 1266)
    assert (pilot.jobs, pilot.jobs_s, pilot.goodput_s, pilot.terminated_s) == (0, 0, 0, 0)
    assert (pilot.validation, pilot.idle, pilot.nosuccess, pilot.badput) == (66, 1000, 0, 1000)
    assert (pilot.ran, pilot.validation_s) == (True, 89)
