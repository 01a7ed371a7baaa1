"""When a pilot ended: what each source says, and the one order in which they are believed.

Units: times are microseconds since the epoch.

The best source that holds decides, whatever else is known and whenever each came:

============== ===================================================================================
``reported``   the pilot's own output ends ("Glidein ending"): all of the pilot, with its clean-up
``queue``      its job ended in the factory's queue; without, its line in ``completed_jobs``.  Not
               if the pilot was heard of later: the batch system may have given it up
``logged``     a line of a central log: condor_master exited.  Not if the pilot was heard of more
               than ``LOGGED_US`` later, as clocks may differ by so much: then it went on
``shutdown``   it took leave of its collector: it was there at one poll, and not at the next
``vanished``   its ad expired, or another startd has its name: when it was heard of last
``assumed``    nothing says that it ended: the last thing that is known of it
============== ===================================================================================

The first three say when the pilot, its job and its HTCondor ended; the others when it was known
last.  What a worse source says is kept, as a better one may be withdrawn: a job in the queue that
may be another pilot's, too, is nobody's.
"""

from __future__ import annotations

from gwmond.model.pilot_facts import Assumption
from gwmond.model.stored_pilots import End
from gwmond.model.times import SECOND_US
from gwmond.pilots.open_pilot import OpenPilot

END_ORDER: tuple[End, ...] = ("reported", "queue", "logged", "shutdown", "vanished", "assumed")
"""From best to worst."""

LAST_KNOWN: frozenset[End] = frozenset({"shutdown", "vanished", "assumed"})
"""These say when a pilot was known last, so that they are gone when it is heard of again."""

LOGGED_US = 60 * SECOND_US
"""A central log's clock and an access point's may differ by this."""


def holds(source: End, end_us: int, heard_us: int) -> bool:
    """Return whether a source may be right about an end if the pilot was heard of at a time."""
    if source == "reported":
        return True
    return end_us + (LOGGED_US if source == "logged" else 0) >= heard_us


def best_end(pilot: OpenPilot, *without: End) -> tuple[End, int] | None:
    """Return the best source of a pilot's end and what it says; leave some sources out."""
    known = (literal for literal in END_ORDER if literal in pilot.ends and literal not in without)
    return next(((literal, pilot.ends[literal]) for literal in known), None)


def set_end(pilot: OpenPilot, source: End, end_us: int | None) -> bool:
    """Keep what a source says, None: nothing (any more); return whether the pilot's end changed."""
    before = best_end(pilot)
    if end_us is None:
        pilot.ends.pop(source, None)
    else:
        pilot.ends[source] = max(end_us, pilot.start_us)
    return _decide(pilot, before)


def reopen(pilot: OpenPilot, heard_us: int) -> bool:
    """Say that a pilot was heard of then, after it was known last; return whether it goes on."""
    before = best_end(pilot)
    for source, end_us in list(pilot.ends.items()):
        if source in LAST_KNOWN or not holds(source, end_us, heard_us):
            del pilot.ends[source]
    _decide(pilot, before)
    return not pilot.ends


def _decide(pilot: OpenPilot, before: tuple[End, int] | None) -> bool:
    """Let a pilot end as the best source says, if that changed; what stands for it is estimated."""
    best = best_end(pilot)
    if best == before:
        return False
    known_us = pilot.until_us
    pilot.ended, pilot.end_us = best or ("", None)
    pilot.touch(min(known_us, pilot.until_us))
    pilot.dirty = True
    if pilot.ended not in {"queue", "assumed"}:
        pilot.know(Assumption.END)
    else:
        cut = pilot.ended == "assumed" and pilot.has_output
        pilot.assume(Assumption.END, pilot.start_us if cut else pilot.contact_us, pilot.until_us)
    return True
