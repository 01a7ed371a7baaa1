"""A real Prometheus, which scrapes what a test tells it to; and a store of many of them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.pool.ports import free_port
from tests.pool.sandbox import PATIENCE_S, wait_until

#: One series of an answer: its labels, and its value at the time of the query.
Sample = tuple[dict[str, str], float]


class Program:
    """A program that serves on loopback; a context manager. ``ready``: path of a check."""

    def __init__(self, name: str, ready: str, package: str = "") -> None:
        """`package` is Debian's, where that is not the program's name."""
        program = shutil.which(name)
        if program is None:
            raise RuntimeError(f"no {name} on PATH. Run: apt-get install {package or name}")
        self.listen = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self.listen}"
        self._ready_path = ready
        self._dir = Path(tempfile.mkdtemp(prefix=f"gwmond-{name}-", dir="/tmp"))
        self.data = self._dir / "data"
        self._process: subprocess.Popen[bytes] | None = None
        # Killed with the test process, whatever becomes of that.
        self._args = ["setpriv", "--pdeathsig", "KILL", program]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, timeout: float = PATIENCE_S) -> None:
        """Start it; returns when it answers queries."""
        with (self._dir / "log").open("wb") as log:
            self._process = subprocess.Popen(
                self._args, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            wait_until(self.url, self._ready, timeout)
        except BaseException as error:
            error.add_note((self._dir / "log").read_text(errors="replace"))
            self.stop()
            raise

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; killed, it can be started again with its data."""
        assert self._process is not None
        self._process.send_signal(number)
        if number == signal.SIGKILL:
            self._process.wait(30)

    def _ready(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"{self._args[3]} ended with status {self._process.returncode}")
        try:
            with urllib.request.urlopen(f"{self.url}{self._ready_path}", timeout=5) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """Kill it and remove its data. May be called again."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(30)
        shutil.rmtree(self._dir, ignore_errors=True)


class Store(Program):
    """A program that answers PromQL."""

    def api(self, path: str, **parameters: str) -> Any:
        """The data of an API call, such as api("targets") or api("query_range", query=…)."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=120) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(f"{path} {parameters}: {error.read().decode()}") from error

    def query(self, promql: str, **at: str) -> list[Sample]:
        """The series of an instant query; a scalar gives one without labels."""
        data = self.api("query", query=promql, **at)
        if data["resultType"] == "scalar":
            return [({}, float(data["result"][1]))]
        return [(row["metric"], float(row["value"][1])) for row in data["result"]]

    def exemplars(self, selector: str) -> list[dict[str, Any]]:
        """Series with their exemplars, of the last hour."""
        now = time.time()
        span = {"start": f"{now - 3600:.3f}", "end": f"{now + 60:.3f}"}
        found: list[dict[str, Any]] = self.api("query_exemplars", query=selector, **span)
        return found

    def value(self, promql: str) -> float | None:
        """The value of a query which gives at most one series."""
        return _only(promql, self.query(promql))

    def wait_for(
        self,
        promql: str,
        predicate: Callable[[list[Sample]], bool] = bool,
        timeout: float = PATIENCE_S,
    ) -> list[Sample]:
        """The first answer to the query which satisfies the predicate (by default: not empty)."""
        last: list[Sample] = []

        def probe() -> bool:
            last[:] = self.query(promql)
            return predicate(last)

        try:
            wait_until(promql, probe, timeout, 0.2)
        except TimeoutError as error:
            error.add_note(f"last answer: {last}\n{self._state()}")
            raise
        return last

    def instant(
        self,
        promql: str,
        predicate: Callable[[list[Sample]], bool] = bool,
        timeout: float = PATIENCE_S,
    ) -> Instant:
        """An instant of which the answer to the query satisfies the predicate, and what else is
        asked of it is as old: a scrape that fails on a busy machine makes all series end.
        """
        at = time.time()

        def probe() -> Instant | None:
            nonlocal at
            if (self.value("min(timestamp(up))") or 0) <= at:
                return None  # a scrape that began before may still be under way
            then, at = Instant(self, at), time.time()
            return then if predicate(then.query(promql)) else None

        try:
            return wait_until(promql, probe, timeout, 0.2)
        except TimeoutError as error:
            error.add_note(f"answer now: {self.query(promql)}\n{self._state()}")
            raise

    def _state(self) -> str:
        """What helps to see why there are no samples."""
        return (self._dir / "log").read_text(errors="replace")[-2000:]


class Instant(NamedTuple):
    """What a store had at one time (epoch seconds), of which it has got all scrapes."""

    store: Store
    at: float

    def query(self, promql: str) -> list[Sample]:
        """The series of an instant query."""
        return self.store.query(promql, time=f"{self.at:.3f}")

    def value(self, promql: str) -> float | None:
        """The value of a query which gives at most one series."""
        return _only(promql, self.query(promql))


def _only(promql: str, samples: list[Sample]) -> float | None:
    if len(samples) > 1:
        raise ValueError(f"{promql} gives {len(samples)} series")
    return samples[0][1] if samples else None


class Prometheus(Store):
    """A Prometheus; the targets are "host:port" or URLs."""

    def __init__(
        self,
        targets: Sequence[str],
        *,
        interval: str = "1s",
        timeout: str | None = None,
        options: Mapping[str, Any] | None = None,
        rules: Sequence[Path] = (),
        alertmanager: str = "",
        remote_write: str = "",
    ) -> None:
        """`options` are further settings of the scrape configuration, `interval` and `timeout` are
        durations as Prometheus writes them. Alerts of the files `rules` go to `alertmanager`
        ("host:port"), and all samples to the URL `remote_write`.
        """
        super().__init__("prometheus", "/-/ready")
        self._args += [
            f"--config.file={self._dir / 'prometheus.json'}",
            f"--storage.tsdb.path={self.data}",
            f"--web.listen-address={self.listen}",
            "--web.enable-lifecycle",
            "--enable-feature=exemplar-storage",
            "--rules.alert.resend-delay=1s",
            "--log.level=warn",
        ]
        jobs = [self._job(n, t, options or {}) for n, t in enumerate(targets)]
        duration = {"scrape_interval": interval, "evaluation_interval": interval}
        duration["scrape_timeout"] = timeout or interval
        # JSON is YAML too.
        managers = [{"static_configs": [{"targets": [alertmanager]}]}] if alertmanager else []
        whole = {
            "global": duration,
            "scrape_configs": jobs,
            "rule_files": [str(file) for file in rules],
            "alerting": {"alertmanagers": managers},
            "remote_write": [{"url": remote_write}] if remote_write else [],
        }
        text = json.dumps(whole, indent=1)
        (self._dir / "prometheus.json").write_text(text)

    @staticmethod
    def _job(number: int, target: str, options: Mapping[str, Any]) -> dict[str, Any]:
        parts = urllib.parse.urlsplit(target if "://" in target else f"http://{target}")
        return {
            "job_name": f"test{number}",
            "scheme": parts.scheme,
            "metrics_path": parts.path or "/metrics",
            "static_configs": [{"targets": [parts.netloc]}],
            **options,
        }

    def targets(self) -> dict[str, str]:
        """URL of each target -> "" if its last scrape succeeded, else the error."""
        active = self.api("targets")["activeTargets"]
        return {target["scrapeUrl"]: target["lastError"] for target in active}

    def _state(self) -> str:
        return f"targets: {self.targets()}"


class VictoriaMetrics(Store):
    """A central store, to which several Prometheuses write."""

    def __init__(self) -> None:
        super().__init__("victoria-metrics", "/health")
        self._args += [
            f"-storageDataPath={self.data}",
            f"-httpListenAddr={self.listen}",
            "-search.latencyOffset=0s",  # samples of now are to be seen
            "-memory.allowedBytes=100MB",
        ]
        self.remote_write = f"{self.url}/api/v1/write"


class VmAlert(Store):
    """Evaluates rules over a central store every two seconds, and writes what they record to it."""

    def __init__(self, store: VictoriaMetrics, rules: Sequence[Path], alertmanager: str) -> None:
        super().__init__("vmalert", "/health", "victoria-metrics")
        self._args += [
            *(f"-rule={file}" for file in rules),
            *(f"-datasource.url={store.url}", f"-remoteWrite.url={store.url}"),
            *(f"-notifier.url=http://{alertmanager}", "-evaluationInterval=2s"),
            f"-httpListenAddr={self.listen}",
        ]
