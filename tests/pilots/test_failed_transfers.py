"""Transfers that fail: what of a failure's text is kept, and when it is counted."""

from __future__ import annotations

from collections import Counter

import pytest

from gwmond.model.names import NameLimits, Names
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.run_facts import JobRecord, Source
from gwmond.sources import folding
from gwmond.sources.htcondor.histories import histories
from gwmond.sources.htcondor.histories.history_endings import server_of
from tests.build.play import Play, record, shown
from tests.pool.adtext import Expr
from tests.sources.make import classad

#: Reasons as 23.9.6 and 25.14.1 wrote them on real pools (tests/daemon/test_transfers.py).
FROM = "Transfer input files failure at execution point slot1_3@glidein_1_1@pool.test "
REASONS = {
    "using protocol root. Details: Connection refused ( URL file = "
    "root://user:pass@down.example.org:1094//missing/a?... )|": "root down.example.org",
    "using protocol root. Details: Connection refused ( URL file = root://DOWN.example.org//a )|": (
        "root down.example.org"
    ),
    "using protocol osdf. Details: 404 ( URL file = osdf:///ospool/PUBLIC/a.txt )|": "osdf",
    "using protocol https. Details: no answer": "https",
    "using protocol tree. Details: https://u:p@store.example.org/me/: no answer ( URL file = "
    "tree://PathTree/out )|": "https store.example.org",
    "using protocol tree. Details: it has no paths ( URL file = tree://PathTree/out )|": (
        "tree pathtree"
    ),
    "while receiving files from access point vm. Details: reading from file /home/u/a: (errno 2) "
    "No such file or directory": "cedar",
    "while receiving files from access point vm. Details: Error from slot1_3@p: Failed to transfer "
    "files: FILETRANSFER:1:|Error: file transfer plugin /usr/libexec/condor/curl_plugin exited with"
    " code 0": "unknown",
    "": "unknown",
}


@pytest.mark.parametrize("reason", REASONS)
def test_of_a_url_only_protocol_and_host_are_kept(reason: str) -> None:
    """No user, no password, no port, no path, no query."""
    assert server_of(FROM + reason) == REASONS[reason]


@pytest.mark.parametrize(
    "url",
    [
        "https://user:se/cret@host.example.org/a",
        "https://secret%20token/a",
        "https://a@b@host.example.org/x?sig=secret",
        "https://[::1]:8443/secret",
        "https://" + "secret" * 60,
        'https://host.example.org;secret="x"',
    ],
)
def test_what_is_no_plain_url_gives_no_secret(url: str) -> None:
    """A part that is not a host is nothing."""
    found = server_of(f"{FROM}using protocol https. Details: ( URL file = {url} )|")
    assert found in {"https", "https host.example.org", "https [::1]"}


def failed(*, source: Source = Source.EPOCH_HISTORY, server: str = "root se.org") -> JobRecord:
    """A run of a job whose input could not be transferred."""
    code = {"hold_code": 13, "hold_subcode": 256, "began": False}
    ending = Ending(over=True, failed_transfer=f"input {server}", **code)  # type: ignore[arg-type]
    return record("1.0", 100, 130, source=source, ending=ending)


def counted(play: Play) -> Counter[str]:
    """What is counted of transfers that failed."""
    return Counter(
        {k.outcome: n for k, n in play.stored.counts.items() if k.what == "failed_transfers" and n}
    )


def test_a_failure_counts_in_the_poll_of_its_record_and_once(play: Play) -> None:
    """Before the run's outcome is decided; not again by a second record, or after a restart."""
    play.live(0, 120, [shown()])
    play.poll(180, [shown(heard=180)], records=[failed()])
    assert [row.outcome for row in play.stored.runs.values()] == [None]
    assert counted(play) == {"input root se.org": 1}
    play.restart()
    play.live(240, 600, [shown()], records=[failed(), failed(source=Source.SCHEDD_HISTORY)])
    play.rest(660)
    assert [row.outcome is not None for row in play.stored.runs.values()] == [True]
    assert counted(play) == {"input root se.org": 1}


def test_a_better_record_corrects_the_count(play: Play) -> None:
    """What the schedd's history named first is taken back as the epoch names another server."""
    wrong = failed(source=Source.SCHEDD_HISTORY, server="unknown")
    play.live(0, 180, [shown()], records=[wrong])
    play.restart()
    play.live(240, 300, [shown()], records=[failed()])
    assert counted(play) == {"input root se.org": 1}


def test_servers_beyond_the_limit_are_other() -> None:
    """Users choose the names of servers: at most so many are kept apart."""
    names = Names(NameLimits(10, 10, 10, 86400.0 * 30, servers=1))
    records = [failed(server=f"https host{n}.org") for n in (1, 1, 2)]
    found = [record.fact.ending.failed_transfer for record in folding.fold_records(names, records)]
    assert found == ["input https host1.org"] * 2 + ["input other other"]
    assert [(t.kind, t.number) for t in names.together] == [("servers of files", 1)]
    plain = [record("2.0", 100, 200)]
    assert folding.fold_records(names, plain) == plain


@pytest.mark.parametrize(
    ("stats", "run", "moved"),
    [
        ("[ ROOTSizeBytesLastRun = 70000; CedarSizeBytesLastRun = 62 ]", 2, 70062),
        ("[ ROOTSizeBytesLastRun = 70000; CedarFilesCountLastRun = 1 ]", 1, 75000),
        ("[ ROOTSizeBytesLastRun = 70000; CedarFilesCountLastRun = 1 ]", 2, None),
        ("[ CedarFilesCountLastRun = 1 ]", 1, None),
        ("[ ]", 1, 0),
        ("7", 1, None),
    ],
)
def test_bytes_of_a_run_alone(stats: str, run: int, moved: int | None) -> None:
    """23.9 counts bytes of plugins only; those of its own protocol are in the total alone."""
    ad = classad(
        {
            "GlobalJobId": "ap#1.0#1700000000",
            "NumShadowStarts": run,
            "RemoteHost": "slot1@pilot@node",
            "JobCurrentStartDate": 1_700_000_100,
            "TransferInStarted": 1_700_000_101,
            "TransferInFinished": 1_700_000_111,
            "EpochWriteDate": 1_700_000_200,
            "BytesRecvd": 5000.0,
            "TransferInputStats": Expr(stats),
        }
    )
    decoded = histories.decode("epochs", ad)
    assert isinstance(decoded, JobRecord)
    assert decoded.fact.transfer_in is not None
    assert decoded.fact.transfer_in.moved == moved
