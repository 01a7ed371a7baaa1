"""Real records and claims, recorded and replayed, say the same at another time."""

from __future__ import annotations

from typing import Any

import pytest

from gwmond.model.runs.run_facts import JobRecord
from gwmond.sources.htcondor.histories import histories
from gwmond.sources.htcondor.pilots import claims
from gwmond.sources.recording import recorded_runs, recording
from gwmond.sources.recording.deltas import Ad
from tests.build.histories import parsed, rows
from tests.build.recordings import BEGIN, CLAIMS, HOST, NEVER, SHIFT_S, Made, write
from tests.sources.fake_history import SCHEDD


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Real records and claims, recorded in one frame."""
    answers: dict[str, list[Ad]] = {
        recorded_runs.stream(SCHEDD.name, kind): [
            recorded_runs.dump(parsed(ad), histories.query(kind).projection)
            for ad in rows(kind, "25")
        ]
        for kind in recorded_runs.KINDS
    }
    answers[CLAIMS] = recording.dump(
        [parsed(ad) for ad in rows("claims", "25")], claims.query().attributes
    )
    return Made(write(tmp_path_factory.mktemp("real") / "r.zip", {BEGIN: answers}), [])


def plain(record: JobRecord, shift: int) -> JobRecord:
    """The record with its times moved, and without what pseudonyms stand for."""
    by = shift * 10**6
    fact = record.fact

    def moved(part: Any) -> dict[str, int]:
        names = (n for n in getattr(part, "_fields", ()) if n.endswith("_us"))
        return {name: at + by for name in names if (at := getattr(part, name)) is not None}

    parts = {name: getattr(fact, name) for name in ("transfer_in", "transfer_out", "about_job")}
    times = moved(fact) | {n: p and p._replace(**moved(p)) for n, p in parts.items()}
    job, _, queued = fact.job.rpartition("#")
    started = None if record.started is None else record.started + shift
    return record._replace(
        fact=fact._replace(
            **times | {"written_us": 0},
            job=f"{job}#{int(queued) + shift}",
            user=None,
            job_group=None,
        ),
        started=started,
    )


@pytest.mark.parametrize("kind", recorded_runs.KINDS)
@pytest.mark.parametrize("shift", [0, SHIFT_S])
def test_records_say_the_same_as_live_but_at_another_time(
    replayed: Made, kind: str, shift: int
) -> None:
    """All times move alike, also those within texts; nothing else that is decoded changes."""
    query = histories.query(kind)
    found = replayed.at(0, shift).history(SCHEDD, kind, query, -1, "")[::-1]
    live = [histories.decode(kind, parsed(ad)) for ad in rows(kind, "25")]
    told = [histories.decode(kind, ad) for ad in found]
    pairs = [
        (a, b)
        for a, b in zip(live, told, strict=True)
        if isinstance(a, JobRecord) and isinstance(b, JobRecord)
    ]
    assert len(pairs) >= 15
    for before, after in pairs:
        assert plain(after, 0) == plain(before, shift)
    users = {(a.fact.user, b.fact.user) for a, b in pairs}
    groups = {(a.fact.job_group, b.fact.job_group) for a, b in pairs}
    assert len({b for _, b in users}) == len({a for a, _ in users}) == len(users)
    assert len({b for _, b in groups}) == len({a for a, _ in groups}) == len(groups)


def test_claims_are_of_the_jobs_of_the_histories(replayed: Made) -> None:
    """A claim's job and its pilot's start have the same names in both, in each pass other ones."""
    passes = []
    for shift in (SHIFT_S, SHIFT_S + 60):
        access = replayed.at(0, shift)
        found = access.collector_ads(HOST, claims.query())
        now = access.time + access.shift
        records = claims.decode(found, HOST, now).records
        ended = [
            histories.decode("epochs", ad)
            for ad in access.history(SCHEDD, "epochs", histories.query("epochs"), -1, "")
        ]
        runs = {(r.fact.job, r.startd, r.started) for r in ended if isinstance(r, JobRecord)}
        claimed = {(r.fact.job, r.startd, r.started) for r in records}
        assert len(claimed & runs) >= 8
        passes.append({job for job, _, _ in runs | claimed})
    assert not passes[0] & passes[1]


def test_what_nobody_needs_to_know_is_not_recorded(replayed: Made) -> None:
    """No user, program, path, address, host of an access point, or secret is in the file."""
    access = replayed.at(0)
    texts = []
    for kind in recorded_runs.KINDS:
        texts += [str(ad) for ad in access.history(SCHEDD, kind, NEVER, -1, "")]
    everything = "\n".join(texts)
    assert "failure at access point" in everything
    for word in ("alice", "/bin/sh", "/tmp", "127.0.0.1", "alias", "JobLeaseDuration"):
        assert word not in everything
    wide = parsed(
        {**rows("epochs", "25")[0], "ClaimId": '"<1>#2#secret"', "Environment": '"A=secret"'}
    )
    names = (*histories.query("epochs").projection, "ClaimId", "Environment")
    assert "secret" not in str(recorded_runs.dump(wide, names))
