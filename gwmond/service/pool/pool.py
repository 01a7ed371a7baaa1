"""What is watched: a live pool, or a recording in its place, with the clock that goes with it."""

from __future__ import annotations

from typing import Self

from gwmond.config.settings import Config, ConfigError
from gwmond.model.elapsed import Tick
from gwmond.service.host.clock import Clock, ReplayClock, SystemClock
from gwmond.sources import child
from gwmond.sources.gather import Gatherer
from gwmond.sources.htcondor.access import Access, LiveAccess
from gwmond.sources.recording.recording import Recording, ReplayAccess
from gwmond.sources.round import Targets


class Pool:
    """The pool of a configuration: who to ask, how, and by which clock."""

    def __init__(self, config: Config, kinds: frozenset[str] | None = None) -> None:
        self._config = config
        self.recording: Recording | None = None
        self.clock: Clock
        pool = config.pool
        if config.replay.file:
            try:
                self.recording = Recording(config.replay.file)
            except ValueError as error:
                raise ConfigError(f"replay.file: {error}") from None
            first, duration = self.recording.times[0], self.recording.duration_s
            speed, own_time = config.replay.speed, bool(self.recording.past)
            period_s = config.poll.interval * speed
            self.clock = ReplayClock(first, duration, speed, period_s, own_time=own_time)
            names = self.recording.names
            self.targets = Targets(
                tuple(names("collectors")),
                tuple(names("wms_collectors")),
                tuple(names("factory_schedds")),
                groups=False,
                kinds=self.recording.kinds,
            )
        else:
            self.clock = SystemClock()
            wms = pool.wms
            collectors = pool.collectors or ("",)
            self.targets = Targets(collectors, wms.collectors, wms.factory_schedds, kinds=kinds)
        self.gatherer = Gatherer(config, self.targets, self.clock.speed)

    @classmethod
    def open(
        cls, config: Config, *, once: bool = False, kinds: frozenset[str] | None = None
    ) -> Self:
        """Return the pool, with what forks the processes of its queries at hand.

        ``once``: it is asked once, by a command; ``kinds``: what collectors are asked for, if not
        for all.
        """
        factory = config.factory
        files = bool(factory.directories or factory.central_logs or factory.log_socket)
        child.start(files=files, once=once)
        return cls(config, kinds)

    @property
    def period_s(self) -> float:
        """Poll period by the pool's clock."""
        return self._config.poll.interval * self.clock.speed

    def access(self, tick: Tick) -> Access:
        """Return how daemons are asked at ``tick``."""
        if self.recording is not None and isinstance(self.clock, ReplayClock):
            position = self.clock.position(tick)
            return ReplayAccess(self.recording.path, position.time, position.shift)
        return LiveAccess(self._config.pool.token_directory)
