"""What is read in a quick way is read as it is in the general one."""

from __future__ import annotations

import re
from time import gmtime, strftime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gwmond.sources.gwms import pilot_out, pilot_output, result_xml, texts
from tests.build.gwms import figures, generate, simulated
from tests.examples import examples

PILOTS = list(simulated.pilots(5, 120))
SHORT = [generate.xml(pilot).encode() for pilot in PILOTS]
NEVER = re.compile("(?!)")
quick = settings(
    max_examples=examples(200),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def parsed(raw: bytes) -> result_xml.ParsedResult:
    """A result as the XML parser reads it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_xml, "SHORT", re.compile(b"(?!)"))
        return result_xml.parse(raw)


def test_most_results_need_no_xml_parser() -> None:
    """Else the quick way would be none; and the 2022 report's own is one of them."""
    usual = [raw for raw in SHORT if result_xml.SHORT.fullmatch(raw.strip())]
    assert len(usual) > 0.9 * len(SHORT)


def test_results_are_read_the_same() -> None:
    """Those of all kinds of pilots, and the report's."""
    for raw in [*SHORT, figures.FIGURE_8.encode()]:
        assert result_xml.parse(raw) == parsed(raw)


@quick
@given(data=st.data())
def test_damaged_results_are_read_the_same(data: st.DataObject) -> None:
    """Wherever a few bytes are others."""
    raw = bytearray(data.draw(st.sampled_from(SHORT)))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw)))
        length = data.draw(st.integers(0, 3))
        raw[at : at + length] = data.draw(
            st.sampled_from(
                [
                    *(b"", b"\n", b'"', b"'", b"x", b"<", b">", b"/>", b"&", b"&amp;", b"]]>"),
                    *(b"\0", b"\xe9", "é".encode(), b"<!-- -->", b"</metric>", b"<result>"),
                    *(b'<metric name="failure" ts="x" uri="y">z</metric>', b"a" * 1200),
                    *(b"\r\n", b"\t", b" " * 9),
                ]
            )
        )
    assert result_xml.parse(bytes(raw)) == parsed(bytes(raw))


@given(
    at=st.integers(0, 4_000_000_000),
    form=st.sampled_from(("%a %b %e %H:%M:%S UTC %Y", "%a %b %e %H:%M:%S CEST %Y")),
    junk=st.sampled_from(("", " ", "x", " PM")),
)
def test_dates_are_read_the_same(at: int, form: str, junk: str) -> None:
    """A date in the usual form, and one that is nearly so."""
    date = strftime(form, gmtime(at)) + junk
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "DATE", NEVER)
        expected = texts.wall_of_date(date)
    assert texts.wall_of_date(date) == expected
    if not junk:
        assert expected == at


def test_runs_in_stdout_take_the_zone_of_the_whole_output() -> None:
    """Also where the statistics stand before any line that has a time of the epoch."""
    pilot = next(job for job in PILOTS if job.kind == "good" and len(job.jobs) > 2)
    raw = generate.out(pilot)
    begin, end = raw.index(b"=== Stats of main"), raw.index(b"=== End Stats of main")
    first = raw[begin:end] + raw[:begin] + raw[end:]
    assert pilot_out.parse(first).runs == pilot_out.parse(raw).runs
    assert len(pilot_out.parse(raw).runs) == len(pilot.jobs)
    assert pilot_output.parse("p", first, None).runs == pilot_output.parse("p", raw, None).runs


def test_lines_about_jobs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """All starts are counted, but no more than so many are kept."""
    monkeypatch.setattr(pilot_out, "MAX_LINES", 10)
    out = pilot_out.parse(b"02/28/22 22:42:54 Starting job 1.0 from x\n" * 50)
    assert (out.starts, len(out.lines)) == (50, 10)
