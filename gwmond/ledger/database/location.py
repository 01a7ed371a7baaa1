"""Where a ledger is: a path or a URL, understood once, and shown without its password."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gwmond.ledger.database.errors import LedgerLocation

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

_HOST = re.compile(r"[\w.-]*|[0-9A-Fa-f:.]+")
_SQLITE = re.compile(r"sqlite:///(?!:memory:)[^?]+")
_ESCAPE = "write special characters of the password as %40 (@), %3A (:), %2F (/) or %3F (?)"
_SCHEME = re.compile(r"\s*[A-Za-z][\w+.-]*:")
_FORMS = (
    "Give a path like /var/lib/gwmond/ledger.sqlite, sqlite:////var/lib/gwmond/ledger.sqlite, "
    "or postgresql://user@host/database"
)


class SqliteFile(NamedTuple):
    """A ledger in an SQLite file; ``path`` is absolute and may be a symbolic link."""

    path: Path

    @property
    def shown(self) -> str:
        return str(self.path)


class PostgresDatabase(NamedTuple):
    """A ledger in the current schema of a PostgreSQL database."""

    url: URL

    @property
    def shown(self) -> str:
        # Options of the query may hold a password as well.
        return self.url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)


Location: TypeAlias = SqliteFile | PostgresDatabase


def parse(text: str) -> Location:
    """Return the location that a configured URL or path names, or raise ``LedgerLocation``.

    A plain path needs a slash, so that a connection string or a mistyped URL is not taken for a
    file name in whatever directory the daemon was started in.
    """
    if "://" not in text:
        if "/" not in text or "\0" in text or text.endswith("/") or _SCHEME.match(text):
            raise LedgerLocation("?", "neither a path with a slash nor a URL", _FORMS + ".")
        return SqliteFile(Path(text).absolute())
    if _SQLITE.fullmatch(text):
        return SqliteFile(Path(text.removeprefix("sqlite:///")).absolute())
    from sqlalchemy.engine import make_url  # noqa: PLC0415 (slow to load; no path needs SQLAlchemy)
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    scheme = re.sub(r"[^\w+]", "?", text.partition("://")[0])
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # its text may quote the password
        raise LedgerLocation(f"{scheme}://...", "cannot read this URL", _FORMS + ".") from None
    if scheme == "sqlite":
        what = "an SQLite ledger is a file on this host, without options"
        raise LedgerLocation(f"{scheme}://...", what, _FORMS + ".")
    if scheme in {"postgresql", "postgres", "postgresql+psycopg"}:
        # A password that is not escaped comes apart: its end is taken for a host or a database.
        if not _HOST.fullmatch(url.host or "") or re.search(r"[@:/]", url.database or ""):
            raise LedgerLocation(
                f"{scheme}://...", f"cannot read this URL: {_ESCAPE}", _FORMS + "."
            )
        return PostgresDatabase(url.set(drivername="postgresql+psycopg"))
    raise LedgerLocation(f"{scheme}://...", f"no ledger can be kept in {scheme}", _FORMS + ".")


def may_be_there(text: str) -> bool:
    """Return whether a ledger may be at a location: not if it is a file that does not exist.

    Raises LedgerLocation, and OSError where the file cannot be looked for.
    """
    place = parse(text)
    return not isinstance(place, SqliteFile) or place.path.exists()
