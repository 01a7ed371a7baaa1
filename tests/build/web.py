"""What the HTTP application is given to serve."""

from __future__ import annotations

from dataclasses import dataclass, field

from gwmond.metrics.render import Exposition
from gwmond.model.snapshot import Snapshot
from gwmond.web.landing import made


@dataclass
class Daemon:
    """What the application sees of the daemon."""

    snapshot: Snapshot | None = None
    exposition: Exposition = field(default_factory=lambda: Exposition(b"", b"# EOF\n"))

    @property
    def page(self) -> str:
        return made(self.snapshot)

    def ready(self) -> str:
        return "" if self.snapshot else "the first poll is under way"
