"""An advice as a document: the largest losses in words, then a table for each question.

Tables have spans and hours, records seconds; ``?`` in tables and null in JSON is what so few pilots
or runs do not say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gwmond.advise.gather import Advice
from gwmond.advise.idle_timeout import LEAST_PILOTS, LEAST_WAITS
from gwmond.advise.judge import (
    LEAST,
    AskedLine,
    LostLine,
    OverlapLine,
    PoolLoss,
    RequestLine,
    TimeoutLine,
    TrialLine,
)
from gwmond.advise.tally import EARLY_END_S, MEASURED_S
from gwmond.model.times import SECOND_US
from gwmond.reports.ledger.ledger_reading import Age
from gwmond.reports.render import fields
from gwmond.reports.render.categories import INFOS
from gwmond.reports.render.document import Document, Paragraph, Part, Sentences
from gwmond.reports.render.fields import HOURS, Datum, Unit
from gwmond.reports.render.formats import UNKNOWN, counted, hours, number, percent, ratio
from gwmond.reports.render.periods import both, rfc3339, span
from gwmond.reports.render.table import table

LARGEST = 3
"""So many losses are said in words."""
TOO_LITTLE = "too little data"
MOST = 20
"""So many lines of each table are shown, unless another number is asked for."""

_UNUSED = {
    "memory": (
        "runs held memory that they did not use, and that kept others from the cores",
        "smaller requests, or pilots with more memory for each core",
    ),
    "cores": ("runs held cores that they did not use", "smaller requests"),
}
_LOSSES = _UNUSED | {str(info.category): (info.loss, info.to_do) for info in INFOS}
"""What was lost, and what to look at then."""


def sentence(loss: PoolLoss) -> str:
    """Return a loss in words, with what to look at."""
    where = f"{percent(ratio(loss.most_micros, loss.micros), 0)} of that at {loss.most}"
    text, to_do = _LOSSES[loss.cause]
    return (
        f"{hours(loss.micros)} canonical hours ({percent(ratio(loss.micros, loss.of_micros))} of "
        f"all): {text}; {where}. To do: {to_do}."
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
    shown = _interval(SECONDS).text(_best(lambda t: t.interval_s)(line))
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
    Datum("best", _best(lambda t: t.best_s), 8, "wastes least", SECONDS, _advised),
    Datum(
        *("best", _best(lambda t: t.interval_s), 9, "90 % interval", _interval(SECONDS)),
        _advised_range,
    ),
    Datum("open_ended", _best(lambda t: t.open_ended)),
    Datum("validation_known", lambda line: line.validated),
    Datum("arrives", _best(lambda t: t.arrives), 10, "a job comes by then", SHARE),
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
    Datum("of", lambda line: line.resource, 2, text=True),
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


_PAYS: dict[bool | None, str] = {True: "yes", False: "no", None: "not surely"}


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
    Datum("upload_median", _gain(lambda overlap: overlap.upload.median), 6, "upload", SECONDS),
    Datum("run_median", _gain(lambda overlap: overlap.run.median), 7, "run", SECONDS),
    Datum("idle_median", _gain(lambda overlap: overlap.idle.median), 8, "new slot idle", SECONDS),
    Datum(
        *("gain", _gain(lambda overlap: overlap.gain), 9, "throughput", SHARE),
        lambda line: UNKNOWN if line.overlap is None else f"{100 * line.overlap.gain:+.2f}%",
    ),
    Datum(
        *(
            "gain",
            _gain(lambda overlap: (overlap.least, overlap.most)),
            10,
            "by quartiles",
            _interval(SHARE),
        )
    ),
    Datum("rate_bytes_per_second", lambda line: line.rate),
    Datum(
        *("break_even_bytes", lambda line: line.break_even, 11, "from"),
        cell=lambda line: UNKNOWN if line.break_even is None else f"{line.break_even / 1e6:.0f} MB",
    ),
    Datum(
        *("pays", _gain(lambda overlap: overlap.pays), 12, "pays"),
        cell=lambda line: _PAYS[line.overlap and line.overlap.pays],
        text=True,
    ),
    Datum("configuration", lambda line: line.configuration),
)
TRIALS: tuple[Datum[TrialLine], ...] = (
    *PLACE,
    Datum("group", lambda line: line.group, 3, name=True),
    Datum("pilots_with", lambda line: line.pilots[0], 4, "pilots with"),
    Datum("pilots_without", lambda line: line.pilots[1], 5, "without"),
    Datum("ran_with", lambda line: line.shares[0], 6, "ran with", SHARE),
    Datum("ran_without", lambda line: line.shares[1], 7, "without", SHARE),
    Datum(
        *("gain", lambda line: line.gain, 8, "goodput an hour", SHARE),
        lambda line: UNKNOWN if line.gain is None else f"{100 * line.gain:+.1f}%",
    ),
    Datum("gain", lambda line: line.interval, 9, "90 % interval", _interval(SHARE)),
)
LOSSES: tuple[Datum[PoolLoss], ...] = (
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
        "schedd has what they used. Memory is the most that the job has used so far, cores and "
        "GPUs that computed are the average. Costs: canonical hours that the unused part kept from "
        "others, at most: a job needs some reserve.",
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
        "From: the break-even, what is sent at the rate of these uploads while a new slot waits. "
        "Pays: also with the worst quartiles (yes), or only with the best (not surely). "
        f"docs/overlap.md has how to do it. Fewer than {LEAST} of either are too little.",
    ),
    _Lines(
        *("trials", "overlap_trials", lambda _: True),
        "Pilots that send output while the next job runs, beside others",
        TRIALS,
        "Ran: of the cores' time of pilots, that of programs of completed runs. "
        "Goodput an hour: how much more of that pilots with overlap have than those without. "
        "Only pilots that began while both kinds did. It says what overlap does where chance drew "
        "which pilots have it (GLIDEIN_Overlap_Percent). "
        f"Fewer than {LEAST_PILOTS} of either are too little.",
    ),
    _Lines(
        *("overloads", "overload_trials", lambda _: True),
        "Pilots whose slots have more cores than there are, beside others",
        TRIALS,
        "By pilots' outputs. Ran: CPU time of programs of completed runs, of the cores that are "
        "there. Goodput an hour: how much more of that overloaded pilots have. Only pilots that "
        "began while both kinds did, and of whose runs the schedd has what they used. Chance draws "
        "the pilots where GLIDEIN_OVERLOAD_ENABLED is a percentage. "
        f"Fewer than {LEAST_PILOTS} of either are too little.",
    ),
)


def document(advice: Advice, age: Age, most: int = MOST) -> Document:
    """Return the advice for people (tables of ``most`` lines; 0: all) and for programs."""
    since, until = advice.period

    def parts() -> Iterator[Part]:
        yield Paragraph(f"Advice: {rfc3339(since)} to {rfc3339(until)}", "title")
        yield Paragraph(age.text)
        if not advice.pilots:
            yield Paragraph("No pilot ended in this period. See gwmond advise --help", "heading")
            return
        yield Paragraph(_basis(advice), "soft")
        yield Paragraph("The largest losses", "heading")
        yield Sentences([sentence(loss) for loss in advice.losses[:LARGEST]] or ["None is known."])
        if advice.pilots < LEAST_PILOTS:
            pilots = f"{counted(advice.pilots, 'pilot')} of the period, {LEAST_PILOTS} are needed"
            yield Paragraph(f"That is {TOO_LITTLE}: {pilots} to tell what is usual.", "caution")
        for shown in _TABLES:
            lines = getattr(advice, shown.field)
            if not lines:
                continue
            rows = list(filter(shown.enough, lines))
            left_out = _left_out(len(lines) - len(rows), len(rows), most)
            yield table(
                shown.title,
                fields.columns(shown.columns),
                rows[: most or None],
                note=" ".join(filter(None, (shown.note, left_out))),
                nothing=left_out,
            ).without_nothing()
            if tries := [
                f"Entry {line.key.entry} ({line.key.site}): {line.configuration}"
                for line in rows[: most or None]
                if isinstance(line, OverlapLine) and line.configuration
            ]:
                yield Paragraph(
                    "To try it with half of the pilots, in the factory's entry", "heading"
                )
                yield Sentences(tries)

    def as_json() -> dict[str, Any]:
        return {
            **age.as_json(),
            "period": {**both("from", since), **both("to", until)},
            "pilots_ended": advice.pilots,
            "pilots_without_known_waits": advice.untimed,
            "runs_ended": advice.runs,
            "settled_canonical_seconds": advice.total_micros / SECOND_US,
            "estimated_canonical_seconds": advice.estimated_micros / SECOND_US,
            "unsettled_canonical_seconds": advice.unsettled_micros / SECOND_US,
            "interval": 0.9,
            "losses": [fields.record(LOSSES, loss) for loss in advice.losses],
            **{
                x.name: [fields.record(x.columns, line) for line in getattr(advice, x.field)]
                for x in _TABLES
            },
        }

    return Document(parts, as_json)


def _left_out(few: int, shown: int, most: int) -> str:
    """Return what a table has no line for, and why; empty if it has all."""
    notes = []
    if few:
        notes.append(f"{counted(few, 'line')} with {TOO_LITTLE}: JSON has them.")
    if most and shown > most:
        notes.append(f"Only the first {most} lines of {shown} (--limit 0 shows all).")
    return " ".join(notes)


def _basis(advice: Advice) -> str:
    """Return what all of it rests on."""
    untimed = f"; of {advice.untimed} of them the waits for jobs are not known"
    share = percent(ratio(advice.estimated_micros, advice.total_micros))
    return (
        f"It rests on {counted(advice.pilots, 'pilot')} that ended in the period, with "
        f"{counted(advice.runs, 'run')}: {hours(advice.total_micros)} canonical hours are settled, "
        f"{share} of them estimated; {hours(advice.unsettled_micros)} are not, and in no loss"
        f"{untimed if advice.untimed else ''}. Intervals are of 90 %."
    )
