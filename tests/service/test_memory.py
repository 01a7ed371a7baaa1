"""Memory that polls have freed."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

from gwmond.service.host import memory

_FREES = """
import re, sys
from pathlib import Path
from gwmond.service.host.memory import give_back

def resident() -> int:
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

texts = [bytes([n % 256]) * 8000 for n in range(20_000)]  # 156 MiB
kept = texts[::50]
del texts
before = resident()
give_back(1)
print(before - resident())
"""


def test_what_lies_between_what_is_kept_is_given_back() -> None:
    """Of 156 MiB a fiftieth is kept, here and there: at least 100 MiB are the system's again."""
    done = subprocess.run(
        [sys.executable, "-c", _FREES], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 100 * 1024


class _Node:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.me = self


def test_cycles_that_are_old_are_given_back() -> None:
    """What has been held for long goes within an hour once nobody holds it."""
    node = _Node()
    held = weakref.ref(node)
    gc.collect()  # it is one of the old objects, which Python looks at last
    del node
    gc.collect(1)
    assert held() is not None
    for polls in range(1, memory.COLLECT_EVERY + 1):
        memory.give_back(polls)
    assert held() is None
