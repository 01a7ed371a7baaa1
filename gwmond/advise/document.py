"""An advice as a document: the largest losses in words, then a table for each question.

Tables have spans and hours, records seconds; ``?`` in tables and null in JSON is what so few pilots
or runs do not say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gwmond.advise.gather import Advice
from gwmond.advise.idle_timeout import LEAST_PILOTS, LEAST_WAITS
from gwmond.advise.judge import AskedLine, Loss, LostLine, OverlapLine, RequestLine, TimeoutLine
from gwmond.advise.tally import EARLY_END_S, MEASURED_S
from gwmond.model.pilot_life import Category
from gwmond.model.times import SECOND_US
from gwmond.reports.ledger.ledger_reading import Age
from gwmond.reports.render import fields
from gwmond.reports.render.document import Document, Paragraph, Part, Sentences
from gwmond.reports.render.fields import HOURS, Datum, Unit
from gwmond.reports.render.formats import UNKNOWN, counted, hours, number, percent, ratio
from gwmond.reports.render.periods import both, rfc3339, span
from gwmond.reports.render.table import table
from gwmond.reports.stored.overlap import LEAST

LARGEST = 3
"""So many losses are said in words."""
TOO_LITTLE = "too little data"
MOST = 20
"""So many lines of each table are shown, unless another number is asked for."""

_WORDS = {
    Category.PILOT_OVERHEAD: "pilots that ran jobs had none, or a remainder too small for jobs",
    Category.DECISION_PROBLEM: "pilots never ran a job",
    Category.VALIDATION_FAILS: "the validation of pilots failed",
    Category.MISCONFIGURATION_BADPUT: "runs failed at the beginning, through no fault of the user",
    Category.PREEMPTION_BADPUT: "runs were cut off by the end of their pilot",
    Category.UNCLASSIFIED: "runs were removed, held, or ended in a way that is not known",
    "memory": "runs held memory that they did not use, and that kept others from the cores",
    "cores": "runs held cores that they did not use",
}
_MOVES = {
    Category.PILOT_OVERHEAD: "see the idle timeouts after a job, and the shares that runs held",
    Category.DECISION_PROBLEM: "see the idle timeouts before the first job, and what was asked for",
    Category.VALIDATION_FAILS: "gwmond report --failures says where and why",
    Category.MISCONFIGURATION_BADPUT: "gwmond report --by entry,outcome says where and why",
    Category.PREEMPTION_BADPUT: "see the runs that were lost",
    Category.UNCLASSIFIED: "gwmond report --by user,outcome says whose, and why",
    "memory": "smaller requests, or pilots with more memory for each core",
    "cores": "smaller requests",
}


def sentence(loss: Loss) -> str:
    """Return a loss in words, with what to look at."""
    where = f"{percent(ratio(loss.most_micros, loss.micros), 0)} of that at {loss.most}"
    return (
        f"{hours(loss.micros)} canonical hours ({percent(ratio(loss.micros, loss.of_micros))} of "
        f"all): {_WORDS[loss.cause]}; {where}. To do: {_MOVES[loss.cause]}."
    )


def _length(value: float | None) -> str:
    return UNKNOWN if value is None else span(round(value) * SECOND_US)


def _interval(unit: Unit) -> Unit:
    """Return how both bounds of an interval are written; None: there is none."""

    def record(key: str, interval: tuple[Any, Any] | None) -> dict[str, Any]:
        bounds = zip(("low", "high"), interval or (None, None), strict=True)
        return {
            f"{name}_{which}": value
            for which, bound in bounds
            for name, value in unit.record(key, bound).items()
        }

    def text(interval: tuple[Any, Any] | None) -> str:
        return "" if interval is None else " - ".join(map(unit.text, interval))

    return Unit(record, text)


SECONDS = Unit(lambda key, value: {f"{key}_seconds": value}, _length)
SHARE = Unit(
    lambda key, value: {key: value}, lambda value: UNKNOWN if value is None else percent(value)
)
AMOUNT = Unit(lambda key, value: {key: value}, lambda value: number(value, 1))


def _best(value: Callable[[Any], Any]) -> Callable[[TimeoutLine], Any]:
    return lambda line: None if line.timeout is None else value(line.timeout)


def _advised(line: TimeoutLine) -> str:
    if line.timeout is None:
        return UNKNOWN
    longest = line.timeout.best_s == line.timeout.curve[-1][0]
    least = "" if line.validated and not longest else ">= "
    return f"{least}{_length(line.timeout.best_s)}"


def _advised_range(line: TimeoutLine) -> str:
    more = line.timeout is not None and line.timeout.open_ended
    shown = _interval(SECONDS).text(_best(lambda found: found.interval_s)(line))
    return shown + (" or more" if more else "")


PLACE: tuple[Datum[Any], ...] = (
    Datum("site", lambda line: line.key.site, 1, name=True, head=True),
    Datum("entry", lambda line: line.key.entry, 2, name=True),
)
TIMEOUTS: tuple[Datum[TimeoutLine], ...] = (
    *PLACE,
    Datum("setting", lambda line: line.setting, 3, text=True),
    Datum("waits", lambda line: line.waits, 4),
    Datum("pilots", lambda line: line.pilots, 0),
    Datum("job_came", lambda line: line.came, 5, "a job came", SHARE),
    Datum("gave_up_after", lambda line: line.gave_up_s, 6, "gave up after", SECONDS),
    Datum("replacement", lambda line: line.replacement_s, 7, "replacement", SECONDS),
    Datum("best", _best(lambda found: found.best_s), 8, "wastes least", SECONDS, _advised),
    Datum(
        *("best", _best(lambda found: found.interval_s), 9, "90 % interval", _interval(SECONDS)),
        _advised_range,
    ),
    Datum("open_ended", _best(lambda found: found.open_ended)),
    Datum("validation_known", lambda line: line.validated),
    Datum("arrives", _best(lambda found: found.arrives), 10, "a job comes by then", SHARE),
    Datum("saves", lambda line: line.saved_micros, 11, "saves", HOURS),
    Datum("saves", lambda line: line.saved_interval, 12, "interval", _interval(HOURS)),
)
LOST: tuple[Datum[LostLine], ...] = (
    *PLACE,
    Datum("runs", lambda line: line.runs, 3),
    Datum("lost", lambda line: line.lost, 4),
    Datum("lost_share", lambda line: ratio(line.lost, line.runs), 5, "%", SHARE, share=True),
    Datum("lost_share", lambda line: line.share, 6, "90 % interval", _interval(SHARE)),
    Datum("lost_time", lambda line: line.micros, 7, "canonical hours", HOURS),
    Datum("pilot_ended_early", lambda line: line.early, 8, "pilot ended early"),
    Datum("run_median", lambda line: line.run_s[0], 9, "half of runs need", SECONDS),
    Datum("run_90_percent", lambda line: line.run_s[1], 10, "90 % need", SECONDS),
    Datum("left_90_percent", lambda line: line.left_s[0], 11, "90 % had left", SECONDS),
    Datum("left_median", lambda line: line.left_s[1], 12, "half had left", SECONDS),
    Datum(
        "lost_with_less_left", lambda line: line.late, 13, "lost with less than 90 % need", SHARE
    ),
)
REQUESTS: tuple[Datum[RequestLine], ...] = (
    Datum("group", lambda line: line.group, 1, name=True),
    Datum("of", lambda line: line.what, 2, text=True),
    Datum("runs", lambda line: line.runs, 3),
    Datum("runs_known", lambda line: line.known, 4, "known"),
    Datum("held_median", lambda line: line.held, 5, "held (median)", AMOUNT),
    Datum("used_median", lambda line: line.used, 6, "used (median)", AMOUNT),
    Datum("used_95_percent", lambda line: line.used_95, 7, "95 % use", AMOUNT),
    Datum("used_95_percent", lambda line: line.interval, 8, "90 % interval", _interval(AMOUNT)),
    Datum("unused", lambda line: line.micros, 9, "costs at most", HOURS),
    Datum(
        *("unused_share", lambda line: ratio(line.micros, line.of_micros), 10, "%", SHARE),
        share=True,
    ),
)
ASKED: tuple[Datum[AskedLine], ...] = (
    *PLACE,
    Datum("asked_idle", lambda line: line.asked, 3, "asked for", AMOUNT),
    Datum("waiting", lambda line: line.waiting, 4, "waited", AMOUNT),
    Datum("pilots_ended", lambda line: line.pilots, 5, "ended"),
    Datum("jobs_known", lambda line: line.known, 6, "known"),
    Datum("never_ran_a_job", lambda line: line.never, 7, "never ran a job"),
    Datum(
        *("never_ran_share", lambda line: ratio(line.never, line.known), 8, "%", SHARE), share=True
    ),
    Datum("never_ran_share", lambda line: line.share, 9, "90 % interval", _interval(SHARE)),
    Datum("never_ran", lambda line: line.never_micros, 10, "canonical hours", HOURS),
    Datum("cores_held", lambda line: line.cores, 11, "of cores held", SHARE),
    Datum("memory_held", lambda line: line.memory, 12, "of memory held", SHARE),
)


def _gain(value: Callable[[Any], Any]) -> Callable[[OverlapLine], Any]:
    return lambda line: None if line.overlap is None else value(line.overlap)


OVERLAPS: tuple[Datum[OverlapLine], ...] = (
    *PLACE,
    Datum(
        *("accounting_group", lambda line: line.group, 3, "accounting group"),
        cell=lambda line: "all" if line.group is None else line.group or "none",
        text=True,
    ),
    Datum("runs", lambda line: line.runs, 4),
    Datum("waits", lambda line: line.waits, 5, "new slots"),
    Datum("upload_median", _gain(lambda found: found.upload.median), 6, "upload", SECONDS),
    Datum("run_median", _gain(lambda found: found.run.median), 7, "run", SECONDS),
    Datum("idle_median", _gain(lambda found: found.idle.median), 8, "new slot idle", SECONDS),
    Datum(
        *("gain", _gain(lambda found: found.gain), 9, "throughput", SHARE),
        lambda line: UNKNOWN if line.overlap is None else f"{100 * line.overlap.gain:+.2f}%",
    ),
    Datum(
        *(
            "gain",
            _gain(lambda found: (found.least, found.most)),
            10,
            "by quartiles",
            _interval(SHARE),
        )
    ),
)
LOSSES: tuple[Datum[Loss], ...] = (
    Datum("cause", lambda loss: loss.cause),
    Datum("canonical", lambda loss: loss.micros, unit=HOURS),
    Datum("share", lambda loss: ratio(loss.micros, loss.of_micros)),
    Datum("most_at", lambda loss: loss.most),
    Datum("most_canonical", lambda loss: loss.most_micros, unit=HOURS),
    Datum("text", sentence),
)


class _Lines(NamedTuple):
    """Lines of one kind: the field of ``Advice``, the name in JSON, and the table for people.

    ``enough`` says whether a line says something: it rests on enough pilots or runs.
    """

    field: str
    name: str
    enough: Callable[[Any], bool]
    title: str
    columns: tuple[Datum[Any], ...]
    note: str


_TABLES = (
    _Lines(
        *("timeouts", "idle_timeouts", lambda line: line.timeout is not None),
        "Idle timeouts: how long a pilot should wait for a job before it ends",
        TIMEOUTS,
        "GLIDEIN_Max_Idle holds before the first job, GLIDEIN_Max_Tail after a job. Gave up after: "
        "the median wait of pilots that ended idle, before they retired. Replacement: what is "
        "spent until another pilot runs a job, with pilots that fail or give up before. >=: longer "
        "may be better, as pilots have not waited for longer, or their validation is not known. "
        "Saves: canonical hours of the period. "
        f"Fewer than {LEAST_WAITS} waits or {LEAST_PILOTS} pilots are too little.",
    ),
    _Lines(
        *("lost", "runs_lost", lambda line: line.runs >= LEAST_WAITS),
        "Runs that the end of their pilot cut off",
        LOST,
        "Runs that completed, or were cut off (lost). Pilot ended early: more than "
        f"{EARLY_END_S // 60} minutes before GLIDEIN_ToDie, so its site ended it. Had left: until "
        "GLIDEIN_ToDie, as the run began. How long runs need is estimated from both kinds "
        "(Kaplan-Meier).",
    ),
    _Lines(
        *("requests", "requests", lambda line: line.known >= LEAST_WAITS),
        "What runs held, and what they used",
        REQUESTS,
        f"Runs whose program ran for {MEASURED_S // 60} minutes and more; known: of which the "
        "schedd has what they used. Memory is the most that the job has used so far, cores are the "
        "average. Costs: canonical hours that the unused part kept from others, at most: a job "
        "needs some reserve.",
    ),
    _Lines(
        *("asked", "pilots", lambda line: line.known >= LEAST_PILOTS),
        "Pilots that were asked for, and what they were used for",
        ASKED,
        "Asked for, waited: idle pilots on average, of all groups, by the factory's ads. Known: "
        "pilots of which it is known whether they ran jobs. Held: the share of pilots' cores and "
        "memory that runs held, on pilots that ran jobs: where one is much larger, the other is "
        "what pilots have too much of.",
    ),
    _Lines(
        *("overlaps", "stage_out", lambda line: line.overlap is not None),
        "Output sent while the next job runs",
        OVERLAPS,
        "(upload - new slot idle) / (upload + run), of the medians, as the report on data handling "
        "of 2010 has it: the change of throughput while jobs wait. All: of all accounting groups. "
        "New slot idle: the first wait of the entry's pilots to which a job came. "
        f"Fewer than {LEAST} of either are too little.",
    ),
)


def document(found: Advice, age: Age, most: int = MOST) -> Document:
    """Return the advice for people (tables of ``most`` lines; 0: all) and for programs."""
    since, until = found.period

    def parts() -> Iterator[Part]:
        yield Paragraph(f"Advice: {rfc3339(since)} to {rfc3339(until)}", "title")
        yield Paragraph(age.text)
        if not found.pilots:
            yield Paragraph("No pilot ended in this period. See gwmond advise --help", "heading")
            return
        yield Paragraph(_basis(found), "soft")
        yield Paragraph("The largest losses", "heading")
        yield Sentences([sentence(loss) for loss in found.losses[:LARGEST]] or ["None is known."])
        if found.pilots < LEAST_PILOTS:
            of = f"{counted(found.pilots, 'pilot')} of the period, {LEAST_PILOTS} are needed"
            yield Paragraph(f"That is {TOO_LITTLE}: {of} to tell what is usual.", "caution")
        for shown in _TABLES:
            lines = getattr(found, shown.field)
            if not lines:
                continue
            said = list(filter(shown.enough, lines))
            left_out = _left_out(len(lines) - len(said), len(said), most)
            yield table(
                shown.title,
                fields.columns(shown.columns),
                said[: most or None],
                note=" ".join(filter(None, (shown.note, left_out))),
                nothing=left_out,
            ).without_nothing()

    def as_json() -> dict[str, Any]:
        return {
            **age.as_json(),
            "period": {**both("from", since), **both("to", until)},
            "pilots_ended": found.pilots,
            "pilots_without_known_waits": found.untimed,
            "runs_ended": found.runs,
            "settled_canonical_seconds": found.total_micros / SECOND_US,
            "estimated_canonical_seconds": found.estimated_micros / SECOND_US,
            "unsettled_canonical_seconds": found.unsettled_micros / SECOND_US,
            "interval": 0.9,
            "losses": [fields.record(LOSSES, loss) for loss in found.losses],
            **{
                x.name: [fields.record(x.columns, line) for line in getattr(found, x.field)]
                for x in _TABLES
            },
        }

    return Document(parts, as_json)


def _left_out(few: int, said: int, most: int) -> str:
    """Return what a table has no line for, and why; empty if it has all."""
    notes = []
    if few:
        notes.append(f"{counted(few, 'line')} with {TOO_LITTLE}: --format json has them.")
    if most and said > most:
        notes.append(f"Only the first {most} lines of {said} (--limit 0 shows all).")
    return " ".join(notes)


def _basis(found: Advice) -> str:
    """Return what all of it rests on."""
    untimed = f"; of {found.untimed} of them the waits for jobs are not known"
    share = percent(ratio(found.estimated_micros, found.total_micros))
    return (
        f"It rests on {counted(found.pilots, 'pilot')} that ended in the period, with "
        f"{counted(found.runs, 'run')}: {hours(found.total_micros)} canonical hours are settled, "
        f"{share} of them estimated; {hours(found.unsettled_micros)} are not, and in no loss"
        f"{untimed if found.untimed else ''}. Intervals are of 90 %."
    )
