"""The traceparent in a job's environment: it alone is read of that, and only if asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gwmond.model.runs.run_facts import JobRecord
from gwmond.sources.htcondor.histories import histories
from tests.build.histories import KINDS, load
from tests.build.traced import SUBMITTER

CANARY = "kanarienvogel"


def decoded(kind: str, environment: bool = True, /, **attributes: str) -> JobRecord:
    ad = next(ad for case, ad in load(kind) if case == "exit_zero")
    for name, value in attributes.items():
        ad[name] = value
    found = histories.decode(kind, ad, environment=environment)
    assert isinstance(found, JobRecord)
    return found


def carried(record: JobRecord) -> str:
    return record.fact.about_job.traceparent if record.fact.about_job else ""


@pytest.mark.parametrize("kind", KINDS)
def test_the_attribute_comes_first(kind: str) -> None:
    other = SUBMITTER.replace("b7ad", "ffff")
    both = decoded(kind, TraceParent=SUBMITTER, Environment=f"TRACEPARENT={other}")
    assert carried(both) == SUBMITTER
    assert carried(decoded(kind, Environment=f"TRACEPARENT={other}")) == other


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"TRACEPARENT={SUBMITTER}", True),
        (f"A=b TRACEPARENT={SUBMITTER} C=d", True),
        (f"A='b c' 'TRACEPARENT={SUBMITTER}'", True),
        (f"A=b TRACEPARENT='{SUBMITTER}'", True),
        (f"A=b;TRACEPARENT={SUBMITTER};C=d", True),  # the old syntax
        (f"MYTRACEPARENT={SUBMITTER}", False),
        (f"TRACEPARENT={SUBMITTER}0", False),
        (f"TRACEPARENT={SUBMITTER.upper()}", False),
        (f"TRACEPARENT={CANARY}", False),
        ("", False),
    ],
)
def test_how_it_may_be_written(text: str, found: bool) -> None:
    for name in ("Environment", "Env"):
        record = decoded("epochs", **{name: f"{text}"})
        assert carried(record) == (SUBMITTER if found else "")
        assert carried(decoded("epochs", False, **{name: text})) == ""


@given(st.text(), st.text(), st.sampled_from([SUBMITTER, "", CANARY]))
def test_nothing_else_of_an_environment_is_in_a_record(one: str, two: str, parent: str) -> None:
    text = f"{one} SECRET={CANARY}-1 TRACEPARENT={parent} TOKEN='{CANARY}-2' {two}"
    if not text.isprintable() or '"' in text:
        text = f"SECRET={CANARY}-1 TRACEPARENT={parent}"
    record = decoded("history", Environment=text)
    assert CANARY not in repr(record)
    plain = decoded("history", False, Environment=text)
    assert record._replace(fact=plain.fact) == plain
    about = record.fact.about_job
    assert about is None or len(about.traceparent) in {0, 55}


def test_it_is_not_asked_for_unless_wanted() -> None:
    for kind in KINDS:
        plain = histories.query(kind).projection
        assert {"Environment", "Env"}.isdisjoint(plain)
        asked = histories.query(kind, environment=True).projection
        assert set(asked) - set(plain) == {"Environment", "Env"}
