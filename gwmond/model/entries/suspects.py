"""Places whose jobs end too soon more often than chance explains."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Kind: TypeAlias = Literal["site", "entry", "node", "pilot"]


FALSE_DISCOVERIES = 0.01
"""Of the units that are blamed, this share may be blamed by chance."""

MIN_FAILURES = 3
"""Fewer failures are never significant."""


class Finding(NamedTuple):
    """How a unit compares with the others: jobs, failures, and how many would be expected."""

    jobs: int
    failures: int
    expected: float
    p: float
    adjusted: float

    def significant(self, rate: float = FALSE_DISCOVERIES) -> bool:
        """Return whether it fails too often for chance."""
        return self.failures >= MIN_FAILURES and self.adjusted <= rate


Sign: TypeAlias = Literal["fails", "ends_too_soon"]
"""Why a place is suspected: jobs fail early there, or exit with 0 within a minute."""


SIGNS: tuple[Sign, ...] = ("fails", "ends_too_soon")

_SIGNS: dict[Sign, str] = {
    "fails": "failed within five minutes",
    "ends_too_soon": "exited with 0 within a minute",
}


class Suspect(NamedTuple):
    """A place at which jobs end far too soon; of a site ``entry`` is empty.

    ``runs`` were there, of which ``too_soon`` ended so; the finding compares jobs, each once.
    """

    kind: Kind
    place: str
    entry: str
    site: str
    finding: Finding
    sign: Sign = "ends_too_soon"
    runs: int = 0
    too_soon: int = 0

    @property
    def shown(self) -> str:
        """What is said of it."""
        where, finding = f"{self.kind} {self.place}", self.finding
        return (
            f"{where} ({self.site}{self.entry and ', ' + self.entry}): {self.too_soon} of "
            f"{self.runs} runs {_SIGNS[self.sign]}; {finding.failures} of {finding.jobs} jobs "
            f"compared, where as elsewhere it would be {finding.expected:.1f}"
        )
