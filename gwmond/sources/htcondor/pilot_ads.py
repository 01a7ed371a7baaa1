"""What every ad of a pilot reports: of slots, of a startd, or of a failed validation.

A new attribute that is only shown is added to ``pilot_facts.SHOWN``.  One with which gwmond
computes is added here: its name to ``NAMES`` (or to the configuration), its field to ``pilot_of``.
The attributes GLIDEIN_* and GLIDECLIENT_* are those of GlideinWMS unless
configured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gwmond.model.facts import AD_LIFETIME_S, EntryKey, Pilot, Size
from gwmond.model.pilots.file_facts import PilotName, client_name
from gwmond.model.pilots.pilot_facts import SHOWN
from gwmond.model.units import MAX_CORES, MAX_MEMORY_MIB
from gwmond.sources.htcondor import ads

if TYPE_CHECKING:
    from collections.abc import Sequence

    import classad2

    from gwmond.config.settings import Attributes

UNKNOWN_SITE = "unknown"
NAMES = (
    *("Name", "Machine", "DaemonStartTime", "LastHeardFrom", "ClassAdLifetime", "MyCurrentTime"),
    *("GLIDEIN_Schedd", "GLIDEIN_ClusterId", "GLIDEIN_ProcId"),
    *SHOWN.values(),
)
"""Attributes that a query has to ask for, besides those that are configured."""

_ORDINARY = frozenset({"cpus", "memory", "disk", "swap", "gpus"})
_DELAY_S = 10
"""An ad may be on its way for so long, and clocks that agree as well do no harm."""


def in_part(part: tuple[int, int]) -> str:
    """Return what to add to a constraint for ads of part k of n, as (k, n); pilots begin anytime.

    Those that only say that their validation failed, and have no SlotType, are in one part: a pilot
    has several, each with another time (see ``advertised``).
    """
    k, n = part
    begun = "SlotType isnt undefined && isInteger(DaemonStartTime) && DaemonStartTime > 0"
    return f" && ({begun} ? DaemonStartTime : 0) % {n} == {k}" if n > 1 else ""


def configured(attributes: Attributes) -> tuple[str, ...]:
    """Return the configured attributes that a query has to ask for, each once."""
    names = (
        *(*attributes.site, *attributes.entry, *attributes.frontend, *attributes.group),
        *(*attributes.factory, *attributes.retire, *attributes.die),
    )
    return tuple(dict.fromkeys(names))


def pilot_of(ad: classad2.ClassAd, attributes: Attributes) -> Pilot:
    """Return the pilot that an ad is of, of which no size, no slots and no jobs are known."""
    return Pilot(
        name=ads.text(ad, "Name") or "",
        started=ads.integer(ad, "DaemonStartTime") or 0,
        clock_s=clock_of(ad),
        entry=entry_of(ad, attributes),
        group=group_of(ad, attributes),
        factory=ads.shared(ads.label(ad, attributes.factory) or ""),
        size=None,
        free=(),
        jobs=(),
        accepting=False,
        remaining_s=None,
        last_heard=ads.integer(ad, "LastHeardFrom") or 0,
        node=ads.label(ad, ("Machine",)) or "",
        factory_job=factory_job(ad),
        retires=_epoch(ad, attributes.retire),
        dies=_epoch(ad, attributes.die),
        ad_lifetime_s=ads.count(ad, "ClassAdLifetime") or AD_LIFETIME_S,
        shown=ads.shared(
            tuple((key, text) for key, name in SHOWN.items() if (text := ads.label(ad, (name,))))
        ),
    )


def _epoch(ad: classad2.ClassAd, names: Sequence[str]) -> int | None:
    value = ads.first_number(ad, names)
    return None if value is None else int(value)


def entry_of(ad: classad2.ClassAd, attributes: Attributes) -> EntryKey:
    """Return site and entry of an ad, by the configured attributes."""
    site = ads.label(ad, attributes.site)
    entry = ads.label(ad, attributes.entry)
    key = EntryKey(site or entry or UNKNOWN_SITE, entry or site or UNKNOWN_SITE)
    return ads.shared(key)


def group_of(ad: classad2.ClassAd, attributes: Attributes) -> str:
    """Return ``frontend.group``, as the glideresource ads name a client; empty when neither."""
    frontend = ads.label(ad, attributes.frontend) or ""
    group = ads.label(ad, attributes.group) or ""
    return ads.shared(client_name(frontend, group))


def factory_job(ad: classad2.ClassAd) -> str:
    """Return the pilot as its factory knows it, ``schedd#cluster.proc``; empty if not known."""
    return PilotName(
        schedd=ads.label(ad, ("GLIDEIN_Schedd",)) or "",
        cluster=ads.count(ad, "GLIDEIN_ClusterId"),
        proc=ads.count(ad, "GLIDEIN_ProcId"),
    ).factory_job


def special_resources(ad: classad2.ClassAd) -> bool:
    """Return whether a startd has resources of its own, such as an ioslot (MachineResources)."""
    resources = (ads.text(ad, "MachineResources") or "").lower().split()
    return not _ORDINARY.issuperset(resources)


def clock_of(ad: classad2.ClassAd) -> int:
    """Return what to add to a time of a startd's clock to have the collector's, in seconds.

    MyCurrentTime is when the startd sent the ad, by its clock, LastHeardFrom when that came.
    """
    sent, heard = ads.integer(ad, "MyCurrentTime"), ads.integer(ad, "LastHeardFrom")
    ahead = 0 if not sent or not heard else heard - sent
    return ahead if abs(ahead) > _DELAY_S else 0


def size_of(ad: classad2.ClassAd, names: tuple[str, str, str]) -> Size | None:
    """Return cores, memory and GPUs by these names; None when absent or absurd."""
    cores, memory = ads.number(ad, names[0]), ads.number(ad, names[1])
    gpus = ads.integer(ad, names[2]) or 0
    if cores is None or memory is None or not is_plausible(cores, memory, gpus):
        return None
    return ads.shared(Size(cores, memory, gpus))


def is_plausible(cores: float, memory: float, gpus: float) -> bool:
    return 0 <= cores <= MAX_CORES and 0 <= memory <= MAX_MEMORY_MIB and 0 <= gpus <= MAX_CORES
