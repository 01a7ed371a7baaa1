"""From the ads by which pilots tell that their validation failed to pilots."""

from __future__ import annotations

from typing import Any

import classad2
import pytest

from gwmond.config.settings import Attributes
from gwmond.model.facts import EntryKey
from gwmond.sources.htcondor.pilots import advertised, slots
from gwmond.sources.htcondor.pilots.slots import Slots
from tests.pool.adtext import Ad, Expr
from tests.pool.feign import failed_validation, glidein, partitionable_slot
from tests.sources.make import ATTRIBUTES, NOW, classads, heard

DIES = NOW + 900


def failed(number: int = 1, sent: int = NOW - 300, **more: Any) -> Ad:
    """One of the ads of a pilot, of which each has another name."""
    ad = failed_validation(4711, number, dies=DIES, now=sent, job="schedd", cluster=7, proc=2)
    return heard(ad, sent) | glidein(site="Site", entry="entry") | more


def decode(*ads: Ad, by: Attributes = ATTRIBUTES) -> Slots:
    return slots.decode(classads(*ads), by, "cm", NOW)


def test_a_failed_validation_is_no_slot() -> None:
    """Nothing of its dummy size is believed, and it stands for no empty pilot."""
    found = decode(failed())
    (pilot,) = found.pilots
    assert pilot.failed
    assert pilot.failure == "validate_node.sh"
    assert (pilot.size, pilot.free, pilot.jobs, pilot.accepting) == (None, (), (), False)
    assert (pilot.entry, pilot.group) == (EntryKey("Site", "entry"), "frontend.main")
    assert pilot.factory_job == "schedd#7.2"
    assert (pilot.started, pilot.dies, pilot.retires) == (NOW - 300, DIES, None)
    assert found.samples == ()
    assert found.problems == ()


def test_the_ads_of_one_pilot() -> None:
    """The factory's job tells that they are of one, which began at the latest with the first."""
    late, early = failed(2, NOW - 10), failed(1, NOW - 310)
    (pilot,) = decode(late, early).pilots
    assert (pilot.started, pilot.last_heard) == (NOW - 310, NOW - 10)
    assert pilot.name == early["Name"]


@pytest.mark.parametrize("dies", [DIES, DIES + 600])
def test_without_the_factorys_job(dies: int) -> None:
    """Then the same process on the same host that ends at the same time is one pilot."""
    nothing: dict[str, Any] = {"GLIDEIN_Schedd": Expr("undefined")}
    one, two = failed(1, **nothing), failed(2, **nothing)
    found = decode(one, two | {"GLIDEIN_Expire": dies, "GLIDEIN_ToDie": dies}).pilots
    assert len(found) == (1 if dies == DIES else 2)
    assert {key.name for key in found} == {"glidein_4711@node"}


def test_two_on_one_host() -> None:
    """They are two, as their jobs at the factory are."""
    assert len(decode(failed(1), failed(2, GLIDEIN_ProcId=3)).pilots) == 2


@pytest.mark.parametrize(
    "more",
    [
        {"State": "Unclaimed"},
        {"GLIDEIN_Failed": False},
        {"GLIDEIN_Failed": Expr("undefined")},
        {"SlotType": "Partitionable"},
    ],
    ids=str,
)
def test_what_is_a_slot(more: dict[str, Any]) -> None:
    """A startd that drains, or that is marked otherwise, is a pilot as any."""
    assert [pilot.failed for pilot in decode(failed(**more)).pilots] == [False]


@pytest.mark.parametrize("value", [True, "True", 1])
def test_marks_as_glideinwms_writes_them(value: Any) -> None:
    """A truth value comes in several forms."""
    assert decode(failed(GLIDEIN_Failed=value)).pilots[0].failed


@pytest.mark.parametrize(
    ("script", "reason", "said"),
    [
        ("main/check_proxy.sh", "x", "main/check_proxy.sh"),
        ("", "Glidein failed while running a.sh. Keeping node busy until 17 (Sat).", "a.sh"),
        ("", "Glidein failed while running a.b. Terminating now. (17) (Sat)", "a.b"),
        ("", "Disk 17.5 full at 12:30:11", "Disk N full at N"),
        ("no test", "", "no test"),
        ("", "", ""),
        ("", "x" * 500, "x" * 59 + "…"),
    ],
)
def test_why(script: str, reason: str, said: str) -> None:
    """The test where it is told, else a reason without what differs from pilot to pilot."""
    ad = failed(GLIDEIN_LAST_SCRIPT=script, GLIDEIN_FAILURE_REASON=reason)
    assert advertised.failure_of(classads(ad)[0]) == said


def test_beside_pilots_that_registered() -> None:
    """They are as if it were not there."""
    other = heard(partitionable_slot("pilot", now=NOW, glidein=glidein()))
    with_it, without = decode(other, failed()), decode(other)
    assert [pilot for pilot in with_it.pilots if not pilot.failed] == list(without.pilots)
    assert with_it.samples == without.samples


def test_what_is_asked_for() -> None:
    """All that is decoded, and no constraint keeps such ads away."""
    query = slots.query(ATTRIBUTES)
    assert {"State", "GLIDEIN_ToDie", *advertised.NAMES} <= set(query.projection)
    assert query.constraint == 'SlotType =!= "Dynamic"'


def test_they_are_in_one_part_and_all_others_in_some_part() -> None:
    """The several ads of one pilot are; joined, the parts are the whole."""
    ads_ = [
        *(failed(Name=f"glidein_1_{n}@h", DaemonStartTime=NOW - n) for n in range(4)),
        *(heard(partitionable_slot(f"p{n}", now=NOW, started=NOW - n // 2)) for n in range(8)),
        *(heard({"Name": f"q{n}", "Cpus": 1, "Memory": 99, **more}) for n, more in enumerate(ODD)),
    ]
    found = classads(*ads_)
    wanted = [classad2.ExprTree(slots.query(ATTRIBUTES, (k, 3)).constraint) for k in range(3)]
    parts = [[ad for ad in found if constraint.eval(ad) is True] for constraint in wanted]
    assert sum(map(len, parts)) == len(found)
    assert all(parts)
    together = slots.joined([slots.decode(part, ATTRIBUTES, "cm", NOW) for part in parts])
    whole = slots.decode(found, ATTRIBUTES, "cm", NOW)
    assert set(together.pilots) == set(whole.pilots)
    assert len(together.pilots) == len(whole.pilots)
    assert together.samples == whole.samples
    assert sorted(together.problems) == sorted(whole.problems)


#: What strangers advertise.
ODD: tuple[dict[str, Any], ...] = (
    {},
    {"DaemonStartTime": "yesterday"},
    {"DaemonStartTime": -7, "SlotType": "Static"},
    {"DaemonStartTime": Expr("error"), "SlotType": "Static"},
    {"DaemonStartTime": 1.5, "SlotType": 3},
)
