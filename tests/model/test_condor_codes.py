from __future__ import annotations

import pytest

from gwmond.model.runs.condor_codes import (
    HOLD_CODES,
    MEANINGS,
    VACATE_BASE,
    VACATE_CODES,
    Meaning,
    meaning,
)

# The manual of HTCondor 25: hold-table.rst and vacate-code-table.rst (numbers and labels).
MANUAL_HOLD = """
1 UserRequest 3 JobPolicy 4 CorruptedCredential 5 JobPolicyUndefined 6 FailedToCreateProcess
7 UnableToOpenOutput 8 UnableToOpenInput 9 UnableToOpenOutputStream 10 UnableToOpenInputStream
11 InvalidTransferAck 12 TransferOutputError 13 TransferInputError 14 IwdError 15 SubmittedOnHold
16 SpoolingInput 17 JobShadowMismatch 18 InvalidTransferGoAhead 19 HookPrepareJobFailure
20 MissedDeferredExecutionTime 21 StartdHeldJob 22 UnableToInitUserLog
23 FailedToAccessUserAccount 24 NoCompatibleShadow 25 InvalidCronSettings 26 SystemPolicy
27 SystemPolicyUndefined 32 MaxTransferInputSizeExceeded 33 MaxTransferOutputSizeExceeded
34 JobOutOfResources 35 InvalidDockerImage 36 FailedToCheckpoint 37 EC2UserError
38 EC2InternalError 39 EC2AdminError 40 EC2ConnectionProblem 41 EC2ServerError
42 EC2InstancePotentiallyLost 43 PreScriptFailed 44 PostScriptFailed 45 SingularityTestFailed
46 JobDurationExceeded 47 JobExecuteExceeded 48 HookShadowPrepareJobFailure
"""
MANUAL_VACATE = """
1000 JobPolicyVacate 1001 SystemPolicyVacate 1002 ShadowException 1003 JobNotStarted
1004 UserVacateJob 1005 JobShouldRequeue 1006 FailedToActivateClaim 1007 StarterError
1008 ReconnectFailed 1009 ClaimDeactivated 1010 StartdVacateCommand 1011 StartdPreemptExpression
1012 StartdException 1013 StartdShutdown 1014 StartdDraining 1015 StartdCoalesce
1016 StartdHibernate 1017 StartdReleaseCommand 1018 StartdPreemptingClaimRank
1019 StartdPreemptingClaimUserPrio 1020 VMError 1021 ContainerError 1022 ScheddVacate
1023 JobRemoved 1024 ScratchDirError 1025 SuccessfulCheckpoint 1026 ActivationRefusedBadRequest
1027 ActivationRefusedNoMatch 1028 ActivationRefusedStillCleaning
1029 ActivationRefusedWorklifeExpired 1030 ActivationRefusedPreempted
1031 ActivationRefusedBroken 1032 ActivationRefusedNotIdle 1033 ActivationRefusedUnclaimed
1034 ActivationRefusedClaimNotFound 1035 ActivationRefusedOldClaim 1036 ActivationRefusedUnhealthy
"""
# Only in condor_holdcodes.h.
HEADER = {2, 28, 29, 30, 31}


def codes(manual: str) -> dict[int, str]:
    words = manual.split()
    return {int(number): label for number, label in zip(words[::2], words[1::2], strict=True)}


def test_every_code_of_the_manual_is_in_the_table() -> None:
    ours = {code.number: code.label for code in HOLD_CODES if code.number not in HEADER}
    assert ours == codes(MANUAL_HOLD)
    assert {code.number: code.label for code in VACATE_CODES} == codes(MANUAL_VACATE)


def test_a_code_is_in_one_table_once() -> None:
    assert len(MEANINGS) == len(HOLD_CODES) + len(VACATE_CODES)
    assert max(code.number for code in HOLD_CODES) < VACATE_BASE
    assert min(code.number for code in VACATE_CODES) == VACATE_BASE


def test_every_meaning_is_used() -> None:
    assert set(MEANINGS.values()) == set(Meaning)


@pytest.mark.parametrize(
    ("code", "says"),
    [(None, None), (0, None), (13, Meaning.INPUT), (49, Meaning.SYSTEM), (1037, Meaning.SYSTEM)],
)
def test_what_a_code_says(code: int | None, says: Meaning | None) -> None:
    """What a later HTCondor may add is not held against the pilot."""
    assert meaning(code) is says
