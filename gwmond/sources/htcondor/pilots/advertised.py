"""Source: ads by which pilots report that their validation failed.

A pilot whose validation failed waits on purpose before it ends, and may meanwhile send an ad of a
slot every 250 to 350 seconds (GLIDEIN_Report_Failed; creation/web_base/glidein_startup.sh,
glidein_exit, and advertise_failure.helper).  No startd is behind it.  Of such an ad

- ``State`` is "Drained", ``GLIDEIN_Failed`` true, and there is no ``SlotType``;
- ``Cpus``, ``Memory``, ``TotalSlotCpus``, ``TotalSlotMemory`` are 1: dummies, never believed;
- ``DaemonStartTime`` and ``GLIDEIN_ToRetire`` are when it was sent, not when anything began;
- ``GLIDEIN_ToDie`` and ``GLIDEIN_Expire`` are when the wait is over, so when the pilot ends;
- ``GLIDEIN_LAST_SCRIPT`` is the test that failed (the TestID of the pilot's output); the class of
  the failure is not reported;
- ``Name`` is ``glidein_PID_RANDOM@host``, with another random number in each ad.  So one pilot has
  several ads at once, and the ad that shall withdraw them at its end names none of them: they stay
  until they expire.  The factory's job (``GLIDEIN_Schedd``, ...) says which are of one pilot.

The same is reported to the factory's collector (GLIDEIN_Factory_Collector) where the factory has
one, unless GLIDEIN_Factory_Report_Failed is NEVER: by the ad of a master (UPDATE_MASTER_AD,
``MyType`` "DaemonMaster"), which has the same names and no ``State``.  Real pilots' masters, which
report themselves there too, have no ``GLIDEIN_Failed``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gwmond.model.facts import Pilot
from gwmond.sources.htcondor import ads, pilot_ads
from gwmond.sources.htcondor.access import CollectorSource, Query

if TYPE_CHECKING:
    import classad2

    from gwmond.config.settings import Attributes

KIND = "advertised"
NAMES = ("GLIDEIN_Failed", "GLIDEIN_FAILURE_REASON", "GLIDEIN_LAST_SCRIPT", "GLIDEIN_Expire")
"""Attributes that a query has to ask for."""

_RUNNING = re.compile(r"failed while running (\S*[^\s.])\.?(?:\s|$)", re.IGNORECASE)
_VARIES = re.compile(r"[0-9]+(?:[.:][0-9]+)*")
_RANDOM = re.compile(r"^(glidein_[0-9]+)_[0-9]+(?=@|$)")
_CHARACTERS = 60


def masters_query(attributes: Attributes) -> Query:
    """Return the query for what pilots report to a factory's collector."""
    unused = {"MyCurrentTime", *attributes.retire} - {*attributes.die}  # they say nothing here
    names = (*pilot_ads.NAMES, *NAMES, *pilot_ads.configured(attributes))
    constraint = 'MyType == "DaemonMaster" && GLIDEIN_Failed =?= true'
    return Query(KIND, "Master", constraint, tuple(n for n in names if n not in unused))


def decode(
    master_ads: Sequence[classad2.ClassAd], attributes: Attributes, now: float
) -> tuple[Pilot, ...]:
    """Turn the ads of masters into the pilots whose validation failed."""
    return tuple(pilots(ads.fresh(master_ads, now), attributes))


def is_failure(ad: classad2.ClassAd) -> bool:
    """Return whether an ad only reports that a validation failed; real slots have a type."""
    return (
        ads.text(ad, "State") == "Drained"
        and ads.truth(ad, "GLIDEIN_Failed") is True
        and ads.text(ad, "SlotType") in {None, "Static"}
    )


def failure_of(ad: classad2.ClassAd) -> str:
    """Return which test failed, else the reason in a form that many pilots share; bounded."""
    test = ads.label(ad, ("GLIDEIN_LAST_SCRIPT",))
    if test is not None and " " not in test:
        return test
    reason = ads.label(ad, ("GLIDEIN_FAILURE_REASON",)) or test or ""
    if match := _RUNNING.search(reason):
        return match[1]
    plain = " ".join(_VARIES.sub("N", reason).split())
    return plain if len(plain) <= _CHARACTERS else plain[: _CHARACTERS - 1] + "…"


def pilots(failed_ads: Iterable[classad2.ClassAd], attributes: Attributes) -> Iterator[Pilot]:
    """Yield the pilots that these ads are of, each once.

    Where the factory's job is not known, the process, the host and the announced end say
    which ads are of one pilot.
    """
    ads_of: defaultdict[tuple[str, int | None], list[classad2.ClassAd]] = defaultdict(list)
    for ad in failed_ads:
        job = pilot_ads.factory_job(ad)
        ads_of[(job, None) if job else (_stem(ad), ads.integer(ad, "GLIDEIN_Expire"))].append(ad)
    for same in ads_of.values():
        same.sort(key=lambda ad: (ads.number(ad, "DaemonStartTime") or 0, _name(ad)))
        yield _pilot(same, attributes)


def _pilot(sent: Sequence[classad2.ClassAd], attributes: Attributes) -> Pilot:
    """Return the pilot of these ads, of which the first was sent first."""
    first, last = sent[0], sent[-1]
    pilot = pilot_ads.pilot_of(last, attributes)
    die = ads.first_number(last, (*attributes.die, "GLIDEIN_Expire"))
    return pilot._replace(
        name=_name(first) if pilot.factory_job else _stem(first),
        started=ads.integer(first, "DaemonStartTime") or 0,
        clock_s=0,
        last_heard=max(int(ads.number(ad, "LastHeardFrom") or 0) for ad in sent),
        retires=None,
        dies=None if die is None else int(die),
        failed=True,
        failure=failure_of(last),
    )


def _name(ad: classad2.ClassAd) -> str:
    return ads.text(ad, "Name") or ""


def _stem(ad: classad2.ClassAd) -> str:
    """Return a name without its random number."""
    return _RANDOM.sub(r"\1", _name(ad))


SOURCES = (
    CollectorSource(
        KIND,
        lambda t: masters_query(t.attributes),
        lambda answer, t: decode(answer, t.attributes, t.now),
        pool=False,
        wms=True,
    ),
)
