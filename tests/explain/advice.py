"""Advice that is done: jobs that wait in a real pool, and what becomes of them.

``gwmond explain`` is asked of each job.  What it advises is done as its mover would, and the job is
watched: only the negotiator and the schedd decide whether it starts.  Beside each job waits its
twin, of which nothing is changed.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from gwmond.commands.explain import asked
from gwmond.config.settings import Config
from gwmond.explain.document import document
from gwmond.model.demand.question import Question
from tests.explain.advice_draw import Job
from tests.explain.advice_pool import Stage, Trial

CYCLES = 5
"""In so many negotiation cycles after the last command a job starts, or it does not."""
Name = tuple[str, str]
"""A job: its schedd and its number."""
_RUNNING, _HELD = 2, 5
_SCHEDULER, _LOCAL = 7, 12  # universes
_PATIENCE_S, _HELD_AFTER_S = 120, 3
_OVER = object()
_FAILED = ("not started", "no command")


def trials(stage: Stage, jobs: Iterable[Job]) -> list[Trial]:
    """Submit jobs, do what is advised of each, and return what became of them.

    Those that do not start are asked of once more.
    """
    numbered = {stage.submit(job): job for job in jobs}
    for _ in stage.cycles(3):
        pass
    found = _round(stage, _asked(stage, numbered))
    left = {number: one for number, one in found.items() if one.ending in _FAILED}
    for trial in left.values():
        _act(stage, "condor_release", trial)
    for _ in stage.cycles(2):
        pass
    again = _asked(stage, {number: one.job for number, one in left.items()})
    for number, trial in _round(stage, again).items():
        found[number] = found[number]._replace(later=trial.ending)
    return list(found.values())


def _round(stage: Stage, found: dict[str, Trial]) -> dict[str, Trial]:
    """Do what is advised of each.

    What changes a job alone is done first, of all at once.  What is others' move is done of those
    together of which the same is said; all other jobs are on hold meanwhile.
    """
    for trial in found.values():
        if trial.ending == "by itself":
            stage.end(trial)
    waiting = [trial for trial in found.values() if trial.ending != "by itself"]
    own = [trial for trial in waiting if trial.is_own]
    made = {trial.number: trial for trial in _done(stage, own)}
    groups: dict[str, list[Trial]] = {}
    for trial in waiting:
        if trial.number not in made:
            groups.setdefault(trial.said, []).append(trial)
        if trial.number not in made or not made[trial.number].worked:
            _act(stage, "condor_hold", trial)
    for group in groups.values():
        for trial in group:
            _act(stage, "condor_release", trial)
        for trial in _done(stage, group):
            made[trial.number] = trial
            if not trial.worked:
                _act(stage, "condor_hold", trial)
        stage.restore()
    return found | made


def _act(stage: Stage, command: str, trial: Trial) -> None:
    """Hold or release a job and its twin, unless they are held for a reason of their own."""
    if "held" not in trial.job.cause and "missing" not in trial.job.cause:
        cluster = trial.number.partition(".")[0]
        stage.user(trial.job.owner, [command, "-name", trial.schedd, cluster])


def _asked(stage: Stage, jobs: Mapping[str, Job]) -> dict[str, Trial]:
    """Ask of each job why it does not run, after one poll; and condor_q."""
    config = {
        "pool": {"collectors": [stage.pool.collector]},
        "poll": {"interval": "10m", "deadline": "5m"},
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in stage.pool.client_env().items():
            patch.setenv(name, value)
        explainer = asked(Config.model_validate(config), Question())
        found: dict[str, Any] = {
            number: document(explainer.job(number, stage.schedd(job))).record()
            for number, job in jobs.items()
        }
    return {number: _said(stage, number, jobs[number], one) for number, one in found.items()}


def _said(stage: Stage, number: str, job: Job, record: Mapping[str, Any]) -> Trial:
    name = "-name", stage.schedd(job)
    analysis = stage.pool.tool("condor_q", "-better-analyze", number, *name).stdout
    first = record["reasons"][0]
    return Trial(
        *(job, stage.schedd(job), stage.pool.htcondor, stage.drawn.seed, number),
        record["first_line"],
        *(first["reason"], first["whose_move"], first["proof"], record["commands"]),
        ending="by itself" if record["status"] == _RUNNING else "",
        named=re.search(job.analysis, analysis) is not None,
    )


def _done(stage: Stage, trials: Sequence[Trial]) -> Iterator[Trial]:
    """Do what is advised of these, and watch them; the pool is moved once for all of them."""
    began = time.time()
    moved: dict[str, str] = {}
    done = {trial.number: _steps(stage, trial, moved) for trial in trials}
    started = _watched(stage, [trial for trial in trials if done[trial.number]], began)
    for trial in trials:
        said, name = done[trial.number], trial.key
        ending = "started" if name in started else "not started" if said else "no command"
        twin = (name[0], name[1].removesuffix(".0") + ".1") in started
        yield trial._replace(ending=ending, twin=twin, done=said)


def _watched(stage: Stage, trials: Sequence[Trial], began: float) -> set[Name]:
    """Return those that start, and are not held at once; each is ended then, for those that wait.

    They are given up when none has started for ``CYCLES`` cycles, and none was given a slot.
    """
    left = {trial.key: trial for trial in trials}
    started: set[Name] = set()
    cycles, deadline = stage.cycles(CYCLES), time.time() + _PATIENCE_S
    while left:
        over = next(cycles, _OVER) is _OVER
        new = _started(stage, left.values(), began) - started
        if new & left.keys():
            late = any(left[name].job.cause.startswith("deferred") for name in new & left.keys())
            time.sleep(_HELD_AFTER_S * (5 if late else 1))
            new -= _found(stage, left.values(), f"JobStatus == {_HELD}")
        for name in new & left.keys():
            stage.end(left.pop(name))
            cycles, deadline = stage.cycles(CYCLES), time.time() + _PATIENCE_S
        started |= new
        given = _matched(stage, left.values(), began) & left.keys()
        if over:
            if not given or time.time() > deadline:
                break
            time.sleep(1)
    return started


def _steps(stage: Stage, trial: Trial, moved: dict[str, str]) -> tuple[str, ...]:
    """Do all that is advised; what was done, in words.  Empty if a part cannot be done."""
    done = []
    for step in trial.commands:
        if argv := step.get("argv"):
            as_user = step["mover"] == "you"
            ran = stage.user(trial.job.owner, argv) if as_user else stage.pool.tool(*argv)
            failed = f" FAILED: {ran.stdout}{ran.stderr}" if ran.returncode else ""
            done.append(shlex.join(argv) + failed)
            continue
        key = trial.number if trial.mover == "you" else json.dumps(step)
        if key not in moved:
            moved[key] = stage.move(trial, step)
        if not moved[key]:
            return ()
        done.append(moved[key])
    return tuple(done)


def _started(stage: Stage, trials: Iterable[Trial], since: float) -> set[Name]:
    """Return those that run, and began to execute since a time; twins, too."""
    alone = f"JobUniverse == {_SCHEDULER} || JobUniverse == {_LOCAL}"
    executes = f"(JobCurrentStartExecutingDate ?: 0) >= {int(since) - 1}"
    return _found(stage, trials, f"JobStatus == {_RUNNING} && ({alone} || {executes})")


def _matched(stage: Stage, trials: Iterable[Trial], since: float) -> set[Name]:
    """Return those that were given a slot since a time: a start may take long."""
    constraint = f"JobStatus <= {_RUNNING} && (LastMatchTime ?: 0) >= {int(since)}"
    return _found(stage, trials, constraint)


def _found(stage: Stage, trials: Iterable[Trial], constraint: str) -> set[Name]:
    return {
        (schedd, f"{ad['ClusterId']}.{ad['ProcId']}")
        for schedd in {trial.key[0] for trial in trials}
        for ad in stage.pool.jobs(schedd, constraint)
    }


def table(trials: Sequence[Trial]) -> str:
    """Return what became of jobs, by reason and by mover, as Markdown."""
    counted = [one for one in trials if one.counts]
    apart = [one for one in trials if not one.counts]
    alone = sum(one.ending == "by itself" for one in apart)
    lines = [
        *_rows("reason", lambda one: one.reason, counted),
        "",
        *_rows("mover", lambda one: one.mover, counted),
        "",
        f"{len(trials)} jobs, of which {alone} started by themselves, and for {len(apart) - alone} "
        "nothing could be done in these pools.",
    ]
    return "\n".join(lines)


def _rows(title: str, of: Callable[[Trial], str], trials: Sequence[Trial]) -> Iterator[str]:
    heads = title, "jobs", "started", "share", "after two answers", "twin, too"
    yield f"| {' | '.join((*heads, 'proven and wrong', 'condor_q names it'))} |"
    yield "|---" * 8 + "|"
    groups = {key: [one for one in trials if of(one) == key] for key in sorted(map(of, trials))}
    for name, some in (*groups.items(), ("all", list(trials))):
        started = sum(one.worked for one in some)
        later = started + sum(one.later == "started" for one in some)
        twins = sum(one.worked and one.twin for one in some)
        wrong = sum(one.is_wrong for one in some)
        named = sum(one.named for one in some)
        share = f"{100 * started / max(1, len(some)):.0f} %"
        cells = name, len(some), started, share, later, twins, wrong, named
        yield f"| {' | '.join(map(str, cells))} |"


def failures(trials: Iterable[Trial]) -> str:
    """Return each job that did not start, with what was said and done."""
    return "\n".join(
        f"--- HTCondor {one.version}, seed {one.seed}, {one.number} ({one.job.cause}; "
        f"{one.job.owner}): {one.ending}, then {one.later}\n"
        f"    {'; '.join(one.job.lines[3:])}\n"
        f"    {one.reason}, {one.mover}, {one.proof}: {one.line}\n"
        f"    {one.commands}\n    done: {one.done}"
        for one in trials
        if not one.worked and one.ending != "by itself"
    )
