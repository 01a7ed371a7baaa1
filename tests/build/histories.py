"""Records of job runs of real pools, and which rule of outcomes decides on each of them.

The records are tests/recordings/histories; what happened to each job is told in
tests/sources/history_scenario.py.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import classad2

from gwmond.sources.htcondor.ads import written

#: Records of pools by their HTCondor: 23, 25, and 25 with pilots of 23 (make_histories.py).
HISTORIES = Path(__file__).parents[1] / "recordings" / "histories"
POOLS = ("23", "25", "25-23")
KINDS = ("epochs", "history", "startd_history")


Row = dict[str, str]
"""A record, or the ad of a claimed slot, as ClassAd text of each attribute."""


@cache
def rows(kind: str, pool: str = "23") -> tuple[Row, ...]:
    """What real daemons told, oldest first; nobody may change it."""
    return tuple(json.loads((HISTORIES / pool / f"{kind}.json").read_text()))


def parsed(row: Row) -> classad2.ClassAd:
    return classad2.ClassAd(written(row))


def load(kind: str, pool: str = "23") -> list[tuple[str, classad2.ClassAd]]:
    """Case and ad of each record."""
    return [(str(ad["TestCase"]), ad) for ad in map(parsed, rows(kind, pool))]


EPOCHS = {
    "exit_zero": ["exited_zero"],
    "exit_three": ["exited_nonzero"],
    "signal": ["exited_signal"],
    "killed_itself": ["exited_signal"],
    "terminated_itself": ["exited_signal"],
    "exit_retried": ["exit_retried", "exited_nonzero"],
    "retried_then_done": ["exit_retried", "exited_zero"],
    "two_runs": ["exit_retried", "exited_nonzero"],
    "exit_then_held": ["exited_nonzero", "exited_nonzero"],
    "removed": ["ended_by_condor"],
    "removed_by_policy": ["ended_by_condor"],
    "caught_and_removed": ["ended_by_condor"],
    "held": ["ended_by_condor"],
    "held_by_policy": ["held_by_policy"],
    "held_then_done": ["ended_by_condor", "exited_zero"],
    "ran_too_long": ["held_for_limit"],
    "vacated_by_user": ["vacated", "exited_zero"],
    "no_program": ["program_failed"],
    "starter_killed": ["lost_contact", "ended_by_condor"],
    "shadow_killed": ["exit_retried"],
    "startd_killed": ["lost_contact"],
    "input_missing": ["input_mistake"],
    "output_missing": ["output_failed"],
    "evicted": ["vacated", "exited_zero"],
    "evicted_then_removed": ["vacated"],
    "evicted_then_held": ["vacated"],
    "caught_and_evicted": ["vacated"],
    "drained": ["vacated"],
    "killed": ["lost_contact", "exited_zero"],
    "exit_then_killed": ["exit_retried", "lost_contact"],
}
HISTORY = {
    "exit_zero": "completed_zero",
    "exit_three": "completed_nonzero",
    "signal": "completed_signal",
    "killed_itself": "completed_signal",
    "terminated_itself": "completed_signal",
    "exit_retried": "completed_nonzero",
    "retried_then_done": "completed_zero",
    "two_runs": "completed_nonzero",
    "exit_then_held": "exited_nonzero",
    "removed": "removed",
    "removed_by_policy": "removed",
    "caught_and_removed": "removed",
    "held": "held_by_user",
    "held_by_policy": "held_by_policy",
    "held_then_done": "completed_zero",
    "ran_too_long": "held_for_limit",
    "vacated_by_user": "completed_zero",
    "no_program": "program_failed",
    "starter_killed": "removed",
    "shadow_killed": "removed",
    "startd_killed": "lost_contact",
    "input_missing": "input_mistake",
    "output_missing": "output_failed",
    "evicted": "completed_zero",
    "evicted_then_removed": "vacated",
    "evicted_then_held": "vacated",
    "caught_and_evicted": "vacated",
    "drained": "vacated",
    "killed": "completed_zero",
    "exit_then_killed": "lost_contact",
}
#: What it tells otherwise than epochs do.
STARTD_HISTORY = {
    **EPOCHS,
    "exit_then_held": ["exited_nonzero"],
    "held_by_policy": ["ended_by_condor"],
    "ran_too_long": ["ended_by_condor"],
    "vacated_by_user": ["ended_by_condor", "exited_zero"],
    "no_program": ["unknown"],
    "starter_killed": ["starter_killed_unsure", "ended_by_condor"],
    "shadow_killed": ["exit_retried", "ended_by_condor"],
    "input_missing": ["unknown"],
    "output_missing": ["exited_zero"],
    "evicted": ["preempted_unsure", "exited_zero"],
    "evicted_then_removed": ["preempted_unsure"],
    "evicted_then_held": ["preempted_unsure"],
    "caught_and_evicted": ["preempted_unsure"],
    "drained": ["drained"],
    "killed": ["exited_zero"],
    "exit_then_killed": ["exit_retried"],
}
del STARTD_HISTORY["startd_killed"]  # that left none

#: What starters of 25 tell beyond those of 23: why they ended a program.
_TOLD_BY_STARTERS = {
    "evicted": "startd_shutdown",
    "evicted_then_removed": "startd_shutdown",
    "evicted_then_held": "startd_shutdown",
    "caught_and_evicted": "startd_shutdown",
    "drained": "drained",
}


def expected(kind: str, pool: str) -> dict[str, list[str]]:
    """The rules that decide, by case and in the order of runs, by records of that pool."""
    tables = {
        "epochs": EPOCHS,
        "history": {case: [rule] for case, rule in HISTORY.items()},
        "startd_history": STARTD_HISTORY,
    }
    found = {case: [*rules] for case, rules in tables[kind].items()}
    if pool == "25":
        for case, rule in _TOLD_BY_STARTERS.items():
            if kind != "history" or case != "evicted":
                found[case][0] = rule
    if kind == "startd_history" and pool == "25":
        # Its starter stays after a failed start of a program, until the startd kills it.
        found["no_program"] = ["starter_killed_unsure"]
    if kind == "epochs" and pool != "23":
        found["vacated_by_user"][0] = "vacated_by_schedd"
    return found


#: After condor_vacate_job a schedd of 25 tries the same claim again, which is refused.
REFUSED = {"refused", "not_started"}
