"""Matching: could a job group run on an empty pilot of an entry?

A template is an empty pilot: a live healthy slot's whole ad with its size put back to what it was
when the pilot began and its ends as if it began at the time of evaluation, or, where no pilot runs,
the glideresource ad.
Evaluation is HTCondor's own (classad2), both ways: the job's Requirements against the pilot, and
the pilot's (its START expression) against the job.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gwmond.model.facts import EntryKey, Evidence, Size, Template, Verdict
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.access import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    import classad2

    from gwmond.config.settings import Attributes
    from gwmond.sources.htcondor.slots import SampleSlot

PAIRS_A_CHILD = 100_000
_EMPTY = {"State": "Unclaimed", "Activity": "Idle", "PartitionableSlot": True}
_TOTAL = "totalslot"

UNGROUPED = "GwmondUngrouped"
START = "GlideClientConstraintFactoryCondorExpr"
TEMPLATE_USED = ("Name", "DaemonStartTime", "TotalSlotDisk", "Requirements", "Start", START)
"""What a template needs, besides what jobs ask for and what these refer to."""

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
    return Query("templates", "Startd", ads.named(names), (), used=TEMPLATE_USED)


def templates_from_slots(
    found: Sequence[classad2.ClassAd],
    samples: Sequence[SampleSlot],
    attributes: Attributes,
) -> tuple[Template, ...]:
    """Make a measured template of each sampled slot that was found."""
    by_name = {sample.slot: sample for sample in samples}
    made = []
    for ad in found:
        sample = by_name.get(ads.text(ad, "Name") or "")
        if sample is None:
            continue
        started = ads.number(ad, "DaemonStartTime")
        die = ads.first_number(ad, attributes.die)
        lifetime = None if started is None or die is None else max(0, int(die - started))
        epochs = dict.fromkeys((*attributes.retire, *attributes.die))
        template = _template(ad, sample.entry, sample.size, lifetime, "measured", epochs)
        made.append(template._replace(group=sample.group))
    return tuple(made)


def template_from_glideresource(
    ad: classad2.ClassAd, entry: EntryKey, size: Size, lifetime_s: int | None, group: str = ""
) -> Template:
    """Make an estimated template of what the factory advertises for an entry, for a frontend group.

    The frontend advertises its group's START as text, by the name of another expression
    (glideinFrontendInterface.py, ResourceClassad.setMatchExprs); one that cannot be read is as
    none.
    """
    start = ads.text(ad, START)
    if start is not None and (expression := ads.expression(start)) is not None:
        ad["Requirements"] = ad["Start"] = expression
    return _template(ad, entry, size, lifetime_s, "estimated")._replace(group=group)


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
            for total in ("", "TotalSlot")
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
    """Return what nothing of is used: of each resource what a slot has in all.

    Also of resources that a pool names itself (``TotalSlotLicences``), and all of its GPUs.
    """
    found: dict[str, object] = {}
    for total in slot.keys():  # noqa: SIM118 (a ClassAd's iterator is not its keys in all versions)
        name = total[len(_TOTAL) :]
        if total.lower().startswith(_TOTAL) and name in slot:
            value = ads.number(slot, total)
            found[name] = slot.lookup(total) if value is None or value % 1 else int(value)
    if "AvailableGPUs" in slot:
        found["AvailableGPUs"] = ads.expression(f"{{ {', '.join(devices(slot))} }}")
    return found


def devices(ad: classad2.ClassAd) -> list[str]:
    """Return the attributes of a slot that describe its GPUs, also those in use.

    ``GPUs_`` and the device's id, as ``AvailableGPUs`` names those that are free (HTCondor manual,
    "Machine ClassAd Attributes").
    """
    ids = (ads.text(ad, "AssignedGPUs") or "").split(",")
    return [f"GPUs_{re.sub(r'[^A-Za-z0-9]', '_', one.strip())}" for one in ids if one.strip()]


def start_references(slot: classad2.ClassAd) -> tuple[str, ...]:
    """Return the job attributes to which a pilot's Requirements (its START) refer, sorted.

    What it does not have itself is looked up in the job, with TARGET or without.
    """
    names = _external(slot)
    plain = {name[7:] if name.lower().startswith("target.") else name for name in names}
    return tuple(sorted((name for name in plain if name and "." not in name), key=str.lower))


def evaluate(
    groups: Sequence[str], templates: Sequence[Template], pairs: Sequence[tuple[int, int]]
) -> tuple[list[Verdict], int]:
    """Evaluate ``pairs`` of indexes into ``groups`` (texts of job ads) and ``templates``.

    An attribute without MY or TARGET is looked up in both ads, as the negotiator does; classad2
    does so once htcondor2 has read the configuration (STRICT_CLASSAD_EVALUATION).
    """
    import htcondor2  # noqa: F401, PLC0415 (only ever in a child)

    jobs = [ads.parse(text) for text in groups]
    slots = [ads.parse(template.ad) for template in templates]
    asked = [asked_of_jobs(slot) for slot in slots]
    estimated = [template.evidence == "estimated" for template in templates]
    known: dict[tuple[int, frozenset[str]], classad2.ClassAd] = {}
    verdicts = []
    for i, j in pairs:
        job = jobs[i]
        if estimated[j]:
            if (i, asked[j]) not in known:
                known[i, asked[j]] = without_undefined(job, asked[j])
            job = known[i, asked[j]]
        verdicts.append(match(job, slots[j], estimated=estimated[j]))
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


def match(job: classad2.ClassAd, slot: classad2.ClassAd, *, estimated: bool) -> Verdict:
    """Match one job with one empty pilot.

    Requirements that are undefined are not met, as in HTCondor.  Where the answer hangs on what a
    glideresource ad does not have, or START on a job attribute which the group does not carry, it
    is possible.  A group carries ``undefined`` for an attribute that its jobs do not have, and
    ``UNGROUPED`` where jobs have an attribute of START that could not be grouped by.
    """
    wanted = _holds(job, slot, untold=estimated)
    if wanted is False or (wanted is None and not estimated):
        return Verdict.NO
    offered = _holds(slot, job, untold=True)
    if offered is False:
        return Verdict.NO
    if offered and ads.truth(job, UNGROUPED) and _open(slot.lookup("Requirements"), slot, job):
        offered = None
    return Verdict.YES if wanted and offered else Verdict.POSSIBLE


def _holds(mine: classad2.ClassAd, target: classad2.ClassAd, *, untold: bool) -> bool | None:
    """Evaluate Requirements; None where they are neither true nor false."""
    try:
        return holds(mine.lookup("Requirements"), mine, target, untold=untold)
    except KeyError:
        return True
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
    except Exception:
        return None


def _open(expression: classad2.ExprTree, mine: classad2.ClassAd, target: classad2.ClassAd) -> bool:
    """Return whether anything is left of an expression once all that is known is put in.

    Functions such as stringListMember, and ``=?=``, make false of undefined: only partial
    evaluation shows that it would depend.
    """
    added = [n for n in mine.externalRefs(expression) if "." not in n and n in target]
    for name in added:
        mine[name] = target.lookup(name)
    mine["TARGET"] = target
    try:
        return type(mine.flatten(expression)).__name__ == "ExprTree"
    finally:
        for name in (*added, "TARGET"):
            del mine[name]
