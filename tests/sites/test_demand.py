from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.entries.evaluation import SCALE, JobCounts
from gwmond.model.facts import Berth, DemandGroup, EntryKey, Size, Template, Verdict
from gwmond.model.units import RESOURCES, Resource
from gwmond.sites.absorb import (
    Beside,
    FreePlace,
    Rest,
    Room,
    Shape,
    absorption,
    pending_by_group,
    places,
)
from gwmond.sites.demand import Verdicts, demand, job_counts, match
from gwmond.sites.flow import Assignment, assign
from gwmond.sites.need import Need, footprint, need_at, own_need
from tests.build.facts import (
    A2,
    BIG,
    GPU,
    SMALL,
    A,
    B,
    C,
    by_group,
    group,
    pilot,
    template,
    verdicts,
)
from tests.examples import examples

# --- where jobs could run


@pytest.mark.parametrize(
    ("job", "empty", "entries"),
    [
        (group(), template(), (A,)),
        (group(size=Size(8, 16000)), template(), (A,)),
        (group(size=Size(9, 1000)), template(), ()),
        (group(size=Size(1, 16001)), template(), ()),
        (group(size=Size(1, 1000, 1)), template(), ()),
        (group(size=Size(1, 1000, 1)), template(size=GPU), (A,)),
        (group(size=Size(1, 1000, 3)), template(size=GPU), ()),
        (group(), template(size=GPU), (A,)),
        (group(walltime_s=3600), template(lifetime_s=3600), (A,)),
        (group(walltime_s=3601), template(lifetime_s=3600), ()),
        (group(walltime_s=3601), template(lifetime_s=None), (A,)),
        (group(walltime_s=None), template(lifetime_s=60), (A,)),
    ],
)
def test_a_job_needs_an_empty_pilot_that_is_large_and_lives_long_enough(
    job: DemandGroup, empty: Template, entries: tuple[EntryKey, ...]
) -> None:
    """Cores, memory, GPUs and walltime must fit the template."""
    (found,) = match([job], [empty], verdicts([job], [empty]))
    assert found.entries == entries


@pytest.mark.parametrize(
    ("verdict", "entries", "possible", "unknown"),
    [
        (Verdict.YES, (A,), frozenset(), frozenset()),
        (Verdict.NO, (), frozenset(), frozenset()),
        (Verdict.POSSIBLE, (A,), {A}, frozenset()),
        (Verdict.UNKNOWN, (), frozenset(), {A}),
        (None, (), frozenset(), {A}),
    ],
)
def test_where_a_job_could_run(
    verdict: Verdict | None,
    entries: tuple[EntryKey, ...],
    possible: frozenset[EntryKey],
    unknown: frozenset[EntryKey],
) -> None:
    """Possible counts as yes, and is remembered as uncertain; what is not known is neither."""
    known = {("any", A.entry): verdict} if verdict else {}
    (found,) = match([group()], [template()], by_group(known))
    assert (found.entries, found.possible, frozenset(found.unknown)) == (entries, possible, unknown)


def test_one_of_several_templates_of_an_entry_is_enough() -> None:
    """An entry with pilots of two sizes takes a job that one of them can run, and is sure of it."""
    templates = [template(A, Size(1, 2000), signature="s"), template(A, BIG, signature="b")]
    job = group(size=Size(4, 8000))
    known = {"any": {"s": Verdict.POSSIBLE, "b": Verdict.YES}}
    (found,) = match([job], templates, known)
    assert (found.entries, found.possible) == ((A,), frozenset())


def test_groups_without_jobs_are_no_demand() -> None:
    """A group of zero jobs is left out, and keys of the others differ."""
    found = match([group(0), group(3), group(3)], [template()], {})
    assert [item.group.jobs for item in found] == [3, 3]
    assert len({item.key for item in found}) == 2


def test_keys_do_not_depend_on_the_order_in_which_groups_are_told() -> None:
    """Groups that differ by nothing but their walltime are in its order, an unknown one first."""
    groups = [group(walltime_s=walltime) for walltime in (7200, None, 3600)]
    found = match(groups, [template()], {})
    assert [item.group.walltime_s for item in found] == [None, 3600, 7200]
    assert match(groups[::-1], [template()], {}) == found


# --- how the frontend counts jobs


def test_jobs_are_counted_like_the_frontend_does() -> None:
    """Matching counts everywhere, proportional divides, unique can go nowhere else."""
    groups = [group(10, signature="all"), group(3, signature="ab"), group(2, signature="a")]
    groups[:1] = [group(4, signature="all"), group(6, signature="all", schedd="other")]
    templates = [template(A), template(B), template(C)]
    known = verdicts(groups, templates, ab=[C], a=[B, C])
    counts = job_counts(match(groups, templates, known))
    assert counts == {
        A: JobCounts(matching=15, proportional=7, unique=2),  # 10/3 + 3/2 + 2 = 6.83
        B: JobCounts(matching=13, proportional=5, unique=0),  # 10/3 + 3/2 = 4.83
        C: JobCounts(matching=10, proportional=4, unique=0),  # 10/3 = 3.33
    }


def test_jobs_that_can_run_nowhere_are_counted_nowhere() -> None:
    """A group that matches no entry adds to no count."""
    assert job_counts(match([group(5)], [template()], {"any": {A.entry: Verdict.NO}})) == {}


# --- what absorbs demand


HERE = Berth(A, "frontend.main")


def fit(shape: Shape, *free: Size, left: int | None = None) -> int:
    found = absorption({shape: [HERE]}, {HERE: {FreePlace(s, left): 1 for s in free}}, 2000)
    return found.holds[shape][HERE].jobs if HERE in found.holds[shape] else 0


@pytest.mark.parametrize(
    ("job", "free", "jobs"),
    [
        (Size(1, 2000), Size(8, 16000), 8),
        (Size(1, 2000), Size(8, 5000), 2),
        (Size(2, 1000), Size(5, 99000), 2),
        (Size(1, 1000, 1), Size(8, 16000, 2), 2),
        (Size(1, 1000, 1), Size(8, 16000), 0),
        (Size(4, 8000), Size(3, 99000), 0),
        (Size(0, 0), Size(3, 4000), 2),
        (Size(0, 1000), Size(0, 4000), 4),
        (Size(0.5, 100), Size(2, 4000), 4),
        (Size(1, 100), Size(0, 4000), 0),
        (Size(1, 0), Size(8, 2000), 8),
    ],
)
def test_the_scarcest_dimension_decides_how_many_jobs_fit(job: Size, free: Size, jobs: int) -> None:
    """As many jobs fit a free slot as its cores, memory and GPUs allow, whichever is least."""
    assert fit(Shape(job, None), free) == jobs


@pytest.mark.parametrize(
    ("walltime", "left", "jobs"),
    [(None, 60, 8), (3600, 3600, 8), (3600, 3599, 0), (3600, None, 8), (3600, 0, 0)],
)
def test_the_time_left_must_suffice(walltime: int | None, left: int | None, jobs: int) -> None:
    """A free slot takes no job that is longer than what is left of its pilot."""
    assert fit(Shape(SMALL, walltime), BIG, left=left) == jobs


def test_a_place_is_divided_by_the_jobs_that_fit_into_it() -> None:
    """Jobs that take memory rather than cores fill a place as far as they fit."""
    small, fat = Shape(Size(1, 2000), None), Shape(Size(1, 8000), None)
    free = {HERE: {FreePlace(Size(4, 16000), None): 3}}
    found = absorption({small: [HERE], fat: [HERE]}, free, 2000)
    assert found.units == {HERE: Need(12)}
    assert found.holds[small][HERE] == Room(12, Need(1))
    assert found.holds[fat][HERE] == Room(6, Need(2))
    beside = {HERE: {**free[HERE], FreePlace(Size(0.5, 16000), None): 3}}  # too small for any
    assert absorption({small: [HERE], fat: [HERE]}, beside, 2000).units == found.units
    none = absorption({Shape(Size(9, 1), None): [HERE]}, free, 2000)
    assert (none.units, none.holds) == ({}, {Shape(Size(9, 1), None): {}})


def test_jobs_with_gpus_leave_cores_to_others() -> None:
    """A place of 8 cores and 2 GPUs holds two jobs with GPUs, which take a core each."""
    shape = Shape(Size(1, 2000, 1), None)
    found = absorption({shape: [HERE]}, {HERE: {FreePlace(GPU, None): 1}}, 2000)
    assert found.holds[shape][HERE] == Room(2, Need(1, 1))
    assert found.units == {HERE: Need(8, 2)}


def test_places_have_the_canonical_units_of_their_memory() -> None:
    """8 cores with 16000 MiB are 4 units of 4000 MiB; what is too small for one is one."""
    shape = Shape(Size(1, 1000), None)
    found = absorption(
        {shape: [HERE]}, {HERE: {FreePlace(BIG, None): 1, FreePlace(Size(1, 2000), None): 1}}, 4000
    )
    assert found.units == {HERE: Need(5)}


def test_what_a_job_does_not_ask_for_divides_nothing() -> None:
    """A job without memory or GPUs fits by its cores, with no warning of a division by zero."""
    shape = Shape(Size(1, 0), None)
    with np.errstate(all="raise"):
        found = absorption(
            {shape: [HERE]}, {HERE: {FreePlace(GPU, None): 1, FreePlace(BIG, None): 1}}, 2000
        )
    assert found.holds[shape][HERE] == Room(16, Need(1, 0))
    assert found.rests == {}


def test_free_slots_of_retiring_pilots_absorb_nothing() -> None:
    """Only accepting pilots count, by slot; a pending one counts as an empty pilot."""
    pilots = [
        pilot(A, free=[Size(2, 4000), Size(1, 2000)], remaining_s=100),
        pilot(A, free=[Size(2, 4000)], remaining_s=100),
        pilot(A, free=[Size(8, 16000)], accepting=False),
        pilot(B),
    ]
    pending = {B: {"frontend.main": 3}, C: {"frontend.main": 2}, A: {"": 0}}
    found = places(pilots, pending, [template(B, GPU, lifetime_s=7200)])
    assert found == {
        HERE: {FreePlace(Size(2, 4000), 100): 2, FreePlace(Size(1, 2000), 100): 1},
        Berth(B, "frontend.main"): {FreePlace(GPU, 7200): 3},
    }


def test_pending_pilots_are_of_the_largest_measured_template() -> None:
    """Of a group's templates the measured go first, then the largest, then the longest life."""
    templates = [
        template(A, Size(4, 8000), lifetime_s=9000, signature="w"),
        template(A, Size(64, 99000), evidence="estimated", signature="x"),
        template(A, BIG, lifetime_s=7200, signature="y"),
        template(A, BIG, lifetime_s=3600, signature="z"),
        template(A, BIG, signature="unlimited"),
    ]
    for order in (templates, templates[::-1]):
        for known in ("frontend.main", ""):  # a group that is not known may be any
            assert places([], {A: {known: 1}}, order) == {
                Berth(A, known): {FreePlace(BIG, 7200): 1}
            }


def test_pending_pilots_are_of_their_own_frontend_groups() -> None:
    """The queue's number is divided as the ads of the groups count, each with its own size."""
    asked = {A: {"fe.small": 1, "fe.big": 3, "fe.none": 0}, B: {"fe.none": 0}}
    pending = pending_by_group({A: 8, B: 2}, asked)
    assert pending == {A: {"fe.small": 2, "fe.big": 6}, B: {"": 2}}
    templates = [template(A, SMALL, group="fe.small"), template(A, BIG, group="fe.big")]
    assert places([], pending, templates) == {
        Berth(A, "fe.small"): {FreePlace(SMALL, None): 2},
        Berth(A, "fe.big"): {FreePlace(BIG, None): 6},
    }


sizes = st.builds(
    Size,
    st.sampled_from([0, 0.5, 1, 2, 3, 8]),
    st.sampled_from([0, 500, 2000, 4001, 16000]),
    st.integers(0, 2),
)
walltimes = st.sampled_from([None, 60, 3600, 7200])
lefts = st.sampled_from([None, 0, 59, 60, 3600, 5000])


@settings(max_examples=examples(60))
@given(
    st.sets(st.builds(Shape, sizes, walltimes), min_size=1, max_size=5),
    st.dictionaries(st.builds(FreePlace, sizes, lefts), st.integers(1, 5), max_size=6),
)
def test_counting_alike_places_together_changes_nothing(
    shapes: set[Shape], free: dict[FreePlace, int]
) -> None:
    """The histogram gives what going through each place and shape gives."""
    found = absorption({shape: [HERE] for shape in shapes}, {HERE: free}, 2000)
    for shape in shapes:
        alone = {place: fit(shape, place.size, left=place.remaining_s) for place in free}
        jobs = sum(count * alone[place] for place, count in free.items())
        hold = found.holds[shape].get(HERE, Room(0, Need(0)))
        assert hold.jobs == jobs
        for resource in RESOURCES:
            taken = jobs * hold.takes.units(resource)
            assert taken <= found.units.get(HERE, Need(0)).units(resource) + 1e-9


def test_places_are_counted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few places are looked at in one go, all of them are counted."""
    shapes = [Shape(Size(1, 2000), None), Shape(Size(2, 4000), 60), Shape(Size(1, 2000, 1), None)]
    free = {FreePlace(Size(i, 2000 * i, i), 10 * i): i for i in range(1, 9)}
    whole = absorption({shape: [HERE] for shape in shapes}, {HERE: free}, 2000)
    for chunk in (1, 4, 5, 1000):
        monkeypatch.setattr("gwmond.sites.absorb.CHUNK", chunk)
        assert absorption({shape: [HERE] for shape in shapes}, {HERE: free}, 2000) == whole
    jobs = {shape: hold[HERE].jobs for shape, hold in whole.holds.items()}
    assert jobs == {shapes[0]: 204, shapes[1]: 3 * 6 + 3 * 7 + 4 * 8, shapes[2]: 204}
    assert whole.holds[shapes[2]][HERE].takes == Need(1, 1)


# --- what a job takes


@pytest.mark.parametrize(
    ("job", "empty", "need"),
    [
        (Size(1, 2048), Size(8, 16384), Need(1)),
        (Size(8, 16384), Size(8, 16384), Need(8)),
        (Size(5, 2000), BIG, Need(8)),
        (Size(3, 2000), BIG, Need(4)),
        (Size(1, 4001), BIG, Need(8 / 3)),
        (Size(1, 4096), Size(64, 256000), Need(64 / 62)),
        (Size(1, 1000), Size(1, 1900), Need(1)),
        (Size(0.5, 100), Size(1, 2000), Need(0.5)),
        (Size(0, 0), BIG, Need(1)),
        (Size(8, 1000, 1), GPU, Need(8, 1)),
        (Size(1, 1000, 2), GPU, Need(1, 2)),
        (Size(1, 1000, 2), Size(8, 16000, 3), Need(1, 3)),
        (Size(9, 1000), BIG, None),
        (Size(1, 16001), BIG, None),
        (Size(1, 1000, 1), BIG, None),
    ],
)
def test_a_job_takes_the_pilot_divided_by_how_many_fit(
    job: Size, empty: Size, need: Need | None
) -> None:
    """Memory is never rounded up alone; what no other such job could use is taken as well."""
    assert need_at(job, empty) == need


def test_what_a_job_takes_depends_on_the_memory_of_a_unit() -> None:
    """16000 MiB are 4 units of 4000 MiB; a job that asks for nothing takes one of these."""
    assert need_at(Size(2, 1000), BIG, 4000) == Need(1)
    assert need_at(Size(0, 0), BIG, 4000) == Need(1)


def test_a_job_that_fits_no_pilot_counts_as_what_it_asks_for() -> None:
    """Without a pilot to divide there is nothing to round."""
    assert own_need(Size(1, 3000)) == Need(1.5)
    assert own_need(Size(0, 0, 2)) == Need(1, 2)
    assert own_need(Size(0, 0), 500) == Need(1)
    assert own_need(Size(1, 3000), 1000) == Need(3)
    (found,) = match([group(size=Size(64, 2000))], [template()], {})
    assert (found.entries, found.own) == ((), Need(64))


def test_demand_that_is_refused_counts_as_what_it_would_take() -> None:
    """START decides where a job runs, not how large it is."""
    job = group(size=Size(1, 2048))
    (found,) = match([job], [template(A, Size(8, 16384))], {"any": {A.entry: Verdict.NO}})
    assert (found.entries, found.own) == ((), Need(1))


# --- classes


GPUS = [template(A, GPU), template(B, GPU)]


def classes_of(
    groups: Sequence[DemandGroup],
    cpu: dict[EntryKey, int],
    gpu: dict[EntryKey, int] | None = None,
    pending: dict[EntryKey, int] | None = None,
    templates: Sequence[Template] = GPUS,
) -> list[tuple[dict[EntryKey, int], dict[Berth, int]]]:
    """Return how many jobs of each class entries and berths could take."""
    matches = match(groups, templates, verdicts(groups, templates))
    free = places([], pending_by_group(pending or {}, {}), templates)
    found = demand(matches, {"cpu": cpu, "gpu": gpu or {}}, free, templates)
    return [
        (
            {key: edge.jobs for key, edge in c.spare.items()},
            {berth: edge.jobs for berth, edge in c.free.items()},
        )
        for c in found.classes
    ]


def test_an_edge_carries_whole_jobs() -> None:
    """An edge is bounded by the whole jobs that spare holds."""
    assert classes_of([group(10, Size(4, 8000))], {A: 11, B: 3}) == [({A: 2}, {})]
    assert classes_of([group(1, Size(4, 8000))], {A: 11, B: 400}) == [({A: 2, B: 100}, {})]
    assert classes_of([group(9, Size(5, 8000))], {A: 8, B: 17}) == [({A: 1, B: 2}, {})]


def test_gpu_jobs_go_only_where_gpus_are_spare() -> None:
    """A GPU job's cores count where its GPUs could run, no more jobs than either allows."""
    job = [group(10, Size(2, 4000, 1))]
    assert classes_of(job, {A: 100, B: 100}, {A: 3}) == [({A: 3}, {})]
    assert classes_of(job, {A: 4, B: 100}, {A: 3}) == [({A: 2}, {})]
    pairs = [group(10, Size(2, 4000, 2))]
    assert classes_of(pairs, {A: 100, B: 100}, {A: 5, B: 1}) == [({A: 2}, {})]


def test_jobs_without_gpus_never_need_gpus() -> None:
    """A CPU job may use a GPU pilot's cores, but is no demand for GPUs."""
    assert classes_of([group(10)], {A: 100}, {A: 3}) == [({A: 100}, {})]
    (found,) = match([group(10)], GPUS, {})
    assert found.own == Need(1, 0)


def test_pending_pilots_absorb_jobs() -> None:
    """Pending pilots take what fits in empty ones."""
    assert classes_of([group(100)], {}, None, {A: 2}) == [({}, {Berth(A, ""): 16})]
    assert classes_of([group(9, Size(3, 6000))], {}, None, {A: 2}) == [({}, {Berth(A, ""): 4})]
    gpu_job = [group(100, Size(1, 2000, 1))]
    assert classes_of(gpu_job, {}, None, {A: 2}) == [({}, {Berth(A, ""): 4})]


def test_a_berth_takes_only_what_its_own_group_starts() -> None:
    """Free slots and pending pilots of a group that refuses the jobs absorb none of them."""
    templates = [
        template(A, signature="ta", group="fe.voA"),
        template(A, signature="tb", group="fe.voB"),
    ]
    known = {"any": {"ta": Verdict.NO, "tb": Verdict.YES}}
    matches = match([group(100)], templates, known)
    assert matches[0].entries == (A,)
    free = [pilot(A, free=[BIG], group=g) for g in ("fe.voA", "fe.voB", "fe.new")]
    pending = {A: {"fe.voA": 5, "fe.voB": 2}}
    found = demand(matches, {"cpu": {}, "gpu": {}}, places(free, pending, templates), templates)
    (only,) = found.classes
    assert {berth.group: edge.jobs for berth, edge in only.free.items()} == {
        "fe.voB": 24,
        "fe.new": 8,  # no template tells what it starts, so any of the entry's may
    }


def test_jobs_take_what_they_take_of_the_template_that_they_match() -> None:
    """Of several templates the one counts where a job takes least, the certain ones first."""
    templates = [
        template(A, Size(5, 10000), signature="five", group="fe.five"),
        template(A, BIG, signature="eight", group="fe.eight"),
    ]
    job = group(size=Size(5, 1000))
    for five, eight, need in (
        (Verdict.YES, Verdict.YES, Need(5)),
        (Verdict.NO, Verdict.YES, Need(8)),
        (Verdict.POSSIBLE, Verdict.YES, Need(8)),
        (Verdict.POSSIBLE, Verdict.POSSIBLE, Need(5)),
    ):
        (found,) = match([job], templates, {"any": {"five": five, "eight": eight}})
        assert found.needs == {A: need}


def test_a_match_that_only_an_estimated_template_offers_is_uncertain() -> None:
    """A live pilot of another frontend group does not make it certain."""
    templates = [
        template(A, signature="live", group="fe.a"),
        template(A, signature="ad", group="fe.b", evidence="estimated"),
    ]
    for live, possible in ((Verdict.YES, frozenset()), (Verdict.NO, frozenset({A}))):
        (found,) = match([group()], templates, {"any": {"live": live, "ad": Verdict.YES}})
        assert found.entries == (A,)
        assert found.possible == possible


def assigned(
    groups: Sequence[DemandGroup], known: Verdicts, spare: Mapping[EntryKey, int]
) -> Assignment:
    templates = [template(A), template(B), template(A2)]
    matches = match(groups, templates, known)
    found = demand(matches, {"cpu": spare, "gpu": {}}, {}, templates)
    return assign(found.classes, {"cpu": spare, "gpu": {}}, found.free)


def test_assigned_jobs_and_uncertain_entries() -> None:
    """An entry is uncertain if a possible match carries any of its jobs."""
    groups = [group(3, Size(2, 4000), signature="sure"), group(4, signature="maybe")]
    known = {
        "sure": {A.entry: Verdict.YES, B.entry: Verdict.NO, A2.entry: Verdict.NO},
        "maybe": {A.entry: Verdict.NO, **dict.fromkeys((B.entry, A2.entry), Verdict.POSSIBLE)},
    }
    found = assigned(groups, known, {A: 100, B: 100, A2: 0})
    assert found.jobs == {A: 3.0, B: 4.0, A2: 0}
    assert found.uncertain == {(B, "cpu")}


def test_one_possible_match_among_alike_groups_makes_the_entry_uncertain() -> None:
    """Groups that are assigned together are as uncertain as the least certain of them."""
    groups = [group(4, signature="sure"), group(4, signature="maybe")]
    known = {"sure": {A.entry: Verdict.YES}, "maybe": {A.entry: Verdict.POSSIBLE}}
    found = assigned(groups, known, {A: 100})
    assert found.jobs == {A: 8.0}
    assert found.uncertain == {(A, "cpu")}


# --- beside large jobs


FIVE, ONE = Size(5, 10000), Size(1, 2000)


def placed(
    groups: Sequence[DemandGroup], pending: int, size: Size = BIG, spare: int = 100
) -> tuple[float, dict[int, float]]:
    """Jobs that pending pilots at A absorb, and units, by cores, that B's spare is assigned."""
    templates = [template(A, size), template(B, size)]
    matches = match(groups, templates, verdicts(groups, templates))
    free = places([], {A: {"frontend.main": pending}}, templates)
    room: dict[Resource, dict[EntryKey, int]] = {"cpu": {B: spare}, "gpu": {B: spare}}
    wanted = demand(matches, room, free, templates)
    found = assign(wanted.classes, room, wanted.free)
    cores = {item.key: int(item.group.size.cores) for item in matches}
    return sum(found.free.values()), {
        cores[key]: share.assigned / SCALE
        for (key, resource), share in found.classes.items()
        if resource == "cpu"
    }


@pytest.mark.parametrize(
    ("ones", "pilots", "absorbed", "assigned_units"),
    [
        (2, 2, 4, {5: 32, 1: 0}),  # two jobs of 5 cores, and both small ones beside them
        (6, 2, 8, {5: 32, 1: 0}),
        (7, 2, 8, {5: 32, 1: 1}),
        (0, 2, 2, {5: 32}),
        (20, 6, 24, {5: 0, 1: 2}),  # all six, and three small jobs beside each
        (20, 8, 26, {5: 0, 1: 0}),  # two pilots are left for what fits beside none
    ],
)
def test_small_jobs_run_beside_large_ones(
    ones: int, pilots: int, absorbed: int, assigned_units: dict[int, float]
) -> None:
    """Of a pilot of 8 cores a job of 5 leaves 3, which no other of 5 can use, but small ones."""
    groups = [group(6, FIVE, signature="five")] + [group(ones, ONE, signature="one")] * bool(ones)
    jobs, units = placed(groups, pilots)
    assert jobs == absorbed
    assert units == pytest.approx(assigned_units)


def test_small_jobs_run_beside_large_ones_whose_walltime_is_not_known() -> None:
    """Of two large jobs one says for how long it runs: each leaves three cores to small ones."""
    groups = [group(1, FIVE, walltime_s=walltime) for walltime in (None, 3600)]
    jobs, units = placed([*groups, group(7, ONE)], 2)
    assert (jobs, units[1]) == (8, 1)


def test_jobs_with_gpus_run_beside_jobs_that_leave_them() -> None:
    """A job of 5 cores leaves a pilot's two GPUs to two jobs of one core; none has more of them."""
    for pilots, fives, with_gpus, absorbed in ((1, 1, 3, 3), (2, 1, 9, 5), (2, 2, 9, 6)):
        groups = [
            group(fives, FIVE, signature="five"),
            group(with_gpus, Size(1, 2000, 1), signature="gpu"),
        ]
        jobs, units = placed(groups, pilots, GPU)
        assert jobs == absorbed
        assert units == pytest.approx({5: 0, 1: with_gpus + fives - absorbed})


@settings(max_examples=examples(60))
@given(
    st.sets(st.builds(Shape, sizes, walltimes), min_size=2, max_size=5),
    st.dictionaries(st.builds(FreePlace, sizes, lefts), st.integers(1, 5), max_size=6),
)
def test_what_fits_beside_is_what_fits_into_the_rest_of_each_place(
    shapes: set[Shape], free: dict[FreePlace, int]
) -> None:
    """For each pair of shapes: the places are filled with one, and the rests with the other."""
    found = absorption({shape: [HERE] for shape in shapes}, {HERE: free}, 2000).rests
    for large in (shape for shape in shapes if shape.size.gpus == 0):
        cores, memory, gpus = footprint(large.size)
        jobs, beside = 0, Counter[Shape]()
        for place, count in free.items():
            if filled := fit(large, place.size, left=place.remaining_s):
                jobs += count * filled
                rest = Size(
                    place.size.cores - filled * cores,
                    place.size.memory_mib - filled * memory,
                    place.size.gpus - filled * gpus,
                )
                for small in shapes:
                    beside[small] += count * fit(small, rest, left=place.remaining_s)
        beside = +beside
        assert found.get(Rest(HERE, large)) == (Beside(jobs, beside) if beside else None)
