"""What may be asked of pages and of REST: the parameters of a URL, checked.

A page and the answer of REST about the same thing have the same parameters here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from gwmond.model.demand.question import MOST_AD
from gwmond.model.demand.what_if import MOST_START, WhatIfKind
from gwmond.model.facts import Place
from gwmond.model.pilot_life import Category
from gwmond.model.pilots.stored_pilots import Doing, DoingNow, PilotFilter, RunFilter
from gwmond.model.states import State
from gwmond.model.times import DAY_US, SECOND_US, Period
from gwmond.model.units import Resource
from gwmond.reports.render.periods import FORMS, parse_period
from gwmond.reports.report.groupings import GROUPINGS
from gwmond.reports.sites.time_by_hour import RANGES

MOST = 500
"""Items of a page."""
NAME, CURSOR = r"^[^\x00-\x1f\x7f]*$", r"^[A-Za-z0-9_-]*$"
"""Characters that are allowed in names and cursors."""
_LONGEST_US = 400 * DAY_US
_GROUPINGS = "|".join(GROUPINGS)
Name: TypeAlias = Annotated[str, Field(max_length=256, pattern=NAME)]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=MOST, description="items at most")]
After: TypeAlias = Annotated[
    str, Field(max_length=1024, pattern=CURSOR, description="`next` of the page before")
]
When: TypeAlias = Annotated[str, Field(max_length=40, description=FORMS)]
YesOrNo: TypeAlias = Literal["true", "false"]
Last: TypeAlias = Literal["24h", "7d", "30d"]


class Refused(Exception):
    """Why there is no answer: a status of HTTP, in words, the parameter, when to ask again."""

    def __init__(
        self, status: int, detail: str, parameter: str = "", again_s: int | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.parameter, self.again_s = status, detail, parameter, again_s


class OfPlace(BaseModel):
    """What is asked of a place and frontend group; what is empty does not matter."""

    model_config = ConfigDict(frozen=True)

    site: Name = ""
    entry: Name = ""
    group: Annotated[Name, Field(description="FRONTEND.GROUP")] = ""

    @property
    def place(self) -> Place:
        """Site, entry and group."""
        return Place(self.site, self.entry, self.group)

    @property
    def query(self) -> dict[str, str]:
        """The parameters of its page; a number that is 0 is empty."""
        return {name: str(value or "") for name, value in self}

    def but(self, **changed: str | int) -> Self:
        """Return the same with other values, which are not checked."""
        return self.model_copy(update=changed)


class TimeAsked(OfPlace):
    """What time was used for, in the last so many hours or days."""

    last: Last = "24h"
    resource: Resource = "cpu"


class FailuresAsked(OfPlace):
    """What failed in the last so many hours or days."""

    last: Last = "24h"


class ForecastPage(OfPlace):
    """What comes at a site."""


class PastPage(OfPlace):
    """What a poll of the past found, of all sites or of one."""

    at: When = "1h"


class UserAsked(OfPlace):
    """What became of a user's runs in the last so many hours or days; empty: of all users."""

    last: Last = "24h"
    user: Annotated[Name, Field(description="user@domain, or user of any domain")] = ""


class PilotsAsked(OfPlace):
    """Which pilots.

    ``last``: of those that have ended when they ended, of others when they lived.
    """

    which: Literal["running", "past", "all"] = "running"
    node: Annotated[Name, Field(description="`*` stands for anything")] = ""
    last: Annotated[
        Literal["", "24h", "7d", "30d"], Field(description="ended, or lived, in this time")
    ] = ""
    doing: DoingNow | Literal[""] = ""
    category: Annotated[Category | Literal[""], Field(description="has settled time of it")] = ""
    failed: Annotated[
        YesOrNo | Literal[""], Field(description="true: validation failed, no job ran")
    ] = ""

    def wanted(self, now_us: int) -> PilotFilter:
        """Return the same as the ledger is asked."""
        period = RANGES[self.last].period(now_us) if self.last else None
        past = self.which == "past"
        return PilotFilter(
            since_us=period.since_us if period and not past else None,
            ended=period if past else None,
            running={"running": True, "past": False}.get(self.which),
            place=self.place,
            node=self.node or None,
            failed=self.failed == "true" if self.failed else None,
            category=Category(self.category) if self.category else None,
            doing=Doing(self.doing, now_us) if self.doing and self.which == "running" else None,
        )


class PilotsPage(PilotsAsked):
    """A page of the list; ``after``: time (microseconds) and number of the last pilot before.

    ``columns``: their headers, with commas between; empty: the usual ones.
    """

    columns: Name = ""
    after: Annotated[str, Field(pattern=r"^([0-9]{1,17}\.[0-9]{1,18})?$")] = ""

    @property
    def position(self) -> tuple[int, int] | None:
        """The last pilot before, by time and number; None: none is."""
        time, _, number = self.after.partition(".")
        return (int(time), int(number)) if self.after else None


class RunsAsked(OfPlace):
    """Which runs of jobs."""

    user: Annotated[Name, Field(description="user@domain, or user of any domain")] = ""
    job: Annotated[Name, Field(description="a GlobalJobId, or cluster.proc")] = ""
    category: Category | Literal[""] = ""
    outcome: Annotated[Name, Field(description="how it ended, as docs/pilots.md has it")] = ""
    node: Annotated[Name, Field(description="in which * stands for anything")] = ""
    longer_than: Annotated[
        int, Field(ge=0, lt=1 << 32, description="seconds; of runs that ended; 0: any")
    ] = 0

    def wanted(self, period: Period, skip: int) -> RunFilter:
        """Return the same as the ledger is asked; ``skip``: without so many of the latest."""
        return RunFilter(
            period=period,
            place=self.place,
            user=self.user or None,
            job=self.job or None,
            category=Category(self.category) if self.category else None,
            outcome=self.outcome or None,
            node=self.node or None,
            longer_us=self.longer_than * SECOND_US or None,
            skip=skip,
        )


class RunsPage(RunsAsked):
    """A page of the list: of runs that began in this time, without so many of the latest."""

    last: Last = "24h"
    longer_than: Annotated[int, BeforeValidator(lambda of: of or 0), Field(ge=0, lt=1 << 32)] = 0
    skip: Annotated[int, Field(ge=0, lt=1 << 32)] = 0


class Asked(BaseModel):
    """Parameters of REST; others are refused.  What is empty does not matter.

    Old FastAPI passes parameters by the names of fields, not by their aliases.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    @classmethod
    def names(cls) -> set[str]:
        """Return the names of parameters."""
        return {field.alias or name for name, field in cls.model_fields.items()}


class Listed(Asked):
    """Parameters of a list; ``rows`` is the name of the list in its record."""

    rows: ClassVar[str]
    format: Annotated[
        Literal["json", "csv"], Field(description="csv: the lines of the list alone")
    ] = "json"
    limit: Limit = 100
    after: After = ""


class OfPeriod(OfPlace):
    """What is asked of a place in a period."""

    since: Annotated[When, Field(alias="from")] = ""
    until: Annotated[When, Field(alias="to")] = ""

    def period(self, now_us: int) -> Period:
        """Return the period that is asked for: the last day, if nothing is."""
        try:
            period = parse_period(self.since or None, self.until or None, now_us)
        except ValueError as error:
            raise Refused(422, str(error), "from, to") from None
        if period.length_us > _LONGEST_US:
            days = _LONGEST_US // DAY_US
            raise Refused(422, f"the period is longer than {days} days", "from, to")
        return period


class PollListed(Listed):
    """A list of one poll."""

    as_of: Annotated[
        When, Field(description=f"the last poll until then; empty: the last; {FORMS}")
    ] = ""


class SitesListed(PollListed):
    rows = "sites"
    site: Name = ""
    state: State | Literal[""] = ""
    resource: Resource | Literal[""] = ""


class EntriesListed(SitesListed):
    rows = "entries"
    entry: Name = ""


class PilotsListed(PilotsAsked, Listed):
    rows = "pilots"


class RunsListed(RunsAsked, OfPeriod, Listed):
    """Runs that began in the period."""

    rows = "runs"


class UsersListed(Listed):
    rows = "users"
    user: Annotated[Name, Field(description="user@domain, or user of any domain")] = ""


class ReportListed(OfPeriod, Listed):
    rows = "groups"
    by: Annotated[
        Name, Field(description=f"one, or two with a comma between: {', '.join(GROUPINGS)}")
    ] = "site"
    hours_only: Annotated[YesOrNo, Field(description="true: fast, no numbers of pilots")] = "false"


class ReportPage(OfPlace):
    """A report of the last so many hours or days, by one or two groupings."""

    last: Last = "24h"
    by: Annotated[str, Field(pattern=f"^({_GROUPINGS})$")] = "site"
    then_by: Annotated[str, Field(pattern=f"^({_GROUPINGS}|)$")] = ""


class AdvisePage(OfPlace):
    """Advice of the last so many hours or days."""

    last: Last = "24h"


class TotalsOfTime(TimeAsked, Asked):
    pass


class FailuresOfPeriod(OfPeriod, Asked):
    limit: Limit = 100


class AdviseAsked(OfPeriod, Asked):
    since: Annotated[When, Field(alias="from")] = "7d"
    limit: Annotated[Limit, Field(description="lines of each list at most")] = 100


class ChangesAsked(OfPeriod, Asked):
    since: Annotated[When, Field(alias="from")] = "7d"


class TicketAsked(OfPeriod, Asked):
    site: Annotated[Name, Field(min_length=1)]
    since: Annotated[When, Field(alias="from")] = "7d"


class TracesAsked(Asked):
    job: Annotated[Name, Field(description="a GlobalJobId, or cluster.proc")] = ""
    pilot: Annotated[int, Field(ge=0, lt=1 << 62, description="its number")] = 0


class ForecastAsked(Asked):
    site: Annotated[Name, Field(description="empty: all sites")] = ""


class ProblemsListed(Listed):
    rows = "problems"


class IdleListed(PollListed):
    rows = "idle"


class ExplainAsked(Asked):
    limit: Annotated[Limit, Field(description="lines of each list at most")] = 100


class ExplainEntryAsked(ExplainAsked):
    site: Annotated[Name, Field(description="of the entry, where several are called so")] = ""


class ExplainAdAsked(ExplainAsked):
    ad: Annotated[str, Field(max_length=MOST_AD, description="a ClassAd, in either syntax")]
    site: Annotated[Name, Field(description="only at this site, or entry")] = ""


class WhatIfAsked(ExplainAsked):
    change: Annotated[WhatIfKind, Field(description="what changes, as docs/whatif.md has it")]
    of: Annotated[Name, Field(min_length=1, description="a group, an entry, SITE/ENTRY, a site")]
    value: Annotated[str, Field(max_length=MOST_START, description="to what")] = ""


class ExplainJobsAsked(ExplainAsked):
    schedd: Name = ""
    site: Annotated[Name, Field(description="only why not at this site, or entry")] = ""
