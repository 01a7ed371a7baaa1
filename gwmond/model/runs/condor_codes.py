"""HTCondor's hold and vacate codes, and what each says about the cause of a run's end.

Source: HTCondor manual, "Hold Reason Codes" and "Vacate Reason Codes" (docs/codes-other-values),
and ``condor_holdcodes.h``, as of 25.x; how they arise was read in the source of 23.9.6, where
``file:function`` is named.  The second column is the manual's label, the third what it means here.

Both share one space of numbers: below 1000 a code can be in either attribute.  The shadow stores
the code of a failure in VacateReasonCode, and the schedd makes a hold of it (or, with a cool-down
configured, does not: schedd.cpp:jobExitCode).  0 is no code.  The schedd deletes VacateReasonCode
when the next run starts (schedd.cpp:add_shadow_birthdate), so it is about the last run.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

VACATE_BASE = 1000
"""``CONDOR_HOLD_CODE::VacateBase``: from here on a code is no hold."""

STARTER_LOST_SHADOW = 2
"""``STARTER_EXIT_LOST_SHADOW_CONNECTION`` in exit.h: the job lease expired without a reconnect."""


class Meaning(StrEnum):
    """What a code says.  Which category that is, is decided in ``outcomes``."""

    # The pilot's end
    SHUTDOWN = "shutdown"  # its startd was shut down
    DIED = "died"  # its startd died
    DRAINED = "drained"  # it was drained
    LOST = "lost"  # the shadow could not reconnect to the starter
    # It never got as far as the user's program, or could
    INPUT = "input"  # transferring input files
    PROGRAM = "program"  # the program could not be started, or its files not be opened there
    IMAGE = "image"  # image or runtime of the container
    STARTER = "starter"  # anything else that the starter has to do before or beside the job
    SHADOW = "shadow"  # the access point's side of the same
    NOT_STARTED = "not_started"  # the claim could not be activated, without a reason
    BROKEN = "broken"  # the startd refused to activate the claim: something is wrong there
    REFUSED = "refused"  # the same, but only because the claim was going away or not ready
    # Somebody decided against it
    RANK = "rank"  # another job took the slot
    PREEMPT = "preempt"  # the startd's PREEMPT expression
    ADMIN = "admin"  # condor_vacate by an administrator of the pool
    POLICY = "policy"  # an expression of the job or of the access point
    USER = "user"  # condor_hold, condor_vacate_job
    REMOVED = "removed"  # condor_rm
    SCHEDD = "schedd"  # the access point, for reasons of its own
    LIMIT = "limit"  # more memory, disk or time than was asked for
    STARTD_POLICY = "startd_policy"  # the startd's WANT_HOLD
    # The user's or the access point's mistake
    MISTAKE = "mistake"  # something in the job's description or in the user's files
    OUTPUT = "output"  # transferring output files
    CHECKPOINT_FAILED = "checkpoint_failed"
    CHECKPOINTED = "checkpointed"  # the state is saved, but the claim was gone
    SYSTEM = "system"  # anything else that is not the pilot's doing
    # Says nothing
    UNSPECIFIED = "unspecified"  # interrupted, without a reason
    WEAK = "weak"  # the startd's view of any end that the access point asked for


class Code(NamedTuple):
    """One line of the manual's tables."""

    number: int
    label: str
    meaning: Meaning


_M = Meaning

HOLD_CODES: tuple[Code, ...] = (
    Code(1, "UserRequest", _M.USER),
    Code(2, "GlobusGramError", _M.SYSTEM),  # no longer in the manual
    Code(3, "JobPolicy", _M.POLICY),  # ON_EXIT_HOLD too: then the program had ended itself
    Code(4, "CorruptedCredential", _M.MISTAKE),
    Code(5, "JobPolicyUndefined", _M.POLICY),
    Code(6, "FailedToCreateProcess", _M.PROGRAM),  # exec failed, or docker could not run it
    Code(7, "UnableToOpenOutput", _M.PROGRAM),  # in the sandbox: user_proc.cpp
    Code(8, "UnableToOpenInput", _M.PROGRAM),
    Code(9, "UnableToOpenOutputStream", _M.PROGRAM),
    Code(10, "UnableToOpenInputStream", _M.PROGRAM),
    Code(11, "InvalidTransferAck", _M.STARTER),
    Code(12, "TransferOutputError", _M.OUTPUT),
    Code(13, "TransferInputError", _M.INPUT),
    Code(14, "IwdError", _M.MISTAKE),  # on the access point: baseshadow.cpp:cdToIwd
    Code(15, "SubmittedOnHold", _M.USER),
    Code(16, "SpoolingInput", _M.USER),
    Code(17, "JobShadowMismatch", _M.SYSTEM),
    Code(18, "InvalidTransferGoAhead", _M.STARTER),
    Code(19, "HookPrepareJobFailure", _M.STARTER),
    Code(20, "MissedDeferredExecutionTime", _M.POLICY),
    Code(21, "StartdHeldJob", _M.STARTD_POLICY),
    Code(22, "UnableToInitUserLog", _M.MISTAKE),  # on the access point
    Code(23, "FailedToAccessUserAccount", _M.SYSTEM),  # on the access point
    Code(24, "NoCompatibleShadow", _M.SYSTEM),
    Code(25, "InvalidCronSettings", _M.MISTAKE),
    Code(26, "SystemPolicy", _M.POLICY),
    Code(27, "SystemPolicyUndefined", _M.POLICY),
    Code(28, "GlexecChownSandboxToUser", _M.STARTER),  # 28 to 31 only in condor_holdcodes.h
    Code(29, "PrivsepChownSandboxToUser", _M.STARTER),
    Code(30, "GlexecChownSandboxToCondor", _M.STARTER),
    Code(31, "PrivsepChownSandboxToCondor", _M.STARTER),
    Code(32, "MaxTransferInputSizeExceeded", _M.LIMIT),
    Code(33, "MaxTransferOutputSizeExceeded", _M.LIMIT),
    Code(34, "JobOutOfResources", _M.LIMIT),
    Code(35, "InvalidDockerImage", _M.IMAGE),
    Code(36, "FailedToCheckpoint", _M.CHECKPOINT_FAILED),
    Code(37, "EC2UserError", _M.SYSTEM),  # 37 to 42 are of the grid universe: no pilot runs it
    Code(38, "EC2InternalError", _M.SYSTEM),
    Code(39, "EC2AdminError", _M.SYSTEM),
    Code(40, "EC2ConnectionProblem", _M.SYSTEM),
    Code(41, "EC2ServerError", _M.SYSTEM),
    Code(42, "EC2InstancePotentiallyLost", _M.SYSTEM),
    Code(43, "PreScriptFailed", _M.MISTAKE),
    Code(44, "PostScriptFailed", _M.MISTAKE),
    Code(45, "SingularityTestFailed", _M.IMAGE),  # of the job's own image: singularity.cpp:runTest
    Code(46, "JobDurationExceeded", _M.LIMIT),
    Code(47, "JobExecuteExceeded", _M.LIMIT),
    Code(48, "HookShadowPrepareJobFailure", _M.SHADOW),
)

VACATE_CODES: tuple[Code, ...] = (
    Code(1000, "JobPolicyVacate", _M.POLICY),
    Code(1001, "SystemPolicyVacate", _M.POLICY),
    Code(1002, "ShadowException", _M.SHADOW),
    Code(1003, "JobNotStarted", _M.NOT_STARTED),  # also a claim refused by a startd shutting down
    Code(1004, "UserVacateJob", _M.USER),
    Code(1005, "JobShouldRequeue", _M.UNSPECIFIED),  # what a graceful shutdown leaves (measured)
    Code(1006, "FailedToActivateClaim", _M.NOT_STARTED),
    Code(1007, "StarterError", _M.STARTER),
    Code(1008, "ReconnectFailed", _M.LOST),
    Code(1009, "ClaimDeactivated", _M.WEAK),  # in a startd's history after any end (measured)
    Code(1010, "StartdVacateCommand", _M.ADMIN),
    Code(1011, "StartdPreemptExpression", _M.PREEMPT),
    Code(1012, "StartdException", _M.DIED),
    Code(1013, "StartdShutdown", _M.SHUTDOWN),
    Code(1014, "StartdDraining", _M.DRAINED),
    Code(1015, "StartdCoalesce", _M.RANK),  # condor_now gave the slot to another job
    Code(1016, "StartdHibernate", _M.SHUTDOWN),
    Code(1017, "StartdReleaseCommand", _M.WEAK),
    Code(1018, "StartdPreemptingClaimRank", _M.RANK),
    Code(1019, "StartdPreemptingClaimUserPrio", _M.RANK),
    Code(1020, "VMError", _M.STARTER),
    Code(1021, "ContainerError", _M.IMAGE),
    Code(1022, "ScheddVacate", _M.SCHEDD),
    Code(1023, "JobRemoved", _M.REMOVED),
    Code(1024, "ScratchDirError", _M.STARTER),
    Code(1025, "SuccessfulCheckpoint", _M.CHECKPOINTED),
    Code(1026, "ActivationRefusedBadRequest", _M.BROKEN),
    Code(1027, "ActivationRefusedNoMatch", _M.REFUSED),
    Code(1028, "ActivationRefusedStillCleaning", _M.REFUSED),
    Code(1029, "ActivationRefusedWorklifeExpired", _M.REFUSED),
    Code(1030, "ActivationRefusedPreempted", _M.REFUSED),
    Code(1031, "ActivationRefusedBroken", _M.BROKEN),
    Code(1032, "ActivationRefusedNotIdle", _M.REFUSED),
    Code(1033, "ActivationRefusedUnclaimed", _M.REFUSED),
    Code(1034, "ActivationRefusedClaimNotFound", _M.REFUSED),
    Code(1035, "ActivationRefusedOldClaim", _M.REFUSED),
    Code(1036, "ActivationRefusedUnhealthy", _M.BROKEN),
)

MEANINGS = MappingProxyType({code.number: code.meaning for code in (*HOLD_CODES, *VACATE_CODES)})

MISTAKES_AT_THE_ACCESS_POINT = frozenset({2, 13, 20, 21})
"""Subcodes of a failed transfer of input *at the access point* that are the user's: ENOENT,
EACCES, ENOTDIR, EISDIR.  The same errno at the execution point may be the site's."""


def meaning(code: int | None) -> Meaning | None:
    """Return the meaning of a code; an unknown code of a later HTCondor means SYSTEM.

    >>> meaning(1013), meaning(0), meaning(999), meaning(1999)
    (<Meaning.SHUTDOWN: 'shutdown'>, None, <Meaning.SYSTEM: 'system'>, <Meaning.SYSTEM: 'system'>)
    """
    if not code:
        return None
    return MEANINGS.get(code, Meaning.SYSTEM)
