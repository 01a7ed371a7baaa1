"""How long scrapes take while something else happens."""

from __future__ import annotations

import statistics
import time
import urllib.request

from tests.build.meanwhile import Meanwhile

_PAUSE_S = 0.2
_STALL_S = 0.01


class LatencyProbe(Meanwhile):
    """Scrapes a URL again and again in a thread of its own.

    A second thread only sleeps: by how much it oversleeps tells what this machine itself costs.
    """

    def __init__(self, url: str) -> None:
        super().__init__(self._scrape, self._sleep)
        self._url = url
        self.seconds: list[float] = []
        self.failures: list[str] = []
        self.longest_stall = 0.0

    def _scrape(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                with urllib.request.urlopen(self._url, timeout=120) as reply:
                    reply.read()
                self.seconds.append(time.monotonic() - began)
            except OSError as error:
                self.failures.append(str(error))
            self._stop.wait(_PAUSE_S)

    def _sleep(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            time.sleep(_STALL_S)
            self.longest_stall = max(self.longest_stall, time.monotonic() - began - _STALL_S)

    def check(self) -> None:
        """Assert that each scrape was answered, and most of them at once.

        A scrape that waits for a query lasts seconds.  What single scrapes cost is printed.
        """
        median, slowest = statistics.median(self.seconds), max(self.seconds)
        print(
            f"{len(self.seconds)} scrapes: median {median * 1e3:.1f} ms, slowest "
            f"{slowest * 1e3:.1f} ms; the machine stalled {self.longest_stall * 1e3:.1f} ms"
        )
        assert not self.failures
        assert median < 1
