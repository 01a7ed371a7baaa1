"""Record a pool into a file that gwmond demo replays.

Every source is asked once a frame, as the daemon asks it. Only attributes that gwmond asks for
are recorded, and what expressions among them refer to, unless its name is that of a secret; user
names are replaced by pseudonyms. Interrupt it at any time: what was recorded until then is a
whole recording.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rich.progress import Progress

from gwmond.commands.common import EXIT_OK, EXIT_SOURCES_DOWN
from gwmond.config.settings import Config, ConfigError
from gwmond.model.times import parse_duration
from gwmond.reports.render.formats import counted
from gwmond.service.host import log
from gwmond.service.pool.pool import Pool
from gwmond.sources.recording.recorder import Recorder
from gwmond.sources.recording.recording import Writer


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("output", type=Path, metavar="FILE", help="the recording to write (.zip)")
    parser.add_argument(
        "--frames", type=int, default=1, metavar="N", help="how many frames (default: 1)"
    )
    parser.add_argument(
        "--every",
        default="60s",
        metavar="DURATION",
        help="time between two frames, such as 60s or 5m (default: 60s)",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace FILE if it exists, which is refused else"
    )


def execute(config: Config, arguments: argparse.Namespace) -> int:
    """Record; 0 when every source answered in every frame, 3 when some did not."""
    log.configure(config.log)
    try:
        every = parse_duration(arguments.every)
    except ValueError as error:
        raise ConfigError(f"--every: {error}") from None
    if config.replay.file:
        raise ConfigError("replay.file: a recording cannot be recorded: take it out, or copy it")
    pool = Pool.open(config)
    recorder = Recorder(config, pool.targets)
    path: Path = arguments.output
    try:
        writer = Writer(path, recorder.asked(), overwrite=arguments.overwrite)
    except FileExistsError:
        raise ConfigError(
            f"{path}: it exists: name another file, or replace it with --overwrite"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot write it: {error.strerror}") from None
    with Progress(transient=True) as progress:
        bar = progress.add_task("recording", total=arguments.frames)
        try:
            for number in range(arguments.frames):
                until = time.monotonic() + every
                tick = pool.clock.tick()
                writer.add(tick.wall, recorder.frame(pool.access(tick), tick.wall))
                progress.advance(bar)
                if number + 1 < arguments.frames:
                    time.sleep(max(0.0, until - time.monotonic()))
        except KeyboardInterrupt:
            pass
        finally:
            writer.close()
    print(
        f"{path}: {path.stat().st_size / 1024:.0f} KiB, {counted(recorder.frames, 'frame')}, "
        f"{recorder.records} ads"
    )
    for source, text in sorted(recorder.errors.items()):
        print(f"gwmond: {source}: {text}", file=sys.stderr)
    return EXIT_SOURCES_DOWN if recorder.errors else EXIT_OK
