"""The jobs of the scenario: what each does, on which pilots, and how each of its runs shall end.

A job notes its own beginning and end in a file which it shares with the script, with the run's
number and the slot's size as HTCondor told them to the job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.pool.condor import CLEANED

GOOD = "goodput"
CUT_OFF = "preemption_badput"
OTHER = "unclassified"
_NEVER = 3600

JOB = r"""#!/bin/sh
# job.sh NOTES SECONDS,... [exit CODE | kill SIGNAL], one number for each run
attr() { sed -n "s/^$2 = \"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" "$1"; }
run=$(attr "$_CONDOR_JOB_AD" NumShadowStarts)
slot=$(attr "$_CONDOR_MACHINE_AD" Name)
size="$(attr "$_CONDOR_MACHINE_AD" Cpus) $(attr "$_CONDOR_MACHINE_AD" Memory)"
notes=$1
note() { echo "$1 $run $slot $size $(date +%s.%N)" >>"$notes"; }
trap 'note term; trap - TERM; kill -TERM $$' TERM
note begin
sleep "$(echo "$2" | cut -d, -f"$run")" &
wait $!
note end
case $3 in
    kill) kill -"$4" $$ ;;
    *) exit "$4" ;;
esac
"""

WRAPPER = r"""#!/bin/sh
# USER_JOB_WRAPPER of the sick node: whatever the job is, it fails as soon as it can be seen.
set -- "$2" 3 exit 1
""" + JOB.partition("\n")[2]


class End(NamedTuple):
    """How one run shall end: the pilot it is on, its category, the label of the outcome."""

    pilot: str
    category: str
    outcome: str
    #: whether the job's own program runs at all
    begins: bool = True


@dataclass(frozen=True)
class Plan:
    """One job: its owner, the number of its schedd, and its runs in their order."""

    tag: str
    owner: str
    schedd: int
    runs: tuple[End, ...]
    #: how long its program runs, where nothing ends it before
    seconds: float = 8
    how: str = "exit 0"
    cores: int = 1
    memory: int = 1024
    commands: dict[str, object] = field(default_factory=dict)
    requirements: str = "true"
    #: ended by an action of the script: runs that do not end well have no end of their own, so that
    #: it does not matter how slow the script is
    acted: bool = False

    @property
    def pilots(self) -> tuple[str, ...]:
        """All pilots on which it runs, the first one first."""
        return tuple(dict.fromkeys(end.pilot for end in self.runs))

    @property
    def _lengths(self) -> str:
        endless = (self.acted and end.category != GOOD for end in self.runs)
        return ",".join(str(_NEVER if of else self.seconds) for of in endless)

    def submission(self, directory: Path) -> dict[str, object]:
        """The commands of its submit description."""
        first, *others = (f'TARGET.ProofPilot =?= "{name}"' for name in self.pilots)
        later = " || ".join(others) or "false"
        allowed = f"({first}) || ({later})"
        if "max_retries" in self.commands:
            # A run that failed on the first pilot is repeated on another one, and not before.
            allowed = f"ifThenElse(MY.NumJobCompletions > 0, {later}, {first})"
        return {
            "executable": directory / "job.sh",
            "arguments": f"{directory / self.tag} {self._lengths} {self.how}",
            "request_cpus": self.cores,
            "request_memory": self.memory,
            "requirements": f"({allowed}) && ({self.requirements})",
            "rank": 'TARGET.ProofPilot =?= "shelter"',
            "job_lease_duration": 20,
            **_FOR_WHOM[self.owner],
            **self.commands,
        }


def _cut_off(outcome: str, first: str) -> tuple[End, ...]:
    return End(first, CUT_OFF, outcome), End("shelter", GOOD, "exit_zero")


#: An exit that the schedd tries again completes nothing.
_RETRY = (End("sick", OTHER, "exit_retried"), End("steady", GOOD, "exit_zero"))

#: An input file which takes a while, so that the run can be seen.
LARGE_INPUT = "input-that-is-large"
LARGE_BYTES = 600_000_000
#: An input file that is removed after the submission.
LOST_INPUT = "input-that-is-removed"

#: The other ones have no project; HTCondor puts each user's name behind the accounting group.
_FOR_WHOM: dict[str, dict[str, object]] = {
    "alice": {"My.ProjectName": '"proof"', "accounting_group": "group_proof"},
    "bob": {},
}

PLANS: tuple[Plan, ...] = (
    # The program ends itself.
    Plan("zero", "alice", 0, (End("steady", GOOD, "exit_zero"),), 12),
    Plan("three", "bob", 1, (End("steady", GOOD, "exit_nonzero"),), 9, "exit 3"),
    Plan("signal", "alice", 1, (End("steady", GOOD, "exit_signal"),), 7, "kill SEGV"),
    Plan("wide", "bob", 0, (End("steady", GOOD, "exit_zero"),), 15, cores=4, memory=7936),
    Plan("fat", "alice", 1, (End("shelter", GOOD, "exit_zero"),), 10, memory=6016),
    Plan(
        *("exit_hold", "bob", 1, (End("steady", GOOD, "exit_nonzero"),), 6, "exit 5"),
        commands={"on_exit_hold": "ExitCode =?= 5"},
    ),
    Plan(
        *("no_output", "alice", 0, (End("steady", OTHER, "transfer_output_failed"),), 5),
        commands={"transfer_output_files": "output-that-is-not-made"},
    ),
    # Somebody decides against it.
    Plan("removed", "bob", 0, (End("steady", OTHER, "removed"),), acted=True),
    Plan("held", "alice", 0, (End("steady", OTHER, "held_by_user"),), acted=True),
    Plan(
        # No record says who ended its first run; but it ran again, so it was held.
        *("released", "bob", 1),
        (End("steady", OTHER, "held_by_user"), End("steady", GOOD, "exit_zero")),
        acted=True,
    ),
    Plan(
        *("vacated", "alice", 1),
        (End("steady", OTHER, "vacated"), End("steady", GOOD, "exit_zero")),
        requirements=CLEANED,
        acted=True,
    ),
    # The pilot's end cuts it off.
    Plan("evicted", "bob", 1, _cut_off("pilot_shutdown", "graceful"), acted=True),
    Plan("bereft", "alice", 0, _cut_off("lost_contact", "killed"), acted=True),
    Plan("drained", "bob", 0, _cut_off("drained", "drained"), acted=True),
    Plan("expired", "alice", 1, _cut_off("pilot_shutdown", "brief"), acted=True),
    # Cut off, and removed while it waits for another pilot.
    Plan(
        *("given_up", "alice", 0, (End("graceful", CUT_OFF, "pilot_shutdown"),)),
        acted=True,
    ),
    # The node fails everything; the same job succeeds elsewhere.  All fail before any job of these
    # users begins anywhere else: nothing tells that from a fault of the jobs that was mended.
    *(
        Plan(f"retry{n}", ("alice", "bob")[n % 2], n // 2 % 2, _RETRY, 4, "exit 0",
             commands={"max_retries": 3})
        for n in range(4)
    ),
    # The same, but the second node is drained under it: the record of that run must not be
    # mistaken for that of the one before.
    Plan(
        *("unlucky", "alice", 1, (_RETRY[0], *_cut_off("drained", "drained"))),
        commands={"max_retries": 3},
        acted=True,
    ),
    # It never begins.
    Plan(
        *("no_input", "bob", 0, (End("drained", OTHER, "held_for_mistake", False),)),
        commands={"transfer_input_files": f"{LARGE_INPUT}, {LOST_INPUT}"},
    ),
    Plan(
        *("no_url", "alice", 1, (End("steady", OTHER, "transfer_input_failed", False),)),
        commands={"transfer_input_files": f"{LARGE_INPUT}, http://127.0.0.1:9/nothing"},
    ),
    Plan(
        *("no_program", "bob", 1, (End("steady", OTHER, "program_not_started", False),)),
        commands={"executable": "/nonexistent/program", "transfer_executable": False},
    ),
)  # fmt: skip
