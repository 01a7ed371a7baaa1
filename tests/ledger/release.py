"""Ledgers as a release left them: what later releases have to read, and to upgrade.

    python -m tests.ledger.release

writes those of this version into tests/ledger/releases/VERSION, with their reports.  That is a
part of making a release.  What an earlier release has left is never written anew.
"""

from __future__ import annotations

import lzma
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from gwmond import __version__
from gwmond.ledger.store import Ledger
from gwmond.model.demand.idle_history import WaitInterval
from gwmond.model.poll.batch import Settled
from tests.build import pilot_ledger
from tests.build.command_line import gwmond
from tests.ledger import pilot_batches

RELEASES = Path(__file__).with_name("releases")
POLLS = 14

#: Groupings of reports: time spent; runs that ended; pilots that ended.
BY = ("site,category", "entry,outcome", "group,day", "user", "node", "failure")
_PERIOD = ("--from", "2023-11-14", "--to", "2023-11-17", "--format", "csv")


def _polls(url: str) -> None:
    """A ledger with rows in every table."""
    with Ledger.open(url) as ledger:
        for number in range(1, POLLS + 1):
            poll = pilot_batches.poll(number)
            settled = tuple(Settled(row.id) for row in poll.pilots)
            waits = (WaitInterval("ap1", "g", poll.now_us, None, "w", "no_pilot", "down", "S"),)
            ledger.commit(poll._replace(settled=settled, stored_us=poll.now_us, waits=waits))


KINDS: Mapping[str, Callable[[str], None]] = {"accounted": pilot_ledger.write, "polls": _polls}


def report(ledger: Path, by: str) -> str:
    """``gwmond report`` of a ledger, as CSV; the clock makes no difference."""
    said = gwmond("report", "--by", by, *_PERIOD, "--ledger", ledger)
    assert said.returncode == 0, said.stderr
    return said.stdout


def unpack(release: str, kind: str, place: Path) -> Path:
    """A copy of a release's ledger, that may be written to."""
    file = place / f"{kind}.sqlite"
    file.write_bytes(lzma.decompress((RELEASES / release / f"{kind}.sqlite.xz").read_bytes()))
    return file


def write(directory: Path) -> None:
    """Make the ledgers, and write what `gwmond report` says of them."""
    for kind, make in KINDS.items():
        (directory / kind).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as work:
            file = Path(work) / "ledger.sqlite"
            make(f"sqlite:///{file}")
            packed = lzma.compress(file.read_bytes(), preset=9)
            (directory / f"{kind}.sqlite.xz").write_bytes(packed)
            for by in BY:
                (directory / kind / f"{by}.csv").write_text(report(file, by))


if __name__ == "__main__":
    write(RELEASES / __version__)
