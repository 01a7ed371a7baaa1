"""Playbooks: the way of pilots through the accounting as text, one step after the other.

    A run shows that it lived on; that stretch is an estimate
        ad 0-1200 with record 1.0 600-1390; line end 1375; rest 3000
        -> pilots 0-1390 central_log; assumed end 1375-1390

A playbook has a title, then steps, then what is to be seen in the end (after ``= `` at once); steps
are divided by ``;``, times are seconds from T0.  ``?restart`` makes two of it, with and without;
``any A | B & C`` one for each order, each part (``&``: several steps) read long after the others.

=================================== ============================================================
``ad 0-900 [NAME ...] [k=v ...]``   collectors show pilots, their ads renewed every five minutes;
                                    ``heard=600``: not renewed since, ``now``: at each poll;
                                    ``complete=0``: not all collectors answer; ``+`` others;
                                    ``with`` claims and records (``,``)
``failing 0-1999 [dies=] [sent=]``   ads of a pilot that only says that its validation failed
``none 960-1200``                   polls that find no pilot; the same options
``record JOB START-END [k=v ...]``  a record of a run; ``ending=NAME`` of ``ENDINGS``
``claim JOB START [k=v ...]``       what a slot shows
``line KIND AT [NAME] [k=v ...]``   of a central log; ``NAME`` of ``NAMES``
``look 200-3600``                   a poll each five minutes that finds no pilot
``queue START-END [STATE]``         a pilot's life in its factory's queue; ``event STATE AT``: one
``output START-END [k=v ...]``      of the pilot; a time that is missing is not in it;
                                    ``with`` records, ``log`` and ``told JOB START-END``
``summary WRITTEN DURATION``        a line of completed_jobs
``restart``, ``rest AT [HOURS]``    of the daemon; polls until all is settled
``done AT [HOURS]``                 a poll and then ``rest``
=================================== ============================================================

What is seen: see ``SEEN``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from gwmond.model.facts import Pilot
from gwmond.model.pilot_life import Validation
from gwmond.model.pilots.file_facts import Jobs, JobStatistics, PilotName, StarterRun
from gwmond.model.problem_names import ProblemName
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobRecord, Source
from gwmond.model.times import SECOND_US
from gwmond.pilots.life.rules import Rules
from tests.build.central_lines import BY_PLACE, BY_STARTD, CONTAINER, END, UNSENT
from tests.build.central_lines import line as central_line
from tests.build.pilot_files import FAILED, JOB, SIZE, S, event, line, output, queue, us
from tests.build.play import DONE, POLL_S, T0, UPDATE_S, Play, claim, record, shown

ENDINGS: dict[str, Ending] = {
    "done": DONE,
    "lost": Ending(over=True, vacate_code=1008, began=True),
    "lost_late": Ending(over=True, vacate_code=1008, began=True, early=False),
    "lost_soon": Ending(over=True, vacate_code=1008, began=True, early=True),
    "contact": Ending(over=True, vacate_code=1008, began=True, early=False, disconnected=True),
    "cut": Ending(over=True, vacate_code=1005, began=True),
    "cut_late": Ending(over=True, vacate_code=1005, began=True, early=False),
    "exit": Ending(over=True, exit_code=1, own_accord=True, began=True, early=False),
    "failed": Ending(over=True, exit_code=1, own_accord=True, began=True, early=True),
    "over": Ending(over=True),
    "told": Ending(over=True, completed=True),
    "nonzero": Ending(over=True, completed=True, exit_code=1),
    "evicted": Ending(over=True, vacate_code=1013),
    "vacated": Ending(over=True, vacate_code=1010, began=True),
    "killed": Ending(over=True, exit_signal=15, own_accord=False, began=True, early=False),
    "held": Ending(over=True, hold_code=34, hold_subcode=0, began=True),
    "begun": Ending(began=True),
    "unknown": Ending(),
}
NAMES: dict[str, PilotName] = {
    "startd": BY_STARTD,
    "place": BY_PLACE,
    "job": PilotName(schedd="factory", cluster=7, proc=0),
    "resource": PilotName(resource="site", node="node.example.org"),
    "other": BY_STARTD._replace(startd="glidein_1_1"),
    "host": BY_STARTD._replace(node="node.example.org"),
}
_LOGS = {
    "no": (),
    "xml": ("=== Encoded XML description of glidein activity ===",),
    "startd": ("StartdLog",),
}
_STATISTICS = {
    "busy": JobStatistics(Jobs(31, 700), good_zero=Jobs(20, 400), good_nonzero=Jobs(5, 100)),
    "idle": JobStatistics(Jobs(0, 0)),
    "short": JobStatistics(Jobs(1, 0)),
}
_KINDS = {"end": END, "unsent": UNSENT, "container": CONTAINER}
_OF_NAME = ("startd", "node", "site", "proc", "factory", "frontend", "group", "schedd")
_OF_RECORD = ("site", "entry", "factory", "factory_job")
_TIMES = {"condor_start", "condor_end", "validation_end", "written"}


class Playbook:
    """One way of a pilot: how it is told, and what is to be seen."""

    def __init__(self, steps: list[str], seen: list[str], pilot: str, rules: Rules) -> None:
        self._steps, self._seen, self._pilot, self._rules = steps, seen, pilot, rules
        self._later = 172_800

    def check(self) -> None:
        """Play it, and compare."""
        play = Play(self._rules)
        for step in (*self._steps, *(f"= {seen}" for seen in self._seen)):
            if step.startswith("= "):
                what, _, value = step[2:].partition(" ")
                assert f"{what} {SEEN[what](play)}" == f"{what} {value}"
            else:
                self._step(play, *step.split(" with "))
        play.stored.prove()

    def _step(self, play: Play, step: str, beside: str = "") -> None:
        verb, *words = step.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        if verb == "failing":
            self._fail(play, plain[0], options)
        elif verb in {"ad", "none"}:
            self._show(play, step, beside)
        elif verb in {"record", "claim"}:
            play.add_records([self._run(step)])
        elif verb == "restart":
            play.restart()
        elif verb == "look":
            first, last = _span(plain[0])
            for at in range(first or 0, (last or 0) + 1, UPDATE_S):
                play.poll(at)
        elif verb in {"rest", "done", "later"}:
            at, hours = int(plain[0]) if plain else self._later, int(plain[1]) if plain[1:] else 12
            self._later = at + 58_000
            if verb != "rest":
                play.poll(at)
            play.rest(at + POLL_S * (verb != "rest"), hours)
        else:
            facts = _FACTS[verb](plain, options)
            runs = [of.split() for of in beside.split(",") if of.strip()]
            if runs:
                records = [self._run(" ".join(run)) for run in runs if run[0] == "record"]
                logged = [_logged(*run) for run in runs if run[0] != "record"]
                facts = [facts[0]._replace(records=tuple(records), runs=tuple(logged))]
            play.add_facts(facts, SIZE)

    def _show(self, play: Play, step: str, beside: str) -> None:
        """Poll; pilots that have other ads are divided by ``+``."""
        verb, times, *words = step.split()
        first, last = _span(times)
        runs = [self._run(of.strip()) for of in beside.split(",") if of.strip()]
        claims = [run for run in runs if run.fact.source is Source.LIVE_SLOT]
        told: dict[str, Any] = {"records": [run for run in runs if run not in claims]}
        groups: list[tuple[list[Pilot], str]] = []
        for group in " ".join(words).split("+"):
            options = dict(word.split("=", 1) for word in group.split() if "=" in word)
            told |= {
                name: int(options.pop(name)) for name in ("known", "complete") & options.keys()
            }
            heard = options.pop("heard", "")
            names = [word for word in group.split() if "=" not in word] or [self._pilot]
            groups.append(([_shown(name, **options) for name in names], heard))
        told["complete"] = bool(told.get("complete", True))
        for at in range(first or 0, (last or 0) + 1, POLL_S):
            ads = []
            for pilots, heard in groups if verb == "ad" else ():
                when = at if heard == "now" else int(heard) if heard else at - at % UPDATE_S
                for of in pilots:  # no ad was sent before its startd began
                    sent = T0 + when if heard else max(T0 + when, of.last_heard)
                    ads.append(of._replace(last_heard=sent))
            play.poll(at, ads, claims=claims, **told)

    def _fail(self, play: Play, times: str, options: dict[str, str]) -> None:
        """Show a pilot that only says that its validation failed; each of its ads has a name."""
        first, last = _span(times)
        dies, sent = _value(options.get("dies", "1199")), options.get("sent", "")
        for at in range(first or 0, (last or 0) + 1, POLL_S):
            usual = at if sent == "now" else min(at - at % UPDATE_S, 900)
            when = int(sent) if sent not in {"", "now"} else usual
            oldest = max(0, (at - 900 + 299) // 300 * 300) if not sent else 0
            ad = shown(f"glidein_17_{oldest // 300}@node", oldest, when, factory_job=JOB)
            ad = ad._replace(size=None, accepting=False, failed=True, failure="validate_node.sh")
            ad = ad._replace(dies=None if dies is None else T0 + dies)
            play.poll(at, [ad] if sent or at <= when + 900 else [])

    def _run(self, text: str) -> JobRecord:
        verb, job, times, *words = text.split()
        options: dict[str, Any] = {"startd": self._pilot}
        options |= {name: _value(value) for name, value in (word.split("=") for word in words)}
        of_record = {name: options.pop(name) for name in _OF_RECORD if name in options}
        if "source" in options:
            options["source"] = Source(options["source"])
        if "ending" in options:
            options["ending"] = ENDINGS[options["ending"]]
        start, end = _span(times)
        if verb == "claim":
            return claim(job, start or 0, **options)
        return record(job, start or 0, None if times.endswith("-") else end, **options)._replace(
            **of_record
        )


def _shown(name: str, **options: str) -> Pilot:
    named: dict[str, Any] = {
        {"job": "factory_job"}.get(of, of): _value(value) for of, value in options.items()
    }
    more = {of: T0 + named.pop(of) for of in ("dies", "retires") if of in named}
    text = named.pop("system", "")
    return shown(name, **named)._replace(**more, shown=(("system", text),) if text else ())


def _value(text: str) -> Any:
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        return text


def _span(text: str) -> tuple[int | None, int | None]:
    """Return the times of ``first-last``, of ``first``; an empty one, and ``?``, is None."""
    if text.startswith("?-"):
        return None, int(text[2:])
    first, _, last = text[1:].partition("-")
    first = text[:1] + first
    start = int(first) if first not in {"", "-"} else None
    return start, int(last) if last else start if "-" not in text[1:] else None


def _output(plain: list[str], options: dict[str, str]) -> list[Any]:
    start, end = _span(plain[0]) if plain[0] != "-" else (None, None)
    told: dict[str, Any] = {name: _value(value) for name, value in options.items()}
    told = {f"{n}_us" if n in _TIMES else n: us(v) if n in _TIMES else v for n, v in told.items()}
    if "validation" in told:
        told["validation"] = Validation(told["validation"])
        told["failure"] = FAILED if told["validation"] is Validation.FAILED else None
    if "logs" in told:
        told["logs"] = _LOGS[told["logs"]]
    if "statistics" in told:
        told["jobs"] = _STATISTICS[told.pop("statistics")]
    name = {of: told.pop(of) for of in _OF_NAME if of in told}
    made = output(start, end, **told)
    return [made._replace(name=made.name._replace(**name))]


def _logged(verb: str, job: str, times: str) -> StarterRun:
    """Return a run as a starter's log has it, or (``told``) the pilot's stdout."""
    start, end = _span(times)
    ending = Ending(began=True) if times.endswith("-") else DONE
    submitter = "submitter" if verb == "log" else ""
    return StarterRun(job, submitter, us(start or 0), None if end is None else us(end), ending)


def _line(plain: list[str], options: dict[str, Any]) -> list[Any]:
    name = NAMES[plain[2] if plain[2:] else "startd"]._replace(**options)
    return [central_line(_KINDS[plain[0]], int(plain[1]), name)]


def _queue(plain: list[str], options: dict[str, str]) -> list[Any]:
    start, end = _span(plain[0])
    how = S(plain[1]) if plain[1:] else S.ENDED
    return list(queue(start or 0, end or 0, how, **{n: _value(v) for n, v in options.items()}))


def _summary(plain: list[str], options: dict[str, str]) -> list[Any]:
    told = {name: _value(value) for name, value in options.items()}
    return [line(int(plain[0]), _value(plain[1]), **told)]


_FACTS: dict[str, Callable[[list[str], dict[str, str]], list[Any]]] = {
    "line": _line,
    "queue": _queue,
    "event": lambda plain, _: [event(S(plain[0]), int(plain[1]))],
    "output": _output,
    "summary": _summary,
}


# --- What is seen ---------------------------------------------------------------------------


def _groups(play: Play) -> Counter[str]:
    """Core-seconds of all pilots by group; ``-`` is none."""
    found: Counter[str] = Counter()
    for (_, series), micros in play.stored.posted.items():
        if (series.measure, series.resource) == ("resource", "cpu"):
            found[series.group or "-"] += micros
    return Counter({group: micros // SECOND_US for group, micros in found.items()})


def _at(time_us: int | None) -> str:
    return "" if time_us is None else f"{time_us / SECOND_US - T0:.12g}"


def _pilots(play: Play) -> str:
    """When each began and ended, and whose word its end is."""
    rows = sorted(play.stored.pilots.values(), key=lambda row: (row.start_us, row.id))
    return ", ".join(f"{_at(r.start_us)}-{_at(r.end_us)} {r.end_source}".strip() for r in rows)


def _runs(play: Play) -> str:
    """Which run it is, when it was, and how it ended: ``~`` is an estimate."""
    found = []
    for run in sorted(play.stored.runs.values(), key=lambda run: (run.start_us, run.key)):
        number, outcome = run.key.shadow_start or "?", run.outcome
        told = outcome.label + "~" * (outcome.evidence != "measured") if outcome else "open"
        of_run = f"{run.key.job.split('#')[1]}/{number} {_at(run.start_us)}-{_at(run.end_us)}"
        found.append(f"{of_run} {told}")
    return ", ".join(found)


def _numbers(found: Mapping[Any, float]) -> str:
    return ", ".join(f"{name} {number:.12g}" for name, number in sorted(found.items()) if number)


def _assumed(play: Play) -> str:
    (row,) = play.stored.pilots.values()
    found = sorted(row.assumed.items())
    return ", ".join(f"{rule} {_at(first)}-{_at(last)}" for rule, (first, last) in found)


def _of(attribute: Callable[[Any], object]) -> Callable[[Play], str]:
    """Return what shows something of all pilots, each value once."""
    return lambda play: ", ".join(
        sorted({str(attribute(row)) for row in play.stored.pilots.values()})
    )


SEEN: dict[str, Callable[[Play], str]] = {
    "pilots": _pilots,
    "runs": _runs,
    "assumed": _assumed,
    "time": lambda play: _numbers(play.seconds()),
    "canonical": lambda play: _numbers(play.seconds("canonical")),
    "gpus": lambda play: _numbers(play.seconds("resource", "gpu")),
    "gpu_canonical": lambda play: _numbers(play.seconds("canonical", "gpu")),
    "groups": lambda play: _numbers(_groups(play)),
    "sites": lambda play: ", ".join(sorted({series.site for series in play.series()})),
    "counted": lambda play: _numbers({n: v for n, v in play.counted().items() if n != "assumed"}),
    "corrected": lambda play: f"{play.stored.corrected:g}",
    "unused": lambda play: _numbers(play.accounting.central_log.unused),
    "left_out": lambda play: _numbers(play.accounting.left_out),
    "contradictions": lambda play: _numbers(play.accounting.contradictions),
    "validation": _of(lambda row: row.validation),
    "failure": _of(lambda row: row.failure),
    "origin": _of(lambda row: row.identity.origin),
    "site": _of(lambda row: row.identity.key.site),
    "name": _of(lambda row: row.identity.name),
    "closed": _of(lambda row: row.closed),
    "rules": lambda play: _numbers(
        {
            key.outcome: n / SECOND_US
            for key, n in play.stored.counts.items()
            if key.what == "assumed"
        }
    ),
    "validated": _of(lambda row: _at(row.validation_end_us)),
    "places": lambda play: ", ".join(place.name for place in play.stored.load().places),
    "ended": lambda play: ", ".join(
        f"{row.identity.name} {_at(row.end_us)} {row.end_source}"
        for row in play.stored.pilots.values()
        if row.end_us is not None
    ),
    "system": _of(lambda row: row.facts.attribute("system")),
    "said": lambda play: play.accounting.files.shown(ProblemName.AMBIGUOUS, 1),
    "facts": lambda play: ", ".join(
        sorted({fact.source for run in play.stored.runs.values() for fact in run.facts})
    ),
    "goodput": lambda play: f"{play.seconds()['goodput']:g}",
    "unclassified": lambda play: f"{play.seconds()['unclassified']:g}",
    "settled": lambda play: _at(play.pilot("b@node").settled_until_us),
    "on": lambda play: ", ".join(
        sorted({play.stored.pilots[run.pilot].identity.name for run in play.stored.runs.values()})
    ),
    "contact": _of(lambda row: _at(row.posted_last_heard_us)),
    "waiting": lambda play: play.stored.cursors()["central_log", "waiting"].state,
    "evidence": lambda play: ", ".join(
        sorted({f"{s.category} {s.evidence}" for s in play.series() if s.resource == "cpu"})
    ),
}


def _variants(steps: list[str]) -> Iterator[list[str]]:
    """Yield the ways that a playbook stands for."""
    orders: list[list[str]] = [[]]
    for step in steps:
        if step.startswith("any "):
            ways = [
                [one for part in order for one in (*map(str.strip, part.split("&")), "later")]
                for order in permutations(step.removeprefix("any ").split("|"))
            ]
            orders = [[*order, *way] for order in orders for way in ways]
        else:
            orders = [[*order, step] for order in orders]
    for order in orders:
        yield [step for step in order if step != "?restart"]
        if "?restart" in order:
            yield ["restart" if step == "?restart" else step for step in order]


def playbooks(text: str, pilot: str = "glidein@node", **rules: int) -> list[ParameterSet]:
    """Return the parameters of a test, one for each; ``pilot``: whom no name is said of."""
    return list(_cases(text, pilot, **rules))


def _cases(text: str, pilot: str, **rules: int) -> Iterator[ParameterSet]:
    for part in filter(str.strip, text.split("\n\n")):
        title, *lines = (line.strip() for line in part.strip().splitlines())
        steps, _, seen = " ".join(lines).partition("->")
        told = [step.strip() for step in steps.split(";") if step.strip()]
        wanted = [f"{word.strip()} ".removesuffix(" ") for word in seen.split(";")]
        for number, variant in enumerate(_variants(told)):
            name = f"{title}{f' ({number})' if number else ''}"
            yield pytest.param(
                Playbook(variant, wanted, pilot, Rules(refresh_us=0, **rules)), id=name
            )
