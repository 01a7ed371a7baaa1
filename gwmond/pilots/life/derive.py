"""From all that sources report on a pilot to its life: one page of rules.  Pure.

Units: times are microseconds since the epoch, memory is MiB.

Each table is in order: the first rule that applies decides, whatever else is known and whenever
each fact came.  So facts are kept as they were reported, and a fact that is withdrawn leaves the
next best one.

**Beginning** (``START_RULES``), **validation** (``VALIDATION_RULES``) and **size**
(``SIZE_RULES``): see the names of the rules.

**End** (``END_RULES``):

================  ==================================================================================
``pilot_output``  the pilot's own output ends ("Glidein ending"): all of the pilot, with its
                  clean-up
``queue``         its job ended in the factory's queue; without, its line in ``completed_jobs``.
                  Only if it was killed by a signal, or something else shows that the pilot has
                  ended, and not if the pilot was heard of later: the batch system may have given
                  it up
``central_log``   a line of a central log: condor_master exited.  Not if the pilot was heard of more
                  than ``LOGGED_US`` later, as clocks may differ by so much: then it went on
``shutdown``      it invalidated its ads: it was there at one poll, and not at the next
``ad_expired``    its ad expired, or another startd has its name: when it was heard of last
``assumed``       nothing says that it ended: the last thing that is known of it
================  ==================================================================================

The first three say when the pilot, its job and its HTCondor ended.  The others say when it was
known last; then a run that a record has prolongs its life (``_prolonged``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from gwmond.model.facts import Size
from gwmond.model.pilot_life import (
    Assumption,
    End,
    Interval,
    PilotLife,
    SizeStep,
    Validation,
    estimates,
)
from gwmond.model.pilots.pilot_facts import LIFETIME_US, Origin, PilotFacts
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import FAR_US, LATEST_US

_V = Validation
LOGGED_US = 60 * SECOND_US
"""A central log's clock and an access point's may differ by this."""


class Known(NamedTuple):
    """What a life is derived from.

    - ``ran_jobs``: runs of jobs are known on it, or what stands for them.
    - ``run_ends``: the ends of its runs in memory that a record has, in any order.
    """

    facts: PilotFacts
    origin: Origin
    ran_jobs: bool = False
    run_ends: tuple[int, ...] = ()

    @property
    def validated(self) -> Validation | None:
        """How its validation ended by its output; None without one."""
        return None if self.facts.output is None else self.facts.output.validation

    @property
    def queue_only(self) -> bool:
        """Whether only its factory's queue or summary has it."""
        facts = self.facts
        return self.origin == "files" and facts.ads is None and facts.output is None

    @property
    def output_only(self) -> bool:
        """Whether its output has it, and no collector does."""
        facts = self.facts
        return self.origin == "files" and facts.ads is None and facts.output is not None

    @property
    def jobs_only(self) -> bool:
        """Whether only records of jobs have it."""
        facts = self.facts
        return self.origin == "jobs" and facts.ads is None and facts.output is None


# --- When it began ----------------------------------------------------------------------------


class Start(NamedTuple):
    """When a pilot began; ``first_us``: since when it is known, if its beginning is an estimate."""

    at_us: int
    first_us: int | None = None


def _output_start(known: Known) -> Start | None:
    output = known.facts.output
    return Start(output.start_us) if output is not None and output.start_us is not None else None


def _ads_start(known: Known) -> Start | None:
    ads = known.facts.ads
    return Start(ads.began_us) if ads is not None and ads.began_us is not None else None


def _failed_ads_start(known: Known) -> Start | None:
    failed = known.facts.failed_ads
    return Start(failed.first_us) if failed is not None and known.origin == "collector" else None


def _cut_output_start(known: Known) -> Start | None:
    """Its output has lost its head: its job's start in the queue, if that is not later."""
    output, queue = known.facts.output, known.facts.queue
    if output is None:
        return None
    started_us = queue.started_us if queue is not None else None
    first_us = output.first_us
    return Start(first_us if started_us is None else min(started_us, first_us), first_us)


def _queue_start(known: Known) -> Start | None:
    queue = known.facts.queue
    life = queue.life if queue is not None else None
    return Start(life[0]) if life is not None else None


def _jobs_start(known: Known) -> Start | None:
    first_us = known.facts.runs.first_us
    return Start(first_us) if first_us is not None else None


def _first_ad(known: Known) -> Start | None:
    ads = known.facts.ads
    return Start(ads.last_heard_us) if ads is not None else None


START_RULES: tuple[tuple[str, Callable[[Known], Start | None]], ...] = (
    ("its output begins", _output_start),
    ("its startd began", _ads_start),
    ("its first ad that its validation failed", _failed_ads_start),
    ("the first time in an output without its head", _cut_output_start),
    ("its job started in the factory's queue", _queue_start),
    ("its startd or the first job on it began", _jobs_start),
    ("its ad", _first_ad),
)

# --- When it was heard of last, and when it ended ---------------------------------------------


def _heard(known: Known, start_us: int) -> int:
    """Return when a pilot was last heard of, by itself and by collectors."""
    facts = known.facts
    times = [start_us]
    if known.queue_only:
        life = facts.queue.life if facts.queue is not None else None
        return max(start_us, life[1]) if life is not None else start_us
    if facts.ads is not None:
        times.append(facts.ads.last_heard_us)
    if facts.failed_ads is not None:
        times.append(facts.failed_ads.last_heard_us)
    if (output := facts.output) is not None:
        if output.end_us is not None:
            times.append(output.end_us)
        elif known.origin != "collector" and facts.ads is None:
            times.append(output.last_us)
    if known.jobs_only and facts.runs.last_us is not None:
        times.append(facts.runs.last_us)
    return max(times)


class Moments(NamedTuple):
    """When a pilot began, and when it was last heard of."""

    start_us: int
    last_heard_us: int


def _pilot_output(known: Known, at: Moments) -> int | None:
    output = known.facts.output
    return None if output is None or output.end_us is None else max(output.end_us, at.start_us)


def _queue(known: Known, at: Moments) -> int | None:
    queue = known.facts.queue
    if queue is None:
        return None
    if known.queue_only:
        return queue.life[1] if queue.life is not None else None
    end_us, last_heard_us = queue.end_after(at.start_us), at.last_heard_us
    if end_us is None:
        return None
    others = (rule.end_us(known, at) for rule in END_RULES if rule.source != "queue")
    if not queue.killed and not any(others):
        return None
    if known.output_only:
        last_heard_us = max(last_heard_us, *known.run_ends, known.facts.runs.until_us or 0)
    return end_us if end_us >= last_heard_us else None


def _central_log(known: Known, at: Moments) -> int | None:
    logged_us = known.facts.central_log_us
    if logged_us is None or logged_us + LOGGED_US < at.last_heard_us:
        return None
    return max(logged_us, at.last_heard_us if known.jobs_only else at.start_us)


def _shutdown(known: Known, at: Moments) -> int | None:
    ads = known.facts.ads
    gone = ads is not None and ads.end_source == "shutdown" and ads.end_us is not None
    return max(ads.end_us or 0, at.start_us) if ads is not None and gone else None


def _ad_expired(known: Known, at: Moments) -> int | None:
    ads, failed = known.facts.ads, known.facts.failed_ads
    if ads is not None:
        gone = ads.end_source == "ad_expired" and ads.end_us is not None
        return max(ads.end_us or 0, at.start_us) if gone else None
    if failed is None or failed.end_us is None or known.origin != "collector":
        return None
    return failed.end_us if failed.end_us <= at.last_heard_us else None


def _assumed(known: Known, at: Moments) -> int | None:
    decisions, failed = known.facts.decisions, known.facts.failed_ads
    if known.jobs_only:
        return at.last_heard_us if decisions.quiet else None
    if known.facts.ads is None and failed is not None and known.origin == "collector":
        return failed.end_us
    if known.facts.ads is not None or decisions.given_up_us is None:
        return None
    return decisions.given_up_us if decisions.given_up_us >= at.last_heard_us else None


class EndRule(NamedTuple):
    """When a pilot ended by one source, if it may be right.

    ``measured``: it is no estimate.  ``since_contact``: what is estimated is the time since the
    last contact, else the time by which runs prolong the life.
    """

    source: End
    end_us: Callable[[Known, Moments], int | None]
    measured: bool = False
    since_contact: bool = False


END_RULES = (
    EndRule("pilot_output", _pilot_output, measured=True),
    EndRule("queue", _queue, since_contact=True),
    EndRule("central_log", _central_log),
    EndRule("shutdown", _shutdown, measured=True),
    EndRule("ad_expired", _ad_expired),
    EndRule("assumed", _assumed, since_contact=True),
)
"""From best to worst."""
MEASURED_ENDS = frozenset(rule.source for rule in END_RULES if rule.measured)
_SINCE_CONTACT = frozenset(rule.source for rule in END_RULES if rule.since_contact)
_SOURCES = [rule.source for rule in END_RULES]
BETTER_THAN_LOG = frozenset(_SOURCES[: _SOURCES.index("central_log")])


def ends_of(known: Known) -> dict[End, int]:
    """Return when a pilot ended by each source that may be right, the best first."""
    start_us = start_of(known).at_us
    at = Moments(start_us, _heard(known, start_us))
    ends = ((rule.source, rule.end_us(known, at)) for rule in END_RULES)
    return {name: end_us for name, end_us in ends if end_us is not None}


def _prolonged(known: Known, source: End, end_us: int) -> int:
    """Return the end of the last run which shows that a pilot was still there, else its end.

    A run counts that ended before the pilot was missing; where that is not known, while its ad
    would have lived.  Once its output was given up each run counts.
    """
    facts = known.facts
    if known.jobs_only or source == "pilot_output" or (source == "queue" and facts.ads is None):
        return end_us
    limit_us = end_us + lifetime_us(facts)
    if (missing_us := missing_since_us(facts)) is not None:
        limit_us = missing_us
    if source == "assumed" and known.output_only:
        limit_us = FAR_US
    ends = (*known.run_ends, facts.runs.until_us or 0)
    return max((run_us for run_us in ends if run_us <= limit_us), default=end_us)


def lifetime_us(facts: PilotFacts) -> int:
    """Return how long a pilot's ad lives without being renewed."""
    ads = facts.failed_ads or facts.ads
    return LIFETIME_US if ads is None else ads.lifetime_us


def missing_since_us(facts: PilotFacts) -> int | None:
    """Return when a poll first did not find a pilot in its collector."""
    if facts.ads is not None:
        return facts.ads.missing_since_us
    return None if facts.failed_ads is None else facts.failed_ads.missing_since_us


# --- Whether it passed its validation ---------------------------------------------------------


def _never_registered(known: Known) -> bool:
    output = known.facts.output
    ours = known.facts.ads is None and known.origin != "collector"
    return output is not None and output.registered is False and ours and not known.ran_jobs


def _passed(known: Known) -> bool:
    output = known.facts.output
    tells_jobs = output is not None and output.ran_jobs is not None
    return known.validated is Validation.PASSED and (tells_jobs or known.origin == "collector")


def _started(known: Known) -> bool:
    output, validated = known.facts.output, known.validated
    ended = output is not None and output.validation_end_us is not None
    return validated is Validation.PASSED or (ended and validated is not Validation.FAILED)


def _summary(known: Known, validation: Validation) -> bool:
    summary = known.facts.summary
    return known.queue_only and summary is not None and summary.validation is validation


def _announced(known: Known) -> bool:
    return known.facts.failed_ads is not None and known.origin == "collector"


def _never_seen(known: Known) -> bool:
    return known.queue_only and known.facts.decisions.never_seen


VALIDATION_RULES: tuple[tuple[str, Callable[[Known], bool], Validation], ...] = (
    ("no job ran on it, and its HTCondor hardly did", _never_registered, _V.FAILED),
    ("it registered in a collector", lambda known: known.facts.ads is not None, _V.PASSED),
    ("its output says that it passed", _passed, _V.PASSED),
    ("its ads say that it failed", _announced, _V.FAILED),
    ("the same, and nothing whether jobs ran", _started, _V.STARTED),
    ("its output says that it failed", lambda known: known.validated is _V.FAILED, _V.FAILED),
    ("its summary has jobs", partial(_summary, validation=_V.PASSED), _V.PASSED),
    ("its summary has HTCondor", partial(_summary, validation=_V.STARTED), _V.STARTED),
    ("its summary has no HTCondor", partial(_summary, validation=_V.FAILED), _V.FAILED),
    (
        "ads say that it failed, and files no more",
        lambda known: known.facts.failed_ads is not None and not known.ran_jobs,
        _V.FAILED,
    ),
    ("collectors were watched, and never saw it", _never_seen, _V.FAILED),
    ("jobs ran on it", lambda known: known.jobs_only, _V.PASSED),
)
CONCLUDED = frozenset({_never_registered, _never_seen})
"""Rules that conclude a validation's failure from what is missing."""


# --- How large it is --------------------------------------------------------------------------


class Sized(NamedTuple):
    """A size, or several one after the other; ``rules``: which parts of it are an estimate."""

    steps: tuple[SizeStep, ...] = ()
    rules: frozenset[Assumption] = frozenset()


def _ads_size(known: Known, _: int) -> Sized | None:
    """What slots have; of that what is there, where its output says that it was overloaded."""
    ads, output = known.facts.ads, known.facts.output
    if ads is None or not ads.sizes:
        return None
    if output is None:
        return Sized(ads.sizes)
    return Sized(tuple(step._replace(size=output.real(step.size)) for step in ads.sizes))


def _jobs_size(known: Known, start_us: int) -> Sized | None:
    held = known.facts.runs.held
    return Sized((SizeStep(start_us, held),)) if held is not None and known.jobs_only else None


def _default_size(known: Known, start_us: int) -> Sized | None:
    """What others of its entry have, where its output does not say; at least what its runs held."""
    default, held = known.facts.decisions.size, known.facts.runs.held
    if default is None:
        return None
    size, rules = default.size, set(default.rules)
    if Assumption.SIZE in rules and held is not None:
        reported = known.facts.reported(known.origin)
        more = (max(mine, run) for mine, run in zip(size, held, strict=True))
        grown = Size(
            *(
                mine if own is not None else most
                for mine, most, own in zip(size, more, reported[:3], strict=True)
            )
        )
        rules |= {Assumption.GPUS} if grown.gpus > size.gpus else set()
        size = grown
    return Sized((SizeStep(start_us, size),), frozenset(rules))


SIZE_RULES: tuple[tuple[str, Callable[[Known, int], Sized | None]], ...] = (
    ("its ads say it", _ads_size),
    ("what jobs held at once", _jobs_size),
    ("its output, else its entry's others", _default_size),
)


# --- All of it --------------------------------------------------------------------------------


def start_of(known: Known) -> Start:
    """Return when a pilot began."""
    for _, rule in START_RULES:
        if (start := rule(known)) is not None:
            return start
    raise ValueError("no source says when the pilot began")


class Ended(NamedTuple):
    """How a pilot ended; ``base_us``: before runs prolonged its life; both None while it runs."""

    source: End = ""
    base_us: int | None = None
    end_us: int | None = None


def _end_of(known: Known, at: Moments) -> Ended:
    for source, rule, *_ in END_RULES:
        if (end_us := rule(known, at)) is not None:
            base_us = max(end_us, at.start_us)
            return Ended(source, base_us, max(base_us, _prolonged(known, source, base_us)))
    return Ended()


def life_of(known: Known) -> PilotLife:
    """Return a pilot's life, by the best source of each fact."""
    start = start_of(known)
    start_us, last_heard_us = at = Moments(start.at_us, _heard(known, start.at_us))
    ended = _end_of(known, at)
    if ended.source == "assumed" and known.output_only:
        last_heard_us = ended.end_us or last_heard_us
    validation, concluded = next(
        ((value, rule in CONCLUDED) for _, rule, value in VALIDATION_RULES if rule(known)),
        (Validation.UNKNOWN, False),
    )
    sized = next((size for _, fits in SIZE_RULES if (size := fits(known, start_us))), Sized())
    life = PilotLife(
        start_us=start_us,
        end_us=ended.end_us,
        now_us=last_heard_us,
        steps=sized.steps,
        validation=validation,
        end_source=ended.source,
        failure=_failure(known.facts) if validation is Validation.FAILED else "",
    )
    assumed = {
        **_size_estimates(life, sized.rules),
        **_estimates(known, life, start.first_us, ended.base_us),
    }
    doubtful = validation in {Validation.UNKNOWN, Validation.STARTED} and not known.ran_jobs
    if concluded or (doubtful and ended.end_us is not None):
        assumed[Assumption.VALIDATION] = (
            start_us,
            max(life.effective_end_us, start_us + concluded),
        )
    assumed = {rule: within for rule, within in assumed.items() if within[0] < within[1]}
    validation_end_us = _validation_end(known, life)
    if not assumed and validation_end_us is None:
        return life  # as most
    return life._replace(
        validation_end_us=validation_end_us, assumed=assumed, estimated=estimates(assumed)
    )


def _size_estimates(life: PilotLife, rules: Iterable[Assumption]) -> dict[Assumption, Interval]:
    """Return when a size is an estimate: from beginning to end."""
    start_us, end_us = life.start_us, life.end_us
    last_us = max(LATEST_US if end_us is None else end_us, start_us + 1)
    return dict.fromkeys(rules, (start_us, last_us))


def _estimates(
    known: Known, life: PilotLife, first_us: int | None, base_us: int | None
) -> dict[Assumption, Interval]:
    """Return when what kind of fact is an estimate, beside size and validation.

    ``first_us``: since when a pilot is known whose beginning is an estimate.  ``base_us``: its end
    by its source.
    """
    summary, whole = known.facts.summary, (life.start_us, life.effective_end_us)
    assumed: dict[Assumption, Interval] = {}
    if first_us is not None:
        early = life.start_us < first_us
        assumed[Assumption.BEGIN] = life.start_us, first_us if early else life.effective_end_us
    if base_us is not None and life.end_source not in MEASURED_ENDS:
        since_us = base_us
        if life.end_source in _SINCE_CONTACT:
            cut = life.end_source == "assumed" and known.output_only
            since_us = life.start_us if cut else life.now_us
        assumed[Assumption.END] = since_us, life.effective_end_us
    if known.queue_only:
        assumed[Assumption.NO_OUTPUT] = whole
    if summary is not None and summary.jobs_us is not None:
        assumed[Assumption.JOBS] = summary.jobs_us
    if known.jobs_only:
        assumed[Assumption.LIFE] = whole
    return assumed


def _validation_end(known: Known, life: PilotLife) -> int | None:
    """Return when a pilot's validation ended, if its output or its summary has that."""
    output, summary = known.facts.output, known.facts.summary
    if output is not None and output.validation_end_us is not None:
        return output.validation_end_us
    passed = life.validation in {Validation.PASSED, Validation.STARTED}
    if not known.queue_only or summary is None or summary.validation_s is None or not passed:
        return None
    return min(life.start_us + summary.validation_s * SECOND_US, life.effective_end_us)


def _failure(facts: PilotFacts) -> str:
    """Return why a validation failed: the class of its output and the test, else its ads' test."""
    if facts.output is not None and facts.output.failure:
        return facts.output.failure
    return facts.failed_ads.failure if facts.failed_ads is not None else ""


def changed_since(before: PilotLife, after: PilotLife) -> int | None:
    """Return from when on two versions of a life differ, in what its time is made of.

    None: they do not, but for when a pilot was last heard of that goes on.
    """
    times: list[int] = []
    if before.start_us != after.start_us or before.validation is not after.validation:
        times.append(min(before.start_us, after.start_us))
    if (before.end_us, before.end_source) != (after.end_us, after.end_source) or (
        after.end_us is None and after.now_us < before.now_us
    ):
        times.append(min(before.effective_end_us, after.effective_end_us))
    if before.steps != after.steps:
        times.append(_steps_differ(before, after))
    for rule in before.assumed.keys() | after.assumed.keys():
        earlier, later = before.assumed.get(rule), after.assumed.get(rule)
        if earlier is None or later is None:
            times.append(min(within[0] for within in (earlier, later) if within is not None))
        elif earlier[0] != later[0]:
            times.append(min(earlier[0], later[0]))
        elif earlier[1] != later[1]:
            times.append(min(earlier[1], later[1]))
    return min(times, default=None)


def _steps_differ(before: PilotLife, after: PilotLife) -> int:
    """Return when the first step begins that differs; the first of all holds from the start."""
    for index, (earlier, later) in enumerate(zip(before.steps, after.steps, strict=False)):
        if earlier != later and (
            index or earlier.size != later.size or earlier.least != later.least
        ):
            return min(earlier.at_us, later.at_us)
        if earlier != later:
            return min(before.start_us, after.start_us)
    shorter, longer = sorted((before.steps, after.steps), key=len)
    first_us = min(before.start_us, after.start_us)
    return longer[len(shorter)].at_us if shorter else first_us
