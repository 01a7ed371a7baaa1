"""Which attribute of which ad each monitored value comes from."""

from __future__ import annotations

import pytest

from gwmond.model.monitor import EntryMonitor, Monitor
from gwmond.sources.htcondor import monitors
from tests.pool.adtext import Ad, Expr, Value
from tests.pool.feign import glidefactory, glidefactoryclient, glideresource
from tests.sources.make import classad

# The factory's part of a glidefactoryclient ad, as GlideinWMS names it.
FACTORYS = {
    "StatusIdle": "status_idle",
    "StatusRunning": "status_running",
    "StatusHeld": "status_held",
    "StatusWait": "status_wait",
    "StatusPending": "status_pending",
    "StatusStageIn": "status_stage_in",
    "StatusIdleOther": "status_idle_other",
    "StatusStageOut": "status_stage_out",
    "StatusRunningCores": "status_running_cores",
    "RequestedIdle": "requested_idle",
    "RequestedAdjustedIdle": "requested_adjusted_idle",
    "RequestedMaxGlideins": "requested_max",
    "RequestedIdleCores": "requested_idle_cores",
    "RequestedMaxCores": "requested_max_cores",
    "ClientMonitorInfoAge": "client_info_age",
}
# The frontend's, as the factory heard it, and as the frontend itself publishes it.
CLIENTS = {
    "ClientMonitorJobsIdle": ("JobsIdleMatching", "client_jobs_idle"),
    "ClientMonitorJobsRunning": ("JobsRunning", "client_jobs_running"),
    "ClientMonitorJobsRunHere": ("JobsRunningHere", "client_jobs_here"),
    "ClientMonitorGlideTotal": ("GlideinsTotal", "client_slots_total"),
    "ClientMonitorGlideIdle": ("GlideinsIdle", "client_slots_idle"),
    "ClientMonitorGlideRunning": ("GlideinsRunning", "client_slots_running"),
    "ClientMonitorCoresTotal": ("GlideinsTotalCores", "client_cores_total"),
    "ClientMonitorCoresIdle": ("GlideinsIdleCores", "client_cores_idle"),
    "ClientMonitorCoresRunning": ("GlideinsRunningCores", "client_cores_running"),
}
# What only the frontend tells.
ONLY_CLIENTS = {
    "GlideinsFailed": "client_slots_failed",
    "GlideinsRequestIdle": "asked_idle",
    "GlideinsRequestMaxRun": "asked_max",
    "JobsIdleOld": "client_jobs_old",
}
HEARD = FACTORYS | {name: field for name, (_, field) in CLIENTS.items()}
OWN = dict(CLIENTS.values()) | ONLY_CLIENTS


def ad_of(prefix: str, names: dict[str, str], first: int) -> tuple[Ad, dict[str, int]]:
    """An ad with a number of its own for each name, and these by field."""
    numbers = {name: first + n for n, name in enumerate(names)}
    ad: Ad = {f"{prefix}{name}": number for name, number in numbers.items()}
    return ad, {names[name]: number for name, number in numbers.items()}


def told(monitor: Monitor) -> dict[str, int]:
    return {name: value for name, value in monitor._asdict().items() if value is not None}


def test_every_field_is_read() -> None:
    """There is a name for each field, and no field without one."""
    assert {*HEARD.values(), *OWN.values()} == set(Monitor._fields)


def test_factorys_ad() -> None:
    """A glidefactoryclient ad has the factory's counts, and the frontend's as it heard them."""
    ad, expected = ad_of("GlideinMonitor", HEARD, 10)
    assert told(monitors.of_factory(classad(ad))) == expected


def test_resource_ad_is_believed_of_the_frontend_itself() -> None:
    """A glideresource ad has the frontend's own counts, and of the factory's only its own."""
    heard, numbers = ad_of("GlideFactoryMonitor", HEARD, 100)
    factorys = {f: n for f, n in numbers.items() if f.startswith(("status_", "requested_"))}
    own, clients = ad_of("GlideClientMonitor", OWN, 200)
    assert told(monitors.of_resource(classad(heard | own))) == factorys | clients
    assert told(monitors.of_resource(classad(heard))) == factorys
    assert told(monitors.of_resource(classad(own))) == clients


@pytest.mark.parametrize(
    ("here", "claimed", "known"), [(0, 12, None), (0, 0, 0), (3, 12, 3), (0, None, 0)]
)
def test_no_job_runs_on_claimed_slots(here: int, claimed: int | None, known: int | None) -> None:
    """That cannot be true, so it is not known: the frontend left out the collector's port."""
    ad: Ad = {"GlideClientMonitorJobsRunningHere": here}
    ad |= {} if claimed is None else {"GlideClientMonitorGlideinsRunning": claimed}
    assert monitors.of_resource(classad(ad)).client_jobs_here == known
    assert monitors.here_contradicts(classad(ad)) is (known is None)


@pytest.mark.parametrize(
    ("prefix", "config", "read"),
    [
        ("GlideinMonitorTotal", "GlideinConfig", monitors.of_entry),
        ("GlideFactoryMonitorTotal", "GlideFactoryConfig", monitors.of_entry_in_resource),
    ],
)
def test_entry(prefix: str, config: str, read: object) -> None:
    """An entry's totals and limits are read of the factory's ad and of their copy."""
    ad, expected = ad_of(prefix, HEARD, 10)
    for number, name in enumerate(("Idle", "Held", "Glideins")):
        ad[f"{config}PerEntryMax{name}"] = number
    assert callable(read)
    found = read(classad(ad))
    if prefix.startswith("GlideFactory"):  # the copy has the factory's own counts only
        own = ("status_", "requested_")
        expected = {field: n for field, n in expected.items() if field.startswith(own)}
    assert told(found.total) == expected
    assert found[1:] == (0, 1, 2)


@pytest.mark.parametrize(
    "bad", [-1, 10**12, "7", Expr("undefined"), Expr("1/0"), Expr("real(7)/0")]
)
def test_what_is_no_count_is_absent(bad: Value) -> None:
    """A value that cannot be a count is absent, not zero; a zero is a zero."""
    ad: Ad = {"GlideinMonitorStatusIdle": bad, "GlideinMonitorStatusHeld": 0}
    assert told(monitors.of_factory(classad(ad))) == {"status_held": 0}


def test_feigned_ads_tell_the_same() -> None:
    """The ads that the tests' pool is given have the names which are read."""
    resource = monitors.of_resource(classad(glideresource(pending=3, staging=1, running=2)))
    client = monitors.of_factory(classad(glidefactoryclient(pending=3, staging=1, running=2)))
    entry = monitors.of_entry(classad(glidefactory(pending=3, staging=1, running=2)))
    for monitor in (resource, client, entry.total):
        assert (monitor.status_idle, monitor.status_pending, monitor.status_wait) == (4, 3, 1)
        assert (monitor.status_running, monitor.status_running_cores) == (2, 16)
    assert entry[1:] == (100, 50, 1000)


def test_sums_do_not_hide_what_is_absent() -> None:
    """Of two monitors that are added, what one does not tell is not told of both."""
    one, two = Monitor(status_idle=3, status_held=1), Monitor(status_idle=4)
    assert told(one.plus(two)) == {"status_idle": 7}
    entry = EntryMonitor(one, 10, None, 30).plus(EntryMonitor(two, 1, 2, 3))
    assert (told(entry.total), entry[1:]) == ({"status_idle": 7}, (11, None, 33))
    assert EntryMonitor(one, None, 5, 6).over(EntryMonitor(two, 1, 2, 3))[1:] == (1, 5, 6)
