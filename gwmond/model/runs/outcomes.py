"""How a run ended, and the category of its time: a table of rules.

Source of the categories: design page, section 3.  Source of each rule: its last column; codes are
in ``condor_codes``, the evidence in ``endings``.  The first rule that holds decides.

The order is that of strength: the schedd's record that the job completed; a starter that failed
while its startd went on; a failure with a code; the pilot's end; a hold, removal or preemption; the
program's own exit; and last what can only be inferred.  The same job may have been held or removed
*after* a run that a pilot's end cut off, so a vacate code outweighs both (``Ending.held``,
measured: facts page on HTCondor).

``early.comparison`` decides whether the pilot or its site caused an early exit, or a failure at the
beginning with a code that users cause as often as sites (``compared``): the rule here gives the
outcome without evidence against the place.  No site causes failures on the access point's side.

Invariants: every ending that is over gets exactly one outcome; the labels are those of ``RULES``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from gwmond.model.pilot_life import Category, Outcome
from gwmond.model.runs.condor_codes import MISTAKES_AT_THE_ACCESS_POINT, Meaning
from gwmond.model.runs.endings import Ending


class Rule(NamedTuple):
    """One rule: when it holds, the category of the time, and the outcome of the run.

    ``inferred``: no record says so, the rule concludes it; the outcome is ``estimated``.
    ``compared``: a failure that only a comparison with other places can blame on where it ran.
    """

    name: str
    category: Category
    outcome: str
    source: str
    holds: Callable[[Ending], bool]
    inferred: bool = False
    compared: bool = False


_M = Meaning
_GOOD = Category.GOODPUT
_MISCONFIGURED = Category.MISCONFIGURATION_BADPUT
_PREEMPTED = Category.PREEMPTION_BADPUT
_OTHER = Category.UNCLASSIFIED

_AT_THE_END = frozenset(
    {
        *(_M.UNSPECIFIED, _M.NOT_STARTED, _M.REFUSED, _M.PREEMPT, _M.ADMIN, _M.SCHEDD),
        *(_M.CHECKPOINTED, _M.STARTER, _M.IMAGE, _M.SHADOW),
    }
)
"""What a pilot's end can look like from the access point."""

_CUT_SHORT = frozenset({_M.INPUT, _M.IMAGE})
"""What breaks off with an error of its own if its pilot ends meanwhile."""


def _is(meaning: Meaning) -> Callable[[Ending], bool]:
    """Return whether HTCondor gave this reason."""
    return lambda e: e.reason is meaning


def _early(meaning: Meaning) -> Callable[[Ending], bool]:
    """Return whether this failed before the program began, or soon after."""
    return lambda e: e.reason is meaning and (e.began is not True or e.early is True)


def _input_at_access_point(e: Ending) -> bool:
    return e.reason is _M.INPUT and e.failed_at == "access_point"


def _mistake_in_input(e: Ending) -> bool:
    return _input_at_access_point(e) and e.subcode in MISTAKES_AT_THE_ACCESS_POINT


def _starter_killed(e: Ending) -> bool:
    """Return whether that ended the run, which was not over already but for a starter that stayed.

    25.14's starter stays after a failure to start the program, until its startd kills it.
    """
    return e.starter_killed and e.startd_ended is False and e.reason in {None, _M.LOST}


EARLY_EXIT = "early_exit"
"""The label that ``early.comparison`` gives to an exit which is the pilot's doing."""

NOT_COMPARED = "early_exit_not_compared"
"""The label that ``early.comparison`` gives to an early exit where evidence is missing for good."""

EXIT_RETRIED = "exit_retried"
"""The label of an exit that completed nothing, as the schedd runs the job again."""

# fmt: off
RULES: tuple[Rule, ...] = (
    # --- The job completed -------------------------------------------------------------------
    Rule("completed_signal", _GOOD, "exit_signal", "JobStatus 4, ExitBySignal",
         lambda e: e.completed is True and e.exit_signal is not None),
    Rule("completed_zero", _GOOD, "exit_zero", "JobStatus 4, ExitCode 0",
         lambda e: e.completed is True and e.exit_code == 0),
    Rule("completed_nonzero", _GOOD, "exit_nonzero", "JobStatus 4, ExitCode",
         lambda e: e.completed is True and e.exit_code is not None),
    Rule("completed", _GOOD, "exit_unknown", "JobStatus 4", lambda e: e.completed is True),
    # --- The starter failed, and its startd went on ------------------------------------------
    Rule("lease_expired", _OTHER, "shadow_failed",
         "jic_shadow.cpp:job_lease_expired: no shadow reconnected to the starter in time",
         lambda e: e.lease_expired and not e.exited),
    Rule("starter_killed_early", _MISCONFIGURED, "starter_failed",
         "startd's Starter.cpp:exited: a signal ended the starter, but its startd went on",
         lambda e: _starter_killed(e) and e.at_the_beginning),
    Rule("starter_killed", _OTHER, "starter_failed",
         "a signal ended the starter after the beginning of the run, but its startd went on",
         _starter_killed),
    # --- Something failed at the beginning, with a code --------------------------------------
    Rule("input_mistake", _OTHER, "held_for_mistake",
         "codes INPUT: a file of the user's is not there, or not readable, at the access point",
         _mistake_in_input),
    Rule("input_unsent", _OTHER, "access_point_failed",
         "codes INPUT at the access point, by no mistake of the user's (for example EIO)",
         _input_at_access_point),
    Rule("cut_short", _PREEMPTED, "pilot_shutdown",
         "codes INPUT and IMAGE as the pilot ended: it broke off what they are about",
         lambda e: e.reason in _CUT_SHORT and e.startd_ended is True
         and (e.reason is _M.INPUT or e.at_the_beginning or e.began is None)),
    Rule("input_failed", _OTHER, "transfer_input_failed",
         "codes INPUT at the execution point: also a misspelt URL, or no stdin there",
         _is(_M.INPUT), compared=True),
    Rule("program_failed", _OTHER, "program_not_started",
         "codes PROGRAM: also a program that exists nowhere", _is(_M.PROGRAM), compared=True),
    Rule("image_failed", _OTHER, "image_failed", "codes IMAGE: also a misspelt image",
         _early(_M.IMAGE), compared=True),
    Rule("starter_failed_early", _MISCONFIGURED, "starter_failed",
         "codes STARTER; once the program ran, a starter may only have seen its startd end",
         lambda e: _early(_M.STARTER)(e) and not (e.began is True and e.startd_ended is True)),
    Rule("activation_broken", _MISCONFIGURED, "activation_refused", "codes BROKEN",
         _is(_M.BROKEN)),
    # --- The pilot's end ---------------------------------------------------------------------
    Rule("output_cut_off", _PREEMPTED, "output_cut_off",
         "TransferOutStarted without TransferOutFinished, and the pilot ended",
         lambda e: e.sending_output is True
         and (e.startd_ended is True or e.vacated in {_M.SHUTDOWN, _M.DIED, _M.LOST})),
    Rule("startd_shutdown", _PREEMPTED, "pilot_shutdown", "codes SHUTDOWN", _is(_M.SHUTDOWN)),
    Rule("startd_died", _PREEMPTED, "pilot_died", "codes DIED", _is(_M.DIED)),
    Rule("drained", _PREEMPTED, "drained",
         "codes DRAINED; BadputCausedByDraining (ResState.cpp, ResMgr.cpp)",
         lambda e: e.reason is _M.DRAINED or (e.draining is True and not e.exited)),
    Rule("reconnect_failed_early", _OTHER, "starter_lost",
         "codes LOST, but the startd went on: only the starter was lost, or shadow and starter got "
         "out of step after a transfer, as they may anywhere",
         lambda e: e.reason is _M.LOST and e.startd_ended is False and e.at_the_beginning,
         compared=True),
    Rule("reconnect_failed", _OTHER, "lost_contact",
         "codes LOST after the beginning of the run, and the startd went on: no pilot was lost",
         lambda e: e.reason is _M.LOST and e.startd_ended is False),
    Rule("lost_contact", _PREEMPTED, "lost_contact",
         "codes LOST: baseshadow.cpp:reconnectFailed; what a killed pilot leaves (measured)",
         _is(_M.LOST)),
    Rule("ended_with_pilot", _PREEMPTED, "pilot_shutdown",
         "codes UNSPECIFIED (measured after a graceful shutdown), NOT_STARTED, REFUSED, PREEMPT, "
         "ADMIN, SCHEDD, CHECKPOINTED, STARTER, IMAGE, SHADOW; and the startd ended",
         lambda e: e.startd_ended is True and e.reason in _AT_THE_END),
    # --- Failed later, or not by anybody's fault ---------------------------------------------
    Rule("container_failed", _OTHER, "container_failed", "codes IMAGE", _is(_M.IMAGE)),
    Rule("starter_failed", _OTHER, "starter_failed", "codes STARTER", _is(_M.STARTER)),
    Rule("shadow_failed", _OTHER, "shadow_failed", "codes SHADOW", _is(_M.SHADOW)),
    Rule("not_started", _MISCONFIGURED, "activation_refused", "codes NOT_STARTED",
         _is(_M.NOT_STARTED)),
    Rule("refused", _OTHER, "activation_refused", "codes REFUSED", _is(_M.REFUSED)),
    # --- Somebody decided against it ---------------------------------------------------------
    Rule("preempted", _OTHER, "preempted", "codes RANK", _is(_M.RANK)),
    Rule("preempted_by_expression", _OTHER, "preempted", "codes PREEMPT", _is(_M.PREEMPT)),
    Rule("vacated_by_admin", _OTHER, "vacated_by_admin", "codes ADMIN", _is(_M.ADMIN)),
    Rule("vacated_by_schedd", _OTHER, "vacated_by_schedd", "codes SCHEDD", _is(_M.SCHEDD)),
    Rule("removed_code", _OTHER, "removed", "codes REMOVED", _is(_M.REMOVED)),
    Rule("checkpointed", _OTHER, "checkpointed", "codes CHECKPOINTED", _is(_M.CHECKPOINTED)),
    Rule("vacated_by_user", _OTHER, "vacated_by_user", "codes USER from 1000 on",
         lambda e: e.vacated is _M.USER),
    Rule("vacated_by_policy", _OTHER, "vacated_by_policy", "codes POLICY from 1000 on",
         lambda e: e.vacated is _M.POLICY),
    Rule("held_by_user", _OTHER, "held_by_user", "codes USER", lambda e: e.held is _M.USER),
    Rule("held_and_released", _OTHER, "held_by_user",
         "the schedd itself ended it, and the job ran again: so it was not removed, and a policy's "
         "hold would have a code (measured)",
         lambda e: e.by_schedd is True and e.superseded is True and e.reason is None),
    Rule("held_by_policy", _OTHER, "held_by_policy",
         "codes POLICY, unless the program had ended itself (ON_EXIT_HOLD)",
         lambda e: e.held is _M.POLICY and not e.exited),
    Rule("held_for_limit", _OTHER, "held_for_limit", "codes LIMIT", _is(_M.LIMIT)),
    Rule("held_for_mistake", _OTHER, "held_for_mistake", "codes MISTAKE", _is(_M.MISTAKE)),
    Rule("held_by_startd", _OTHER, "held_by_startd", "codes STARTD_POLICY",
         _is(_M.STARTD_POLICY)),
    Rule("output_failed", _OTHER, "transfer_output_failed", "codes OUTPUT", _is(_M.OUTPUT)),
    Rule("checkpoint_failed", _OTHER, "held_by_system", "codes CHECKPOINT_FAILED",
         _is(_M.CHECKPOINT_FAILED)),
    Rule("held_by_system", _OTHER, "held_by_system", "codes SYSTEM below 1000, and new ones",
         lambda e: e.held is _M.SYSTEM),
    Rule("vacated_by_system", _OTHER, "vacated", "codes from 1000 on that are new",
         lambda e: e.vacated is _M.SYSTEM),
    # --- The program ended itself ------------------------------------------------------------
    Rule("exit_retried", _OTHER, EXIT_RETRIED,
         "OnExitRemove is false, or a later run of the job: it is tried again (max_retries)",
         lambda e: e.exited and (e.superseded is True or (e.retried is True and e.held is None))),
    Rule("exited_signal", _GOOD, "exit_signal",
         "ExitBySignal, and nothing ended it from outside (baseshadow.cpp:shutDown)",
         lambda e: e.exited and e.exit_signal is not None),
    Rule("exited_zero", _GOOD, "exit_zero", "ExitCode 0, and the same",
         lambda e: e.exited and e.exit_code == 0),
    Rule("exited_nonzero", _GOOD, "exit_nonzero", "ExitCode, and the same", lambda e: e.exited),
    # --- What else is known ------------------------------------------------------------------
    Rule("removed", _OTHER, "removed", "JobStatus 3 or RemoveReason, and no code",
         lambda e: e.removed is True and e.reason is None),
    Rule("preempted_flag", _OTHER, "preempted", "BadputCausedByPreemption (ResState.cpp)",
         lambda e: e.preempted is True and e.startd_ended is False),
    Rule("container_logged", _OTHER, "image_failed",
         "a central log has a failure of the container's image or runtime as this run began, and "
         "no record has how it ended",
         lambda e: e.container_failed is True and e.reason is None
         and (e.began is not True or e.early is not False), inferred=True, compared=True),
    Rule("gone_with_pilot", _PREEMPTED, "lost_contact",
         "no record has how, but the startd ended: design, evidence",
         lambda e: e.startd_ended is True, inferred=True),
    Rule("exit_unsent", _OTHER, "lost_contact",
         "Failed to send job exit status to shadow (jic_shadow.cpp:notifyJobExit): the startd went "
         "on, but the access point did not get the exit: the job runs again",
         lambda e: e.unsent is True, inferred=True),
    Rule("never_began", _MISCONFIGURED, "never_began",
         "JobCurrentStartExecutingDate is absent: design, section 3", lambda e: e.began is False),
    Rule("preempted_unsure", _OTHER, "preempted", "BadputCausedByPreemption",
         lambda e: e.preempted is True),
    Rule("starter_killed_unsure", _OTHER, "starter_failed", "Starter.cpp:exited",
         lambda e: e.starter_killed),
    Rule("vacated", _OTHER, "vacated", "codes UNSPECIFIED", _is(_M.UNSPECIFIED)),
    Rule("ended_by_condor", _OTHER, "ended_by_condor",
         "an exit that was not the program's own: HTCondor ended it, it is not known why; what a "
         "hold leaves (measured), until the schedd's history or the next run says more",
         lambda e: e.own_accord is False),
    Rule("disconnected", _OTHER, "lost_contact",
         "JobDisconnectedDate, and a later run: contact was lost, it is not known whose fault",
         lambda e: e.disconnected is True and e.superseded is True, inferred=True),
    Rule("no_record", _OTHER, "no_record", "a later run of the job: this one is over",
         lambda e: e.superseded is True, inferred=True),
    Rule("unknown", _OTHER, "unknown", "nothing is known", lambda _: True, inferred=True),
)
# fmt: on

SUMMARISED = "summarised"
"""The outcome of jobs that are only known from a summary of their pilot."""

AWAITING: frozenset[str] = frozenset(
    {"unknown", "ended_by_condor", "exit_unsent", "container_logged"}
)
"""Rules that hold only as long as there is no better evidence, for which gwmond waits."""

COMPARED: frozenset[str] = frozenset(rule.outcome for rule in RULES if rule.compared)
"""Labels of failures that only a comparison can blame on where they ran."""

RUNS: tuple[tuple[Category, str], ...] = tuple(
    sorted(
        {(rule.category, rule.outcome) for rule in RULES}
        | {(_MISCONFIGURED, label) for label in (EARLY_EXIT, *COMPARED)}
        | {(_OTHER, NOT_COMPARED)}
    )
)
"""Every category and outcome under which a run can be counted; summarised time is no run."""

OUTCOMES: tuple[str, ...] = tuple(sorted({outcome for _, outcome in RUNS}))


@lru_cache(maxsize=65536)  # most runs end alike
def rule_of(ending: Ending) -> Rule:
    """Return the line of the table that decides.

    >>> rule_of(Ending(over=True, vacate_code=1014)).outcome
    'drained'
    """
    return next(rule for rule in RULES if rule.holds(ending))


def classify(ending: Ending) -> Outcome | None:
    """Return the outcome of a run, None as long as it is not over."""
    if not ending.over:
        return None
    rule = rule_of(ending)
    return Outcome(rule.category, rule.outcome, "estimated" if rule.inferred else "measured")
