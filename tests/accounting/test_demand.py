from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.accounting.absorb import Place, Shape, absorption, places
from gwmond.accounting.demand import JobCounts, carried, demand, job_counts, match
from gwmond.accounting.flow import SCALE, assign
from gwmond.accounting.resources import need_of
from gwmond.facts import DemandGroup, EntryKey, Size, Template, Verdict
from gwmond.units import Resource
from tests.accounting.make import A2, BIG, GPU, SMALL, A, B, C, group, pilot, template, verdicts
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
    ("verdict", "entries", "possible"),
    [
        (Verdict.YES, (A,), frozenset()),
        (Verdict.NO, (), frozenset()),
        (Verdict.POSSIBLE, (A,), {A}),
        (None, (A,), {A}),
    ],
)
def test_only_a_no_keeps_a_job_away(
    verdict: Verdict | None, entries: tuple[EntryKey, ...], possible: frozenset[EntryKey]
) -> None:
    """Possible, and not evaluated, count as yes, and are remembered as uncertain."""
    known = {("any", A.entry): verdict} if verdict else {}
    (found,) = match([group()], [template()], known)
    assert (found.entries, found.possible) == (entries, possible)


def test_one_of_several_templates_of_an_entry_is_enough() -> None:
    """An entry with pilots of two sizes takes a job that one of them can run, and is sure of it."""
    templates = [template(A, Size(1, 2000), signature="s"), template(A, BIG, signature="b")]
    job = group(size=Size(4, 8000))
    known = {("any", "s"): Verdict.POSSIBLE, ("any", "b"): Verdict.YES}
    (found,) = match([job], templates, known)
    assert (found.entries, found.possible) == ((A,), frozenset())


def test_groups_without_jobs_are_no_demand() -> None:
    """A group of zero jobs is left out, and keys of the others differ."""
    found = match([group(0), group(3), group(3)], [template()], {})
    assert [item.group.jobs for item in found] == [3, 3]
    assert len({item.key for item in found}) == 2


# --- how the frontend counts jobs


def test_jobs_are_counted_like_the_frontend_does() -> None:
    """Matching counts everywhere, proportional divides, unique can go nowhere else."""
    groups = [group(10, signature="all"), group(3, signature="ab"), group(2, signature="a")]
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
    assert job_counts(match([group(5)], [template()], {("any", A.entry): Verdict.NO})) == {}


# --- what absorbs demand


def fit(shape: Shape, *free: Size, left: int | None = None, resource: Resource = "cpu") -> int:
    found = absorption({shape: [A]}, {A: {Place(s, left): 1 for s in free}}, resource, 2000)
    return found.jobs[shape].get(A, 0)


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


def test_what_free_slots_hold_is_at_least_what_one_class_could_put_there() -> None:
    """Jobs that take memory rather than cores are absorbed as far as they fit."""
    small, fat = Shape(Size(1, 2000), None), Shape(Size(1, 4000), None)
    free = {A: {Place(Size(4, 16000), None): 3}}
    assert absorption({small: [A]}, free, "cpu", 2000).units == {A: 12}
    found = absorption({small: [A], fat: [A]}, free, "cpu", 2000)
    assert found.units == {A: 24}
    assert found.jobs == {small: {A: 12}, fat: {A: 12}}
    none = absorption({Shape(Size(9, 1), None): [A]}, free, "cpu", 2000)
    assert none.units == {}


def test_free_slots_of_retiring_pilots_absorb_nothing() -> None:
    """Only accepting pilots count, by slot; a pending one counts as an empty pilot."""
    pilots = [
        pilot(A, free=[Size(2, 4000), Size(1, 2000)], remaining_s=100),
        pilot(A, free=[Size(2, 4000)], remaining_s=100),
        pilot(A, free=[Size(8, 16000)], accepting=False),
        pilot(B),
    ]
    found = places(pilots, {B: 3, C: 2, A: 0}, [template(B, GPU, lifetime_s=7200)])
    assert found == {
        A: {Place(Size(2, 4000), 100): 2, Place(Size(1, 2000), 100): 1},
        B: {Place(GPU, 7200): 3},
    }


def test_pending_pilots_are_of_the_largest_measured_template() -> None:
    """Of several templates of an entry the measured go first, then the largest."""
    templates = [
        template(A, Size(4, 8000), signature="x"),
        template(A, Size(64, 99000), evidence="estimated", signature="y"),
        template(A, BIG, signature="z"),
    ]
    for order in (templates, templates[::-1]):
        assert places([], {A: 1}, order) == {A: {Place(BIG, None): 1}}


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
    st.dictionaries(st.builds(Place, sizes, lefts), st.integers(1, 5), max_size=6),
    st.sampled_from(["cpu", "gpu"]),
)
def test_counting_alike_places_together_changes_nothing(
    shapes: set[Shape], free: dict[Place, int], resource: Resource
) -> None:
    """The histogram gives what going through each place and shape gives."""
    found = absorption({shape: [A] for shape in shapes}, {A: free}, resource, 2000)
    for shape in shapes:
        alone = {
            place: fit(shape, place.size, left=place.remaining_s, resource=resource)
            for place in free
        }
        jobs = sum(count * alone[place] for place, count in free.items())
        assert found.jobs[shape].get(A, 0) == jobs
        assert jobs * need_of(shape.size, resource) <= found.units.get(A, 0)


def test_places_are_counted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few places are looked at in one go, all of them are counted."""
    shapes = [Shape(Size(1, 2000), None), Shape(Size(2, 4000), 60)]
    free = {Place(Size(i, 2000 * i), 10 * i): i for i in range(1, 9)}
    whole = absorption({shape: [A] for shape in shapes}, {A: free}, "cpu", 2000)
    for chunk in (1, 4, 5, 1000):
        monkeypatch.setattr("gwmond.accounting.absorb._CHUNK", chunk)
        assert absorption({shape: [A] for shape in shapes}, {A: free}, "cpu", 2000) == whole
    assert whole.jobs == {shapes[0]: {A: 204}, shapes[1]: {A: 3 * 6 + 3 * 7 + 4 * 8}}


# --- classes


def classes_of(
    groups: Sequence[DemandGroup],
    resource: Resource,
    cpu: dict[EntryKey, int],
    gpu: dict[EntryKey, int] | None = None,
    pending: dict[EntryKey, int] | None = None,
) -> list[tuple[int, dict[EntryKey, int], dict[EntryKey, int]]]:
    templates = [template(A, GPU), template(B, GPU)]
    matches = match(groups, templates, verdicts(groups, templates))
    free = places([], pending or {}, templates)
    found = demand(matches, resource, {"cpu": cpu, "gpu": gpu or {}}, free)
    return [(c.units, dict(c.edges), dict(c.absorbers)) for c in found.classes]


def test_an_edge_carries_whole_jobs() -> None:
    """An edge is bounded by the jobs there are and by the whole jobs that spare holds."""
    assert classes_of([group(10, Size(4, 8000))], "cpu", {A: 11, B: 3}) == [(40, {A: 8}, {})]
    assert classes_of([group(1, Size(4, 8000))], "cpu", {A: 11, B: 400}) == [(4, {A: 4, B: 4}, {})]
    assert classes_of([group(9, Size(4, 8000))], "cpu", {A: 4, B: 7}) == [(36, {A: 4, B: 4}, {})]


def test_need_is_in_canonical_units() -> None:
    """A job of one core and much memory needs units by its memory."""
    assert classes_of([group(2, Size(1, 4001))], "cpu", {A: 100}) == [(6, {A: 6}, {})]


def test_gpu_jobs_need_cores_only_where_gpus_are_spare() -> None:
    """A GPU job's cores count where its GPUs could run, no more jobs than GPUs allow."""
    job = [group(10, Size(2, 4000, 1))]
    assert classes_of(job, "cpu", {A: 100, B: 100}, {A: 3}) == [(20, {A: 6}, {})]
    assert classes_of(job, "gpu", {A: 100, B: 100}, {A: 3}) == [(10, {A: 3}, {})]
    pairs = [group(10, Size(2, 4000, 2))]
    assert classes_of(pairs, "cpu", {A: 100, B: 100}, {A: 5, B: 1}) == [(20, {A: 4}, {})]
    assert classes_of(pairs, "gpu", {A: 100, B: 100}, {A: 5, B: 1}) == [(20, {A: 4}, {})]


def test_jobs_without_gpus_never_need_gpus() -> None:
    """A CPU job may use a GPU pilot's cores, but is no demand for GPUs."""
    assert classes_of([group(10)], "gpu", {A: 100}, {A: 3}) == []
    assert classes_of([group(10)], "cpu", {A: 100}, {A: 3}) == [(10, {A: 10}, {})]


def test_pending_pilots_absorb_jobs() -> None:
    """Pending pilots take what fits in empty ones, not more than there is."""
    assert classes_of([group(100)], "cpu", {}, None, {A: 2}) == [(100, {}, {A: 16})]
    assert classes_of([group(3)], "cpu", {}, None, {A: 2}) == [(3, {}, {A: 3})]
    assert classes_of([group(9, Size(3, 6000))], "cpu", {}, None, {A: 2}) == [(27, {}, {A: 12})]
    gpu_job = [group(100, Size(1, 2000, 1))]
    assert classes_of(gpu_job, "gpu", {}, None, {A: 2}) == [(100, {}, {A: 4})]
    assert classes_of(gpu_job, "cpu", {}, None, {A: 2}) == [(100, {}, {A: 4})]


def test_assigned_jobs_and_uncertain_entries_are_read_from_the_flow() -> None:
    """Flow divided by need is jobs; an entry is uncertain if a possible match carries any."""
    groups = [group(3, Size(2, 4000), signature="sure"), group(4, signature="maybe")]
    templates = [template(A), template(B), template(A2)]
    known = verdicts(groups, templates, sure=[B, A2], maybe=[A])
    known["maybe", B.entry] = Verdict.POSSIBLE
    known["maybe", A2.entry] = Verdict.POSSIBLE
    matches = match(groups, templates, known)
    spare: dict[EntryKey, int] = {A: 100, B: 100, A2: 0}
    found = demand(matches, "cpu", {"cpu": spare, "gpu": {}}, {})
    jobs, uncertain = carried(matches, assign(found.classes, spare, found.absorb), "cpu")
    assert jobs == {A: 3.0, B: 4.0}
    assert uncertain == {B}


def test_one_possible_match_among_alike_groups_makes_the_entry_uncertain() -> None:
    """Groups that flow together are as uncertain as the least certain of them."""
    groups = [group(4, signature="sure"), group(4, signature="maybe")]
    templates = [template(A)]
    known = verdicts(groups, templates) | {("maybe", A.entry): Verdict.POSSIBLE}
    matches = match(groups, templates, known)
    found = demand(matches, "cpu", {"cpu": {A: 100}, "gpu": {}}, {})
    flow = assign(found.classes, {A: 100}, found.absorb)
    assert len(flow.bundles) == 1
    assert carried(matches, flow, "cpu") == ({A: 8.0}, frozenset({A}))


def test_alike_groups_of_unlike_need_carry_their_own_jobs() -> None:
    """Classes that flow together are divided by the need of each."""
    groups = [group(4, Size(1, 2000)), group(2, Size(2, 4000), schedd="schedd2")]
    templates = [template(A)]
    matches = match(groups, templates, verdicts(groups, templates))
    found = demand(matches, "cpu", {"cpu": {A: 100}, "gpu": {}}, {})
    flow = assign(found.classes, {A: 100}, found.absorb)
    assert flow.total_assigned == 8 * SCALE
    assert carried(matches, flow, "cpu")[0] == {A: 6.0}
