"""Why an entry with room and demand gets no pilots, and why something is unknown.

Units: pilots, slots and jobs are counted, ages are seconds.

Source of the rules: design page, section 4; facts page on GlideinWMS, sections 3 and 4.  The
names are label values: the vocabulary is bounded: there are no others than these (and
``elapsed.REASONS``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from gwmond.model.facts import Limit

LEFT_OUT = "schedd_left_out"
NO_MATCH = "no_match_in_frontend"


class Signs(NamedTuple):
    """What is known of an entry with a provisioning bottleneck; None: not known.

    ``retiring`` are running pilots that take no more jobs; ``started`` those that started a short
    time ago.  ``fills_long``: pilots have waited there, and started, for longer than the grace.
    ``unregistered``: most pilots that run there never register; ``held_most``: most that were sent
    there are held, or were until the factory removed them.
    ``left_out``: most of the demand is of schedds whose idle jobs the frontend leaves out.
    """

    limits: tuple[Limit, ...] = ()
    has_factory: bool = True
    info_age_s: int | None = None
    info_max_age_s: int = 1800
    held: int | None = None
    submitted_wait: int | None = None
    requested_idle: int | None = None
    total_pilots: int | None = None
    max_pilots: int | None = None
    jobs_matching: int | None = None
    jobs_effective: int | None = None
    slots_idle: int | None = None
    retiring: int = 0
    started: int = 0
    fills_long: bool = False
    unregistered: bool = False
    held_most: bool = False
    left_out: bool = False


class BottleneckReason(NamedTuple):
    """One row of the table: a label value, its meaning for an operator, and when it holds."""

    name: str
    description: str
    holds: Callable[[Signs], bool]


def _names(signs: Signs, part: str) -> bool:
    return any(part in limit.name.lower() for limit in signs.limits)


def _nothing_requested(signs: Signs) -> bool:
    return signs.requested_idle == 0


def _requested(signs: Signs) -> bool:
    return signs.requested_idle is not None and signs.requested_idle > 0


REASONS: tuple[BottleneckReason, ...] = (
    BottleneckReason(
        "no_factory",
        "No GlideinWMS factory serves this pool: nothing provisions pilots for the waiting jobs",
        lambda s: not s.has_factory,
    ),
    BottleneckReason(
        "run_but_do_not_register",
        "Pilots run there by the factory's count, and do not register with the pool",
        lambda s: s.unregistered,
    ),
    BottleneckReason(
        "frontend_limit",
        "The frontend has hit a limit of its configuration (GlideClientLimit...)",
        lambda s: _names(s, "clientlimit"),
    ),
    BottleneckReason(
        "factory_limit",
        "The factory has hit a limit of this entry (GlideFactoryLimit..., or all its pilots exist)",
        lambda s: (
            any(re.search("factorylimit(?!held)", limit.name.lower()) for limit in s.limits)
            or (
                s.max_pilots is not None
                and s.total_pilots is not None
                and s.total_pilots >= s.max_pilots
            )
        ),
    ),
    BottleneckReason(
        "information_too_old",
        "The information that the factory and the frontend have of each other is too old",
        lambda s: s.info_age_s is not None and s.info_age_s > s.info_max_age_s,
    ),
    BottleneckReason(
        "held_pilots",
        "Pilots are held: more than the factory allows, or as many as requested while none starts",
        lambda s: (
            _names(s, "factorylimitheld")
            or s.held_most
            or (
                s.started == 0
                and (s.held or 0) > 0
                and (s.requested_idle is None or 0 < s.requested_idle <= (s.held or 0))
            )
        ),
    ),
    BottleneckReason(
        "frontend_curb",
        "The frontend has passed a curb of its configuration, and requests less (GlideClientCurb)",
        lambda s: _names(s, "clientcurb"),
    ),
    BottleneckReason(
        "few_requested",
        "Pilots start soon, but the frontend requests only a few at a time",
        lambda s: s.fills_long,
    ),
    BottleneckReason(
        "ramp_up",
        "Pilots are requested and some have just started: more are on their way",
        lambda s: _requested(s) and s.started > 0,
    ),
    BottleneckReason(
        "not_acknowledged",
        "Pilots were submitted, but the site's queue does not report them yet",
        lambda s: _requested(s) and (s.submitted_wait or 0) > 0,
    ),
    BottleneckReason(
        "not_submitted",
        "Pilots are requested, but the factory has not submitted any",
        lambda s: _requested(s) and s.submitted_wait == 0,
    ),
    BottleneckReason(
        LEFT_OUT,
        "Nothing is requested: the frontend leaves out the idle jobs of overloaded schedds",
        lambda s: _nothing_requested(s) and s.left_out,
    ),
    BottleneckReason(
        NO_MATCH,
        "Nothing is requested: in the frontend's count no job matches this entry",
        lambda s: _nothing_requested(s) and s.jobs_matching == 0,
    ),
    BottleneckReason(
        "retiring_counted_as_available",
        "Nothing is requested: retiring pilots, which take no more jobs, count as available",
        lambda s: _nothing_requested(s) and s.retiring > 0 and not s.jobs_effective,
    ),
    BottleneckReason(
        "idle_slots_counted",
        "Nothing is requested: the frontend expects idle slots to take the jobs, which do not fit",
        lambda s: _nothing_requested(s) and (s.slots_idle or 0) > 0 and s.jobs_effective == 0,
    ),
    BottleneckReason(
        "nothing_requested",
        "Nothing is requested though jobs match, and no cause is known",
        _nothing_requested,
    ),
    BottleneckReason("unexplained", "No known cause holds", lambda _: True),
)
"""In order of precedence: the first that holds is reported."""

UNTAKEN = "idle_slots_untaken"
TOO_MANY_NAMES = "too_many_names"
INSUFFICIENT: dict[str, str] = {
    UNTAKEN: "jobs match free slots of our pilots there, which nobody takes: priorities, quotas, "
    "or the negotiator",
}
"""Reasons of the state ``insufficient_demand``."""

UNKNOWN: dict[str, str] = {
    "pilots": "the running pilots are not known",
    "pending": "the pilots waiting at the site are not known",
    "no_resource_ad": "the entry has no live glideresource ad, though the pool has a factory",
    "no_capacity": "there is neither a pledge, nor a peak, nor a limit",
    "demand": "the idle jobs of at least one schedd are not known",
    "no_template": "no pilot of the entry is known to match jobs against",
    "matching": "it is not known which of the idle jobs its pilots would start",
    TOO_MANY_NAMES: "it stands for all entries that are not kept apart ([names] entries)",
}
"""Reasons of the state ``unknown``."""


def explain(signs: Signs) -> str:
    """Return the name of the first reason that holds.

    >>> explain(Signs(requested_idle=0)), explain(Signs())
    ('nothing_requested', 'unexplained')
    """
    return next(reason.name for reason in REASONS if reason.holds(signs))
