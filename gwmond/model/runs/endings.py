"""How one run ended, as far as any source has recorded it.

Each field is None if no source has it.  The comments name its attribute.  The sources make sure
that the value belongs to this run: an epoch ad can carry the times and the exit of the run before
(facts page on HTCondor, table of histories).
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from gwmond.model.runs.condor_codes import STARTER_LOST_SHADOW, VACATE_BASE, Meaning, meaning

Side: TypeAlias = Literal["access_point", "execution_point"]


class Ending(NamedTuple):
    """The evidence of one run's end."""

    # Whether it is over at all: a history has it, or its claim is gone.
    over: bool = False
    # JobStatus 4 in the schedd's history, whose record is about the last run.
    completed: bool | None = None
    # JobStatus 3 or RemoveReason in the schedd's history: perhaps removed only after this run.
    removed: bool | None = None
    # ExitCode; ExitSignal where ExitBySignal.  Also set where HTCondor killed the program.
    exit_code: int | None = None
    exit_signal: int | None = None
    # The program ended itself: an exit without a vacate code; ToE.HowCode == 0 until HTCondor 24.0.
    own_accord: bool | None = None
    # OnExitRemove is false after that exit, as with max_retries: the schedd runs the job again.
    retried: bool | None = None
    hold_code: int | None = None  # HoldReasonCode, or LastHoldReasonCode of the last run
    hold_subcode: int | None = None
    vacate_code: int | None = None  # VacateReasonCode; 0 if a shadow had no reason
    vacate_subcode: int | None = None
    # The schedd itself ended it, as the job was held or removed: VacateReasonCode 0 in a shadow's
    # record, 1009 in HTCondor 25 (measured).
    by_schedd: bool | None = None
    # In HoldReason or VacateReason: "failure at access point" / "at execution point"
    # (baseshadow.cpp:improveReasonAttributes).
    failed_at: Side | None = None
    # Whether the program was started: JobCurrentStartExecutingDate; JobStartDate in a startd's.
    began: bool | None = None
    # Whether it ended within the early window after that (see early_failure.is_early).
    early: bool | None = None
    # Output was being transferred, and that was not finished.
    sending_output: bool | None = None
    # StarterExitStatus, a wait status (startd's Starter.cpp:exited).
    starter_status: int | None = None
    # BadputCausedByDraining, BadputCausedByPreemption (startd's history only).
    draining: bool | None = None
    preempted: bool | None = None
    # JobDisconnectedDate: the access point lost contact at least once, perhaps not for ever.
    disconnected: bool | None = None
    # The startd under which it ran ended with it (or is known to have gone on).
    startd_ended: bool | None = None
    # A later run of the same job has begun.
    superseded: bool | None = None
    # "Failed to send job exit status to shadow": the program had ended, and no history has how
    # (starter's jic_shadow.cpp:notifyJobExit); from a starter's log or a central log.
    unsent: bool | None = None
    # A central log has a failure of a container at the beginning of this run.
    container_failed: bool | None = None
    # Which way, and protocol and host of the server: "input root se.example.org"
    # (``runs.phases.FailedTransfer``).
    failed_transfer: str | None = None

    @property
    def vacated(self) -> Meaning | None:
        """What the code of a vacate says, unless it says nothing."""
        codes = (code or 0 for code in (self.vacate_code, self.hold_code))
        first = next((meaning(code) for code in codes if code >= VACATE_BASE), None)
        return None if first is Meaning.WEAK else first

    @property
    def held(self) -> Meaning | None:
        """What the code of a hold says; a job that was vacated was not held while it ran."""
        if self.vacated is not None:
            return None
        codes = (code or 0 for code in (self.vacate_code, self.hold_code))
        return next((meaning(code) for code in codes if 0 < code < VACATE_BASE), None)

    @property
    def reason(self) -> Meaning | None:
        """What HTCondor reports on why the run was ended from outside."""
        return self.vacated or self.held

    @property
    def subcode(self) -> int | None:
        """The subcode that belongs to ``held``."""
        of_vacate = 0 < (self.vacate_code or 0) < VACATE_BASE
        return self.vacate_subcode if of_vacate else self.hold_subcode

    @property
    def exited(self) -> bool:
        """Whether the program ended itself, and nothing kept the run from being finished.

        ON_EXIT_HOLD holds a job after it ended, with the code of a policy.  If it is not known
        who ended the program, a signal may have been HTCondor's.
        """
        if (self.exit_code is None and self.exit_signal is None) or self.unsent:
            return False
        if self.reason not in {None, Meaning.POLICY} or self.vacated is not None:
            return False
        if self.own_accord is not None:
            return self.own_accord and not self.sending_output
        doubtful = self.held or self.removed or self.draining or self.preempted or self.startd_ended
        return not (self.exit_signal is not None and doubtful) and not self.sending_output

    @property
    def at_the_beginning(self) -> bool:
        """Whether the program never began, or had only just."""
        return self.began is False or self.early is True

    @property
    def starter_killed(self) -> bool:
        """Whether a signal ended the starter, by the low bits of a wait status."""
        return self.starter_status is not None and self.starter_status & 0x7F != 0

    @property
    def lease_expired(self) -> bool:
        """Whether the starter gave up because no shadow reconnected in time."""
        return self.starter_status == STARTER_LOST_SHADOW << 8


EARLY_US = 300_000_000
"""A program that ends within five minutes ended early."""


def is_early(executing_us: int | None) -> bool | None:
    """Return whether a program that ran so long ended early; None where that is not known."""
    return None if executing_us is None else executing_us <= EARLY_US
