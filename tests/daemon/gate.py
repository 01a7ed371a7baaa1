"""A way to a daemon that can be opened, be slow, and accept connections and then stay silent."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Self


class Gate:
    """Relays TCP connections to ``target``; a context manager. ``address`` is its own."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._silent = False
        self._delay_s = 0.0
        self._waiting: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.open()

    def silence(self) -> None:
        """From now on accept connections, and do nothing else."""
        self._silent = True

    def delay(self, seconds: float) -> None:
        """From now on bytes come late, those of connections that are open too."""
        self._delay_s = seconds

    def open(self) -> None:
        """Relay again, at once; who still waits is cut off."""
        self._silent, self._delay_s = False, 0.0
        while self._waiting:
            self._waiting.pop().close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._silent:
                    self._waiting.append(client)
                    continue
                try:
                    daemon = socket.create_connection(self._target, timeout=30)
                except OSError:
                    client.close()
                    continue
                daemon.settimeout(None)
                for pair in ((client, daemon), (daemon, client)):
                    late = (lambda: self._delay_s,)
                    threading.Thread(target=_pump, args=pair + late, daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket, delay: Callable[[], float]) -> None:
    """Pass bytes on until the source ends, then say so."""
    with contextlib.suppress(OSError):
        while chunk := source.recv(65536):
            time.sleep(delay())
            sink.sendall(chunk)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
