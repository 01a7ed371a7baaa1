"""Records of transfers: what is made of a real pool's, and of what Pelican's plugin would say.

tests/recordings/histories/25/transfers.json is of jobs on a pool of 25.14.1 with the plugins of
tests/pool/transfer_plugin.py and tests/path_transfer, etc/gwmond-path-transfer, and Debian's
curl_plugin, which dies.
"""

from __future__ import annotations

from typing import Any

import pytest

from gwmond.model.runs.run_facts import JobRecord, Move, Source
from gwmond.sources.htcondor.histories import histories, transfers
from tests.build.histories import parsed, rows
from tests.pool.adtext import Expr
from tests.sources.make import classad

AT = 1_700_000_000
US = 10**6


def decoded(row: Any) -> JobRecord:
    record = histories.decode("transfers", row)
    assert isinstance(record, JobRecord), record
    return record


RECORDS = {
    record.fact.job.split("#")[1]: record
    for record in map(decoded, map(parsed, rows("transfers", "25")))
}


def numbers(record: JobRecord) -> list[tuple[str, str, int, int, int, int | None]]:
    return [(m.server, m.plugin, m.files, m.failed, m.again, m.moved) for m in record.fact.moves]


def test_real_records_have_servers_and_attempts() -> None:
    """As the test's plugins did it: four tries in vain and one that did it, a storage that stays
    down, three files of two servers, a plugin that dies."""
    path, root, store = "gwmond-path-transfer", "root_plugin", "store_plugin.py"
    assert {job: numbers(record) for job, record in RECORDS.items()} == {
        "1.0": [("output store", path, 1, 0, 4, 2)],
        "2.0": [("output store", path, 0, 1, 1, 0)],
        "4.0": [
            ("input root slow.example.org", root, 1, 0, 0, 70000),
            ("input store", store, 1, 0, 0, None),
        ],
        "5.0": [("input http", "curl_plugin", 0, 1, 0, None)],
        "6.0": [("input root down.example.org", root, 0, 1, 0, 0)],
        "7.0": [("output root down.example.org", root, 0, 1, 0, 0)],
        "8.0": [("output root slow.example.org", root, 1, 0, 0, 70000)],
        "9.0": [
            ("input root h1.example.org", root, 1, 0, 0, 70000),
            ("input root h2.example.org", root, 1, 0, 0, 70000),
        ],
    }
    assert "SeCreT" not in repr(RECORDS)


def test_real_records_have_run_slot_and_times() -> None:
    record = RECORDS["1.0"]
    assert (record.startd, record.slot) == ("glidein_1_1@pool.test", "slot1_1")
    fact, (move,) = record.fact, record.fact.moves
    assert (fact.source, fact.shadow_start, fact.ending.over) == (Source.TRANSFERS, 1, False)
    assert fact.ending.failed_transfer is None
    assert move.start_us is not None
    assert move.took_us == move.end_us - move.start_us > 10 * US
    assert fact.written_us == move.end_us
    assert RECORDS["2.0"].fact.ending.failed_transfer == "output store"


def moves(*results: dict[str, Any], programs: str = "{}") -> tuple[Move, ...]:
    files = ", ".join(f"[ {'; '.join(f'{k} = {v}' for k, v in one.items())} ]" for one in results)
    ad = {"InputPluginResultList": Expr(f"{{ {files} }}"), "InputPluginInvocations": Expr(programs)}
    return transfers.moves_of(classad(ad), AT * US)


OSDF = {"TransferUrl": '"osdf://origin.org/a?authz=SeCreT"', "TransferSuccess": "true"}


def test_each_attempt_of_pelican_is_of_its_cache() -> None:
    """By the numbered values of its DeveloperData; the last attempt is the one that counts."""
    data = (
        '[ Attempts = 2; Endpoint0 = "c1.org:8443"; TransferTime0 = 1.5; TransferFileBytes0 = 10; '
        'Endpoint1 = "https://u:SeCreT@C2.org/x"; TransferTime1 = 2; TransferFileBytes1 = 90 ]'
    )
    assert moves({**OSDF, "DeveloperData": data}) == (
        Move("input", "osdf", "c1.org", "", AT * US, 0, 0, 1, 10, 1_500_000),
        Move("input", "https", "c2.org", "", AT * US, 1, 0, 0, 90, 2_000_000),
    )
    failed = {**OSDF, "DeveloperData": data, "TransferSuccess": "false"}
    assert transfers.failed_of(moves(failed)) == "input https c2.org"


@pytest.mark.parametrize(
    ("error", "server"),
    [
        ('FailedServer = "se.org"', "input osdf se.org"),
        ('FailedServer = "se.org"; IntermediateServer = "cache.org"', "input osdf cache.org"),
        ('FailedServer = "a b/SeCreT"', "input osdf origin.org"),
        ('ErrorType = "Parameter"', "input osdf origin.org"),
        ("FailedServer = 7", "input osdf origin.org"),
    ],
)
def test_the_server_that_an_error_names(error: str, server: str) -> None:
    """A cache before the storage behind it; what is no host is not taken for one."""
    failed = {**OSDF, "TransferSuccess": "false", "TransferErrorData": f"{{ [ {error} ] }}"}
    (move,) = moves(failed)
    assert (move.server, move.failed, move.again) == (server, 1, 0)


def test_files_of_one_server_are_added_up() -> None:
    """Bytes and times where they are known; what a record does not say stays unknown."""
    one = {**OSDF, "TransferTotalBytes": 5, "TransferStartTime": AT - 9, "TransferEndTime": AT - 6}
    programs = '{ [ Schemes = "stash,osdf"; PluginBasename = "/x/stash_plugin"; Result = 0 ] }'
    (move,) = moves(one, OSDF, {**OSDF, "TransferSuccess": "false"}, programs=programs)
    assert move == Move(
        *("input", "osdf", "origin.org", "stash_plugin", AT * US),
        *(2, 1, 0, 5, 3 * US, (AT - 9) * US),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"TransferUrl": "7"},
        {"TransferUrl": '"no url"', "TransferTotalBytes": "-1", "TransferEndTime": '"x"'},
        {"TransferStartTime": AT, "TransferEndTime": AT - 5, "DeveloperData": "{ 1 }"},
        {"TransferErrorData": "7", "TransferTotalBytes": "1.0E400"},
    ],
)
def test_what_makes_no_sense_is_a_failure_of_an_unknown_server(wrong: dict[str, Any]) -> None:
    (move,) = moves(wrong)
    assert (move.server, move.failed) == ("input unknown", 1)
    assert (move.moved, move.took_us) == (None, None)


def test_a_record_tells_apart_so_many_servers() -> None:
    many = ({**OSDF, "TransferUrl": f'"root://h{number}.org/x"'} for number in range(50))
    assert len(moves(*many)) == 20


def test_a_record_of_very_many_files_costs_no_more_than_others() -> None:
    (move,) = moves(*[OSDF] * 2500)
    assert move.files == 2000


@pytest.mark.parametrize(
    ("version", "has"),
    [
        ("$CondorVersion: 23.9.6 2024-08-08 BuildID: Debian-23.9.6 $", False),
        ("$CondorVersion: 25.6.1 2026-01-01 $", False),
        ("$CondorVersion: 25.7.0 2026-02-01 $", True),
        ("$CondorVersion: 25.14.1 2026-09-24 $", True),
        ("$CondorVersion: 26.0.1 2027-01-01 $", True),
        ("", False),
    ],
)
def test_which_schedds_are_asked(version: str, has: bool) -> None:
    """Others have records that name no slot, so no place."""
    assert histories.has_transfers(version) is has
