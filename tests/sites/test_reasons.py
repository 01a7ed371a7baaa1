from __future__ import annotations

import pytest

from gwmond.model import elapsed
from gwmond.model.facts import Limit
from gwmond.sites.reasons import INSUFFICIENT, REASONS, UNKNOWN, Signs, explain

CLIENT = Limit("GlideClientLimitTotalGlideinsPerEntry", "count=100, limit=100")
CURB = Limit("GlideClientCurbCurbIdleGlideinsPerGroup", "count=100, limit=90")
FACTORY = Limit("GlideFactoryMonitorStatus_GlideFactoryLimitTotalGlideinsPerEntry", "1")
HELD = Limit("GlideFactoryMonitorStatus_GlideFactoryLimitHeldGlideinsPerEntry", "1")
ASKED = Signs(requested_idle=5, submitted_wait=0, held=0, info_age_s=60, jobs_matching=9)
SILENT = Signs(requested_idle=0, submitted_wait=0, held=0, info_age_s=60, jobs_matching=9)

CASES: list[tuple[str, Signs]] = [
    ("no_factory", Signs(has_factory=False)),
    ("run_but_do_not_register", ASKED._replace(unregistered=True, limits=(FACTORY,), held=9)),
    ("frontend_limit", SILENT._replace(limits=(CLIENT,))),
    ("frontend_limit", ASKED._replace(limits=(CURB, CLIENT, FACTORY), held=50)),
    ("factory_limit", ASKED._replace(limits=(FACTORY,))),
    ("factory_limit", ASKED._replace(max_pilots=10, total_pilots=10)),
    ("not_submitted", ASKED._replace(max_pilots=10, total_pilots=9)),
    ("information_too_old", ASKED._replace(info_age_s=1801)),
    ("not_submitted", ASKED._replace(info_age_s=1800)),
    ("information_too_old", ASKED._replace(info_age_s=601, info_max_age_s=600, held=5)),
    ("held_pilots", ASKED._replace(held=5)),
    ("held_pilots", ASKED._replace(held=60, limits=(HELD,), started=5)),
    ("factory_limit", ASKED._replace(held=60, limits=(FACTORY, HELD))),
    ("ramp_up", ASKED._replace(requested_idle=10, held=10, started=5)),
    ("held_pilots", ASKED._replace(held=5, limits=(CURB,))),
    ("held_pilots", ASKED._replace(held=0, held_most=True, limits=(CURB,))),
    ("held_pilots", Signs(held=1)),
    ("not_submitted", ASKED._replace(held=4)),
    ("nothing_requested", SILENT._replace(held=4)),
    ("frontend_curb", ASKED._replace(limits=(CURB,))),
    ("frontend_curb", SILENT._replace(limits=(CURB,))),
    ("few_requested", ASKED._replace(fills_long=True, started=1)),
    ("few_requested", SILENT._replace(fills_long=True, retiring=3)),
    ("frontend_curb", ASKED._replace(fills_long=True, limits=(CURB,))),
    ("ramp_up", ASKED._replace(started=1)),
    ("ramp_up", ASKED._replace(started=1, submitted_wait=3)),
    ("nothing_requested", SILENT._replace(started=1)),
    ("not_acknowledged", ASKED._replace(submitted_wait=3)),
    ("not_submitted", ASKED),
    ("unexplained", ASKED._replace(submitted_wait=None)),
    ("schedd_left_out", SILENT._replace(jobs_matching=0, left_out=True)),
    ("not_submitted", ASKED._replace(left_out=True)),
    ("no_match_in_frontend", SILENT._replace(jobs_matching=0, retiring=3)),
    ("retiring_counted_as_available", SILENT._replace(retiring=3, jobs_effective=0)),
    ("retiring_counted_as_available", SILENT._replace(retiring=3)),
    ("nothing_requested", SILENT._replace(retiring=3, jobs_effective=7)),
    ("idle_slots_counted", SILENT._replace(slots_idle=9, jobs_effective=0)),
    ("nothing_requested", SILENT._replace(slots_idle=9, jobs_effective=2)),
    ("nothing_requested", SILENT),
    ("unexplained", Signs()),
    ("unexplained", Signs(held=0)),
    ("held_pilots", ASKED._replace(requested_idle=1, held=1)),
    ("ramp_up", ASKED._replace(requested_idle=1, started=1)),
    ("not_acknowledged", ASKED._replace(requested_idle=1, submitted_wait=1)),
    ("retiring_counted_as_available", SILENT._replace(retiring=1)),
    ("idle_slots_counted", SILENT._replace(slots_idle=1, jobs_effective=0)),
    ("nothing_requested", SILENT._replace(slots_idle=0, jobs_effective=0)),
    ("nothing_requested", SILENT._replace(slots_idle=None, jobs_effective=0)),
]


@pytest.mark.parametrize(("name", "signs"), CASES)
def test_the_first_reason_that_holds_is_told(name: str, signs: Signs) -> None:
    """Each reason is told for its signs, and yields to those before it."""
    assert explain(signs) == name


def test_every_reason_has_a_case() -> None:
    """The table of cases covers the whole vocabulary."""
    assert {name for name, _ in CASES} == {reason.name for reason in REASONS}


def test_the_vocabulary_is_bounded_and_documented() -> None:
    """All names are distinct label values with a description, and the last always holds."""
    names = [*(reason.name for reason in REASONS), *INSUFFICIENT, *UNKNOWN, *elapsed.REASONS]
    assert len(names) == len(set(names))
    assert all(name.isidentifier() and name == name.lower() for name in names)
    texts = [*(r.description for r in REASONS), *UNKNOWN.values(), *elapsed.REASONS.values()]
    assert all(texts)
    assert REASONS[-1].holds(Signs())
