"""`gwmond import` of a factory's directories whose pilots are known."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.pilot_life import Assumption
from gwmond.model.pilots.stored_pilots import PilotRow, RunRow
from tests.build.command_line import gwmond
from tests.build.gwms import generate, simulated
from tests.build.imports import pilots, run, totals

NUMBER, SEED = 300, 7


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A factory's directory, with all its defects; of every seventh pilot the output is lost."""
    directory = tmp_path_factory.mktemp("factory")
    generate.write(directory, SEED, NUMBER)
    for truth in simulated.pilots(SEED, NUMBER):
        for lost in directory.glob(f"client/{truth.directory}/{truth.stem}.*"):
            if is_lost(truth):
                lost.unlink()
    return directory


def is_lost(truth: simulated.Pilot) -> bool:
    """Whether the output of a pilot was taken away."""
    return truth.number % 7 == 3


def is_told(truth: simulated.Pilot) -> bool:
    """Whether the whole output of a pilot is there."""
    return truth.returned and not is_lost(truth)


def spent(row: PilotRow, name: str = "cpu") -> dict[str, float]:
    """Core-seconds, or chip-seconds, by category."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for (resource, measure, category, _), micros in row.settled.items():
        if (resource, measure) == (name, "resource"):
            seconds[category.value] += micros / 1e6
    return dict(seconds)


def ran(truth: simulated.Pilot, *, evicted: bool) -> tuple[float, float]:
    """Core-seconds of jobs, and by how much that may differ: a history begins 10 s earlier.

    Where two on a slot seem to overlap by that they may share a core.
    """
    early = 0 if truth.kind == "no_history" else 10
    seconds, least = 0, 0
    ends: dict[int, int] = {}
    for job in sorted(truth.jobs, key=lambda job: job.start):
        if job.evicted is evicted:
            seconds += job.end - job.start + early
        least += max(0, ends.get(job.slot, 0) - job.start + early)
        ends[job.slot] = job.end
    return seconds, 1e-3 + least


@pytest.fixture(scope="module")
def imported(factory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger into which it was imported."""
    ledger = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    done = run(ledger, factory)
    assert done.returncode == 0, done.stderr
    return ledger


def test_the_ledger_proves_itself(imported: Path) -> None:
    """Everything sums up, and nothing is left open."""
    done = gwmond("ledger", "check", "--ledger", imported)
    assert done.returncode == 0, done.stdout
    assert all(row.closed for row in pilots(imported).values())


def test_each_pilot_that_returned_its_output_is_right(imported: Path) -> None:
    """Its life and its size; a failed validation takes all of it, and says what failed."""
    known = pilots(imported)
    seen: set[str] = set()
    for truth in simulated.pilots(SEED, NUMBER):
        if not is_told(truth):
            continue
        row = known[f"{truth.cluster}.{truth.proc}"]
        assert (row.start_us, row.end_us) == (truth.start * 10**6, truth.end * 10**6), truth
        assert row.identity.key.entry == truth.entry_name
        # One that failed early has not told its size: it is the entry's usual one.
        if truth.tells_cores and truth.tells_memory and truth.condor is not None:
            assert sum(spent(row).values()) == truth.cores * (truth.end - truth.start)
        if truth.condor is None:
            assert set(spent(row)) == {"validation_fails"}
            seen.add(row.failure.partition(" ")[0])
        elif truth.jobs:
            assert spent(row).keys() <= {"pilot_overhead", "goodput", "preemption_badput"}
        else:
            assert set(spent(row)) == {"decision_problem"}
    assert len(seen) > 3


def test_what_jobs_got_is_what_they_had(imported: Path) -> None:
    """Goodput and what was cut off, by pilot; each run's outcome is what happened, and measured."""
    known, compared = pilots(imported), Counter[str]()
    runs: defaultdict[int, list[RunRow]] = defaultdict(list)
    with LedgerReader.open(f"sqlite:///{imported}") as reader:
        for run, _ in reader.run_rows():
            runs[run.pilot].append(run)
    for truth in simulated.pilots(SEED, NUMBER):
        row = known[f"{truth.cluster}.{truth.proc}"]
        if not is_told(truth) or truth.condor is None:
            continue
        assert len(runs[row.id]) == len(truth.jobs)
        how = {
            (
                run_row.key.job.split("#")[1],
                run_row.outcome.category.value,
            ): run_row.outcome.evidence
            for run_row in runs[row.id]
            if run_row.outcome is not None
        }
        for job in truth.jobs:
            category = "preemption_badput" if job.evicted else "goodput"
            evidence = how[f"{job.cluster}.0", category]
            if not job.evicted and truth.kind != "no_history":
                assert evidence == "measured"
            compared[category] += 1
        if truth.tells_cores and truth.tells_memory:
            for category, evicted in (("goodput", False), ("preemption_badput", True)):
                seconds, about = ran(truth, evicted=evicted)
                assert spent(row).get(category, 0) == pytest.approx(seconds, abs=about), truth
            compared[truth.kind] += 1
    kinds = {"good", "idle", "evicted", "no_history", "condor_error", "no_xml"}
    assert compared.keys() == {"goodput", "preemption_badput", *kinds}


def test_the_time_of_gpus_is_that_of_those_with_gpus(imported: Path) -> None:
    """Where HTCondor started its output tells how many, also that there are none."""
    known, compared = pilots(imported), Counter[int]()
    for truth in simulated.pilots(SEED, NUMBER):
        if not is_told(truth) or truth.condor is None:
            continue
        row = known[f"{truth.cluster}.{truth.proc}"]
        assert Assumption.GPUS not in row.assumed
        assert spent(row, "gpu").get("goodput", 0) == 0  # no job asked for any
        assert sum(spent(row, "gpu").values()) == truth.gpus * (truth.end - truth.start)
        compared[truth.gpus] += 1
    assert compared.keys() == {0, 1, 4}


def test_each_pilot_whose_output_was_lost_is_told_by_its_factory(imported: Path) -> None:
    """It began and ended as in the queue, and did what its summary says; none is there twice."""
    known, kinds = pilots(imported), Counter[str]()
    with LedgerReader.open(f"sqlite:///{imported}") as reader:
        rows = reader.pilot_rows()
        assert len(rows) == NUMBER
        assert (
            sum(
                total.net
                for count_key, total in reader.load().totals.counts.items()
                if count_key.what == "pilots"
            )
            == NUMBER
        )
    for truth in simulated.pilots(SEED, NUMBER):
        row = known[f"{truth.cluster}.{truth.proc}"]
        if is_told(truth):
            assert Assumption.NO_OUTPUT not in row.assumed
            continue
        kinds[truth.kind] += 1
        in_queue = truth.end + (0 if truth.kind == "no_files" else 30)
        assert (row.start_us, row.end_us) == (truth.start * 10**6, in_queue * 10**6), truth
        assert row.end_source == "queue"
        if not is_lost(truth) and truth.kind in {"hard_kill", "truncated"}:
            assert Assumption.END in row.assumed
            continue
        assert Assumption.NO_OUTPUT in row.assumed
        total = sum(spent(row).values())
        if truth.kind in {"hard_kill", "truncated", "empty", "no_files"}:
            assert spent(row) == {"unclassified": total}  # no line, or one that tells nothing
        elif truth.condor is None:
            assert spent(row) == {"validation_fails": total}
        elif not generate.divided(truth)["Total"][0]:
            assert spent(row) == {"decision_problem": total}
        else:
            ended = sum(generate.divided(truth)[name][1] for name in ("goodZ", "goodNZ"))
            (step,) = row.steps
            assert spent(row).get("goodput", 0) <= ended * step.size.cores
            assert spent(row)["pilot_overhead"] > 0
            assert row.assumed[Assumption.JOBS][0] <= (truth.last_script or 0) * 10**6
    assert kinds.keys() >= {"good", "idle", "failed", "empty", "no_files", "hard_kill", "truncated"}


def test_a_pilot_tells_by_which_rules_it_is_told(imported: Path) -> None:
    """Each with its interval, as text and as JSON."""
    row = next(pilot for pilot in pilots(imported).values() if Assumption.JOBS in pilot.assumed)
    shown = "pilot", "--ledger", imported, row.id
    assert "estimated, rule no_output: " in gwmond(*shown).stdout
    done = gwmond(*shown, "--format", "json")
    story = json.loads(done.stdout)
    rules = {of["rule"]: of for of in story["rules"]}
    assert rules.keys() == {assumption.value for assumption in row.assumed}
    start, end = (round(rules["jobs"][f"{at}_epoch_seconds"] * 10**6) for at in ("start", "end"))
    assert (start, end) == row.assumed[Assumption.JOBS]
    assert {run["outcome"] for run in story["runs"]} == {"summarised"}
    assert {run["rule"] for run in story["runs"]} == {"summarised"}
    assert story["validation_end_epoch_seconds"] == (row.validation_end_us or 0) / 10**6


def parts(factory: Path) -> list[Path]:
    """Directories of which each can be imported alone."""
    return sorted({file.parent for file in factory.rglob("*") if file.is_file()})


def lives(ledger: Path) -> list[tuple[object, ...]]:
    """All that is stored of pilots, and of their runs, without their numbers."""
    columns = "name, site, entry, factory, start_us, end_us, steps, validation, estimated"
    runs = "job, number, start_us, end_us, category, outcome, cpu_resource, cpu_canonical"
    with sqlite3.connect(ledger) as connection:
        found = [
            (*row, json.dumps(json.loads(settled), sort_keys=True))
            for *row, settled in connection.execute(f"SELECT {columns}, settled FROM pilots")
        ]
        found += connection.execute(f"SELECT {runs} FROM runs WHERE job NOT LIKE 's%#p%#%'")
        found += connection.execute(
            "SELECT labels, whole, micros FROM series WHERE kind = 'count' AND whole + micros > 0"
        )
    return sorted(found, key=repr)


@pytest.mark.parametrize("seed", [1, 2])
def test_in_parts_in_any_order(factory: Path, imported: Path, tmp_path: Path, seed: int) -> None:
    """The same ledger as at once: sizes and sites that are not told are those of the entry's
    others, whoever came first."""
    ledger, some = tmp_path / "ledger.sqlite", parts(factory)
    random.Random(seed).shuffle(some)
    assert len(some) > 5
    for number in range(3):
        done = run(ledger, *some[number::3])
        assert done.returncode == 0, done.stderr
    assert totals(ledger) == totals(imported)
    assert lives(ledger) == lives(imported)


def test_again_is_nothing(imported: Path, factory: Path) -> None:
    """What was imported is not imported twice."""
    before = totals(imported)
    done = run(imported, factory)
    assert done.returncode == 0
    assert done.stdout.startswith("0 outputs")
    assert "nothing is new since the last import" in done.stdout
    told = f"gwmond report --ledger {imported} --from 20"
    assert told in done.stdout.splitlines()[-1]
    err = gwmond("report", "--ledger", imported, "--site", "no").stderr
    assert "no pilot at all of --site no" in err
    assert "seems not to run" not in err
    assert totals(imported) == before


def test_nothing_to_import(tmp_path: Path) -> None:
    """An empty directory, and one that is not there: an error that says so."""
    empty = tmp_path / "empty"
    empty.mkdir()
    done = run(tmp_path / "ledger.sqlite", empty)
    assert (done.returncode, "no job.*.out" in done.stderr) == (1, True)
    done = run(tmp_path / "ledger.sqlite", tmp_path / "absent")
    assert (done.returncode, "no such directory" in done.stderr) == (1, True)
    (tmp_path / "file").touch()
    done = run(tmp_path / "ledger.sqlite", tmp_path / "file")
    assert (done.returncode, "is a file" in done.stderr) == (1, True)


def test_options_are_proven_before_the_import(tmp_path: Path) -> None:
    for option, code, why in (
        (["--processes", "0"], 2, "--processes: at least 1"),
        (["--openmetrics", str(tmp_path / "none" / "x.om")], 1, "is no directory"),
    ):
        done = gwmond("import", "--ledger", tmp_path / "l.sqlite", tmp_path, *option)
        assert (done.returncode, why in done.stderr) == (code, True), done.stderr
        assert not (tmp_path / "l.sqlite").exists()
