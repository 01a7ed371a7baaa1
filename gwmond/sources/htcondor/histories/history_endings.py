"""How a job's run ended, by a record of the run.

**Whose is an attribute?**  The shadow writes into one ad for all runs of a job, and the startd is
given a copy of that ad as a run begins; so both may hold what the run before has left (measured:
tests/recordings/histories).

- A shadow's time is this run's if it is not before JobCurrentStartDate, which the schedd sets as a
  run begins (schedd.cpp:add_shadow_birthdate).  -1 is no time.
- VacateReasonCode and HoldReasonCode are deleted before a run begins, so they are this run's.
  LastHoldReasonCode may be of any hold: see ``_hold``.
- Exits carry no time of their own: see ``_exit_by_shadow`` and ``_exit_by_starter``.
- VacateReasonCode (HTCondor 23.8.1 and later) is there, be it 0, whenever a shadow's run was ended
  from outside; ToE (until 24.0) only where a program ended itself (docs/attributes.md).
- In a startd's copy nothing that a shadow writes is of this run.  JobStartDate is overwritten when
  the program begins, else it is the job's first start: see ``_began``.

Units: seconds since the epoch.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from gwmond.model.runs.condor_codes import VACATE_BASE, Meaning, meaning
from gwmond.model.runs.endings import Ending, is_early
from gwmond.model.times import SECOND_US
from gwmond.sources.htcondor import ads

if TYPE_CHECKING:
    from collections.abc import Callable

    import classad2

    from gwmond.model.runs.endings import Side

EPOCHS_S = range(10**9, 10**11)
RECONNECT_FAILED = 1008
_POLICY_HOLDS = frozenset({3, 26})
_NEWER_STARTER = "ExecuteDirWasEncrypted"  # HTCondor 24.0 and later, of each job
EXIT_POLICY = (
    *("OnExitRemove", "NumJobCompletions", "JobMaxRetries", "JobSuccessExitCode"),
    *("ExitBySignal", "ExitCode", "ExitSignal", "NumShadowStarts"),
)
"""What says whether the schedd runs a job again after an exit: max_retries and its like."""

_RUNNING, _REMOVED, _COMPLETED, _HELD = 2, 3, 4, 5  # JobStatus
_WAYS: dict[Meaning | None, str] = {Meaning.INPUT: "input", Meaning.OUTPUT: "output"}
_URL = re.compile(
    r"(?<![a-zA-Z0-9+.-])([a-zA-Z][a-zA-Z0-9+.-]{0,30})://(?:[^\s/?#]*@)?"
    r"([a-zA-Z0-9._-]{0,253}|\[[0-9a-fA-F:.]{2,45}\])(?::[0-9]*)?(?=[/?#\s)|;,'\"]|$)"
)
_PROTOCOL = re.compile(r"using protocol ([a-zA-Z][a-zA-Z0-9+.-]{0,30}?)[.]?(?=\s|$)")
_CEDAR = re.compile(r"while (?:sending files to|receiving files from) ")


def epoch(ad: classad2.ClassAd, name: str) -> int | None:
    """Return a time (seconds since the epoch); None for 0, -1 and what else is none."""
    value = ads.integer(ad, name)
    return None if value is None or value not in EPOCHS_S else value


class RecordedRun(NamedTuple):
    """An ad, which run of the job it is about, and JobCurrentStartDate, if known."""

    ad: classad2.ClassAd
    number: int
    start: int | None

    def date(self, name: str) -> int | None:
        """Return a time, if it is this run's."""
        value = epoch(self.ad, name)
        return None if value is None or value < (self.start or 0) else value

    @property
    def lost(self) -> bool:
        """Whether the shadow never heard of how it ended."""
        return ads.count(self.ad, "VacateReasonCode") == RECONNECT_FAILED

    @property
    def disconnected(self) -> int | None:
        """Return when the shadow lost contact.

        Later than the start: as a run is given up, the next may begin within the same second.
        """
        date = self.date("JobDisconnectedDate")
        return None if date == self.start else date


class _Exit(NamedTuple):
    """How the program ended; ``when`` by the clock of the execution point."""

    code: int | None = None
    signal: int | None = None
    own_accord: bool | None = None
    when: int | None = None


def executing(kind: str, run: RecordedRun, began: bool | None) -> int | None:
    """Return when the program began, if a record of a kind of history has that of this run.

    A shadow writes JobCurrentStartExecutingDate, a starter JobStartDate (see ``_began``).
    """
    if kind == "startd_history":
        return epoch(run.ad, "JobStartDate") if began else None
    return run.date("JobCurrentStartExecutingDate")


def _of_epochs(run: RecordedRun) -> tuple[int | None, Ending]:
    """Return when the run ended: as the shadow wrote the ad, or lost contact for good."""
    end = run.date("EpochWriteDate")
    if run.lost:
        end = run.disconnected or end
    return end, _of_shadow(run, end, own=True)._replace(**_hold_now(run))


def _of_history(run: RecordedRun) -> tuple[int | None, Ending]:
    """Return when the last run ended; the job may have left the queue much later."""
    ad = run.ad
    status, before = ads.integer(ad, "JobStatus"), ads.integer(ad, "LastJobStatus")
    completed = status == _COMPLETED
    end = run.date("CompletionDate") if completed else None
    if end is None and run.lost:
        end = run.disconnected
    if end is None and completed:
        end = run.date("EnteredCurrentStatus")
    if end is None:
        end = run.date("LastVacateTime")
    if end is None:
        end = _after_wall_time(run)
    if end is None and before == _RUNNING:
        end = run.date("EnteredCurrentStatus")
    ending = _of_shadow(run, end, own=completed)
    hold = _hold(run, ending, before)
    return end, ending._replace(
        completed=completed, removed=status == _REMOVED, superseded=False, **hold
    )


def _after_wall_time(run: RecordedRun) -> int | None:
    """Return the end by what the schedd charged for the run (RemoteWallClockTime: for all)."""
    wall = ads.count(run.ad, "LastRemoteWallClockTime")
    if wall is None and run.number == 1:
        wall = ads.count(run.ad, "RemoteWallClockTime")
    return None if not wall or run.start is None else run.start + wall


def _of_shadow(run: RecordedRun, end: int | None, *, own: bool = False) -> Ending:
    """Return what the shadow wrote into the job's ad; ``own``: an exit in it is this run's."""
    began_at = executing("epochs", run, None)
    sending = run.date("JobCurrentStartTransferOutputDate") or run.date("TransferOutStarted")
    first = (run.start or 0) + (not own)  # in its first second, it may be the run before's
    if sending is not None and sending < max(began_at or 0, first):
        sending = None
    sent = run.date("JobCurrentFinishTransferOutputDate") or run.date("TransferOutFinished")
    ends = ads.count(run.ad, "NumJobCompletions") or 0
    began = began_at is not None or ends >= run.number
    exit_ = _exit_by_shadow(run, own=own, reported=sending is not None) if began else _Exit()
    vacated = ads.count(run.ad, "VacateReasonCode")
    return Ending(
        over=True,
        exit_code=exit_.code,
        exit_signal=exit_.signal,
        own_accord=exit_.own_accord,
        retried=_retried(run.ad, exit_),
        vacate_code=vacated,
        vacate_subcode=ads.integer(run.ad, "VacateReasonSubCode"),
        by_schedd=True if vacated == 0 or meaning(vacated) is Meaning.WEAK else None,
        failed_at=_failed_at(run, "VacateReason"),
        failed_transfer=_failed_transfer(run, "VacateReason"),
        began=began,
        early=_early(began_at, sending or end),
        sending_output=None if sending is None else (sent or 0) < sending,
        disconnected=True if run.disconnected is not None else None,
    )


def _of_startd_history(run: RecordedRun) -> tuple[int | None, Ending]:
    """Return when the starter ended."""
    ad = run.ad
    end = run.date("CompletionDate")
    reported = _reported_exit(ad) is not None
    began = _began(run, end, reported=run.number == 1 and reported)
    began_at = executing("startd_history", run, began)
    status = ads.integer(ad, "StarterExitStatus")
    exits = began is not False and not (status or 0) & 0x7F  # a killed starter reports none
    exit_ = _exit_by_starter(run, began_at or run.start or 0) if exits else _Exit()
    ending = Ending(
        over=True,
        exit_code=exit_.code,
        exit_signal=exit_.signal,
        own_accord=exit_.own_accord,
        retried=_retried_after(ad, exit_),
        vacate_code=ads.count(ad, "VacateReasonCode"),
        vacate_subcode=ads.integer(ad, "VacateReasonSubCode"),
        failed_at=_failed_at(run, "VacateReason"),
        began=began,
        early=_early(began_at, exit_.when or end),
        starter_status=status,
        draining=ads.truth(ad, "BadputCausedByDraining"),
        preempted=ads.truth(ad, "BadputCausedByPreemption"),
    )
    hold = _hold_now(run)
    return end, ending._replace(**hold) if hold else ending


def _began(run: RecordedRun, end: int | None, *, reported: bool) -> bool | None:
    """Return whether a startd's record says that the program began.

    If it did not, JobStartDate is still the first run's JobCurrentStartDate; but it may also have
    begun within that second.  Then no wall time says that it did not (some is charged at times).
    """
    first, before = epoch(run.ad, "JobStartDate"), epoch(run.ad, "JobLastStartDate")
    if first is None or run.start is None:
        return None
    if run.number > 1:
        return first > (run.start - 1 if before is None else before)
    if first != run.start or reported:
        return True
    unpaid = ads.number(run.ad, "RemoteWallClockTime") == 0 and (end or 0) > run.start
    return False if unpaid else None


def _reported_exit(ad: classad2.ClassAd) -> _Exit | None:
    """Return the exit that a record or a ToE has, None if it has none."""
    if ads.truth(ad, "ExitBySignal"):
        signal = ads.count(ad, "ExitSignal")
        return None if signal is None else _Exit(signal=signal)
    code = ads.integer(ad, "ExitCode")
    return None if code is None else _Exit(code)


def _exit_by_shadow(run: RecordedRun, *, own: bool, reported: bool) -> _Exit:
    """Return how the program ended, unless that is not known or is the run before's.

    The shadow counts each end of a program by itself (NumJobCompletions).  With a vacate code it
    was HTCondor that ended this one; an exit code beside a failure is none (255), unless the
    program had ended and sending its output failed.  Without a code the program ended itself, if
    the exit is this run's: it is the first run, the record is ``own``, the shadow was sent output,
    or each run so far has ended itself.
    """
    end = _reported_exit(run.ad)
    if end is None or run.lost:
        return _Exit()
    vacated = ads.count(run.ad, "VacateReasonCode")
    ends = ads.count(run.ad, "NumJobCompletions")
    if vacated is not None:
        if meaning(vacated) is Meaning.OUTPUT and reported:
            return end._replace(own_accord=True)
        failed = 0 < vacated < VACATE_BASE
        return _Exit() if failed and end.signal is None else end._replace(own_accord=False)
    if ends == 0:
        return end._replace(own_accord=False)
    if run.number == 1 or own or reported or (ends or 0) >= run.number:
        return end._replace(own_accord=True)
    return _Exit()


def _exit_by_starter(run: RecordedRun, start: int) -> _Exit:
    """Return how the program ended that began at ``start``, as the startd's record has it.

    - A ToE (HTCondor until 24.0) is reported of a program that ended itself.  If HTCondor ended it,
      the record may have the ToE of the run before: this run's says the same as the exit, and is
      not older than the start unless it is the first run (clocks may differ).
    - A VacateReasonCode says that HTCondor ended it, or was about to.
    - With neither, a starter that writes no ToE any more saw the program end by itself.  24.0 may
      write neither if HTCondor ended it, so own_accord is left to the shadow's record.
    """
    ad = run.ad
    end = _reported_exit(ad)
    if end is None or run.lost:
        return _Exit()
    toe: Any = ads.evaluate(ad, "ToE")
    if type(toe).__name__ == "ClassAd" and _reported_exit(toe) == end:
        when, how = epoch(toe, "When"), ads.integer(toe, "HowCode")
        if run.number > 1 and (when or 0) < start:
            return _Exit()
        return end._replace(own_accord=None if how is None else how == 0, when=when)
    vacated = ads.count(ad, "VacateReasonCode")
    if 0 < (vacated or 0) < VACATE_BASE and end.signal is None:
        return _Exit()
    newer = vacated is None and ads.evaluate(ad, _NEWER_STARTER) is not None
    return end if newer else end._replace(own_accord=False)


def _retried(ad: classad2.ClassAd, exit_: _Exit) -> bool | None:
    """Return whether the schedd runs the job again after an exit: OnExitRemove (max_retries)."""
    if exit_.own_accord is False or (exit_.code, exit_.signal) == (None, None):
        return None
    removed = ads.truth(ad, "OnExitRemove")
    return None if removed is None else not removed


def _retried_after(ad: classad2.ClassAd, exit_: _Exit) -> bool | None:
    """Return the same by a startd's record, in which this end of the program is not yet counted."""
    ends = ads.count(ad, "NumJobCompletions")
    if ends is None:
        return _retried(ad, exit_)
    policy = ads.parse(ads.source_text(ad, EXIT_POLICY))
    policy["NumJobCompletions"] = ends + 1
    return _retried(policy, exit_)


def _hold_now(run: RecordedRun) -> dict[str, Any]:
    """Return the hold that this record is about, if any."""
    code = ads.count(run.ad, "HoldReasonCode")
    if not code:
        return {}
    subcode = ads.integer(run.ad, "HoldReasonSubCode")
    hold: dict[str, Any] = {"hold_code": code, "hold_subcode": subcode}
    failed = {"failed_at": _failed_at, "failed_transfer": _failed_transfer}
    values = {name: read(run, "HoldReason") for name, read in failed.items()}
    return {**hold, **{name: value for name, value in values.items() if value is not None}}


def _hold(run: RecordedRun, ending: Ending, before: int | None) -> dict[str, Any]:
    """Return the hold at the last run's end, which a schedd's history has as the last of all.

    It is that run's if VacateReasonCode says the same; or if the schedd itself ended the run
    (``Ending.by_schedd``), and the job was not removed from running; or, of a program that ended
    itself, if a policy held the job and it was never released.  Otherwise the job may have been
    held while it was idle, or after an earlier run.
    """
    prefix = "HoldReason" if ads.count(run.ad, "HoldReasonCode") else "LastHoldReason"
    code = ads.count(run.ad, f"{prefix}Code")
    vacated = ending.vacate_code
    of_this_run = (
        (ending.by_schedd and before != _RUNNING)
        or (vacated is not None and vacated == code)
        or (vacated is None and code in _POLICY_HOLDS and before == _HELD)
    )
    if not code or not of_this_run:
        return {}
    subcode = ads.integer(run.ad, f"{prefix}SubCode")
    return {
        "hold_code": code,
        "hold_subcode": subcode,
        "failed_at": _failed_at(run, prefix) or ending.failed_at,
        "failed_transfer": _failed_transfer(run, prefix) or ending.failed_transfer,
    }


def _failed_at(run: RecordedRun, name: str) -> Side | None:
    """Return which side failed, by the shadow's text (baseshadow.cpp:improveReasonAttributes)."""
    text = ads.text(run.ad, name) or ""
    if "failure at access point" in text:
        return "access_point"
    return "execution_point" if "failure at execution point" in text else None


def _failed_transfer(run: RecordedRun, name: str) -> str | None:
    """Return the way and the server of a transfer that failed; None if none did.

    A starter that cannot send output at all says so in a text only (code 1007).
    """
    text = ads.text(run.ad, name) or ""
    way = _WAYS.get(meaning(ads.count(run.ad, f"{name}Code")))
    if way is None and "attempts to transfer output failed" in text:
        way = "output"
    return None if way is None else f"{way} {server_of(text)}"


def server_of(text: str) -> str:
    """Return protocol and host, if known, of the URL that a failure names; nothing else of it.

    HTCondor's own protocol has no URL: ``cedar``.  gwmond-path-transfer names the waypoint first
    that failed, its own URL last.  The rest of a URL, a user's name and secrets included, is never
    returned.

    >>> server_of("using protocol root. Details: no ( URL file = root://u:p@se.org:1094//a?... )|")
    'root se.org'
    >>> server_of("failure at access point ap using protocol osdf. Details: 404")
    'osdf'
    >>> server_of("at execution point slot1@n while receiving files from access point ap. Details")
    'cedar'
    """
    match = _URL.search(text.partition("URL file =")[2] or text)
    if match is not None and match[1].lower() == "tree":
        match = _URL.search(text)
    if match is not None:
        return f"{match[1]} {match[2]}".lower().rstrip()
    if match := _PROTOCOL.search(text):
        return match[1].lower()
    own = _CEDAR.search(text) is not None and "plugin" not in text and "FILETRANSFER" not in text
    return "cedar" if own else "unknown"


def _early(began_at: int | None, end: int | None) -> bool | None:
    if began_at is None or end is None:
        return None
    return is_early(max(0, end - began_at) * SECOND_US)


DECODERS: dict[str, Callable[[RecordedRun], tuple[int | None, Ending]]] = {
    "epochs": _of_epochs,
    "history": _of_history,
    "startd_history": _of_startd_history,
}
"""For each kind of history: when the run ended, and what is known of how."""
