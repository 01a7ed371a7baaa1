"""Benchmark: 50 clients of a daemon that replays the demo, with silent strangers beside them.

All have the token: one in ten scrapes ``/metrics``, the others ask for pages and REST.  For each
kind: how many were answered, in what time (p50, p99, longest), and with what.  A page may be told
to come later (503).
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from tests.bench.harness import say
from tests.daemon import strangers
from tests.daemon.running import RunningDaemon
from tests.promql import ROOT

PAGES = ("/", "/pilots", "/time", "/failures", "/api/v1/sites", "/api/v1/totals")
_TOKEN = "bench"
_TIMEOUT_S = 30.0


class Load:
    """Clients that ask again and again, one request a connection, and what they were told."""

    def __init__(self, port: int, until: float) -> None:
        self._port, self._until = port, until
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.told: Counter[tuple[str, str]] = Counter()

    async def client(self, number: int) -> None:
        """Ask until the time is over."""
        scrapes = number % 10 == 0
        paths = itertools.cycle(("/metrics",) if scrapes else PAGES[number % len(PAGES) :] + PAGES)
        kind = "scrapes" if scrapes else "pages"
        while time.monotonic() < self._until:
            began = time.monotonic()
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    status = await self._ask(next(paths))
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                status = type(error).__name__
            self.told[kind, status] += 1
            if status == "200":
                self.seconds[kind].append(time.monotonic() - began)
            else:
                await asyncio.sleep(0.5)

    async def _ask(self, path: str) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {_TOKEN}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode())
        body = await reader.read()
        while more := await reader.read():
            body += more
        writer.close()
        if not body:
            raise ConnectionResetError
        return body.split(b" ", 2)[1].decode()


async def _all(load: Load, clients: int) -> None:
    await asyncio.gather(*(load.client(number) for number in range(clients)))


def main() -> None:
    """Start it, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--silent", type=int, default=2000, help="silent connections beside")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        token = Path(directory) / "token"
        token.write_text(_TOKEN)
        tables: dict[str, dict[str, object]] = {
            "replay": {"file": f"{ROOT}/gwmond/data/demo.zip"},
            "http": {"auth_token_file": str(token)},
        }
        with RunningDaemon(Path(directory), [], tables, ready=False) as daemon:
            command = [sys.executable, strangers.__file__, str(daemon.port), str(options.silent)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as beside:
                assert beside.stdout is not None
                say(beside.stdout.readline().strip())
                load = Load(daemon.port, time.monotonic() + options.seconds)
                asyncio.run(_all(load, options.clients))
                beside.kill()
    for kind, seconds in load.seconds.items():
        told = {status: n for (of, status), n in load.told.items() if of == kind}
        cuts = statistics.quantiles(seconds, n=100)
        say(
            f"{kind}: {len(seconds) / options.seconds:.1f} a second, p50 {cuts[49]:.3f} s, "
            f"p99 {cuts[98]:.3f} s, longest {max(seconds):.3f} s; answers {told}"
        )


if __name__ == "__main__":
    main()
