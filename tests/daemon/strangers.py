"""Strangers on the network, a program of its own: silent connections, and requests without a token.

It is told the port and how many silent connections to hold, writes a line once it holds them, and
goes on until it is killed.  Whatever the server closes is opened again.
"""

from __future__ import annotations

import asyncio
import itertools
import resource
import sys

HOST = "127.0.0.1"
REQUESTS_A_SECOND = 100
OPENED_AT_ONCE = 100
_BEGIN = b"GET /metrics HTTP/1.1\r\nConnection: close\r\nHost: "
REQUESTS = (
    _BEGIN + b"localhost\r\n\r\n",
    _BEGIN + b"evil.example\r\n\r\n",
    b"\x16\x03 no HTTP\r\n\r\n",
)


async def silent(port: int, opening: asyncio.Semaphore, held: set[int], number: int) -> None:
    """Hold a connection without a word; after it was closed, another one."""
    while True:
        async with opening:
            try:
                reader, writer = await asyncio.open_connection(HOST, port)
            except OSError:
                await asyncio.sleep(1)
                continue
        held.add(number)
        await reader.read()
        await asyncio.sleep(5)  # held, though the server has closed its end
        writer.close()


async def ask(port: int, request: bytes) -> None:
    """Ask without a token, in HTTP or not."""
    try:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(request)
        await reader.read()
        writer.close()
    except OSError:
        pass


async def main(port: int, connections: int) -> None:
    """Hold and ask for ever."""
    opening, held = asyncio.Semaphore(OPENED_AT_ONCE), set[int]()
    tasks = {asyncio.create_task(silent(port, opening, held, n)) for n in range(connections)}
    while len(held) < connections:
        await asyncio.sleep(0.1)
    print("held", flush=True)
    for request in itertools.cycle(REQUESTS):
        tasks.add(task := asyncio.create_task(ask(port, request)))
        task.add_done_callback(tasks.discard)
        await asyncio.sleep(1 / REQUESTS_A_SECOND)


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
