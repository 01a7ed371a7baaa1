"""What gwmond reads of HTCondor and GlideinWMS is held against what a real GlideinWMS had.

``glideinwms/attributes.json``: the attributes that ads and records of each kind had in the story of
tests/glideinwms, which ``python -m tests.glideinwms DIRECTORY`` plays and records.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import shutil
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from gwmond.ledger.reading.reader import LedgerReader
from gwmond.model.pilots.file_facts import FailureClass
from gwmond.model.pilots.stored_pilots import PilotRow
from gwmond.reports.render.categories import of_kind
from gwmond.reports.stored.parts import LifePart, by_part
from gwmond.reports.stored.stored_pilot import StoredPilot
from gwmond.service.accounting.reconciler import Reconciler
from gwmond.sources import gwms
from gwmond.sources.gwms import condor_events
from gwmond.sources.htcondor import collector, factory, glideresource, order
from gwmond.sources.htcondor.access import Query
from tests.build import imports
from tests.build.command_line import program
from tests.glideinwms.__main__ import unpacked
from tests.recordings.summary import Shown
from tests.sources.asked import PAGE, QUERIES

HERE = Path(__file__).parent / "glideinwms"

#: What is asked of ads of these kinds, a kind as it is in ``attributes.json`` and on the page.
ASKED: dict[str, tuple[Query, ...]] = {
    "Machine": (*QUERIES["Slots"], *QUERIES["Claims"]),
    "StartD": QUERIES["StartD ads"],
    "DaemonMaster": QUERIES["Failed pilots"],
    "Scheduler": QUERIES["Schedd ads"],
    "Accounting": (*QUERIES["Accounting groups"], order._ACCOUNTING),
    "Submitter": (*QUERIES["Submitter ads"], order._SUBMITTERS),
    "Negotiator": (order._NEGOTIATORS, order._CYCLES),
    "Collector": (collector.QUERY,),
    "queue": (*QUERIES["Idle jobs"], *QUERIES["Running jobs"], *QUERIES["One job"]),
    "epochs": QUERIES["Epoch history"],
    "history": QUERIES["Schedd history"],
    "startd_history": QUERIES["Startd history"],
    "factory queue": factory.queue_queries(1, 0),
    "glideresource": (glideresource.QUERY,),
    "glidefrontendmonitor": (glideresource.FRONTENDS,),
    "glidefactory": (factory.ENTRIES,),
    "glidefactoryclient": (factory.CLIENTS,),
    "glideclient": (factory.ASKS,),
}


def seen() -> dict[str, list[str]]:
    """The attributes that were there, by the kind of ad."""
    found: dict[str, list[str]] = json.loads((HERE / "attributes.json").read_text())
    return found


def listed() -> dict[str, set[str]]:
    """What the page says was never there, by the kind of ad."""
    title = "\n## Not seen at a real GlideinWMS\n"
    rows = [
        line.split("|") for line in PAGE.read_text().partition(title)[2].splitlines() if "`" in line
    ]
    found: dict[str, set[str]] = {}
    for row in rows:
        if len(row) == 5:
            found.setdefault(row[1].strip(), set()).update(re.findall(r"`([\w*]+)`", row[2]))
    return found


@pytest.mark.parametrize("kind", ASKED)
def test_what_is_asked_for_was_there_or_the_page_says_where_its_name_is(kind: str) -> None:
    there = [name.lower() for name in seen()[kind]]
    asked = {name for query in ASKED[kind] for name in query.attributes}
    never = {name for name in asked if not any(fnmatchcase(had, name.lower()) for had in there)}
    assert listed().get(kind, set()) == never


def formats() -> dict[str, re.Pattern[bytes]]:
    """Each file name and line that is looked for in GlideinWMS's files, by what has it.

    They are the patterns and the texts that the modules which read these files have.
    """
    found: dict[str, re.Pattern[bytes]] = {}
    for info in pkgutil.walk_packages(gwms.__path__, f"{gwms.__name__}."):
        module = importlib.import_module(info.name)
        own = info.name.removeprefix(f"{gwms.__name__}.")
        for name, value in vars(module).items():
            for number, pattern in enumerate(_patterns(value)):
                if name not in _NO_FORMATS and pattern not in found.values():
                    found[f"{own}.{name}" + f".{number}" * (number > 0)] = pattern
    for code in condor_events.STATES:
        found[f"event {code:03}"] = re.compile(rb"^%03d \(" % code, re.MULTILINE)
    for kind in FailureClass:
        if kind is not FailureClass.OTHER:
            found[f"failure {kind}"] = re.compile(b">%s</metric>" % kind.encode())
    return found


#: What is no part of a line: of which characters base64 is.
_NO_FORMATS = {"_NOT_BASE64", "_SPACE"}


def _patterns(value: object) -> Iterator[re.Pattern[bytes]]:
    if isinstance(value, re.Pattern):
        text = value.pattern if isinstance(value.pattern, bytes) else value.pattern.encode()
        # Some are of a whole file name, or of the lines that others were divided into.
        yield re.compile(text, value.flags & ~re.UNICODE | re.MULTILINE)
    elif isinstance(value, bytes):
        yield re.compile(re.escape(value))
    elif isinstance(value, dict):
        yield from _patterns((*value, *value.values()))
    elif isinstance(value, tuple | frozenset) and not hasattr(value, "_fields"):
        for one in value if isinstance(value, tuple) else sorted(value, key=str):
            yield from _patterns(one)


def test_each_line_that_is_looked_for_was_there_or_the_page_says_who_writes_it(files: Path) -> None:
    paths = [path for path in files.rglob("*") if path.is_file()]
    texts = [path.name.encode() for path in paths]
    for path in paths:
        texts += [path.read_bytes(), *unpacked(path.read_bytes())]
    never = {name for name, of in formats().items() if not any(of.search(text) for text in texts)}
    page = PAGE.with_name("factory-files.md").read_text()
    text = page.partition("\n## Not seen at a real GlideinWMS\n")[2]
    rows = [row for row in text.splitlines() if row.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])} == never


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pilots and the factory wrote, in its tree."""
    directory = tmp_path_factory.mktemp("files")
    with zipfile.ZipFile(HERE / "files.zip") as archive:
        archive.extractall(directory)
    return directory


def imported(files: Path, directory: Path) -> tuple[str, dict[str, PilotRow]]:
    """What an import says, and the pilots that are known then, by the factory's job."""
    ledger = directory / "ledger.sqlite"
    done = imports.run(ledger, files)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr, imports.pilots(ledger)


def test_each_file_and_line_is_understood(files: Path, tmp_path: Path) -> None:
    """Pilots begin and end when their own output says so; an entry's validation fails as it did."""
    said, pilots = imported(files, tmp_path)
    assert not re.search("garbage|not understood|wrong", said), said
    outputs = {path.name[4:-4]: path.read_text() for path in files.rglob("job.*.out")}
    assert outputs
    for job, text in outputs.items():
        began = re.search(r"Starting glidein_startup.sh at .* \((\d+)\)", text)
        ended = re.search(r"=== Glidein ending .* \((\d+)\) with code (\d+)", text)
        assert began is not None
        assert pilots[job].start_us == int(began[1]) * 10**6
        if ended is not None:
            assert pilots[job].end_us == int(ended[1]) * 10**6
            failed = pilots[job].identity.key.entry == "SiteBroken"
            assert (pilots[job].validation.shown == "failed") == failed
            assert (ended[2] != "0") == failed


def test_parts_last_as_long_as_the_pilots_themselves_say(files: Path, tmp_path: Path) -> None:
    """How long the validation was, and what follows one that failed: the deliberate sleep."""
    imported(files, tmp_path)
    with LedgerReader.open(f"sqlite:///{tmp_path}/ledger.sqlite") as ledger:
        rows = {row.identity.factory_job.partition("#")[2]: row for row in ledger.pilot_rows()}
        runs = ledger.runs_of([row.id for row in rows.values()])
    said = 0
    for path in files.rglob("job.*.out"):
        row = rows[path.name[4:-4]]
        lasted = {
            part: of_kind(settled, ("cpu", "resource")) / 10**6 / row.steps[-1].size.cores
            for part, settled in by_part(StoredPilot(row, runs.get(row.id, ()))).items()
        }
        text = path.read_text()
        ended = re.search(r"=== Glidein ending .* after (\d+) ===", text)
        if ended is not None:  # one was killed
            assert sum(lasted.values()) == pytest.approx(int(ended[1]), abs=1)
        if (validated := re.search(r" after validating for (\d+) ===", text)) is not None:
            assert lasted[LifePart.VALIDATION] == int(validated[1])
            said += 1
        else:
            assert lasted.keys() == {LifePart.VALIDATION, LifePart.ASLEEP}
    assert said >= 5


def test_without_completed_jobs_the_same_pilots_are_known(files: Path, tmp_path: Path) -> None:
    """GlideinWMS of early 2026 writes none, and everything else as ever (event 028 is why).

    After a day that is a problem, which says so.
    """
    logs = list(files.rglob("condor_activity_*.log"))
    assert all("\n028 (" in log.read_text() for log in logs)
    assert list(files.rglob("completed_jobs_*.log"))
    defect = tmp_path / "defect"
    shutil.copytree(files, defect, ignore=shutil.ignore_patterns("completed_jobs_*"))
    found = []
    for number, tree in enumerate((files, defect)):
        directory = tmp_path / str(number)
        directory.mkdir()
        _, pilots = imported(tree, directory)
        found.append({job: (row.start_us, row.end_us) for job, row in pilots.items()})
        assert problems_after_a_day(directory / "ledger.sqlite") == ["no_completed_jobs"] * number
    assert found[0] == found[1]


def problems_after_a_day(ledger: Path) -> list[str]:
    """What the daemon's reconciler says of a factory whose numbers these are, and stay."""
    url, now = f"sqlite:///{ledger}", 1e9
    with LedgerReader.open(url) as reader:
        numbers = reader.load().totals.factory
    reconciler = Reconciler(url)
    assert reconciler.step(now, numbers) == []
    reconciler.wait()
    return [str(problem.problem) for problem in reconciler.step(now + 86400, numbers)]


def test_the_recording_replays_with_what_was_there() -> None:
    """What happened at each site of the story is seen; nobody's name is in the recording."""
    said = program("tests.recordings.summary", HERE / "real.zip", "--every", "1")
    shown = Shown(**json.loads(said))
    assert (shown.sites, shown.entries) == (5, 5)
    assert shown.most_pilots >= 4
    assert {"down", "filling", "insufficient_demand"} < shown.states.keys()
    stuck = {f"provisioning_bottleneck: {why}" for why in ("factory_limit", "held_pilots")}
    assert stuck <= shown.reasons.keys()
    for recorded in ("real.zip", "files.zip"):
        with zipfile.ZipFile(HERE / recorded) as archive:
            for text in map(archive.read, archive.namelist()):
                for part in (text, *unpacked(text)):
                    assert not re.search(rb"alice|\bbob\b", part)
