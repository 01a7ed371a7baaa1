"""No text of the pool comes out of a decoder as it was made to be obeyed, or without end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from gwmond.config.settings import DemandOptions
from gwmond.model.facts import DemandGroup, Template
from gwmond.sources.htcondor import demand, waiting_job
from gwmond.sources.htcondor.access import Daemon, Query, Terms
from gwmond.sources.htcondor.ads import TEXT_CHARACTERS, quoted
from gwmond.sources.htcondor.histories import histories
from gwmond.sources.registry import SOURCES
from tests.pool.adtext import Ad, Expr, Value
from tests.pool.feign import glidein, glideresource, partitionable_slot
from tests.sources.feigned_access import Unasked
from tests.sources.make import ATTRIBUTES, NOW, classads, heard

HOSTILE = "\x1b[31m\x07\u202eevil\u2066" + "x" * (2 * TEXT_CHARACTERS)


class Nobody(Unasked):
    """Of which jobs nothing is known."""

    def job_ads(self, _schedd: Daemon, _query: Query) -> list[Any]:
        return []


def texts(found: object) -> Iterator[str]:
    """All texts that may be shown; ads that are evaluated are none."""
    if isinstance(found, str):
        yield found
    elif isinstance(found, Template):
        yield from texts(tuple(found._replace(ad="", start="", query="")))
    elif isinstance(found, DemandGroup):
        yield from texts(tuple(found._replace(ad="")))
    elif isinstance(found, Mapping):
        yield from texts(tuple(found.items()))
    elif isinstance(found, (tuple, list, set, frozenset)):
        for one in found:
            yield from texts(one)


def bad(found: object) -> list[str]:
    return [
        ascii(text)[:80]
        for text in texts(found)
        if not text.isprintable() or len(text) > TEXT_CHARACTERS
    ]


def variants(names: list[str], *wholes: Mapping[str, Value]) -> Iterator[Ad]:
    """Ads of which one attribute is hostile each, the others are plain; ``wholes`` too."""
    names = [name.replace("*", "Some") for name in names]
    bases: list[Ad] = [dict.fromkeys(names, 1), dict.fromkeys(names, "text")]
    bases += [bases[0] | {"Name": "n", "MyAddress": "<a>", "GlobalJobId": "ap#1.0#1"}]
    for base in [*bases, *map(dict, wholes)]:
        for name in {*base, *names}:
            yield base | {name: HOSTILE}


LIMITS: Ad = {f"GlideClientLimit{name}": 1 for name in ("PerEntry", "Some")}
WHOLE: Mapping[str, list[Ad]] = {
    "slots": [heard(partitionable_slot("p", started=NOW - 60, now=NOW, glidein=glidein()), NOW)],
    "glideresource": [heard(glideresource(running=1, jobs_idle=12) | LIMITS, NOW)],
}


@pytest.mark.parametrize("kind", SOURCES)
def test_what_collectors_say(kind: str) -> None:
    """Of each kind of source, whatever attribute is hostile."""
    terms = Terms(Nobody(), "cm", ATTRIBUTES, NOW)
    source = SOURCES[kind]
    ads = variants(list(source.query(terms).attributes), *WHOLE.get(kind, ()))
    assert bad([source.decode(classads(ad), terms) for ad in ads]) == []


def test_what_schedds_say_of_idle_jobs() -> None:
    grouping = demand.JobGrouping(ATTRIBUTES, DemandOptions())
    names = ["JobCount", "JobIds", *demand.query(grouping).attributes]
    ads = [ad | {"JobCount": 1} for ad in variants(names)]
    assert bad([demand.decode(classads(ad), (), "ap", grouping) for ad in ads]) == []


def test_what_schedds_say_of_one_job() -> None:
    query = waiting_job.query("1.0", ["VO"], ATTRIBUTES, DemandOptions())
    found = [
        waiting_job._job(ad, "ap", ["VO"], ATTRIBUTES)._replace(clauses=())
        for one in variants(list(query.attributes))
        for ad in classads(one)
    ]
    assert bad(found) == []


@pytest.mark.parametrize("kind", histories.KINDS)
def test_what_histories_say(kind: str) -> None:
    """Records of runs, with the reasons of holds and the names of programs."""
    names = [*histories.query(kind).attributes, histories.KINDS[kind].host]
    run: Ad = {"GlobalJobId": "ap#1.0#1", "NumShadowStarts": 1, "JobCurrentStartDate": NOW}
    run |= dict.fromkeys(("CompletionDate", "EpochWriteDate", "EnteredCurrentStatus"), NOW)
    run |= {histories.KINDS[kind].host: "slot1@p", "Cmd": "/bin/x", "User": "u@x"}
    if kind == "transfers":
        names_it, text = "PluginBasename TransferUrl Schemes FailedServer", quoted(HOSTILE)
        inner = "; ".join(f"{name} = {text}" for name in names_it.split())
        for name in ("InputPluginResultList", "OutputPluginInvocations"):
            run[name] = Expr(
                f"{{ [ {inner}; Result = 1; TransferErrorData = {{ [ {inner} ] }} ] }}"
            )
    found = [histories.decode(kind, ad) for one in variants(names, run) for ad in classads(one)]
    assert any(isinstance(one, tuple) for one in found)
    assert bad(found) == []
