"""gwmond explain on a real pool: twelve jobs, each of which waits for another reason."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

import pytest

from gwmond.commands.explain import ad_of
from gwmond.explain.all_jobs import NONE_KNOWN
from gwmond.explain.reasons import Mover
from tests.daemon.running import RunningDaemon, Tables, gwmond
from tests.pool import feign
from tests.pool.condor import CondorPool
from tests.pool.pilot import Pilot
from tests.pool.ports import free_port

_AT = {"GLIDEIN_Site": "Nebraska", "GLIDEIN_Entry_Name": "ne-1"}
_FRONTEND = {"GLIDECLIENT_Name": "frontend", "GLIDECLIENT_Group": "main"}
_CONFIG = "MATLAB_LIMIT = 0\n"
_START = 'START = TARGET.VO =!= "other" && TARGET.Blacklisted =!= True\n'


def _wanting(site: str) -> str:
    return f'TARGET.GLIDEIN_Site == "{site}"'


@pytest.fixture(scope="module")
def jobs() -> Iterator[tuple[CondorPool, dict[str, str]]]:
    """A pool with one busy pilot, and entries that are down, at a limit, and filling."""
    with CondorPool(config=_CONFIG) as pool:
        schedd = pool.schedds[0]
        ads = [
            feign.glideresource("down-1", "Purdue", down=True),
            feign.glideresource(
                "limit-1", "Florida", jobs_idle=1, limits={"TotalGlideinsPerEntry": (5, 5)}
            ),
            feign.glideresource("pending-1", "Fermi", pending=2, requested_idle=2, jobs_idle=1),
        ]
        pool.advertise(ads, "UPDATE_AD_GENERIC")
        pool.start_pilot("ne", cores=2, memory=4096, attrs=_AT | _FRONTEND, config=_START)

        def submit(requirements: str, **more: Any) -> str:
            return f"{pool.submit(schedd, requirements=requirements, **more)}.0"

        fill = pool.submit(schedd, 2, owner="bob", requirements=_wanting("Nebraska"))
        pool.wait_for(
            "the pilot to be busy",
            lambda: len(pool.jobs(schedd, f"ClusterId == {fill} && JobStatus == 2")) == 2,
        )
        here = _wanting("Nebraska")
        found = {
            "unknown_site": submit(_wanting("Nebrasca")),
            "too_large": submit(here, request_memory=64000),
            "start": submit(here, attrs={"Blacklisted": True}),
            "concurrency_limit": submit(here, concurrency_limits="matlab", request_memory=130),
            "held": submit(here, hold=True),
            "pilots_pending": submit(_wanting("Fermi")),
            "down": submit(_wanting("Purdue")),
            "frontend_limit": submit(_wanting("Florida")),
            "pilots_busy": submit(here),
            "too_long": submit(here, attrs={"MaxWallTimeMins": 60 * 24 * 30}),
            "no_pilot_of_its_vo": submit(here, attrs={"VO": "other"}),
        }
        considered = "JobStatus == 1 && LastRejMatchTime isnt undefined"
        pool.wait_for(  # a job of each of nine kinds: too_long is as pilots_busy to the negotiator
            "the negotiator to come round", lambda: len(pool.jobs(schedd, considered)) >= 9
        )
        pool.tool("condor_off", "-daemon", "negotiator")
        pool.wait_for("the negotiator to be off", lambda: not pool.query("Negotiator"))
        yield pool, found


def numbers_of(pool: CondorPool, found: dict[str, str], reason: str) -> str:
    """Return the number of a job; the new one is submitted anew, so that it is new when asked."""
    if reason == "not_considered":
        if before := found.get(reason):
            pool.tool("condor_rm", "-name", pool.schedds[0], before)
        requirements = _wanting("Nebraska")
        cluster = pool.submit(pool.schedds[0], requirements=requirements, request_memory=129)
        found[reason] = f"{cluster}.0"
    return found[reason]


@pytest.fixture
def explain(
    jobs: tuple[CondorPool, dict[str, str]],
    run: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[int, str, str]]:
    """Runs gwmond explain of a job of this pool."""
    pool, _ = jobs
    for name, value in pool.client_env().items():
        monkeypatch.setenv(name, value)
    return lambda *arguments: run("explain", *arguments, "--collector", pool.collector)


Explain = Callable[..., tuple[int, str, str]]

WORDS = {
    "unknown_site": 'no site is called "Nebrasca"; did you mean "Nebraska"?',
    "too_large": "RequestMemory is 64000, and no pilot has that much",
    "start": "refuses it: TARGET.Blacklisted isnt true",
    "concurrency_limit": "concurrency limit matlab reached",
    "held": "It is held: submitted on hold",
    "pilots_pending": "2 pilots wait in the queues of 1 of 1 entry where it could run (pending-1)",
    "down": "the entry is in downtime",
    "frontend_limit": "(limit-1): The frontend has hit a limit",
    "pilots_busy": "It could run on 1 pilot (ne-1), but none has 1 core and 128 MiB free",
    "too_long": "It says that it runs for 30d00h, and no pilot that it matches lives for longer",
    "no_pilot_of_its_vo": 'refuses it: TARGET.VO isnt "other"',
    "not_considered": "the negotiator may not have come to it yet",
}
MOVES = {
    **dict.fromkeys(("unknown_site", "too_large", "held", "too_long"), "you"),
    **dict.fromkeys(("start", "no_pilot_of_its_vo"), "the frontend's administrator"),
    "concurrency_limit": "the pool's administrator",
    "down": "the site",
    "frontend_limit": "the frontend's administrator",
    **dict.fromkeys(("pilots_pending", "pilots_busy", "not_considered"), "nobody: wait"),
}


@pytest.mark.parametrize("reason", WORDS)
def test_the_first_line_is_right(
    reason: str, jobs: tuple[CondorPool, dict[str, str]], explain: Explain
) -> None:
    pool, found = jobs
    arguments = numbers_of(pool, found, reason), "--schedd", pool.schedds[0]
    code, out, _ = explain(*arguments, "--format", "json")
    record = json.loads(out)
    assert code == 0
    assert WORDS[reason] in record["first_line"]
    assert record["first_line"].startswith("NOT RUNNING for ")
    first = record["reasons"][0]
    assert first["reason"] == {"no_pilot_of_its_vo": "start"}.get(reason, reason)
    assert first["whose_move"] == MOVES[reason]
    if reason == "pilots_busy":
        assert {fate: number for fate, number in record["slots_by_fate"].items() if number} == {
            "small": 1
        }
    assert [one["tier"] for one in record["reasons"]] == sorted(
        one["tier"] for one in record["reasons"]
    )
    for clause in record["clauses"]:
        assert 0 <= clause["passed"] + clause["alone"] <= clause["total"] == 4


def test_what_would_change_it_is_a_command(
    jobs: tuple[CondorPool, dict[str, str]], explain: Explain
) -> None:
    """The command that is printed is done, and the job has another reason then."""
    pool, found = jobs
    schedd = pool.schedds[0]
    arguments = found["too_large"], "--schedd", schedd
    _, out, _ = explain(*arguments, "--format", "json")
    argv = ["condor_qedit", "-name", schedd, found["too_large"], "RequestMemory", "4096"]
    assert json.loads(out)["commands"] == [{"mover": "you", "argv": argv}]
    assert f"\n    {shlex.join(argv)}\n" in explain(*arguments)[1]
    pool.tool(*argv)
    try:
        _, out, _ = explain(*arguments, "--format", "json")
        assert json.loads(out)["reasons"][0]["reason"] in ("pilots_busy", "not_considered")
    finally:
        pool.tool(*argv[:-1], "64000")
    waits = {"mover": "nobody: wait", "wait_for": "A pilot that starts", "until": None}
    _, out, _ = explain(found["pilots_pending"], "--schedd", schedd, "--format", "json")
    assert json.loads(out)["commands"] == [waits]


PLANNED = """
executable = /bin/sleep
arguments = secret 5
request_memory = {memory}
requirements = TARGET.GLIDEIN_Site == "{site}"
queue 2
"""


@pytest.mark.parametrize(
    ("site", "memory", "reason", "words"),
    [
        (
            "Nebraska",
            1000,
            "pilots_busy",
            "NOT SUBMITTED: It could run on 1 pilot (ne-1), but none",
        ),
        ("Nebraska", 64000, "too_large", "NOT SUBMITTED: RequestMemory is 64000, and no pilot"),
        ("Nebrasca", 1000, "unknown_site", 'did you mean "Nebraska"?'),
        ("Purdue", 1000, "down", "the entry is in downtime"),
    ],
)
def test_what_would_happen_to_a_job(
    site: str,
    memory: int,
    reason: str,
    words: str,
    jobs: tuple[CondorPool, dict[str, str]],
    explain: Explain,
    daemon: RunningDaemon,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By its submit description, its ad as condor_submit would make it, and the ad by REST."""
    pool, _ = jobs
    description = pool.local / "planned.sub"
    description.write_text(PLANNED.format(site=site, memory=memory))
    ads = pool.tool("condor_submit", "-dry-run", "/dev/stdout", str(description)).stdout
    file, submit = tmp_path / "ads", tmp_path / "condor_submit"
    file.write_text(ads)
    submit.write_text(f'#!/bin/sh\n[ "$1 $3" = "-dry-run {description}" ] && cp {file} "$2"\n')
    submit.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for given in (file, description):
        code, out, err = explain("--ad", str(given), "--ask", "pool", "--format", "json")
        assert (code, err) == (0, "")
        record = json.loads(out)
        assert (record["reasons"][0]["reason"], words in record["first_line"]) == (reason, True)
        assert "secret" not in out
        assert not any("argv" in step for step in record["commands"])  # there is no job yet
    asked = f"ad={quote(ad_of(str(file)))}"
    theirs = json.loads(daemon.get(f"/api/v1/explain/ad?{asked}"))
    assert theirs["first_line"] == record["first_line"]
    text = daemon.get(f"/explain?{asked}&format=text")
    assert "The clause that leaves out most: TARGET." in " ".join(text.split())


def test_an_ad_that_is_none(explain: Explain, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("no ad")
    (tmp_path / "c").write_text("[A = ")
    errors = {"a": "no ad of a job, and no submit", "b": "No such file", "c": "no ad of a job"}
    for name, words in errors.items():
        code, _, err = explain("--ad", str(tmp_path / name), "--ask", "pool")
        assert (code, words in err) == (2, True)


@pytest.mark.parametrize(
    "text",
    [
        'Cmd = "a"\nEnv = "secret"\narguments = "secret"\nIwd = "secret"',
        '[ Cmd = "a"; \'Env\' = "secret"; Environment =\n "secret"; /* ; */ Args = "secret" ]',
        '[Cmd = "a;]";environment=strcat("[", "secret");in="secret"]',
    ],
)
def test_what_an_ad_says_of_the_environment_is_sent_nowhere(text: str, tmp_path: Path) -> None:
    (tmp_path / "ad").write_text(text)
    sent = ad_of(str(tmp_path / "ad")).lower()
    assert ("cmd =" in sent, "secret" in sent) == (True, False)


@pytest.fixture(scope="module")
def daemon(
    jobs: tuple[CondorPool, dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningDaemon]:
    """A daemon that polls this pool once, and lets everybody ask for jobs."""
    pool, _ = jobs
    tables: Tables = {"http": {"jobs": "all"}, "poll": {"interval": "1h", "deadline": "2m"}}
    directory = tmp_path_factory.mktemp("daemon")
    with RunningDaemon(directory, [pool.collector], tables, env=pool.client_env()) as running:
        yield running


@pytest.mark.parametrize("reason", WORDS)
def test_the_page_says_the_same(
    reason: str, jobs: tuple[CondorPool, dict[str, str]], daemon: RunningDaemon
) -> None:
    """The daemon's answer, as JSON and as a page, to a question that its poll did not ask."""
    pool, found = jobs
    path = f"/explain?job={numbers_of(pool, found, reason)}&schedd={pool.schedds[0]}"
    record = json.loads(daemon.get(f"{path}&format=json"))
    assert WORDS[reason] in record["first_line"]
    first = record["reasons"][0]
    assert first["reason"] == {"no_pilot_of_its_vo": "start"}.get(reason, reason)
    page = unescape(daemon.get(path))
    assert f"<h1>{record['first_line']}</h1>" in page  # the same answer, kept
    assert f"Whose move: {Mover(MOVES[reason]).text}." in page


def test_the_page_of_no_job(jobs: tuple[CondorPool, dict[str, str]], daemon: RunningDaemon) -> None:
    """What there is not is said; a page of the last poll is as fast as ever."""
    with pytest.raises(HTTPError) as error:
        daemon.get("/explain?job=999999.0")
    assert error.value.code == 404
    assert "no job 999999.0 is in the queue of" in unescape(error.value.read().decode())
    with pytest.raises(HTTPError) as error:
        daemon.get("/explain?job=1.0&schedd=nowhere&format=json")
    assert error.value.code == 400
    assert f"Known: {', '.join(sorted(jobs[0].schedds))}" in json.loads(error.value.read())["error"]


AS_OF = "Pilots, entries and groups of jobs are as of the daemon's poll at "


def test_the_command_asks_the_daemon(
    jobs: tuple[CondorPool, dict[str, str]],
    daemon: RunningDaemon,
    explain: Explain,
    run: Explain,
    tmp_path: Path,
) -> None:
    """One of the same pool, whoever names that; the same reasons as of the pool itself."""
    pool, found = jobs
    asked = "explain", found["too_large"], "--schedd", pool.schedds[0]
    file = "--config", str(daemon.config)
    code, out, err = run(*asked, *file)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith(AS_OF)
    code, theirs, _ = run(*asked, *file, "--ask", "pool")
    assert code == 0
    assert AS_OF not in theirs
    ours, theirs = (re.sub(r"[0-9]+[smh][0-9]*[sm]?", "", text) for text in (out, theirs))
    ours, theirs = (re.sub(" +", " ", text) for text in (ours, theirs))  # as wide as ages are
    assert theirs.splitlines() == ours.splitlines()[:-1]
    host = tmp_path / "host.toml"  # this host's HTCondor configuration names the same pool
    host.write_text(f'[http]\nlisten = "127.0.0.1:{daemon.port}"\n')
    of_host = gwmond(*asked, "--config", str(host), env=pool.client_env())
    assert (of_host.returncode, of_host.stderr) == (0, "")
    assert of_host.stdout.splitlines()[-1].startswith(AS_OF)
    host.write_text(f'{host.read_text()}[pool]\nschedds = ["{pool.schedds[0]}"]\n')
    of_host = gwmond(*asked, "--config", str(host), "--format", "json", env=pool.client_env())
    assert (of_host.returncode, "polled" in json.loads(of_host.stdout)) == (0, False)
    assert "watches another pool, or other schedds: the pool is asked" in of_host.stderr
    assert explain("999999.0", *file)[0] == 1
    for wrong in (["999999.0", "--schedd", "nowhere"], ["nonsense"]):
        code, _, err = run("explain", *wrong, *file, "--ask", "daemon")
        assert (code, bool(err)) == (2, True)


def test_people_read_three_lines(jobs: tuple[CondorPool, dict[str, str]], explain: Explain) -> None:
    pool, numbers = jobs
    code, out, _ = explain(numbers["too_large"], "--schedd", pool.schedds[0])
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("NOT RUNNING for")
    assert lines[1].startswith("What would change that: RequestMemory 64000 -> 4096 (condor_qedit)")
    name = f"-name {pool.schedds[0]} {numbers['too_large']}"
    assert lines[2:4] == [
        f"    condor_qedit {name} RequestMemory 4096",
        "Whose move: the job's owner. (proven)",
    ]
    assert "TARGET.Memory >= RequestMemory" in out


def test_a_full_pilot_matches(jobs: tuple[CondorPool, dict[str, str]], explain: Explain) -> None:
    """Nothing is left of the pilot, and its slot refuses all jobs; it is no pilot that does not."""
    pool, numbers = jobs
    asked = numbers["pilots_busy"], "--schedd", pool.schedds[0], "--format", "json"
    slots = json.loads(explain(*asked)[1])["slots_by_fate"]
    assert {fate: number for fate, number in slots.items() if number} == {"small": 1}


def test_why_not_there(jobs: tuple[CondorPool, dict[str, str]], explain: Explain) -> None:
    """At another site than the one that it wants."""
    pool, numbers = jobs
    where = "--schedd", pool.schedds[0], "--format", "json"
    _, out, _ = explain(numbers["pilots_busy"], "--site", "Fermi", *where)
    assert '0 of 1 kind of pilots at Fermi pass TARGET.GLIDEIN_Site == "Nebraska"' in out.replace(
        '\\"', '"'
    )
    _, out, _ = explain(numbers["pilots_busy"], "--site", "Fermy", *where)
    assert "There is no site Fermy" in out


def test_a_job_that_is_not_there(jobs: tuple[CondorPool, dict[str, str]], explain: Explain) -> None:
    code, _, err = explain("999999.0")
    assert code == 1
    assert "no job 999999.0 is in the queue of" in err
    code, _, err = explain("nonsense")
    assert code == 2
    assert "a job is cluster.proc" in err
    pool, found = jobs
    code, _, err = explain(f"{pool.schedds[0]}#{found['held']}#1")
    assert code == 1
    assert f"is {pool.schedds[0]}#{found['held']}#" in err  # another job had the number before


def test_a_pool_that_does_not_answer() -> None:
    """That no job is known does not mean that there is none."""
    there = "--collector", f"127.0.0.1:{free_port()}", "--ask", "pool"
    done = gwmond("explain", "--all", *there)
    assert (done.returncode, done.stdout.splitlines()[0]) == (3, NONE_KNOWN)
    done = gwmond("explain", "1.0", *there)
    assert done.returncode == 1
    assert "no schedd is known that could be asked for job 1.0. Not read: 127.0.0.1" in done.stderr


def test_a_job_that_is_still_to_be_made(
    jobs: tuple[CondorPool, dict[str, str]], explain: Explain
) -> None:
    """Its schedd makes the jobs of a cluster as others start; who is asked says so."""
    pool, schedd = jobs[0], jobs[0].schedds[0]
    cluster = pool.submit(schedd, 9, requirements=_wanting("Purdue"), max_idle=2)
    mine = f"ClusterId == {cluster}"
    try:
        pool.wait_for("two jobs of it", lambda: len(pool.jobs(schedd, mine)) == 2)
        code, _, err = explain(f"{cluster}.8")
        assert code == 1
        assert f"job {cluster}.8 is not made yet: {schedd} has made 2 of 9 jobs of its" in err
        code, _, err = explain(f"{cluster}.9")
        assert f"no job {cluster}.9 is in the queue of" in err
    finally:
        pool.remove(schedd, mine)
        pool.wait_for("the end of it", lambda: not pool.jobs(schedd, mine))


def test_all_jobs(jobs: tuple[CondorPool, dict[str, str]], explain: Explain) -> None:
    """Nothing is known here of what only a single job shows: that it is new."""
    pool, numbers = jobs
    numbers_of(pool, numbers, "not_considered")
    code, out, _ = explain("--all", "--format", "json")
    assert code == 0
    found = {one["reason"]: one["jobs"] for one in json.loads(out)["reasons"]}
    assert found == {
        **dict.fromkeys(("unknown_site", "too_large", "too_long", "pilots_pending"), 1),
        "down": 1,
        "frontend_limit": 1,
        "start": 2,
        "concurrency_limit": 1,
        "pilots_busy": 2,  # with the one just submitted
    }
    assert sum(found.values()) == len(pool.jobs(pool.schedds[0], "JobStatus == 1"))
    code, out, _ = explain("--all")
    assert out.startswith("11 idle jobs of ")


def test_each_poll_knows_the_same(
    jobs: tuple[CondorPool, dict[str, str]],
    explain: Explain,
    run: Callable[..., tuple[int, str, str]],
) -> None:
    """As a metric in two levels, by where the jobs could run; each job is there once."""
    pool, _ = jobs
    _, out, _ = explain("--all", "--format", "json")
    explained = {one["reason"]: one["units"] for one in json.loads(out)["reasons"]}
    code, out, _ = run("once", "--collector", pool.collector)
    assert code == 0
    lines = (line for line in out.splitlines() if line.startswith("gwmond_idle_canonical_units{"))
    found = {}
    for line in lines:
        labels, _, value = line.rpartition(" ")
        named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        found[named["reason"], named["cause"], named["site"], named["resource"]] = float(value)
    assert found == {
        ("nowhere", "unknown_site", "none", "cpu"): 1,
        ("nowhere", "too_large", "none", "cpu"): 32,
        ("nowhere", "too_long", "none", "cpu"): 1,
        ("nowhere", "start", "none", "cpu"): 2,
        ("policy", "concurrency_limit", "Nebraska", "cpu"): 1,
        ("no_pilot", "down", "Purdue", "cpu"): 1,
        ("no_pilot", "frontend_limit", "Florida", "cpu"): 1,
        ("on_their_way", "pilots_pending", "Fermi", "cpu"): 1,
        ("pilots_there", "pilots_busy", "Nebraska", "cpu"): explained["pilots_busy"],
    }
    assert {cause: units for (_, cause, _, _), units in found.items()} == explained


HISTORY = {
    **{reason: reason for reason in ("unknown_site", "too_large", "start", "down", "too_long")},
    **{reason: reason for reason in ("frontend_limit", "pilots_pending", "pilots_busy")},
    "no_pilot_of_its_vo": "start",
    "concurrency_limit": "concurrency_limit",
}


def test_reasons_since_submission(
    jobs: tuple[CondorPool, dict[str, str]], daemon: RunningDaemon, explain: Explain
) -> None:
    """What the poll found of each job's group; jobs that do not wait have none."""
    pool, found = jobs
    causes = {}
    for reason in HISTORY.keys() | {"held"}:
        path = f"/explain?job={found[reason]}&schedd={pool.schedds[0]}&format=json"
        history = json.loads(daemon.get(path))["history"]
        causes[reason] = [(one["cause"], one["until"]) for one in history]
    assert causes == {reason: [(cause, None)] for reason, cause in HISTORY.items()} | {"held": []}
    where = "--schedd", pool.schedds[0], "--config", str(daemon.config)
    _, out, _ = explain(found["down"], *where)
    assert re.search(r"Jobs like it have waited for this reason since .*: down \(Purdue\)\.", out)


def test_why_a_site_has_no_job(jobs: tuple[CondorPool, dict[str, str]], explain: Explain) -> None:
    """Each idle job is counted once, with what keeps it from that entry."""
    numbers_of(*jobs, "not_considered")
    _, out, _ = explain("--all", "--site", "limit-1", "--format", "json")
    record = json.loads(out)
    assert [one["entry"] for one in record["entries"]] == ["limit-1"]
    found = {one["reason"]: one["jobs"] for one in record["reasons"]}
    assert found == {"frontend_limit": 1, "requirements": 10}
    _, out, _ = explain("--all", "--site", "Florida")
    assert "They do not run there:" in out
    assert "frontend limit" in out


@pytest.fixture(scope="module")
def places(jobs: tuple[CondorPool, dict[str, str]]) -> dict[str, str]:
    """Names of further pilots, which the tests before did not see: each without a job.

    No negotiator runs any more.
    """
    pool, found = jobs
    numbers_of(pool, found, "not_considered")

    def pilot(name: str, site: str, config: str = "", **more: Any) -> Pilot:
        at = {"GLIDEIN_Site": site, "GLIDEIN_Entry_Name": f"{name}-1"} | _FRONTEND
        sizes = {"cores": 2, "memory": 4096} | more
        return pool.start_pilot(name, attrs=at, config=config, wait=False, **sizes)

    pilots = {
        "no_negotiator": pilot("fits", "Nebraska", _START, cores=4),
        "requirements": pilot("utah", "Utah"),
        "start": pilot("vo", "Nebraska", 'START = TARGET.VO =?= "cms"\n'),
        "retiring": pilot("late", "Nebraska", retire_after=0.0),
    }
    names = {f"slot1@{one.name}" for one in pilots.values()}
    pool.wait_for(
        "the pilots",
        lambda: names <= {slot["Name"] for slot in pool.query("Slot", projection=["Name"])},
    )
    return {reason: one.name for reason, one in pilots.items()}


_NOT_THERE = {"requirements": 4, "too_large": 1}  # of other sites, and larger than any pilot
_ALL_REFUSED = _NOT_THERE | {"start": 6}
HAS_NO_JOB = {
    "no_negotiator": (
        "2 idle jobs fit what is free, but the collectors know no negotiator",
        _NOT_THERE | {"start": 2, "too_long": 1, "fits": 2, "concurrency_limit": 1},
    ),
    "requirements": (
        'their Requirements exclude it: TARGET.GLIDEIN_Site == "Nebraska"',
        {"requirements": 10, "too_large": 1},
    ),
    "start": ('6 of 11: START refuses them: TARGET.VO is "cms"', _ALL_REFUSED),
    "retiring": ("It retires for ", _ALL_REFUSED),
}


@pytest.mark.parametrize("reason", HAS_NO_JOB)
def test_why_a_pilot_has_no_job(reason: str, places: dict[str, str], explain: Explain) -> None:
    """Each for a reason of its own; the obstacles of all idle jobs add up."""
    code, out, _ = explain("--pilot", places[reason], "--format", "json")
    record = json.loads(out)
    assert code == 0
    assert record["reasons"][0]["reason"] == reason
    text, obstacles = HAS_NO_JOB[reason]
    assert text in record["first_line"]
    assert record["first_line"].startswith(f"Pilot {places[reason]} HAS NO JOB: ")
    kept: Counter[str] = Counter()
    for one in record["obstacles"]:
        kept[one["reason"]] += one["jobs"]
    assert kept == obstacles
    assert kept.total() == record["jobs_idle"] == 11
    said = {word for one in record["groups"] for word in one["negotiator_said"]}
    assert ("concurrency limit matlab reached" in said) == (reason == "no_negotiator"), said
    assert len(said) == (2 if reason == "no_negotiator" else 0), said


ENTRIES = {
    "ne-1": ("busy", "Entry ne-1 of Nebraska HAS 2 JOBS: Its pilots run 2 jobs, and nothing is"),
    "down-1": ("down", "Entry down-1 of Purdue HAS NO JOB: The entry is in downtime"),
    "limit-1": ("frontend_limit", "1 idle job could run there, but it has no pilot: The frontend"),
    "pending-1": ("pilots_pending", "1 idle job could run there; 2 pilots wait in its queue"),
    "utah-1": ("requirements", "0 of 11 idle jobs could run there"),
    "fits-1": ("no_negotiator", "the collectors know no negotiator"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_why_an_entry_has_no_job(entry: str, places: dict[str, str], explain: Explain) -> None:
    code, out, _ = explain("--entry", entry, "--format", "json")
    record = json.loads(out)
    assert code == 0
    assert places
    reason, text = ENTRIES[entry]
    assert record["reasons"][0]["reason"] == reason, record
    assert text in record["first_line"]
    assert sum(one["jobs"] for one in record["obstacles"]) == 11


def test_people_read_of_a_pilot(places: dict[str, str], explain: Explain) -> None:
    """Also by the name of a slot; with the groups, and where else these could run."""
    code, out, _ = explain("--pilot", f"slot1@{places['no_negotiator']}")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith(f"Pilot {places['no_negotiator']} HAS NO JOB: 2 idle jobs fit")
    assert "What keeps idle jobs from it:" in out
    assert "Groups of idle jobs that could run on an empty pilot there:" in out
    assert "ne-1" in out
    code, _, err = explain("--pilot", "nobody")
    assert (code, "the collectors know no pilot nobody" in err) == (1, True)
    code, _, err = explain("--entry", "utha-1")
    assert (code, "spelt alike: utah-1" in err) == (2, True)


@pytest.fixture(scope="module")
def daemons(
    jobs: tuple[CondorPool, dict[str, str]],
    places: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, RunningDaemon]]:
    """Daemons that polled with these pilots; by who may ask for jobs."""
    pool, _ = jobs
    assert places
    with ExitStack() as stack:
        yield {
            who: stack.enter_context(
                RunningDaemon(
                    tmp_path_factory.mktemp(who),
                    [pool.collector],
                    {"http": {"jobs": who}, "poll": {"interval": "1h", "deadline": "2m"}},
                    env=pool.client_env(),
                )
            )
            for who in ("all", "nobody")
        }


@pytest.mark.parametrize("what", [*HAS_NO_JOB, *ENTRIES, "all", "limit-1, of all"])
def test_the_page_of_a_place_says_the_same(
    what: str, places: dict[str, str], daemons: dict[str, RunningDaemon], explain: Explain
) -> None:
    """As the command; without the right to see jobs the same numbers, and no expression."""
    if what in HAS_NO_JOB:
        words, query = ["--pilot", places[what]], f"pilot={quote(places[what])}"
    elif what in ENTRIES:
        words, query = ["--entry", what], f"entry={what}"
    else:
        site = what.partition(",")[0] if "," in what else ""
        words, query = ["--all", "--site", site], f"all=1&site={site}"
    _, out, _ = explain(*words, "--format", "json")
    theirs = json.loads(out)
    ours = json.loads(daemons["all"].get(f"/explain?{query}&format=json"))
    hidden = daemons["nobody"].get(f"/explain?{query}&format=json")
    for name in ("reasons", "obstacles", "groups", "entries"):
        numbers = [
            [Counter({(one.get("reason"), one.get("entry")): one.get("jobs", 1)}) for one in found]
            for found in (answer.get(name, []) for answer in (theirs, ours, json.loads(hidden)))
        ]
        assert sum(numbers[0], Counter()) == sum(numbers[1], Counter())
        assert sum(numbers[0], Counter()) == sum(numbers[2], Counter())
    assert "TARGET." not in hidden
    page = unescape(daemons["nobody"].get(f"/explain?{query}"))
    assert "TARGET." not in page
    assert ours.get("first_line", "11 idle jobs of ")[:20] in page


def test_single_jobs_are_not_shown(
    jobs: tuple[CondorPool, dict[str, str]],
    daemons: dict[str, RunningDaemon],
    explain: Explain,  # which sets this process up for the pool
    run: Explain,
) -> None:
    """To who has not the right; the command asks the pool then.  What is wrong is said as by it."""
    with pytest.raises(HTTPError) as error:
        daemons["nobody"].get(f"/explain?job={jobs[1]['held']}")
    assert error.value.code == 403
    file = "--config", str(daemons["nobody"].config)
    for words, why in (
        ([jobs[1]["held"]], "shows no single jobs"),
        (["--entry", "ne-1"], "no clauses"),
    ):
        code, out, err = run("explain", *words, *file)
        assert (code, AS_OF in out) == (0, False)
        assert why in err
    code, out, _ = run("explain", "--entry", "ne-1", *file, "--ask", "daemon")
    assert (code, AS_OF in out) == (0, True)
    for query, code, text in (
        ("pilot=nobody", 404, "the collectors know no pilot nobody, nor does the ledger"),
        ("entry=utha-1", 400, "spelt alike: utah-1"),
    ):
        with pytest.raises(HTTPError) as error:
            daemons["nobody"].get(f"/explain?{query}")
        assert error.value.code == code
        assert text in unescape(error.value.read().decode())


def test_a_job_that_is_not_given_to_a_pilot(
    jobs: tuple[CondorPool, dict[str, str]], places: dict[str, str], explain: Explain
) -> None:
    """The negotiator comes back, and gives the pilot all jobs that fit, also the one that says that
    it runs too long, which this pool's START does not ask; the one at its limit it does not."""
    pool, numbers = jobs
    pool.on("NEGOTIATOR")
    pool.wait_for("three more jobs", lambda: len(pool.jobs(pool.schedds[0], "JobStatus == 2")) == 5)
    name = places["no_negotiator"]
    pool.wait_for(
        "the pilot to show them",
        lambda: pool.query("Slot", f'Name == "slot1@{name}" && Cpus == 1', ["Name"]),
    )
    _, out, _ = explain("--pilot", name, "--format", "json")
    record = json.loads(out)
    said = "The negotiator said: concurrency limit matlab reached. That is: a concurrency limit is"
    assert (
        f"Pilot {name} HAS 3 JOBS: 1 idle job fits what is free, but for a limit. {said}"
        in (record["first_line"])
    )
    assert record["reasons"][0]["reason"] == "concurrency_limit"
    assert record["reasons"][0]["proof"] == "proven"
    assert len(record["negotiators"]) == 1
    _, out, _ = explain(numbers["concurrency_limit"], "--schedd", pool.schedds[0])
    assert "concurrency limit matlab reached" in out
