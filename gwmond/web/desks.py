"""Where answers are made that take time: few threads, few who wait, and nothing for who has left.

A desk has some threads, and at most ``MOST_WAITING`` requests at it.  One more is refused at once,
one that lasts longer than ``WAIT_S`` then; who closes the connection gives up the place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.requests import Request

from gwmond.web.pages import NotMade

T = TypeVar("T")
MOST_WAITING = 16
WAIT_S = 20.0
AGAIN_S = 5
"""After so many seconds who was refused may ask again."""


class NoTurn(Exception):
    """Other pages are being made; this one got no turn in time."""


class Desk:
    """Makes what is asked for in threads of its own; call it from one event loop."""

    def __init__(self, name: str, threads: int = 1) -> None:
        self._threads = ThreadPoolExecutor(threads, name)
        self._free = asyncio.Semaphore(threads)
        self._waiting = 0

    async def kept(self, request: Request, call: Callable[[], T]) -> T:
        """Return what is kept of the poll at once, else as ``made`` does."""
        try:
            return call()
        except NotMade:
            return await self.made(request, call)

    async def made(self, request: Request, call: Callable[[], T]) -> T:
        """Return what a call in a thread returns, or raises; raises NoTurn."""
        if self._waiting >= MOST_WAITING:
            raise NoTurn
        self._waiting += 1
        turn = asyncio.ensure_future(self._turn(call))
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait({turn, gone}, timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED)
            if not turn.done():
                raise NoTurn
            return turn.result()
        finally:
            self._waiting -= 1
            turn.cancel()
            gone.cancel()

    async def _turn(self, call: Callable[[], T]) -> T:
        """Make it when a thread is free; that has its turn until it ends, whoever has left."""
        await self._free.acquire()
        work = asyncio.get_running_loop().run_in_executor(self._threads, call)
        work.add_done_callback(self._ended)
        return await asyncio.shield(work)

    def _ended(self, work: asyncio.Future[T]) -> None:
        self._free.release()
        if not work.cancelled():
            work.exception()  # it is nobody's any more where the client has left


async def _gone(request: Request) -> None:
    """Wait until the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class Desks:
    """The desks of a server: what one needs long for keeps nobody from another."""

    def __init__(self) -> None:
        self.memory = Desk("memory")  # from the last poll alone
        self.ledger = Desk("ledger")
        self.pool = Desk("pool", 4)  # asks the pool: see explain.Turns, which refuses at once
