"""``gwmond trace``, as it is typed, on a real ledger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gwmond.commands.common import EXIT_FAILED, EXIT_OK
from tests.build.command_line import gwmond
from tests.build.pilot_ledger import BASE, write

JOB = f"schedd.example.org#3.0#{BASE}"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    write(str(path))
    return path


@pytest.mark.parametrize(
    "words",
    [
        (JOB,),
        ("3.0",),
        ("3.0", "--schedd", "schedd.example.org"),
        ("schedd.example.org#3.0",),
    ],
)
def test_a_job_by_its_names(ledger: Path, words: tuple[str, ...]) -> None:
    done = gwmond("trace", *words, "--ledger", ledger, "--width", "100")
    assert (done.returncode, done.stderr) == (EXIT_OK, "")
    lines = done.stdout.splitlines()
    assert f"job {JOB}" in lines
    root, waited, ran, again = (line for line in lines if "█" in line)
    assert root.startswith("job ")
    assert root.endswith("pilot_shutdown, not settled")  # no schedd's history has it yet
    assert waited.split()[0] == "queue"
    assert waited.endswith("1h40m")
    assert ran.startswith("  run 0 ")
    assert ran.endswith("20m00s  pilot_shutdown, Site-A")
    assert again.endswith("pilot_shutdown, not settled")  # it waits since, as far as is known
    assert all(len(line) <= 100 for line in lines if "█" in line)
    assert "Spans that the job makes itself (gwmond-trace.sh) are in the same trace" in done.stdout


def test_a_pilot_has_its_runs(ledger: Path) -> None:
    done = gwmond("trace", "glidein_1@", "--ledger", ledger)
    drawn = [line for line in done.stdout.splitlines() if "█" in line]
    assert [line.split("█")[0].split() for line in drawn] == [
        *(["pilot"], ["idle"], ["idle"]),
        *(["run", "1"], ["run", "2"], ["run", "3"]),
    ]
    some = gwmond("trace", "1", "--ledger", ledger, "--lines", "2").stdout
    assert "(4 more lines" in some


def test_a_pilot_that_runs_has_as_much_time_that_is_not_settled_as_its_story(ledger: Path) -> None:
    """Of the five minutes before its first job the last one may still be a run's."""
    done = gwmond("trace", "3", "--ledger", ledger)
    (idle,) = (line for line in done.stdout.splitlines() if line.startswith("  idle"))
    assert idle.endswith("5m00s  1m00s not settled")
    story = json.loads(gwmond("pilot", "3", "--ledger", ledger, "--format", "json").stdout)
    assert [
        (part["settled"], part["end_epoch_seconds"] - part["start_epoch_seconds"])
        for part in story["own_time"]
    ] == [(True, 240), (False, 60)]


def test_json_has_all_and_otlp_what_is_settled(ledger: Path) -> None:
    found = json.loads(gwmond("trace", JOB, "--ledger", ledger, "--format", "json").stdout)
    names = [one["name"] for one in found["spans"]]
    assert names == ["job", "queue", "queue", "run"]
    assert found["spans"][3]["error"] == "pilot_shutdown"
    request = json.loads(gwmond("trace", JOB, "--ledger", ledger, "--format", "otlp").stdout)
    (resource,) = request["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    assert [one["name"] for one in scope["spans"]] == ["queue", "run"]
    assert scope["spans"][1]["spanId"] == found["spans"][3]["span_id"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("99.0",), 'no run of a job "99.0"'),
        (("3.0", "--schedd", "other"), 'no run of a job "3.0"'),
        (("schedd#1.0#1",), 'no run of a job "schedd#1.0#1"'),
        (("nobody",), 'no job or pilot "nobody"'),
        (("glidein",), '3 pilots fit "glidein"'),
    ],
)
def test_what_is_not_there(ledger: Path, words: tuple[str, ...], said: str) -> None:
    done = gwmond("trace", *words, "--ledger", ledger)
    assert (done.returncode, done.stdout) == (EXIT_FAILED, "")
    assert said in done.stderr
