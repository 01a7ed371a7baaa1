"""Show the whole life of one pilot: what it did when, where its time went, and the evidence.

ID is its number (see gwmond pilots), the name of its startd, or a unique part of that name.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time

from rich.console import Console
from rich.text import Text

from gwmond.commands.common import EXIT_FAILED, EXIT_OK
from gwmond.commands.pilots import size_text
from gwmond.config.settings import Config
from gwmond.ledger.errors import LedgerError
from gwmond.ledger.reader import LedgerReader
from gwmond.model.attempts import Source
from gwmond.model.pilot_facts import MEASURES, Category
from gwmond.model.stored_pilots import PilotRow
from gwmond.model.times import SECOND_US
from gwmond.model.units import Resource
from gwmond.pilots.rules import Rules
from gwmond.reports.category_time import (
    CATEGORIES,
    COLOURS,
    HOUR,
    KINDS,
    LETTERS,
    Kind,
    hours,
    of_kind,
    percent,
    ratio,
    words,
)
from gwmond.reports.ledger_reading import Age, add_ledger_option, age_of
from gwmond.reports.periods import short, span
from gwmond.reports.pilot_story import OwnSpan, Run, Story, find
from gwmond.reports.pilot_story import tell as story_of
from gwmond.reports.story_json import story_json
from gwmond.reports.table_text import Cell, Grid, room, show, tell
from gwmond.reports.timeline import axis, ends, lanes
from gwmond.reports.validation_phases import validation_text
from gwmond.service import log

_LABEL = 8
_LANES = 40
_RUN = (
    *("run", "from (UTC)", "to (UTC)", "for", "category", "outcome", "user", "cores", "hours"),
    *("decided by", "codes", "told by", "evidence", "job"),
)
_RUN_TEXTS = tuple(name for name in _RUN if name not in {"cores", "hours"})
_WRAPPED = {"codes": 24, "told by": 16}
_CPU: Kind = ("cpu", "canonical")
_GPU: Kind = ("gpu", "canonical")

_EPILOG = """\
examples:
  gwmond pilot 4711
  gwmond pilot glidein_3344_123@wn42.example.org
  gwmond pilot wn42 --format json | jq '.runs[] | {job, category, rule}'

the picture: one line for the pilot's own time and one for each run of a job; time runs to the right
  G goodput   M misconfiguration badput   P preemption badput   U unclassified
  O pilot overhead   D decision problem (never ran a job)   V validation fails   ? not settled
  small letters: a part of the pilot, beside jobs     ·: jobs use all of it

the tables: each run with the rule (docs/pilots.md) that decided its category, the sources that
reported it (startd, epoch and schedd history, live slot; "inferred": no record of its end came),
HTCondor's codes, and where these sources contradict each other.
"estimated": a documented rule fills in for a missing fact.
Sums are those of the ledger, in both measures; the residual is total minus parts: 0.
"""

_TOLD = {
    "collector": "",
    "jobs": "; no collector showed it, records of jobs tell",
    "files": "; no collector showed it, its factory's files tell",
}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gwmond pilot``."""
    parser.epilog = _EPILOG
    parser.add_argument("id", metavar="ID", help="number, startd's name, or a part of the name")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument(
        "--width", type=int, metavar="COLUMNS", help="of the picture; default: the terminal's"
    )
    parser.add_argument(
        "--lanes", type=int, default=_LANES, metavar="N", help=f"runs drawn at most ({_LANES})"
    )
    add_ledger_option(parser)


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Tell; 1 when there is no ledger, no such pilot, or more than one."""
    log.quiet()
    now_us = round(time.time() * SECOND_US)
    tolerance_us = round(config.pilots.end_tolerance * SECOND_US)
    rules = Rules(q=config.canonical.memory_mib, end_tolerance_us=tolerance_us)
    try:
        with LedgerReader.open(arguments.ledger or config.ledger.url) as ledger:
            found = find(ledger, arguments.id)
            if len(found) != 1:
                _not_one(arguments.id, found, ledger.where)
                return EXIT_FAILED
            age = age_of(ledger, now_us, config.poll.interval)
            story = story_of(ledger, found[0], now_us, rules)
    except LedgerError as error:
        print(f"gwmond: {error}", file=sys.stderr)
        return EXIT_FAILED
    if arguments.format == "json":
        json.dump({**age.as_json(), **story_json(story, now_us)}, sys.stdout, indent=2)
        print()
    else:
        width = arguments.width or shutil.get_terminal_size((100, 24)).columns
        _show(story, age, max(40, width), arguments.lanes)
    if age.warning and story.life.end_us is None:
        print(f"gwmond: {age.warning}", file=sys.stderr)
    return EXIT_OK


def _not_one(text: str, found: list[PilotRow], where: str) -> None:
    if not found:
        told = f'no pilot "{text}" in ledger {where}. See gwmond pilots --past --name PART'
        print(f"gwmond: {told}", file=sys.stderr)
        return
    many = "more than 20" if len(found) > 20 else str(len(found))
    print(f'gwmond: {many} pilots fit "{text}"; give one\'s number:', file=sys.stderr)
    for row in found[:20]:
        until = short(row.end_us, "now")
        identity = row.identity
        line = f"  {row.id}  {identity.name}  {identity.key.site}  {short(row.start_us)} to {until}"
        print(line, file=sys.stderr)


def _show(story: Story, age: Age, width: int, most: int) -> None:
    console = Console(width=room())
    _head(console, story, age)
    _picture(console, story, width, most)
    _runs(console, story)
    _own_spans(console, story)
    _corrections(console, story)
    _sums(console, story)


def _head(console: Console, story: Story, age: Age) -> None:
    row, key = story.line.row, story.line.row.identity
    console.print(Text(age.told))
    console.print(Text(f"\npilot {row.id}  {key.name}", "bold"))
    console.print(Text(f"{key.key.site}, entry {key.key.entry}, node {key.node or '?'}"))
    job = f", its job {key.factory_job}" if key.factory_job else ""
    console.print(Text(f"group {key.group}, factory {key.factory}{job}"))
    console.print(Text(f"{ends(story)}; {size_text(story.line)}{_TOLD[key.origin]}"))
    retire, die = story.line.left_us(age.now_us)
    left = "".join(
        f"; {what} in {span(time)}" if time >= 0 else f"; should have {past} {span(-time)} ago"
        for what, past, time in (("retires", "retired", retire), ("dies", "died", die))
        if time is not None
    )
    for rule in story.rules:
        console.print(Text(rule.line(), "yellow"))
    validation = validation_text(row, story.life.until_us)
    console.print(Text(f"{story.line.doing}{left}; {validation}"))


def _picture(console: Console, story: Story, width: int, most: int) -> None:
    columns = max(20, width - _LABEL - 1)
    drawn = lanes(story, columns, most)
    ticks, told = axis(story.life.start_us, story.life.until_us, columns)
    console.print(Text(f"\n{'':{_LABEL}}{told}", "bright_black"), soft_wrap=True)
    console.print(Text(f"{'':{_LABEL}}{ticks}", "bright_black"), soft_wrap=True)
    for lane in drawn:
        text = Text(f"{lane.label:<{_LABEL}}", no_wrap=True)
        for cell in lane.cells:
            shown = cell.text not in " ·"
            text.append(cell.text, f"reverse {COLOURS[cell.category]}" if shown else "bright_black")
        console.print(text, soft_wrap=True)
    if len(story.runs) > most:
        console.print(f"({len(story.runs) - most} more runs: --lanes {len(story.runs)})")
    if story.line.row.attempts_pruned:
        pruned = story.line.row.attempts_pruned
        console.print(f"({pruned} runs were taken out by retention, so own time is not drawn)")
    used = {cell.category: None for lane in drawn for cell in lane.cells if cell.text not in " ·"}
    legend = Text(" " * _LABEL)
    for category in used:
        legend.append(LETTERS[category], f"reverse {COLOURS[category]}")
        legend.append(f" {words(category) if category else 'not settled'}   ")
    console.print(legend)


def _runs(console: Console, story: Story) -> None:
    if not story.runs:
        console.print("\nNo job is known to have run on it.")
        return
    gpus = bool(story.total[_GPU])
    rows: list[list[Cell]] = []
    for number, run in enumerate(story.runs, 1):
        row, outcome = run.row, run.outcome
        end_us = story.life.until_us if row.end_us is None else row.end_us
        gpu = [hours(run.amounts.get(_GPU, 0), 2)] if gpus else []
        rows.append(
            [
                str(number),
                *(short(row.start_us), short(row.end_us, "runs")),
                span(end_us - row.start_us),
                _category(outcome.category if outcome else None),
                outcome.label if outcome else "",
                row.user,
                f"{row.size.cores:g}",
                *(hours(run.amounts.get(_CPU, 0), 2), *gpu),
                run.rule,
                _codes(run),
                ", ".join(source.value for source in Source if source in run.merged.sources),
                outcome.evidence if outcome else "",
                f"{row.key.job} run {row.key.number or '?'}",
            ]
        )
    tell(console, "\nRuns of jobs (hours: canonical)")
    of_gpus = ["GPU hours"] if gpus else []
    show(console, Grid([*_RUN[:9], *of_gpus, *_RUN[9:]], rows, texts=_RUN_TEXTS, wrapped=_WRAPPED))
    decided = {run.rule or "?": run.rule_source for run in story.runs if run.outcome}
    for rule, source in sorted(decided.items()):
        console.print(Text(f"{rule}: {source}", "bright_black"))
    for number, run in enumerate(story.runs, 1):
        for contradiction in run.merged.contradictions:
            kept, other = contradiction.kept.value, contradiction.other.value
            text = f"run {number}: {kept} and {other} differ on {contradiction.field}; "
            console.print(Text(f"{text}{kept} is believed", "yellow"))


def _own_spans(console: Console, story: Story) -> None:
    if not story.own:
        return
    gpus = bool(story.total[_GPU])
    rows: list[list[Cell]] = [
        [
            *(
                short(estimated.start_us),
                short(estimated.end_us),
                span(estimated.end_us - estimated.start_us),
            ),
            _category(estimated.category),
            "all, no job runs" if estimated.free == "all" else "what is free beside jobs",
            hours(estimated.amounts[_CPU], 2),
            *([hours(estimated.amounts[_GPU], 2)] if gpus else []),
            _evidence(estimated),
        ]
        for estimated in story.own
    ]
    tell(console, "\nThe pilot's own time (hours: canonical)")
    headers = ["from (UTC)", "to (UTC)", "for", "category", "of the pilot", "hours"]
    headers += [*(["GPU hours"] if gpus else []), "evidence"]
    texts = ("for", "category", "of the pilot", "evidence")
    show(console, Grid(headers, rows, names=2, texts=texts))


def _corrections(console: Console, story: Story) -> None:
    if story.corrections:
        rows: list[list[Cell]] = [
            [
                *(short(correction.time_us), short(correction.hour * HOUR)),
                f"{correction.series.resource} {correction.series.measure}",
                _category(correction.series.category),
                correction.series.outcome,
                f"{correction.micros / HOUR:+.4f}",
                correction.cause,
            ]
            for correction in story.corrections
        ]
        headers = ("made (UTC)", "hour (UTC)", "of", "category", "outcome", "hours", "cause")
        tell(console, "\nCorrections of what was settled before")
        texts = ("of", "category", "outcome", "cause")
        show(console, Grid(headers, rows, names=2, texts=texts, wrapped={"cause": 24}))
    if not story.corrections_complete:
        console.print("(the ledger has many corrections since: older ones may not be listed)")


def _sums(console: Console, story: Story) -> None:
    columns: dict[Kind, str] = {}
    for kind in KINDS:
        resource, measure = kind
        if measure == "resource" and (resource == "cpu" or story.total[kind]):
            columns[kind] = f"{resource} {'core' if resource == 'cpu' else 'chip'}-hours"
        elif measure == "canonical" and story.total[kind]:
            if _measures_agree(story, resource):
                columns[resource, "resource"] += " = canonical"
            else:
                columns[kind] = f"{resource} canonical"
    kinds = list(columns)
    headers = ["booked, hours", *(header for kind in kinds for header in (columns[kind], "share"))]
    rows: list[list[Cell]] = []
    for category in CATEGORIES:
        cells: list[Cell] = [_category(category)]
        for kind in kinds:
            micros = story.line.settled.get((*kind, category), 0)
            share = ratio(micros, of_kind(story.line.settled, kind))
            cells += [hours(micros, 4), percent(share)]
        rows.append(cells)
    for label, amounts in (("not settled", story.unsettled), ("total", story.total)):
        rows.append([label, *(c for kind in kinds for c in (hours(amounts[kind], 4), ""))])
    residual = (_exact(story.residual[kind]) for kind in kinds)
    rows.append(["residual", *(cell for text in residual for cell in (text, ""))])
    console.print()
    show(console, Grid(headers, rows))


def _measures_agree(story: Story, resource: Resource) -> bool:
    """Return whether both measures are the same in all that is shown of them."""
    shown = [
        [
            *(story.line.settled.get((resource, measure, category), 0) for category in CATEGORIES),
            *(
                record[resource, measure]
                for record in (story.unsettled, story.total, story.residual)
            ),
        ]
        for measure in MEASURES
    ]
    return shown[0] == shown[1]


def _category(category: Category | None) -> Text:
    return Text(words(category) if category else "not settled", COLOURS[category])


def _codes(run: Run) -> Text:
    told = [f"{name.replace('_', ' ')} {code}" for name, code in run.codes.items()]
    return Text(", ".join([*told, *([run.reason.value] if run.reason else [])]))


def _evidence(own_span: OwnSpan) -> str:
    if own_span.category is Category.UNCLASSIFIED:
        return "nothing tells what it ran"
    cpu, gpu, _ = own_span.estimated
    if not own_span.amounts["gpu", "resource"] or cpu == gpu:
        return "estimated" if cpu else "measured"
    return "estimated (CPU)" if cpu else "estimated (GPUs)"


def _exact(micros: int) -> str:
    return f"{micros / 1e6:.6f} s" if micros else "0"
