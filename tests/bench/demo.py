"""Benchmark: what one stream of one frame of the demo's recording costs to load, in CPU time."""

from __future__ import annotations

import argparse
import time
from importlib import resources

from gwmond.sources.recording.recording import Recording

_STREAMS = ("slots", "claims")
_HOST = "cm.demo.example"


def main() -> None:
    """Load a frame of the day's middle again and again, and print the least CPU time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    recording = Recording(str(resources.files("gwmond") / "data" / "demo.zip"))
    for stream in _STREAMS:
        took = []
        for _ in range(rounds):
            began = time.process_time()
            frame = recording.frame(f"collector/{_HOST}/{stream}", recording.times[143])
            took.append(time.process_time() - began)
        print(f"{stream}: {len(frame or {})} ads, {min(took) * 1000:.0f} ms of CPU")
