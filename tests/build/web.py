"""What the HTTP application is given to serve."""

from __future__ import annotations

from dataclasses import dataclass, field

from gwmond.config.settings import Config
from gwmond.metrics.render import Exposition
from gwmond.model.snapshot import Snapshot
from gwmond.web import now
from gwmond.web.pages import Pages, style_sheet
from gwmond.web.parts import shown


@dataclass
class Daemon:
    """What the application sees of the daemon."""

    snapshot: Snapshot | None = None
    exposition: Exposition = field(default_factory=lambda: Exposition(b"", b"# EOF\n"))

    ledger: str = ""

    @property
    def pages(self) -> Pages:
        return Pages(self.snapshot, with_ledger(self.ledger))

    def ready(self) -> str:
        return "" if self.snapshot else "the first poll is under way"


def with_ledger(url: str) -> Config:
    """Return a configuration in which only the ledger is named."""
    return Config.model_validate({"ledger": {"url": url}} if url else {})


def page(snapshot: Snapshot | None, at: float) -> str:
    """Return the page Now at a time (epoch seconds by this machine's clock)."""
    return shown(now.page(snapshot), at)


def as_file(text: str) -> str:
    """Return a page that needs no server."""
    return text.replace(
        '<link rel="stylesheet" href="static/gwmond.css">', f"<style>{style_sheet()}</style>"
    )
