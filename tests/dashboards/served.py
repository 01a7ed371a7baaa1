"""A gwmond of which a Prometheus sees all that can be shown, at a poll of now or of long ago."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from gwmond.metrics import catalog
from gwmond.metrics.render import TEXT_TYPE, render
from tests.build.snapshots import snapshot

_COUNTER = re.compile(
    r"^(gwmond_(?:\w+_(?:total|bucket)|series_folded)(?:\{.*\})?) (\S+)$", re.MULTILINE
)
_GROWTH = 3600.0  # a second, of each counter


class Served:
    """Serves the snapshot that was made by hand, whose counters grow. A context manager.

    Each source has answered once, and more series are folded each second.

    ``age_s`` is how long ago its poll ended, at each scrape.
    """

    def __init__(self, age_s: float) -> None:
        made = snapshot()
        once = tuple(status._replace(last_success=made.made_at) for status in made.sources)
        made = replace(made, sources=once)
        text = render(catalog.FAMILIES, made, 10_000).text.decode()
        began = time.time()

        def now() -> str:
            grown = (time.time() - began) * _GROWTH
            more = _COUNTER.sub(lambda x: f"{x[1]} {float(x[2]) + grown}", text)
            polled = f"gwmond_poll_timestamp_seconds {time.time() - age_s}"
            return re.sub(r"^gwmond_poll_timestamp_seconds .*$", polled, more, flags=re.MULTILINE)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = now().encode()
                self.send_response(200)
                self.send_header("Content-Type", TEXT_TYPE)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.target = f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
