"""Matching: could a job group run on an empty pilot of an entry?

A template is an empty pilot: a live healthy slot's whole ad with its size put back to what it was
when the pilot began and its ends as if it began at the time of evaluation, or, where no pilot runs,
the glideresource ad.  The START of a frontend group is in no ad but its pilots', and the same at
all entries: see ``with_start``.
Evaluation is HTCondor's own (classad2), both ways: the job's Requirements against the pilot, and
the pilot's (its START expression) against the job.
"""

from __future__ import annotations

import operator
import re
import time
from collections import defaultdict
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.entries.changes import Changed
from gwmond.model.facts import EntryKey, Evidence, Size, Template, Verdict
from gwmond.model.problem_names import ProblemName
from gwmond.sources import child
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.access import Query
from gwmond.sources.htcondor.alike import references

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Self

    import classad2

    from gwmond.config.settings import Attributes
    from gwmond.sources.htcondor.pilots.slots import SampleSlot

PAIRS_A_CHILD = 100_000
PAIR_CPU_S = 0.25
"""What matching of a job with a pilot may cost; nearly all take less than 0.0001 s."""
SIDE_CPU_S = 1.0
"""What one job, or one pilot, may cost in all its pairs that take longer than ``_SLOW_S``."""
_SLOW_S = 0.01
VERDICTS = (None, *Verdict)
BEGUN, BEGUN_START, JOB, TEMPLATE = 255, 254, 253, 252
_EMPTY = {"State": "Unclaimed", "Activity": "Idle", "PartitionableSlot": True}
_TOTAL = "totalslot"

UNGROUPED = "GwmondUngrouped"
START = "GlideClientConstraintFactoryCondorExpr"
"""The part of START that is the frontend's, for all of its groups."""
JOB_QUERY = "GlideClientConstraintJobCondorExpr"
"""Which jobs a frontend group counts: nearly always those that its START takes."""
_UNTOLD = "GwmondUntold"
"""An attribute that no ad has: what is defined by it is not known."""
_FACTORY = ("GLIDEIN_Signature", "GLIDEIN_Entry_Signature")
TEMPLATE_USED = (
    *("Name", "DaemonStartTime", "TotalSlotDisk", "Requirements", "Start", START, JOB_QUERY),
)
"""What a template needs, besides what jobs ask for and what these refer to."""

_NAMES = re.compile(
    r""""(?:[^"\\]|\\.)*"|\bTARGET\.(?P<of>\w+)|(?<![.\w])(?:MY\.)?(?P<name>[A-Za-z_]\w*)(?!\w*[(.])""",
    re.IGNORECASE,
)
"""Strings, and the attributes of an expression's text, but for functions and scopes."""

# What an empty pilot does not have: who uses it now, and what changes by the minute.
_NOT_OF_THE_PILOT = tuple(
    prefix.lower()
    for prefix in (
        *("Remote", "Client", "Job", "Global", "Child", "Accounting", "Recent", "TotalTime"),
        *("TotalJob", "Num", "Public", "Update", "LastHeard", "LastUpdate", "MyCurrentTime"),
        *("CondorLoad", "TotalLoad", "TotalCondorLoad", "LoadAvg", "MonitorSelf", "Clock"),
        *("DaemonLast", "DaemonStart", "DaemonCore", "EnteredCurrent", "LastBench", "LastFetch"),
        *("LastDrain", "Address", "MyAddress", "Starter", "Activation", "ExpectedMachine"),
        *("TimeToLive", "AssignedGPUs", "AvailableGPUs", "TotalSlots", "CpuBusy", "CPUsUsage"),
        *("ConsoleIdle", "KeyboardIdle", "VirtualMemory", "StashCp", "Health", "Utsname"),
        *("GlideClientMonitor", "GlideFactoryMonitor", "GlideClientMatching", "GlideClientConstr"),
    )
)


def samples_query(names: Iterable[str]) -> Query:
    """Return the query for the whole ads of some slots."""
    used = (*TEMPLATE_USED, "CondorVersion", *_FACTORY)
    return Query("templates", "Startd", ads.named(names), (), used=used)


def templates_from_slots(
    slot_ads: Sequence[classad2.ClassAd],
    samples: Sequence[SampleSlot],
    attributes: Attributes,
) -> tuple[Template, ...]:
    """Make a measured template of each sampled slot that was found."""
    by_name = {sample.slot: sample for sample in samples}
    made = []
    for ad in slot_ads:
        sample = by_name.get(ads.text(ad, "Name") or "")
        if sample is None:
            continue
        started = ads.number(ad, "DaemonStartTime")
        die = ads.first_number(ad, attributes.die)
        lifetime = None if started is None or die is None else max(0, int(die - started))
        epochs = dict.fromkeys((*attributes.retire, *attributes.die))
        template = _template(ad, sample.entry, sample.size, lifetime, "measured", epochs)
        start = str(ad.lookup("Start")) if "Start" in ad else ""
        start = _of_jobs(start, template.refers)
        made.append(
            template._replace(group=sample.group, start=start, versions=_versions(ad, sample))
        )
    return tuple(made)


def template_from_glideresource(
    ad: classad2.ClassAd, entry: EntryKey, size: Size, lifetime_s: int | None, group: str = ""
) -> Template:
    """Make an estimated template of what the factory advertises for an entry, for a frontend group.

    The frontend advertises its own START as text, by the name of another expression
    (glideinFrontendInterface.py, ResourceClassad.setMatchExprs), and the jobs that the group
    counts; one that cannot be read is as none.  Pilots will have the names of the ad's client and
    entry.
    """
    start, query = (
        text if text is not None and ads.expression(text) is not None else None
        for text in (ads.raw(ad, name) for name in (START, JOB_QUERY))
    )
    if start is not None:
        ad["Requirements"] = ad["Start"] = ads.expression(start)
    if query is not None:
        query = _of_jobs(query, references(query).names)
    entry_name, _, factory = (ads.text(ad, "GlideFactoryName") or "").partition("@")
    names = {
        "GLIDECLIENT_Name": ads.text(ad, "GlideClientName"),
        "GLIDECLIENT_Group": ads.text(ad, "GlideGroupName"),
        "GLIDEIN_Entry_Name": entry_name,
        "GLIDEIN_Name": factory.partition("@")[0],
        "GLIDEIN_Factory": factory.partition("@")[2],
    }
    for name, value in names.items():
        if value and name not in ad:
            ad[name] = value
    counted = " && ".join(f"({part})" for part in (start, query) if part) if query else ""
    return _template(ad, entry, size, lifetime_s, "estimated")._replace(group=group, query=counted)


def with_start(template: Template, starts: Iterable[str]) -> Template:
    """Return an estimated template with what is known of its group's START.

    That is the START of the group's pilots at other entries (any of ``starts``, for an entry may
    add its own clauses), where there is none the jobs that the group counts.  Where neither is
    known, the frontend's part alone refuses jobs, and accepts none.
    """
    combined = " || ".join(f"({start})" for start in sorted(set(starts))) or template.query
    if not combined:
        return template
    ad = f"{template.ad.rstrip()[:-1].rstrip()}; Start = {combined}; Requirements = {combined} ]"
    return template._replace(
        ad=ad,
        start=combined,
        signature=ads.signature(template.signature + combined),
        refers=tuple(sorted({*template.refers, *_targets(combined)}, key=str.lower)),
    )


def _versions(ad: classad2.ClassAd, sample: SampleSlot) -> tuple[tuple[str, str], ...]:
    """Return which HTCondor the pilot has, and the signatures of its configurations.

    The factory's and the entry's are of their description files, as the frontend's are.
    """
    _, condor, *_ = [*(ads.text(ad, "CondorVersion") or "").split(), "", ""]
    factory = (ads.text(ad, name) or "" for name in _FACTORY)
    texts = {
        Changed.HTCONDOR: condor,
        Changed.FRONTEND: sample.version,
        Changed.FACTORY: " ".join(factory).strip(),
    }
    return tuple((name.value, text) for name, text in texts.items() if text.strip())


def _of_jobs(text: str, names: Iterable[str]) -> str:
    """Return an expression in which these names are those of the other side, a job.

    >>> _of_jobs('Vo =?= "Vo" && MY.Vo && GLIDEIN_Site == TARGET.Vo', ["VO"])
    'TARGET.Vo =?= "Vo" && TARGET.Vo && GLIDEIN_Site == TARGET.Vo'
    """
    lower = {name.lower() for name in names} - {"currenttime"}

    def scoped(word: re.Match[str]) -> str:
        name = word["name"]
        return f"TARGET.{name}" if name and name.lower() in lower else word[0]

    return _NAMES.sub(scoped, text)


def _targets(text: str) -> set[str]:
    return {word["of"] for word in _NAMES.finditer(text) if word["of"]}


def _template(
    ad: classad2.ClassAd,
    entry: EntryKey,
    size: Size,
    lifetime_s: int | None,
    evidence: Evidence,
    epochs: Iterable[str] = (),
) -> Template:
    """Make a template; ``epochs`` are those of a pilot that starts whenever they are evaluated.

    A template may be kept for long: the last one of an entry stays.
    """
    started = ads.number(ad, "DaemonStartTime")
    moved = {name: ads.number(ad, name) for name in epochs}
    names = [
        name
        for name in ad.keys()  # noqa: SIM118 (a ClassAd's iterator is not its keys in all versions)
        if name.lower() not in ads.SECRET and not name.lower().startswith(_NOT_OF_THE_PILOT)
    ]
    pilots = ads.texts(ad, names)
    empty = ads.parse(ads.written(pilots))
    changed = (
        _EMPTY
        | totals(ad)
        | {
            f"{total}{name}": int(value) if value == int(value) else value
            for name, value in zip(("Cpus", "Memory", "GPUs"), size, strict=True)
            for total in ("", "TotalSlot", "Real")
            if total != "Real" or f"{total}{name}" in pilots
        }
    )
    for name, value in changed.items():
        empty[name] = value
    others = {name.lower() for name in (*changed, *moved)}
    same = {name: text for name, text in pilots.items() if name.lower() not in others}
    refers = start_references(empty)
    identity = ads.signature(ads.written(same | ads.texts(empty, changed)))
    for name, epoch in moved.items():
        if epoch is not None and started is not None:
            empty[name] = ads.expression(f"time() + {int(epoch - started)}")
    return Template(entry, str(empty), identity, size, lifetime_s, evidence, refers=refers)


def totals(slot: classad2.ClassAd) -> dict[str, object]:
    """Return the resources of an unused slot: of each the total.

    Also of resources that a pool names itself (``TotalSlotLicences``), and all of its GPUs.
    """
    resources: dict[str, object] = {}
    for total in slot.keys():  # noqa: SIM118 (a ClassAd's iterator is not its keys in all versions)
        name = total[len(_TOTAL) :]
        if total.lower().startswith(_TOTAL) and name in slot:
            value = ads.number(slot, total)
            resources[name] = slot.lookup(total) if value is None or value % 1 else int(value)
    if "AvailableGPUs" in slot:
        resources["AvailableGPUs"] = ads.expression(f"{{ {', '.join(devices(slot))} }}")
    return resources


def devices(ad: classad2.ClassAd) -> list[str]:
    """Return the attributes of a slot that describe its GPUs, also those in use.

    ``GPUs_`` and the device's id, as ``AvailableGPUs`` names those that are free (HTCondor manual,
    "Machine ClassAd Attributes").
    """
    ids = (ads.text(ad, "AssignedGPUs") or "").split(",")
    return [f"GPUs_{re.sub(r'[^A-Za-z0-9]', '_', gpu.strip())}" for gpu in ids if gpu.strip()]


def start_references(slot: classad2.ClassAd) -> tuple[str, ...]:
    """Return the job attributes to which a pilot's Requirements (its START) refer, sorted.

    What it does not have itself is looked up in the job, with TARGET or without.
    """
    names = _external(slot)
    plain = {name[7:] if name.lower().startswith("target.") else name for name in names}
    return tuple(sorted((name for name in plain if name and "." not in name), key=str.lower))


class _TemplateSlot(NamedTuple):
    """A template's ad, which attributes it asks of jobs only, and what is known of it."""

    ad: classad2.ClassAd
    asked: frozenset[str]
    estimated: bool
    started: bool

    @classmethod
    def of(cls, template: Template) -> Self:
        ad, estimated = ads.parse(template.ad), template.evidence == "estimated"
        return cls(ad, asked_of_jobs(ad), estimated, bool(template.start))


class _Costs:
    """CPU seconds of slow pairs, by the job and by the template."""

    def __init__(self) -> None:
        self._of: dict[int, defaultdict[int, dict[int, float]]] = {
            side: defaultdict(dict) for side in (JOB, TEMPLATE)
        }

    def add(self, job: int, template: int, seconds: float) -> int:
        """Add a pair; return the side that has had too much now, ``JOB`` or ``TEMPLATE``, or 0."""
        if seconds < _SLOW_S:
            return 0
        for side, this, other in ((JOB, job, template), (TEMPLATE, template, job)):
            costs = self._of[side][this]
            costs[other] = seconds
            if sum(costs.values()) > SIDE_CPU_S:
                return side
        return 0


def evaluate(
    groups: Sequence[str],
    templates: Sequence[Template],
    pairs: Sequence[tuple[int, int]],
    board: child.Board | None = None,
) -> tuple[list[Verdict], int]:
    """Evaluate ``pairs`` of indexes into ``groups`` (texts of job ads) and ``templates``.

    ``board``: a byte for each pair, which is 0, the index of its verdict in ``VERDICTS``, the side
    (``JOB``, ``TEMPLATE``) that has had more than ``SIDE_CPU_S`` with it, or whose Requirements are
    being evaluated: the job's (``BEGUN``) or the pilot's (``BEGUN_START``).
    With a board a pair that takes more than ``PAIR_CPU_S`` ends the process.

    An attribute without MY or TARGET is looked up in both ads, as the negotiator does; classad2
    does so once htcondor2 has read the configuration (STRICT_CLASSAD_EVALUATION).
    """
    import htcondor2  # noqa: F401, PLC0415 (only ever in a child)

    costs = _Costs()
    jobs = lru_cache(None)(lambda i: ads.parse(groups[i]))
    slots = lru_cache(None)(lambda j: _TemplateSlot.of(templates[j]))
    defined = lru_cache(None)(lambda i, asked: without_undefined(jobs(i), asked))
    verdicts = []
    for k, (i, j) in enumerate(pairs):
        if board is not None:
            board.marks[k] = BEGUN
            child.allow_cpu(PAIR_CPU_S)
        since = time.process_time()
        slot = slots(j)
        job = defined(i, slot.asked) if slot.estimated else jobs(i)
        then = None if board is None else partial(operator.setitem, board.marks, k, BEGUN_START)
        verdict = match(job, slot.ad, estimated=slot.estimated, before_start=then)
        unknown = slot.estimated and not slot.started and verdict is not Verdict.NO
        verdicts.append(Verdict.UNKNOWN if unknown else verdict)
        if board is not None:
            board.marks[k] = VERDICTS.index(verdicts[-1])
            if culprit := costs.add(i, j, time.process_time() - since):
                board.marks[k] = culprit
                raise child.QueryError(ProblemName.COSTLY_JOB, "too much CPU time")
    return verdicts, len(pairs)


def asked_of_jobs(slot: classad2.ClassAd) -> frozenset[str]:
    """Return the attributes, in lower case, which Requirements name with TARGET only."""
    names = {name.lower() for name in _external(slot)}
    targets = {name.removeprefix("target.") for name in names if name.startswith("target.")}
    return frozenset(targets - names)


def _external(slot: classad2.ClassAd) -> list[str]:
    """Return what Requirements refer to, and the slot itself does not have."""
    try:
        return list(slot.externalRefs(slot.lookup("Requirements")))
    except (KeyError, TypeError, UnicodeDecodeError):
        return []


def without_undefined(job: classad2.ClassAd, asked: AbstractSet[str]) -> classad2.ClassAd:
    """Return a job without the attributes that it is known not to have, but for those ``asked``.

    An attribute that a glideresource ad lacks, and its START names without TARGET, may be the
    pilot's own, so it proves nothing that the job has none either.
    """
    names = [
        name
        for name in job.keys()  # noqa: SIM118 (a ClassAd's iterator is not its keys)
        if str(job.lookup(name)).lower() == "undefined" and name.lower() not in asked
    ]
    if not names:
        return job
    kept = ads.parse(str(job))
    for name in names:
        del kept[name]
    return kept


def match(
    job: classad2.ClassAd,
    slot: classad2.ClassAd,
    *,
    estimated: bool,
    before_start: Callable[[], None] | None = None,
) -> Verdict:
    """Match one job with one empty pilot; ``before_start`` is called before START is looked at.

    Requirements that are undefined are not met, as in HTCondor.  Where the answer hangs on what a
    glideresource ad does not have, or START on a job attribute which the group does not carry, it
    is possible.  A group carries ``undefined`` for an attribute that its jobs do not have, and
    ``UNGROUPED`` where jobs have an attribute of START that could not be grouped by.
    """
    wants = _holds(job, slot, untold=estimated)
    if wants is False or (wants is None and not estimated):
        return Verdict.NO
    if before_start is not None:
        before_start()
    takes = _holds(slot, job, untold=True)
    if takes is False:
        return Verdict.NO
    if takes and ads.truth(job, UNGROUPED) and _open(slot.lookup("Requirements"), slot, job):
        takes = None
    return Verdict.YES if wants and takes else Verdict.POSSIBLE


def _holds(mine: classad2.ClassAd, target: classad2.ClassAd, *, untold: bool) -> bool | None:
    """Evaluate Requirements; None where they are neither true nor false."""
    try:
        return holds(mine.lookup("Requirements"), mine, target, untold=untold)
    except KeyError:
        return True
    except MemoryError:
        raise
    except Exception:
        return None


def holds(
    expression: classad2.ExprTree,
    mine: classad2.ClassAd,
    target: classad2.ClassAd,
    *,
    untold: bool,
) -> bool | None:
    """Evaluate an expression of ``mine``; None where it is neither true nor false.

    With ``untold`` what hangs on attributes that nobody has is None, and nothing else is.
    """
    try:
        value = expression.eval(mine, target)
        plain = type(value).__name__ != "Value" and isinstance(value, (bool, int, float))
        if plain and value:
            return True
        if untold:
            return None if _open(expression, mine, target) else False
        return False if plain else None
    except MemoryError:
        raise
    except Exception:
        return None


def _open(expression: classad2.ExprTree, mine: classad2.ClassAd, target: classad2.ClassAd) -> bool:
    """Return whether anything is left of an expression once all that is known is put in.

    Functions such as stringListMember, and ``=?=``, make false of undefined: only partial
    evaluation shows that it would depend.  An attribute that the other ad lacks would be sought in
    ``mine``, around it: it gets a value that is not known.
    """
    names = mine.externalRefs(expression)
    added = [name for name in names if "." not in name and name in target]
    lacks = {name[7:] for name in names if name.lower().startswith("target.")}
    lacks = {name for name in lacks if "." not in name and name not in target}
    for name in added:
        mine[name] = target.lookup(name)
    for name in lacks:
        target[name] = ads.expression(_UNTOLD)
    mine["TARGET"] = target
    try:
        return type(mine.flatten(expression)).__name__ == "ExprTree"
    finally:
        for name in (*added, "TARGET"):
            del mine[name]
        for name in lacks:
            del target[name]
