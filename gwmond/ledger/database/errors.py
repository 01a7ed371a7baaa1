"""What can go wrong with a ledger, each as a type, a sentence and a remedy.

A message names the ledger (a password never appears), what happened and what an operator can do.
``reopen`` says whether the open ``Ledger`` is lost: then ``close`` it and ``open`` again; otherwise
the same object works again as soon as the cause is gone.  Either way nothing was half written:
what the ledger holds after an error is what it held before, or (when the connection broke while
a commit was under way) the whole batch; the tick that ``load`` returns shows which.
"""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from importlib import metadata
from typing import ClassVar

from gwmond.model.problem_names import ProblemName

NOT_THERE = "does not exist"
"""The message on a ledger's file that is not there to be read."""


class LedgerError(Exception):
    """Any failure of the ledger; ``str()`` is one line for an operator."""

    reopen: ClassVar[bool] = False
    problem: ClassVar[ProblemName]

    def __init_subclass__(cls) -> None:
        """Set the problem by the class's name."""
        cls.problem = ProblemName[cls.__name__.removeprefix("Ledger").upper()]

    def __init__(self, where: str, what: str, remedy: str) -> None:
        super().__init__(where, what, remedy)
        self.where, self.what, self.remedy = where, what, remedy

    def __str__(self) -> str:
        return f"ledger {self.where}: {self.what}. {self.remedy}"


class LedgerLocation(LedgerError):
    """The URL or path cannot name a ledger, or the directory does not exist."""


class LedgerLocked(LedgerError):
    """Another process writes to this ledger, or holds a transaction on it."""


class LedgerCorrupt(LedgerError):
    """The stored bytes are damaged; nothing was moved, repaired or deleted."""

    reopen = True


class LedgerFull(LedgerError):
    """No space is left, or the quota is used up."""


class LedgerReadOnly(LedgerError):
    """The file, directory, file system or database does not let this user write."""


class LedgerForeign(LedgerError):
    """A sound database, but another program's."""


class LedgerTooNew(LedgerError):
    """A later gwmond wrote this ledger."""


class LedgerTooOld(LedgerError):
    """An earlier gwmond wrote this ledger: a reader, or nobody, upgrades it."""


class LedgerUnreachable(LedgerError):
    """The database server does not answer, refuses, or the connection broke."""

    reopen = True


class LedgerMoved(LedgerError):
    """The open file is no longer the one at its path: moved, deleted or replaced."""

    reopen = True


class LedgerClosed(LedgerError):
    """Used after ``close``, after an error that asks to reopen, or in a forked child."""

    reopen = True


class LedgerRefused(LedgerError):
    """A batch that no correct caller makes (negative, not exact, or times not finite)."""


class LedgerConflict(LedgerError):
    """A batch does not start at the stored tick: a replay, or another writer was here.

    ``replay`` is true when the stored tick is the batch's own, so that it is known to be stored.
    """

    def __init__(self, where: str, what: str, remedy: str, replay: bool) -> None:
        super().__init__(where, what, remedy)
        self.args = (where, what, remedy, replay)
        self.replay = replay


class LedgerFailed(LedgerError):
    """Anything else that the database or the system reported."""


def install_command(extra: str) -> str:
    """Return the command that puts what an extra of gwmond needs where this gwmond runs.

    It names the packages, as gwmond itself may be on no index.
    """
    requires: list[str] = []
    with suppress(metadata.PackageNotFoundError):  # a mere copy of the source
        requires = metadata.requires("gwmond") or []
    marker = f'extra == "{extra}"'
    packages = [
        require.partition(";")[0].strip()
        for require in requires
        if marker in require.replace("'", '"')
    ]
    return shlex.join([sys.executable, "-m", "pip", "install", *(packages or [f"gwmond[{extra}]"])])
