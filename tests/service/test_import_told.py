"""What an import tells while it goes on, when it is interrupted, and at its end."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest
from rich.progress import Progress

from gwmond import cli
from gwmond.commands import import_
from gwmond.config.settings import Config
from gwmond.ledger.reading.reader import LedgerReader
from gwmond.ledger.store import Ledger
from gwmond.service.importer import Importer
from tests.build.gwms import generate

Run: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A factory's directories."""
    directory = tmp_path_factory.mktemp("factory")
    generate.write(directory, 7, 40)
    return directory


@pytest.fixture(scope="module")
def there(factory: Path) -> int:
    """Of how many pilots there are outputs."""
    files = [path for path in factory.rglob("job.*") if path.suffix in {".out", ".err"}]
    return len({file.with_suffix("") for file in files})


class Imported(NamedTuple):
    """A ledger into which it was imported, and what was told of the progress."""

    ledger: Path
    told: list[tuple[str, int, int | None]]


def into(ledger: Path, factory: Path) -> list[tuple[str, int, int | None]]:
    """Import; return what was told of the progress."""
    told: list[tuple[str, int, int | None]] = []
    with Ledger.open(str(ledger)) as opened:
        Importer(Config(), opened).run([str(factory)], progress=lambda *of: told.append(of))
    return told


@pytest.fixture(scope="module")
def imported(factory: Path, tmp_path_factory: pytest.TempPathFactory) -> Imported:
    ledger = tmp_path_factory.mktemp("ledger") / "of the past.sqlite"
    return Imported(ledger, into(ledger, factory))


def net(ledger: Path) -> dict[Any, int]:
    """All totals, in micros."""
    with LedgerReader.open(str(ledger)) as reader:
        return {
            pilot_series: total.net
            for pilot_series, total in reader.load().totals.pilots.items()
            if total.net
        }


def test_how_much_there_is_is_known_from_the_begin(
    factory: Path, there: int, imported: Imported
) -> None:
    """The total never changes, and is reached, also where all was read before."""
    for told in (imported.told, into(imported.ledger, factory)):
        assert told[0] == ("pilots", 0, None)
        assert {(what, number) for what, _, number in told[1:]} == {("pilots", there)}
        done = [done for _, done, _ in told[1:]]
        assert (done[0], done[-1], done) == (0, there, sorted(done))
        assert len(done) > 2


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Tests that run in a shell's background would not heed the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_import_that_is_interrupted(
    factory: Path,
    there: int,
    imported: Imported,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C tells what is kept and how to go on; so does the same command, to the same end."""
    update = Progress.update

    def interrupted(self: Progress, *given: Any, **options: Any) -> None:
        update(self, *given, **options)
        if options.get("completed"):
            os.kill(os.getpid(), signal.SIGINT)

    ledger = tmp_path / "ledger.sqlite"
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "update", interrupted)
        code, out, err = run("import", "--ledger", ledger, factory)
    assert (code, out) == (130, "")
    with LedgerReader.open(str(ledger)) as reader:
        assert any(row.identity.factory_job for row in reader.pilot_rows())
    told = err.splitlines()[-1]
    assert told.startswith("gwmond: interrupted after ")
    assert 0 < int(told.split()[3]) <= there
    assert told.endswith("What was read is kept: repeat the command to go on")
    assert run("import", "--ledger", ledger, factory)[0] == 0
    assert net(ledger) == net(imported.ledger) != {}


def test_the_command_that_is_told_at_the_end_works(
    factory: Path, imported: Imported, tmp_path: Path, run: Run
) -> None:
    """It names the ledger and the configuration that were given, and can be typed as it is."""
    config, ledger = tmp_path / "a file.toml", imported.ledger
    config.write_text("[ledger]\nurl = '/nowhere/ledger.sqlite'\n")
    code, out, _ = run("import", "--config", config, "--ledger", ledger, factory)
    assert code == 0
    _, command, *arguments = shlex.split(out.splitlines()[-1].partition(": ")[2])
    assert command == "report"
    assert arguments[:4] == ["--config", str(config), "--ledger", str(ledger)]
    code, out, err = run(command, *arguments)
    assert (code, str(ledger) in out) == (0, True), err


def test_no_password_is_told() -> None:
    """The last line is kept in logs of cron."""
    given = ["import", "/x", "--ledger", "postgresql://gwmond:secret@db/gwmond"]
    told = import_.report_command(cli.parser(given).parse_args(given))
    assert told.startswith("gwmond report --ledger ")
    assert "secret" not in told


def test_without_options_none_is_told() -> None:
    """The command is as short as what was typed."""
    given = ["import", "/x"]
    arguments = cli.parser(given).parse_args(given)
    assert import_.report_command(arguments) == "gwmond report"
