"""From a schedd's grouped idle jobs to demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import classad2
import pytest

from gwmond.config.settings import Attributes, DemandOptions
from gwmond.model.facts import DemandGroup, JobCount, Size
from gwmond.model.names import OTHER
from gwmond.sources import tasks
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads, demand
from gwmond.sources.htcondor.access import Daemon, Query
from gwmond.sources.htcondor.demand import NO_KEYS, Apart, JobGrouping, ScheddDemand, StartKeys
from tests.pool.adtext import Ad, Expr, Value
from tests.sources.feigned_access import Unasked
from tests.sources.make import ATTRIBUTES, NOW, attributes, classad, classads

OPTIONS = DemandOptions()
REQUIREMENTS = Expr('(TARGET.Arch == "X86_64") && (TARGET.Memory >= RequestMemory)')


def row(jobs: int = 1, **more: Value) -> Ad:
    """A row of a GroupBy query: idle jobs that are alike."""
    ad: Ad = {
        "JobCount": jobs,
        "JobIds": "4.0 ... 4.9",
        "JobStatus": 1,
        "JobUniverse": 5,
        "RequestCpus": 1,
        "RequestMemory": 2000,
        "Requirements": REQUIREMENTS,
        "ServerTime": NOW,
    }
    return ad | more


def cluster(total: int, following: int, **more: Value) -> Ad:
    """The ad of a cluster of which jobs are still to be materialized."""
    ad = {k: v for k, v in row().items() if k not in ("JobCount", "JobIds", "JobStatus")}
    return (
        ad
        | {"ClusterId": 7, "TotalSubmitProcs": total, "JobMaterializeNextProcId": following}
        | more
    )


def decode(
    *rows: Ad,
    clusters: Sequence[Ad] = (),
    options: DemandOptions = OPTIONS,
    by: Attributes = ATTRIBUTES,
) -> ScheddDemand:
    return demand.decode(classads(*rows), classads(*clusters), "schedd1", JobGrouping(by, options))


def group(jobs: int = 1, **more: Value) -> DemandGroup:
    """The one group of one row, of which nothing was wrong."""
    found = decode(row(jobs, **more))
    assert not found.problems
    assert found.complete
    return found.groups[0]


def test_row() -> None:
    """A row is a group of as many jobs, with its size and the text to match it by."""
    found = group(jobs=12, RequestCpus=8, RequestMemory=16000, RequestGPUs=2)
    assert (found.schedd, found.accounting_group, found.jobs) == ("schedd1", "", 12)
    assert found.size == Size(8, 16000, 2)
    assert found.walltime_s is None
    assert attributes(found.ad) == {"requestcpus", "requestmemory", "requestgpus", "requirements"}


def test_alike_rows_are_one_group() -> None:
    """Rows that differ only in what matching does not see are added up."""
    found = decode(row(3, JobIds="1.0"), row(4, JobIds="2.0", ServerTime=NOW + 1))
    assert [g.jobs for g in found.groups] == [7]
    assert found.rows == 2


def test_rows_that_matching_can_tell_apart() -> None:
    """Rows that differ in a request or in what Requirements refers to are different groups."""
    found = decode(row(3), row(2, RequestCpus=2), row(1, DESIRED_Sites="A"))
    assert [g.jobs for g in found.groups] == [3, 2, 1]
    assert len({g.signature for g in found.groups}) == 3


def test_rows_without_jobs() -> None:
    """A row that counts nothing is nothing."""
    found = decode(row(0), row(JobCount=-1), row(JobCount=Expr("undefined")))
    assert (found.groups, found.counts, found.problems) == ((), (), ())


def test_accounting_group_is_counted_but_does_not_split_matching() -> None:
    """Jobs of two accounting groups are two groups that share their signature."""
    found = decode(row(3, AcctGroup="cms.prod"), row(2, AcctGroup="cms"), row(1))
    assert len({g.signature for g in found.groups}) == 1
    assert found.counts == (
        JobCount("schedd1", "", "idle", 1),
        JobCount("schedd1", "cms", "idle", 2),
        JobCount("schedd1", "cms.prod", "idle", 3),
    )


def test_accounting_group_that_requirements_refer_to() -> None:
    """An accounting group stays in the ad where Requirements depends on it."""
    requirements = Expr('MY.AcctGroup == "cms"')
    found = decode(
        row(1, AcctGroup="cms", Requirements=requirements),
        row(1, AcctGroup="lhcb", Requirements=requirements),
    )
    assert len({g.signature for g in found.groups}) == 2
    assert "acctgroup" in attributes(found.groups[0].ad)


def test_configured_accounting_group() -> None:
    """The accounting group comes from the configured attribute."""
    by = Attributes(accounting_group="Experiment")
    assert decode(row(Experiment="x"), by=by).counts[0].accounting_group == "x"
    assert "Experiment" in demand.query(JobGrouping(by, OPTIONS)).projection


@pytest.mark.parametrize(
    ("more", "size"),
    [
        ({"RequestCpus": Expr("2 * 2")}, Size(4, 2000)),
        ({"RequestMemory": Expr("RequestCpus * 3000")}, Size(1, 3000)),
        (
            {"RequestMemory": Expr("ifThenElse(MemoryUsage isnt undefined, MemoryUsage, 1)")},
            Size(1, 1),
        ),
        ({"RequestCpus": 0}, Size(0, 2000)),
        ({"RequestGPUs": Expr("undefined")}, Size(1, 2000)),
        ({"RequestGPUs": -1}, Size(1, 2000)),
        ({"RequestCpus": 1e300}, Size(1e5, 2000)),
        ({"RequestMemory": 1e300}, Size(1, 1e9)),
        ({"RequestGPUs": 1e300}, Size(1, 2000, 100000)),
    ],
    ids=str,
)
def test_requests(more: Ad, size: Size) -> None:
    """Requests are evaluated; what no slot could ever have is as much as a slot could have."""
    assert group(1, **more).size == size


@pytest.mark.parametrize(
    ("more", "missing", "size"),
    [
        ({"RequestCpus": Expr("undefined")}, "RequestCpus", Size(1, 2000)),
        ({"RequestCpus": Expr("NoSuch + 1")}, "RequestCpus", Size(1, 2000)),
        ({"RequestCpus": -1}, "RequestCpus", Size(1, 2000)),
        ({"RequestCpus": Expr('real("NaN")')}, "RequestCpus", Size(1, 2000)),
        ({"RequestCpus": 4, "RequestMemory": "lots"}, "RequestMemory", Size(4, 8000)),
        ({"RequestCpus": "x", "RequestMemory": -1}, "RequestCpus", Size(1, 2000)),
    ],
    ids=str,
)
def test_requests_that_are_no_number(more: Ad, missing: str, size: Size) -> None:
    """Jobs whose request is no number are counted as small ones, and as a problem."""
    found = decode(row(5, **more))
    assert found.groups[0].size == size
    assert [(p.source, p.problem) for p in found.problems] == [("schedd1", "bad_request")]
    assert missing in found.problems[0].detail
    assert "5 jobs" in found.problems[0].detail


@pytest.mark.parametrize(
    ("more", "walltime"),
    [
        ({"MaxWallTimeMins": 90}, 5400),
        ({"JOB_EXPECTED_MAX_LIFETIME": 3600}, 3600),
        ({"MaxWallTimeMins": 90, "JOB_EXPECTED_MAX_LIFETIME": 3600}, 3600),
        ({"MaxWallTimeMins": 0}, None),
        ({"MaxWallTimeMins": -5}, None),
        ({"MaxWallTimeMins": Expr("undefined")}, None),
        ({"MaxWallTimeMins": 1e308}, None),
        ({"JOB_EXPECTED_MAX_LIFETIME": Expr('real("INF")')}, None),
    ],
    ids=str,
)
def test_walltimes(more: Ad, walltime: int | None) -> None:
    """A walltime in minutes or seconds is understood; one that makes no sense is not told."""
    assert group(1, **more).walltime_s == walltime


def test_secrets_are_never_in_the_text() -> None:
    """What must not be stored is neither asked for nor in a group's text, whatever refers to it."""
    requirements = Expr("regexp(MY.Environment, TARGET.X) || Args is undefined || ClaimId == 1")
    found = group(
        Requirements=requirements, Environment="SECRET=1", Args="SECRET", ClaimId="SECRET"
    )
    assert attributes(found.ad) == {"requestcpus", "requestmemory", "requirements"}
    assert "SECRET" not in found.ad
    options = DemandOptions(attributes=("Environment", "ClaimId", "Owner"))
    by = Attributes(accounting_group="Args")
    projection = {name.lower() for name in demand.query(JobGrouping(by, options)).projection}
    assert "owner" in projection
    assert not projection & ads.SECRET


def test_what_each_job_has_of_its_own_is_never_a_key() -> None:
    """An attribute that differs from job to job is not grouped by, even if it was configured."""
    options = DemandOptions(attributes=("ClusterId", "ProcId", "GlobalJobId", "QDate", "VO"))
    projection = demand.query(JobGrouping(ATTRIBUTES, options)).projection
    assert "VO" in projection
    assert not {"ClusterId", "ProcId", "GlobalJobId", "QDate"} & set(projection)


def test_too_many_groups() -> None:
    """Beyond the limit the largest groups are kept, all jobs counted, and demand incomplete."""
    rows = [row(n, RequestCpus=n) for n in (1, 5, 3)]
    found = decode(*rows, options=DemandOptions(max_groups=2))
    assert [g.jobs for g in found.groups] == [5, 3]
    assert found.counts == (JobCount("schedd1", "", "idle", 9),)
    assert not found.complete
    assert [p.problem for p in found.problems] == ["too_many_groups"]
    assert decode(*rows, options=DemandOptions(max_groups=3)).complete


def test_each_accounting_group_has_its_share_of_the_groups_that_are_matched() -> None:
    """One that makes many large groups of its jobs does not keep those of others from matching."""
    greedy = [row(100 + n, AcctGroup="greedy", RequestMemory=n + 1) for n in range(9)]
    modest = [row(n, AcctGroup="modest", RequestMemory=n + 1) for n in (1, 2)]
    found = decode(*greedy, *modest, options=DemandOptions(max_groups=4))
    assert [(g.accounting_group, g.jobs) for g in found.groups] == [
        *(("greedy", 108), ("modest", 2), ("greedy", 107), ("modest", 1)),
    ]
    assert not found.complete


def test_jobs_of_accounting_groups_that_are_not_kept_apart_are_matched_together() -> None:
    """However many there are: they need one group, where one was needed for each."""
    rows = [row(2, AcctGroup=f"u{n}") for n in range(50)]
    rows += [row(7, AcctGroup="known"), row(3, AcctGroup="large")]
    apart = Apart(frozenset({"known"}), 1)
    options = DemandOptions(max_groups=10)
    found = demand.decode(classads(*rows), (), "schedd1", JobGrouping(ATTRIBUTES, options), apart)
    assert {(g.accounting_group, g.jobs) for g in found.groups} == {
        *(("known", 7), ("large", 3), (OTHER, 100)),
    }
    assert found.complete
    assert len(found.counts) == 52  # what is shown of them is decided for all schedds


def test_an_accounting_group_has_a_name_that_can_be_shown() -> None:
    """Short, and without what cannot be printed."""
    found = decode(row(1, AcctGroup="a\nb" + "x" * 500))
    assert found.counts[0].accounting_group == "a b" + "x" * 96 + "…"


def test_jobs_to_be_materialized() -> None:
    """Jobs that do not exist yet are demand as the idle ones of their cluster, counted apart."""
    found = decode(row(10), clusters=[cluster(100, 30)])
    assert [g.jobs for g in found.groups] == [80]
    assert found.counts == (
        JobCount("schedd1", "", "idle", 10),
        JobCount("schedd1", "", "unmaterialized", 70),
    )
    assert found.rows == 2


def test_cluster_with_nothing_left() -> None:
    """A cluster whose jobs all exist adds nothing."""
    assert decode(clusters=[cluster(30, 30), cluster(30, 40)]).groups == ()


def test_signature_does_not_depend_on_the_schedd() -> None:
    """Alike groups of two schedds share their signature, and so their verdicts."""
    one = demand.decode(classads(row(), row()), (), "a", JobGrouping(ATTRIBUTES, OPTIONS)).groups[0]
    other = demand.decode(classads(row()), (), "b", JobGrouping(ATTRIBUTES, OPTIONS)).groups[0]
    assert (one.signature, one.ad) == (other.signature, other.ad)


def test_keys_of_start_are_projected_once() -> None:
    """What START refers to is grouped by, whatever its case, but no secret and no job's own."""
    names = ("wantvo", "REQUESTCPUS", "ProcId", "Environment", "_condor_RequestCpus")
    keys = StartKeys(names).usable()
    assert keys == StartKeys(("wantvo", "REQUESTCPUS", "_condor_RequestCpus"), ("ProcId",))
    query = demand.query(JobGrouping(ATTRIBUTES, OPTIONS, keys))
    assert {"wantvo", "_condor_RequestCpus", "RequestCpus"} <= set(query.projection)
    assert len({name.lower() for name in query.projection}) == len(query.projection)
    assert query.limit == OPTIONS.max_groups + 1
    assert demand.query(JobGrouping(ATTRIBUTES, OPTIONS)).limit == -1


def keyed(ad: Ad, keys: StartKeys) -> str:
    found = demand.decode(classads(ad), (), "schedd1", JobGrouping(ATTRIBUTES, OPTIONS, keys))
    return found.groups[0].ad


def test_a_group_says_what_its_jobs_do_not_have() -> None:
    """A key of START that jobs lack is undefined, not unknown."""
    keys = StartKeys(("WantVO", "AcctGroup", "JobUniverse"))
    without = keyed(row(), keys)
    assert attributes(without) >= {"wantvo", "acctgroup", "jobuniverse"}
    assert "WantVO = undefined" in without
    assert 'WantVO = "a"' in keyed(row(WantVO="a", AcctGroup="x"), keys)
    assert 'AcctGroup = "x"' in keyed(row(AcctGroup="x"), keys)
    assert "wantvo" not in attributes(keyed(row(), NO_KEYS))


def test_keys_that_are_left_out_are_reported() -> None:
    """Each is named, and groups carry that their START is not all known."""
    keys = StartKeys((), ("QDate", "Serial"))
    found = demand.decode(classads(row()), (), "schedd1", JobGrouping(ATTRIBUTES, OPTIONS, keys))
    assert [p.problem for p in found.problems] == ["start_attribute"] * 2
    assert [p.detail.partition(":")[0] for p in found.problems] == ["QDate", "Serial"]
    assert "gwmondungrouped" in attributes(found.groups[0].ad)
    assert found.ungrouped == ("QDate", "Serial")


@pytest.mark.parametrize("requirements", ["true", "1", '"text"', "undefined", "TARGET.X"])
def test_odd_requirements(requirements: str) -> None:
    """Requirements may be anything: the group is kept."""
    assert group(Requirements=Expr(requirements)).jobs == 1


def test_requirements_that_are_missing() -> None:
    """A row without Requirements is a group like any other."""
    ad = row()
    del ad["Requirements"]
    assert "requirements" not in attributes(decode(ad).groups[0].ad)


def refers(query: Query) -> set[str]:
    """Return what a constraint refers to and the projection lacks."""
    expression = classad2.ExprTree(query.constraint)
    wanted = {name.lower() for name in classad("[]").externalRefs(expression)}
    return wanted - {name.lower() for name in query.projection}


def test_constraint_is_projected() -> None:
    """A schedd groups nothing unless all that the constraint refers to is projected."""
    query = demand.query(
        JobGrouping(ATTRIBUTES, DemandOptions(constraint='JobPrio >= 0 && VO == "cms" && My.X'))
    )
    assert "(JobPrio >= 0" in query.constraint
    assert refers(query) <= {"my.x"}
    assert "X" in query.projection


def test_bad_constraint() -> None:
    """A constraint that is no expression is named as what it is."""
    with pytest.raises(QueryError) as caught:
        demand.query(JobGrouping(ATTRIBUTES, DemandOptions(constraint="JobPrio >")))
    assert caught.value.problem == "bad_constraint"
    assert "JobPrio >" in caught.value.detail


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ("", True),
        ("JobMaterializePaused = 0;", True),
        ("JobMaterializePaused = 1;", False),
        ("JobMaterializePaused = 2;", False),
        ("JobMaterializePaused = 3;", False),
        ("JobMaterializePaused = -1;", False),
        ("ProcId = 3;", False),
        ("JobUniverse = 9;", False),
    ],
)
def test_which_clusters_are_asked_for(more: str, counts: bool) -> None:
    """Clusters count that will materialize more jobs of their own accord."""
    ad = classad(
        f'[ JobUniverse = 5; JobMaterializeDigestFile = "/x"; {more} '
        "TotalSubmitProcs = 9; JobMaterializeNextProcId = 3 ]"
    )
    constraint = demand.factories_query(JobGrouping(ATTRIBUTES, OPTIONS)).constraint
    assert classad2.ExprTree(constraint).eval(ad) is counts


@dataclass
class Schedd(Unasked):
    """A schedd that notes what it is asked."""

    clusters: list[Ad]
    asked: list[Query] = field(default_factory=list)
    jobs: list[Ad] = field(default_factory=lambda: [row(1)] * 4)

    def job_ads(self, _schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        """Group jobs as a real schedd does, by what is projected."""
        self.asked.append(query)
        kept = {name.lower() for name in (*query.projection, "JobCount")}
        groups: dict[str, Ad] = {}
        for job in self.jobs:
            ad = {name: value for name, value in job.items() if name.lower() in kept}
            same = groups.setdefault(str(sorted(ad.items(), key=str)), ad | {"JobCount": 0})
            same["JobCount"] = int(str(same["JobCount"])) + int(str(job["JobCount"]))
        rows = list(groups.values())
        return classads(*(rows if query.limit < 0 else rows[: query.limit]))

    def cluster_ads(self, _schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        self.asked.append(query)
        return classads(*self.clusters)


def fetch(
    schedd: Schedd,
    *,
    factories: bool = True,
    start: StartKeys = NO_KEYS,
    options: DemandOptions = OPTIONS,
) -> ScheddDemand:
    there = Daemon("schedd1", "<>")
    grouping = JobGrouping(ATTRIBUTES, options, start)
    return tasks.schedd_demand(schedd, there, grouping, factories, demand.ALL_APART)[0]


def serials(number: int) -> list[Ad]:
    return [row(Serial=n, Owner=f"user{n % 3}") for n in range(number)]


def test_a_key_with_a_value_for_each_job_is_left_out_at_once() -> None:
    """The jobs are grouped again without it, by the others; all of them are counted."""
    schedd = Schedd([], jobs=serials(300))
    found = fetch(schedd, factories=False, start=StartKeys(("Owner", "Serial")))
    assert [("Serial" in q.projection, "Owner" in q.projection) for q in schedd.asked] == [
        (True, True),
        (False, True),
    ]
    assert [g.jobs for g in found.groups] == [100, 100, 100]
    assert found.ungrouped == ("Serial",)
    assert [p.problem for p in found.problems] == ["start_attribute"]


def test_a_key_that_many_jobs_share_stays() -> None:
    """Few jobs, or several for each value, are grouped by whatever START refers to."""
    few = Schedd([], jobs=serials(50))
    assert len(fetch(few, factories=False, start=StartKeys(("Serial",))).groups) == 50
    shared = Schedd([], jobs=[row(Serial=n // 3) for n in range(600)])
    assert len(fetch(shared, factories=False, start=StartKeys(("Serial",))).groups) == 200


def test_the_key_with_the_most_values_is_left_out_where_there_are_too_many_groups() -> None:
    """Groups are never more than are matched because of START; nobody is left uncounted."""
    jobs = [row(Serial=n // 3, Owner=f"user{n % 2}") for n in range(600)]
    schedd = Schedd([], jobs=jobs)
    keys, options = StartKeys(("Owner", "Serial")), DemandOptions(max_groups=150)
    found = fetch(schedd, factories=False, start=keys, options=options)
    assert (found.ungrouped, found.complete) == (("Serial",), True)
    many = Schedd([], jobs=[row(RequestMemory=n, Owner="a") for n in range(200)])
    found = fetch(many, factories=False, start=StartKeys(("Owner",)), options=options)
    assert (found.ungrouped, found.complete, found.counts[0].jobs) == ((), False, 200)


def test_clusters_are_asked_again_for_what_their_requirements_refer_to() -> None:
    """What clusters' Requirements refer to is fetched, secrets excepted, in a second query."""
    requirements = Expr("MY.WantsA && WantsB == 1 && TARGET.HasC && MY.Environment == 1")
    schedd = Schedd([cluster(9, 3, Requirements=requirements)])
    assert sum(g.jobs for g in fetch(schedd).groups) == 10
    assert [q.kind for q in schedd.asked] == ["demand", "unmaterialized", "unmaterialized"]
    added = set(schedd.asked[2].projection) - set(schedd.asked[1].projection)
    assert added == {"WantsA", "WantsB"}


def test_without_clusters_there_is_no_second_query() -> None:
    """Where no cluster has jobs to materialize it is not asked again, or not at all if known."""
    schedd = Schedd([])
    fetch(schedd)
    assert [q.kind for q in schedd.asked] == ["demand", "unmaterialized"]
    schedd = Schedd([cluster(9, 3)])
    assert sum(g.jobs for g in fetch(schedd, factories=False).groups) == 4
    assert [q.kind for q in schedd.asked] == ["demand"]
