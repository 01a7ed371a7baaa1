"""What is in spans is in the list, what is in the list is in docs/traces.md, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from gwmond.model.demand.idle_history import WaitInterval
from gwmond.model.pilot_life import Category, Outcome, Validation
from gwmond.model.pilots.pilot_facts import OutputFacts, ValidationTest, replace
from gwmond.model.runs.endings import Ending
from gwmond.model.runs.outcomes import RUNS, SUMMARISED
from gwmond.model.runs.run_facts import JobFact
from gwmond.traces.attributes import ATTRIBUTES, error_of, result_of
from gwmond.traces.pilot_trace import pilot_spans
from gwmond.traces.spans import Span
from tests.build.traced import CUT, HELD, JOIN_AT_MOST, SUBMITTER, job_spans, left, pilot, run, us

PAGE = Path(__file__).parents[2] / "docs" / "traces.md"
SIGNAL = Ending(over=True, exit_signal=11, own_accord=True, began=True)
RESULTS = {"success", "failure", "error", "cancellation", None}


def some_spans() -> list[Span]:
    rules, row = JOIN_AT_MOST, pilot(retire_us=us(3900))
    skewed = run(4, 900, 950, SIGNAL, executing_us=us(990))
    gpus = run(2, 400, 500, HELD)
    runs = [run(1, 100, 300, CUT), gpus._replace(size=gpus.size._replace(gpus=1))]
    runs += [run(3, 600, 700, HELD), left(skewed, 960)]
    gpu_pilot = row._replace(
        steps=(row.steps[0]._replace(size=row.steps[0].size._replace(gpus=2)),)
    )
    failed = pilot(validation=Validation.FAILED, failure="Config a.sh")._replace(ran_jobs=False)
    tests = (ValidationTest("a.sh", us(1), us(2), "Config"),)
    output = OutputFacts(us(0), us(9), tests=tests, more_tests=3)
    failed = failed._replace(facts=replace(failed.facts, output=output))
    many = [run(n, 100 + 20 * n, 110 + 20 * n) for n in range(1, 250)]
    many[0] = many[0]._replace(facts=(many[0].facts[0]._replace(about_job=JobFact(0, 1)),))
    about = JobFact(us(0), 1, wants="w")
    waited = run(1, 100, 200, about_job=about)
    waits = [WaitInterval("ap", "g", us(0), None, "w", "no_pilot", "down", "S")]
    key = waited.key.job.partition("#")[0], "w"
    return [
        *job_spans([waited], {1: row}, rules, us(2000), {key: waits}),
        *job_spans(runs, {1: row}, rules, us(2000)),
        *job_spans([run(1, 5, None)], {1: row}, rules, us(2000)),
        *pilot_spans(gpu_pilot, runs, rules),
        *pilot_spans(failed, [], rules),
        *pilot_spans(pilot(end=10**5, settled={("cpu", "canonical", *OWN): 1}), many, rules),
    ]


OWN = (Category.PILOT_OVERHEAD, "")


def test_each_attribute_is_where_the_list_says_and_each_of_the_list_is_somewhere() -> None:
    spans = some_spans()
    on = {(span.name, name) for span in spans for name, _ in span.attributes}
    listed = {(kind, of.name) for of in ATTRIBUTES for kind in of.on}
    assert on - listed == set()
    names = {name for _, name in on}
    on_links = {n for span in spans for link in span.links for n, _ in link.attributes}
    on_events = {n for span in spans for event in span.events for n, _ in event.attributes}
    assert {of.name for of in ATTRIBUTES} - names - on_links - on_events == set()
    assert on_links == {of.name for of in ATTRIBUTES if of.link}
    assert on_events == {of.name for of in ATTRIBUTES if of.event}
    assert [of.name for of in ATTRIBUTES] == sorted(of.name for of in ATTRIBUTES)


def test_the_page_has_the_list() -> None:
    part = PAGE.read_text().partition("## Attributes")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (.*?) \| (.*) \|$", part, re.M)
    kinds = {of.name: ", ".join(kind.value for kind in of.on) for of in ATTRIBUTES}
    assert rows == [
        (
            of.name,
            "; ".join(filter(None, (kinds[of.name], "links" * of.link, "events" * of.event))),
            of.text,
        )
        for of in ATTRIBUTES
    ]


def test_each_outcome_has_a_result_and_an_error_or_neither() -> None:
    for category, label in RUNS:
        outcome = Outcome(category, label)
        result, error = result_of(outcome), error_of(outcome)
        assert result in RESULTS
        assert error == ("" if result in {"success", None} else label)
    assert {result_of(Outcome(*of)) for of in RUNS} == RESULTS
    assert SUMMARISED not in {label for _, label in RUNS}


def test_no_secret_is_in_a_span() -> None:
    """What users put into an ad beside the traceparent is in no span."""
    about = JobFact(us(0), 1, SUBMITTER, "", us(20), 4)
    spans = job_spans([run(1, 5, 9, about_job=about)], {1: pilot()}, JOIN_AT_MOST)
    said = repr([span.attributes for span in spans])
    assert SUBMITTER not in said
