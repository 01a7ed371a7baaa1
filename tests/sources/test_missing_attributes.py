"""Records and ads with attributes that are missing, or hold what makes no sense.

Whatever it is, nothing is raised, and the run or the pilot is still there, with its identity: an
attribute costs the one fact that it stands for.  The records and ads are those of real daemons of
HTCondor 23 and 25 (make_histories.py).
"""

from __future__ import annotations

import classad2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gwmond.model.runs.outcomes import classify
from gwmond.model.runs.run_facts import JobRecord
from gwmond.pilots.life import merged_runs
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.histories import histories
from gwmond.sources.htcondor.pilots import claims, slots, startds
from tests.build.histories import KINDS, POOLS, Row, parsed, rows
from tests.examples import examples
from tests.pool import feign
from tests.pool.adtext import Expr
from tests.sources.make import ATTRIBUTES, NOW, classad, heard

#: Without these it is not known which run it is, or where it was.
IDENTITY = {"GlobalJobId", "NumShadowStarts", "RemoteHost", "LastRemoteHost"}
#: The startd's start, which tells two pilots of a name apart, is in these.
CLAIM = {"PublicClaimId", "LastPublicClaimId"}
#: A record needs one of these, to be placed in time.
TIMES = {"EnteredCurrentStatus", "EpochWriteDate", "CompletionDate"}

#: What a garbled attribute may hold: as ClassAd text.
SENSELESS = (
    *("undefined", "error", '"text"', '""', "{ }", "{ 1, 2 }", "[ ]", "[ ExitCode = 3 ]"),
    *("true", "false", "-1", "0", "1", "3", "0.5", "-1e300", 'real("NaN")', 'real("INF")'),
    *("4102444800000", "99999999999999999", "9223372036854775807", "NoSuchAttribute + 1"),
    *('strcat("a", 1)', '"\\377\\376"', '"2026-11-22"'),
)


def check(kind: str, row: Row, changed: Row) -> None:
    """The changed record is of the same run on the same pilot, and has an outcome."""
    whole, found = (histories.decode(kind, parsed(one)) for one in (row, changed))
    assert isinstance(whole, JobRecord)
    assert isinstance(found, JobRecord), (found, set(row) - set(changed))
    identity = (found.fact.job, found.fact.shadow_start, found.startd)
    assert identity == (whole.fact.job, whole.fact.shadow_start, whole.startd)
    if all(row.get(name) == changed.get(name) for name in CLAIM):
        assert found.started == whole.started
    (merged,) = merged_runs.merge([found.fact])
    assert merged.ending.over
    assert classify(merged.ending) is not None
    assert merged.start_us is None or merged.end_us is None or merged.end_us >= merged.start_us
    # Beside the whole record it adds nothing that leaves the run without an outcome.
    (both,) = merged_runs.merge([found.fact, whole.fact])
    assert classify(both.ending) is not None


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_attribute_that_is_missing_or_garbled(kind: str, pool: str) -> None:
    """Each attribute of a record of each kind of end; with the first record of each case."""
    cases = {row["TestCase"]: row for row in rows(kind, pool)}
    for number, row in enumerate(cases.values()):
        for name in row.keys() - IDENTITY:
            check(kind, row, {n: v for n, v in row.items() if n != name})
            if name != "JobUniverse":  # a job of another universe was on no slot
                for value in SENSELESS[number % 14 :: 14]:
                    check(kind, row, {**row, name: value})


@settings(max_examples=examples(200))
@given(data=st.data())
def test_any_attributes_that_are_missing_or_garbled(data: st.DataObject) -> None:
    """As many as there are, but for what says which run it is, and when it was."""
    kind = data.draw(st.sampled_from(KINDS))
    row = data.draw(st.sampled_from(rows(kind, data.draw(st.sampled_from(POOLS)))))
    free = sorted(row.keys() - IDENTITY - TIMES)
    gone = data.draw(st.sets(st.sampled_from(free)))
    changed = {name: value for name, value in row.items() if name not in gone}
    garbled = sorted(changed.keys() - IDENTITY - TIMES - {"JobUniverse"})
    for name in data.draw(st.sets(st.sampled_from(garbled))) if garbled else ():
        changed[name] = data.draw(st.sampled_from(SENSELESS))
    check(kind, row, changed)


@settings(max_examples=examples(100))
@given(data=st.data())
def test_records_without_identity_are_told_and_not_raised(data: st.DataObject) -> None:
    """A word says what is wrong, or nothing where the job never ran."""
    kind = data.draw(st.sampled_from(KINDS))
    row = data.draw(st.sampled_from(rows(kind, data.draw(st.sampled_from(POOLS)))))
    changed = dict(row)
    for name in data.draw(st.sets(st.sampled_from(sorted(row)), min_size=1)):
        if data.draw(st.booleans()):
            del changed[name]
        else:
            changed[name] = data.draw(st.sampled_from(SENSELESS))
    found = histories.decode(kind, parsed(changed))
    assert (
        found is None
        or found in {"no_job", "no_run", "no_host", "no_time"}
        or (isinstance(found, JobRecord))
    )


@pytest.mark.parametrize("pool", POOLS)
def test_claims_with_attributes_that_are_missing_or_garbled(pool: str) -> None:
    """The job and its slot are still told; an ad whose time is gone counts as heard of."""
    for row in rows("claims", pool):
        now = int(row["LastHeardFrom"]) + 1
        for name in row.keys() - {"Name", "GlobalJobId", "LastHeardFrom", "ClassAdLifetime"}:
            for value in (None, *SENSELESS):
                changed = {n: v for n, v in row.items() if n != name}
                if value is not None:
                    changed[name] = value
                decoded = claims.decode([parsed(changed)], "collector", now)
                assert decoded.problems == ()
                (record,) = decoded.records
                assert record.fact.job == row["GlobalJobId"].strip('"')
                assert record.startd == row["Name"].strip('"').partition("@")[2]


GLIDEIN = feign.glidein("entry1", "Site")


@pytest.mark.parametrize("kind", ["slots", "startds"])
def test_pilots_with_attributes_that_are_missing_or_garbled(kind: str) -> None:
    """A pilot's slot, or its StartD ad: the pilot is still there, by its name, or nothing is known
    of its size; a StartD ad without a size says nothing that slots do not."""
    child = feign.dynamic_slot("p1@pool.test", cpus=3, memory=3000, glidein=GLIDEIN)
    whole = feign.partitionable_slot("p1@pool.test", children=[child], gpus=1, glidein=GLIDEIN)
    if kind == "startds":
        whole = feign.startd_ad("p1@pool.test", children=[child], glidein=GLIDEIN)
    whole = heard(whole)
    identity = {"Name", "SlotType", "LastHeardFrom", "ClassAdLifetime"}
    query = slots.query(ATTRIBUTES) if kind == "slots" else startds.query(ATTRIBUTES)
    for name in set(query.projection) - identity:
        for value in (None, *SENSELESS):
            changed = {n: v for n, v in whole.items() if n != name}
            if value is not None:
                changed[name] = Expr(value)
            ad = classad(changed)
            if kind == "slots":
                found = slots.decode([ad], ATTRIBUTES, "collector", NOW).pilots
                assert len(found) == 1 or _is_no_slot(ad), (name, value)
            else:
                found = startds.decode([ad], ATTRIBUTES, NOW).pilots
                assert len(found) == 1 or name in SIZES, (name, value)
            assert {pilot.name for pilot in found} <= {"p1@pool.test"}


#: A StartD ad without one of these is left out: the pilot is known by its slots.
SIZES = {"TotalCpus", "TotalMemory", "TotalGPUs", "JobStarts", "IS_MONITOR_VM"}


def _is_no_slot(ad: classad2.ClassAd) -> bool:
    names = ("IsDataSlot", "IS_MONITOR_VM", "Offline", "Absent")
    return any(ads.truth(ad, name) for name in names)
