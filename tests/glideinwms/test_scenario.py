"""What gwmond says of a real GlideinWMS, while things happen to it.

The story (story.py) is played once; GWMOND_STORY names the directory of one that was played before
(``python -m tests.glideinwms DIRECTORY``). Truth is what the story did, what HTCondor's tools said,
and the records of the site's batch system and of the users' schedd.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.glideinwms.story import ENTRIES, LONG_S, tell

pytestmark = pytest.mark.timeout(4 * LONG_S)

MOMENTS = ("early", "later", "end")
#: Seconds by which what the factory knows of pilots is late: it asks the batch system now and then.
LATE_S = 60
#: Seconds by which a pilot's own times differ from those of its batch system.
NEAR_S = 10


class Told:
    """What was said in a story."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, name: str) -> Any:
        return json.loads((self.directory / name).read_text())

    def sites(self, moment: str) -> dict[str, dict[str, Any]]:
        """The sites as gwmond saw them at a moment."""
        rows = self(f"{moment}.sites.json")["sites"]
        return {row["site"]: row for row in rows if row["resource"] == "cpu"}

    def answer(self, moment: str, job: str) -> tuple[str, str]:
        """All of the first reason of an explanation in words, and whose move it is."""
        answer = self(f"{moment}.answers.json")[job]
        first = answer["reasons"][0]
        return f"{answer['first_line']} {first['change']}", first["whose_move"]

    def problems(self, moment: str) -> set[str]:
        return {row["problem"] for row in self(f"{moment}.problems.json")["problems"]}

    def is_free(self, moment: str, site: str) -> bool:
        """Whether a pilot there ran no job then."""
        return any(
            ad["State"] == "Unclaimed" and ad["Cpus"] == ad["TotalSlotCpus"]
            for ad in self.slots(moment, site)
        )

    def is_curbed(self, moment: str, site: str) -> bool:
        """Whether the frontend told that it asks for no more, when gwmond looked.

        It does so as long as enough pilots wait or run: when one ends it asks again.
        """
        polled = self(f"{moment}.sites.json")["time_epoch_seconds"]
        return any(
            "GlideClientCurbCurbTotalGlideinsPerGroup" in ad and int(ad["LastHeardFrom"]) <= polled
            for ad in self(f"{moment}.user.json")
            if ad.get("MyType") == "glideresource" and ad.get("GLIDEIN_Site") == site
        )

    def slots(self, moment: str, site: str) -> list[dict[str, str]]:
        """The slots of a site that the users' collector had then."""
        ads = self(f"{moment}.user.json")
        return [
            ad for ad in ads if ad.get("MyType") == "Machine" and ad.get("GLIDEIN_Site") == site
        ]

    def pilots(self) -> dict[str, dict[str, Any]]:
        """Pilots as gwmond knows them at the end, by their job at the factory."""
        rows = self("end.pilots.json")["pilots"]
        return {row["factory_job"].rpartition("#")[2]: row for row in rows}

    def of_before(self, site: str, moment: str) -> bool:
        """Whether a slot there has the START of before, as HTCondor's collector has it."""
        slots = [ad for ad in self(f"{moment}.user.json") if ad.get("GLIDEIN_Site") == site]
        return any("Refused" not in ad["START"] for ad in slots if "START" in ad)

    def lived(self) -> dict[str, dict[str, str]]:
        """Pilots that ran, as the site's batch system has them, by their job at the factory.

        Without those that the factory removed before it was told that they ran: it asks its batch
        system now and then, and there is no other source of them.
        """
        logs = self.directory.glob("files/client/**/condor_activity_*.log")
        told = re.compile(r"^001 \((\d+)\.(\d+)\.", re.M)
        began = {
            f"{int(cluster)}.{int(proc)}"
            for log in logs
            for cluster, proc in told.findall(log.read_text())
        }
        ran = {
            ad["SubmitterGlobalJobId"].split("#")[1]: ad
            for ad in self("site history.json")
            if "JobStartDate" in ad
        }
        return {job: ad for job, ad in ran.items() if job in began or "RemoveReason" not in ad}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    played = os.environ.get("GWMOND_STORY")
    directory = Path(played) if played else tmp_path_factory.mktemp("story")
    if not played:
        tell(directory)
    return Told(directory)


def _epoch(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


# -- sites


@pytest.mark.parametrize("moment", MOMENTS)
def test_units_are_as_many_as_there_are(told: Told, moment: str) -> None:
    """Parts sum up; registered pilots and busy units are those of the collector.

    But for what changes from poll to poll.
    """
    for name, site in told.sites(moment).items():
        slots = told.slots(moment, name)
        pilots = {ad["Name"].partition("@")[2] for ad in slots}
        busy = sum(ad["State"] == "Claimed" for ad in slots if ad["SlotType"] != "Partitionable")
        gone = {"later": 1, "end": 0}.get(moment, 0)  # the ad of the pilot that was killed
        assert -1 - gone <= site["registered_pilots"] - len(pilots) <= 1, name
        assert -1 - gone <= site["busy_units"] - busy <= 1, name
        # a pilot of 1 core, or of 2 cores and 3000 MiB
        assert site["provisioned_units"] == site["registered_pilots"], name
        assert site["spare_units"] == max(site["capacity_units"] - site["provisioned_units"], 0)
        parts = ("provisioning_bottleneck_units", "insufficient_demand_units", "other_units")
        assert sum(site[part] for part in parts) == site["spare_units"], name


@pytest.mark.parametrize(
    ("moment", "site", "state", "reason", "limit"),
    [
        ("early", "SiteA", "", "", "TotalGlideinsPerGroup .*curb=3"),
        ("early", "SiteB", "provisioning_bottleneck", "factory_limit", "PerEntry .*limit=1"),
        ("early", "SiteBroken", "provisioning_bottleneck", "run_but_do_not_register", "curb=3"),
        ("early", "SiteHeld", "provisioning_bottleneck", "held_pilots", "curb=3"),
        ("early", "SiteShort", "", "", ""),
        ("later", "SiteA", "", "", ""),
        ("later", "SiteB", "down", "", ""),
        ("later", "SiteBroken", "provisioning_bottleneck", "run_but_do_not_register", ""),
        ("later", "SiteHeld", "insufficient_demand", "", ""),
        *(("end", f"Site{name}", "insufficient_demand", "", "") for name in ("A", "Held", "Short")),
        ("end", "SiteB", "down", "", ""),
    ],
)
def test_a_site_is_in_its_state_for_its_reason(
    told: Told, moment: str, site: str, state: str, reason: str, limit: str
) -> None:
    """That of SiteA and SiteShort depends on the moment: on whether any of their pilots wait.

    At SiteHeld new pilots may wait for a moment, and then the factory says that its limit is hit.
    """
    found = told.sites(moment)[site]
    if (moment, site) == ("early", "SiteHeld") and "TotalPerClass" in found["limits"]:
        text = "GlideinMonitorStatus_GlideFactoryLimitTotalPerClass"
        ads = told("early.wms.json")
        assert any(name.startswith(text) for ad in ads if site in ad.get("Name", "") for name in ad)
        reason = "factory_limit"
    if state:
        assert (found["state"], found["reason"] or "") == (state, reason)
    else:
        assert (found["state"] == "filling") == bool(found["pending_pilots"])
    if "curb" not in limit or told.is_curbed(moment, site):
        assert re.search(limit, found["limits"] or "")


def test_only_jobs_that_some_group_sends_pilots_for_match_an_entry(told: Told) -> None:
    """At SiteB only those of group ligo, of which one runs."""
    idle = [ad for ad in told("early.queue.json") if ad["JobStatus"] == "1"]
    of_ligo = sum(ad["WantGroup"] == "ligo" for ad in idle)
    assert abs(told.sites("early")["SiteB"]["matching_idle_jobs"] - of_ligo) <= 1


def test_problems_are_those_that_there_are(told: Told) -> None:
    """Pilots are small, and closed; the frontend counts no job that runs, for a port is left out.

    The pilot that was killed refuses connections. Jobs that were submitted a moment ago, and are in
    no count yet, are no problem.
    """
    lasting = {"below_one_unit", "counts_differ"}
    assert lasting <= told.problems("early") <= lasting | {"startds_closed"}
    for moment in ("later", "end"):
        assert told.problems(moment) - {"refused"} == lasting | {"startds_closed"}
    lines = map(json.loads, (told.directory / "gwmond.log").read_text().splitlines())
    details = {(line.get("problem"), line.get("detail", "")) for line in lines}
    assert not [text for _, text in details if "it does not see them" in text]
    killed = told.pilots()[told("did.json")["crashed"]["pilot"]]["name"]
    refused = {text.partition(":")[0] for name, text in details if name == "refused" and text}
    assert refused <= {killed}


# -- jobs


@pytest.mark.parametrize(
    ("moment", "job", "words", "mover"),
    [
        ("early", "user_held", ("It is held", "condor_release"), "you"),
        ("early", "too_large", ("RequestMemory is 90000", "-> 1500"), "you"),
        ("early", "typo", ('"SiteAA"; did you mean "SiteA"?',), "you"),
        ("early", "lonely", ("START", '"lonely"'), "the frontend's administrator"),
        ("early", "limited", ("SiteB", "count=1, limit=1"), "the factory's operator"),
        ("early", "held", ("SiteHeld", "Account expired in queue H"), "the site"),
        ("early", "broken", ("SiteBroken", "not register"), "the site"),
        ("early", "victim", ("RUNNING",), "nobody: wait"),
        ("later", "limited", ("SiteB", "A job there that ends"), "nobody: wait"),
        ("later", "refused", ("START", "Refused"), "the frontend's administrator"),
        ("later", "too_large", ("RequestMemory is 90000",), "you"),
        ("later", "lonely", ('"lonely"',), "the frontend's administrator"),
    ],
)
def test_the_true_reason_is_the_answer(
    told: Told, moment: str, job: str, words: tuple[str, ...], mover: str
) -> None:
    text, whose = told.answer(moment, job)
    if job == "refused" and told.of_before("SiteShort", moment) and whose != mover:
        # Until that pilot retires it is full, and may take the job; then it refuses all, too.
        words, mover = ("SiteShort", "A job there that ends"), "nobody: wait"
    free = "slots are free and match"
    if job == "limited" and free in text and told.is_free(moment, "SiteB"):
        # A job there has just ended, and the negotiator has not come round yet.
        words, mover = ("1 of ", free), "nobody: wait"
    assert [word for word in words if word not in text] == [], text
    assert whose == mover, text


def test_what_is_advised_for_a_job_that_is_too_large_is_at_a_site_that_it_wants(told: Told) -> None:
    assert "SiteB" not in told.answer("early", "too_large")[0]


def test_each_run_has_its_category(told: Told) -> None:
    """Those of the schedd's history of epochs, and no others.

    Its last run is a job's end, or what its user removed; one before was cut off by its pilot.
    """
    last = {f"{ad['ClusterId']}.{ad['ProcId']}": ad for ad in told("history.json")}
    (killed,) = told("jobs.json")["victim"]
    expected = {}
    for ad in told("epochs.json"):
        job, start = f"{ad['ClusterId']}.{ad['ProcId']}", int(ad["NumShadowStarts"])
        at_end = last[job]
        if start < int(at_end["NumShadowStarts"]) or (job, start) == (killed, 1):
            found = "preemption_badput", "lost_contact" if job == killed else "pilot_shutdown"
        elif at_end["JobStatus"] == "3":
            found = "unclassified", "removed"
        else:
            found = "goodput", "exit_zero" if at_end["ExitCode"] == "0" else "exit_nonzero"
        expected[job, start] = found
    told_of = {
        (row["job"].split("#")[1], row["shadow_start"]): (row["category"], row["outcome"])
        for row in told("end.runs.json")["runs"]
    }
    assert told_of == expected
    kinds = set(expected.values())
    assert {("goodput", "exit_zero"), ("goodput", "exit_nonzero")} < kinds
    assert {("unclassified", "removed"), ("preemption_badput", "lost_contact")} < kinds


# -- pilots


def test_each_pilot_is_known_with_its_begin_and_its_end(told: Told) -> None:
    """Those that the batch system ran, and no others.

    Without its output a pilot begins with its startd, or with its job in the factory's queue.
    """
    pilots, lived = told.pilots(), told.lived()
    assert pilots.keys() == lived.keys()
    for job, truth in lived.items():
        pilot, began = pilots[job], int(truth["JobStartDate"])
        ended = int(truth.get("CompletionDate") or truth["EnteredCurrentStatus"])
        by_itself = pilot["end_source"] == "pilot_output"
        assert pilot["end_source"] in {"pilot_output", "queue"}, job
        late = NEAR_S if by_itself else LATE_S
        assert -NEAR_S <= _epoch(pilot["end"]) - ended <= late, job
        late = NEAR_S if by_itself else ended - began
        assert -NEAR_S <= _epoch(pilot["start"]) - began <= late, job
        assert pilot["entry"] == truth["GlideinEntryName"]
        group = "ligo" if pilot["entry"] == "SiteB" else "main"
        assert pilot["group"] == f"vofrontend_service-v1.{group}"


def test_a_pilot_that_was_killed_or_removed_ended_when_that_was_done(told: Told) -> None:
    did, pilots, lived = told("did.json"), told.pilots(), told.lived()
    for name in ("crashed", "removed"):
        pilot = pilots[did[name]["pilot"]]
        assert pilot["end_source"] == "queue"
        assert -2 <= _epoch(pilot["end"]) - did[name]["at"] <= LATE_S
    assert lived[did["crashed"]["pilot"]]["ExitSignal"] == "9"


def test_a_pilot_ends_by_itself_for_want_of_jobs_or_as_it_retires(told: Told) -> None:
    """Of those without a failure and a stroke; some of both kinds ran jobs, and some none."""
    did = told("did.json")
    struck = {did[name]["pilot"] for name in ("crashed", "removed")}
    ended = {job: row for job, row in told.pilots().items() if job not in struck}
    alone = [row for row in ended.values() if row["end_source"] == "pilot_output"]
    sites = {row["site"] for row in alone}
    assert {"SiteA", "SiteB"} <= sites
    assert {row["validation"] for row in alone if row["site"] != "SiteBroken"} == {"passed"}


def test_a_pilots_time_is_divided_among_what_it_was_used_for(told: Told) -> None:
    runs = Counter(row["pilot"] for row in told("end.runs.json")["runs"])
    for job, pilot in told.pilots().items():
        time = {
            name: seconds
            for name, seconds in pilot["categories"]["cpu"]["resource_seconds"].items()
            if seconds
        }
        life = _epoch(pilot["end"]) - _epoch(pilot["start"])
        assert sum(time.values()) == pytest.approx(pilot["cores"] * life, abs=2 * pilot["cores"])
        assert not any(pilot["unsettled"]["cpu"].values()), job
        own = "pilot_overhead" if runs[pilot["id"]] else "decision_problem"
        own = "validation_fails" if pilot["entry"] == "SiteBroken" else own
        assert own in time, job
        assert pilot["runs"] == runs[pilot["id"]]
        assert (pilot["validation"] == "failed") == (pilot["entry"] == "SiteBroken")
        if own != "pilot_overhead":
            assert time.keys() == {own}, job


def test_pilots_overlap_by_the_lines_of_the_page(told: Told) -> None:
    """Those of the entry that has them, and no others: HTCondor's slot has room for a sender."""
    for site, (there, room) in {"SiteA": (1, 0), "SiteB": (2, 2)}.items():
        whole = [ad for ad in told.slots("early", site) if ad["SlotType"] != "Dynamic"]
        assert whole
        assert {int(ad["TotalSlotCpus"]) for ad in whole} == {there + room}
        rows = [row for row in told.pilots().values() if row["site"] == site and row["runs"]]
        assert {(row["cores"], row["senders"]) for row in rows} == {(there, room)}


def test_why_a_validation_failed_is_told_where_the_pilot_returned_its_output(told: Told) -> None:
    told_of = [
        row["validation_failure"]
        for row in told.pilots().values()
        if row["entry"] == "SiteBroken" and row["end_source"] == "pilot_output"
    ]
    assert told_of
    assert all("broken.sh" in text for text in told_of), told_of


def test_the_ledger_sums_up(told: Told) -> None:
    assert "All sums up" in (told.directory / "check.txt").read_text()


# -- beside the factory's own numbers


def test_nothing_is_unexplained_beside_the_factorys_numbers(told: Told) -> None:
    started = Counter(ad["GlideinEntryName"] for ad in told.lived().values())
    lines = {
        path.parent.name.removeprefix("entry_"): len(path.read_text().splitlines())
        for path in (told.directory / "files/server").glob("entry_*/completed_jobs_*.log")
    }
    rows = {row["entry"]: row for row in told("reconcile.json")["entries"] if row["entry"]}
    assert lines
    for entry, row in rows.items():
        assert row["factory_queue_started"] == started[entry]
        assert row["pilots_ended"] == started[entry]
        assert row["factory_lines"] == lines.get(entry), entry
        assert row["unexplained_seconds"] == (0 if entry in lines else None), entry
        assert row["running_pilots"] in {0, None}


#: Where the ranges end into which analyze_entries puts the validation and idle time of a pilot (%).
RANGES = (0, 0.2, 1.5, 6, 18, 40, 70, 99.8, 100)


def width(percent: float) -> float:
    """How wide the range is that a share falls into."""
    return next(end - begin for begin, end in pairwise(RANGES) if percent <= end)


def test_figures_are_those_of_analyze_entries(told: Told) -> None:
    """Shares of entries of which the factory wrote a line for each pilot; a cycle's lines may lag.

    Ours are exact; docs/analyze.md says how the original differs.  It truncates, and its rates of a
    short time are rough: three points.  It leaves the transfer of input out of the time used: three
    more in what rests on that.  It divides the time of jobs that exited 0 by the cores of their
    pilots; here jobs hold all of these.  Validation and idle differ by a range's width, idle as a
    share of HTCondor's time.
    """
    text = (told.directory / "analyze_entries.txt").read_text()
    block = text.partition("Per Entry (all frontends)")[2].partition("Per Entry (per frontend)")[0]
    percents = r" ".join([r"+(-?\d+)%"] * 3) + r" \| " + r" ".join([r"+(-?\d+)%"] * 4)
    columns = ("strt", "fval", "0job", "val", "idle", "wst", "badp")
    theirs = {
        row[1]: dict(zip(columns, map(int, row.groups()[1:]), strict=True))
        for row in re.finditer(rf"^(Site\w+) {percents}", block, re.MULTILINE)
    }
    whole = {
        row["entry"]
        for row in told("reconcile.json")["entries"]
        if row["factory_lines"] and row["factory_lines"] == row["pilots_ended"]
    }
    assert whole
    cores = {entry.name: entry.cores for entry in ENTRIES}
    for record in told("analyze.json")["records"]:
        if record["part"] != "entry" or record["entry"] not in whole:
            continue
        ours = {name: 100 * record[f"{name}_share"] for name in columns}
        ours["badp"] = 100 - (100 - ours["badp"]) / cores[record["entry"]]
        if ours["val"] < 100:
            ours["idle"] /= 1 - ours["val"] / 100
        room = dict.fromkeys(columns, 3.0) | dict.fromkeys(("wst", "badp"), 6.0)
        room |= {name: 3 + width(ours[name]) for name in ("val", "idle")}
        for name in columns:
            difference = theirs[record["entry"]][name] - ours[name]
            assert abs(difference) <= room[name], (record["entry"], name)
