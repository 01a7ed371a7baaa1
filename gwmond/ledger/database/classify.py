"""From what a driver or the system reports to a ``LedgerError`` that an operator understands."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError

from gwmond.ledger.database.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerFailed,
    LedgerFull,
    LedgerLocation,
    LedgerLocked,
    LedgerMoved,
    LedgerReadOnly,
    LedgerRefused,
    LedgerUnreachable,
)

KEEP = (
    "Nothing was moved or deleted. Stop gwmond, move the file and its -wal and -shm aside (all "
    "three), then restore a backup, or save what is readable: sqlite3 FILE .recover | sqlite3 NEW"
)
_FREE = "Free or add space; nothing of this batch was stored, and the next attempt may succeed."
_WRITE = "Let the user of gwmond write to the file and to its directory (it needs both)."
_BUSY = "End the other program's transaction; the next attempt may succeed."
_SERVER = "Check that the server runs, and the host, port, database, user and password."
_LOG = "See the log of the database server and of the kernel."

# By the primary name of the SQLite result code (https://www.sqlite.org/rescode.html).
_SQLITE: dict[str, tuple[type[LedgerError], str]] = {
    "NOTADB": (LedgerCorrupt, KEEP),
    "CORRUPT": (LedgerCorrupt, KEEP),
    "TOOBIG": (LedgerCorrupt, KEEP),  # nothing that is written comes near
    "FULL": (LedgerFull, _FREE),
    "READONLY": (LedgerReadOnly, _WRITE),
    "PERM": (LedgerReadOnly, _WRITE),
    "AUTH": (LedgerReadOnly, _WRITE),
    "CANTOPEN": (LedgerReadOnly, _WRITE),
    "BUSY": (LedgerLocked, _BUSY),
    "LOCKED": (LedgerLocked, _BUSY),
}
# By the class, or the code, of the SQLSTATE (PostgreSQL manual, appendix A).
_POSTGRES: dict[str, tuple[type[LedgerError], str]] = {
    "08": (LedgerUnreachable, _SERVER),
    "28": (LedgerUnreachable, _SERVER),
    "3D000": (LedgerUnreachable, _SERVER),
    "57P": (LedgerUnreachable, _SERVER),
    "25006": (LedgerReadOnly, "The server is a standby or read-only; name the primary."),
    "42501": (
        LedgerReadOnly,
        "Let the user of gwmond own its schema: ALTER SCHEMA ... OWNER TO ...",
    ),
    "53100": (LedgerFull, _FREE),
    "53300": (LedgerUnreachable, "The server has no connection left; raise max_connections."),
    "55P03": (LedgerLocked, _BUSY),
    "57014": (LedgerLocked, _BUSY),
    "XX001": (LedgerCorrupt, "Nothing was changed. Restore a backup of the database."),
    "XX002": (LedgerCorrupt, "Nothing was changed. REINDEX the database, or restore a backup."),
}
_TOO_LARGE = "54"  # the class of SQLSTATE: a limit of the database, such as of an index's rows
_ERRNO: dict[int, tuple[type[LedgerError], str]] = {
    errno.ENOSPC: (LedgerFull, _FREE),
    errno.EDQUOT: (LedgerFull, _FREE),
    errno.EACCES: (LedgerReadOnly, _WRITE),
    errno.EPERM: (LedgerReadOnly, _WRITE),
    errno.EROFS: (LedgerReadOnly, _WRITE),
    errno.ENOENT: (LedgerLocation, "Create the directory, owned by the user of gwmond."),
    errno.ENOTDIR: (LedgerLocation, "Name a file in a directory."),
    errno.EISDIR: (LedgerLocation, "Name a file in a directory."),
    errno.ENAMETOOLONG: (LedgerLocation, "Give a shorter path."),
    errno.ELOOP: (LedgerLocation, "Repair the symbolic links of the path."),
}


def _no_space(path: Path | None) -> bool:
    if path is None:
        return False
    try:
        free = os.statvfs(path.parent)
    except OSError:
        return False
    return free.f_bavail * free.f_frsize < 1 << 16


def _sqlite(name: str, what: str, where: str, path: Path | None) -> LedgerError:
    primary = name.removeprefix("SQLITE_").partition("_")[0]
    if name == "SQLITE_READONLY_DBMOVED":
        return LedgerMoved(where, what, "Put the file back, or open the ledger again.")
    if name in {"SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_CORRUPTFS"}:
        return LedgerCorrupt(where, what, KEEP)
    if primary in {"IOERR", "CANTOPEN"} and _no_space(path):
        return LedgerFull(where, f"no space left ({what})", _FREE)
    if "unsupported file format" in what or "Could not decode" in what:
        return LedgerCorrupt(where, what, KEEP)
    kind, remedy = _SQLITE.get(primary, (LedgerFailed, _LOG))
    return kind(where, f"{what} ({name})", remedy)


def _postgres(state: str | None, what: str, where: str) -> LedgerError:
    """Without a state the server did not get as far as to answer."""
    if state is None:
        return LedgerUnreachable(where, what, _SERVER)
    for code in (state, state[:3], state[:2]):
        if code in _POSTGRES:
            kind, remedy = _POSTGRES[code]
            return kind(where, f"{what} ({state})", remedy)
    return LedgerFailed(where, f"{what} ({state})", _LOG)


def is_refusal(exc: BaseException) -> bool:
    """Return whether what was to be stored is at fault, so that no later attempt will succeed."""
    if isinstance(exc, LedgerRefused | IntegrityError | DataError):
        return True
    cause = exc.orig if isinstance(exc, StatementError) and exc.orig is not None else exc
    if type(cause).__module__.startswith("psycopg"):
        return (getattr(cause, "sqlstate", None) or "").startswith(_TOO_LARGE)
    return isinstance(cause, ValueError | TypeError | LookupError | OverflowError)


def translate(exc: BaseException, where: str, path: Path | None = None) -> LedgerError:
    """Return the ``LedgerError`` for anything that a driver, SQLAlchemy or the system raised."""
    if isinstance(exc, LedgerError):
        return exc
    cause = exc.orig if isinstance(exc, DBAPIError) and exc.orig is not None else exc
    what = " ".join(str(cause).split()) or type(cause).__name__
    name = getattr(cause, "sqlite_errorname", None)
    if name is not None or type(cause).__module__ == "sqlite3":
        return _sqlite(name or "SQLITE_ERROR", what, where, path)
    if type(cause).__module__.startswith("psycopg"):
        broken = isinstance(exc, DBAPIError) and exc.connection_invalidated
        return _postgres(None if broken else getattr(cause, "sqlstate", None), what, where)
    if isinstance(cause, UnicodeDecodeError):  # all that is stored was text
        return LedgerCorrupt(where, what, KEEP)
    if isinstance(cause, OSError) and cause.errno in _ERRNO:
        kind, remedy = _ERRNO[cause.errno]
        return kind(where, what, remedy)
    return LedgerFailed(where, f"{type(cause).__name__}: {what}", _LOG)
