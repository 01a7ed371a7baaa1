"""Recordings of a pool: what ``gwmond record`` writes and the replay reads.

A recording is a zip archive.  ``meta.json`` has the times of all frames and the names of the
daemons; each stream (the answers of one daemon to one kind of query) has a member for every block
of frames, compressed by LZMA: a JSON list with an item for each frame, null where there was no
answer.  The first answer of a block is whole; the others have only what changed.  Whole answers
would take ten times the memory of who records, and of who replays.  A stream of a history
(``recorded_runs``) has the records that were new in each frame.

Attributes are kept as ClassAd text: only those that gwmond asks for (``Query.attributes``), and
what the expressions among them refer to, as matching needs it, but for paths.  User names are
replaced by pseudonyms; a replayed ad is heard now, unless nothing had been heard of it for long
when it was recorded, or when the next frames were.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import shutil
import zipfile
from bisect import bisect_right
from functools import cached_property, lru_cache
from lzma import LZMAError
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from gwmond.model.problem_names import ProblemName
from gwmond.model.tour import TourStop
from gwmond.sources.child import QueryError
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.factory import REMOVED
from gwmond.sources.htcondor.matching import JOB_QUERY, START
from gwmond.sources.htcondor.pilots import claims, slots
from gwmond.sources.recording import recorded_runs, replayed_runs
from gwmond.sources.recording.deltas import Ad, Answer, Delta, apply, by_key, difference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import classad2

    from gwmond.sources.htcondor.access import Daemon, Query

_Frame: TypeAlias = "Delta | Answer | list[Ad] | None"

VERSION = 2
FRAMES_A_BLOCK = 48
STALE_S = 400
"""How long nothing is heard of a daemon that is not alive any more: daemons report every 300 s."""

JOB = "job"
"""The kind of the query for single jobs, which only recordings of invented pools have."""
_EXPLAINING = frozenset((JOB, "accounting", "negotiators", "cycles", "limits"))
"""Kinds that polls do not ask for.  What a query of these wants is chosen by its constraint."""
_BEGINNING_S = 900.0
_HEARD = ("LastHeardFrom", "MyCurrentTime", "ServerTime")
_VOLATILE = re.compile(
    r"^(LastHeardFrom|MyCurrentTime|ServerTime|Update.*|Recent.*"
    r"|MonitorSelf.*|.*LoadAvg|TotalTime.*|DaemonCore.*|DC.*|Last.*|.*Idle(Time)?Sec.*)$",
    re.IGNORECASE,
)
# Users' expressions may refer to anything, but nothing named like these is recorded for that.
_SECRET = re.compile(
    r"token|claim|secret|passw|credential|environment|^env$|arguments|^args$|capability|keys?$"
    r"|x509userproxy(?!voname)|subject|email|authenticatedidentity|pubkey|session|socket",
    re.IGNORECASE,
)
_USERS = ("Owner", "User", "AcctGroupUser", "RemoteOwner", "RemoteUser", "OsUser", "NTDomain")
_HIDDEN = (("Cmd", "program"), ("JobBatchName", "batch"))
_PATH = re.compile(r'"[^"]*/[^"]*"')
"""A text with a path, such as that of a proxy: kept only if gwmond itself asks for it."""
_LITERAL = re.compile(
    r'-?[0-9]+(?:\.[0-9]+)?(?:E[+-]?[0-9]+)?|"[^"]*"|true|false|undefined|error', re.IGNORECASE
)


def dump(answer: Sequence[classad2.ClassAd], names: Iterable[str]) -> list[Ad]:
    """Turn ads into attribute texts: of ``names``, and of what these refer to in the same ad.

    ``names`` are as in ``Query.attributes``.  What changes at every update is left out.
    """
    wanted = _Wanted(names)
    heard = [ads.number(ad, "LastHeardFrom") for ad in answer]
    newest = max((time for time in heard if time is not None), default=0)
    dumped = []
    for ad, time in zip(answer, heard, strict=True):
        kept = {
            name: written
            for name in wanted.of(ad)
            if (written := recorded_runs.text_of(ad, name)) is not None
            and (wanted.is_asked(name) or _PATH.search(written) is None)
        }
        if time is not None and time < newest - STALE_S:
            kept["LastHeardFrom"] = str(int(time))
        dumped.append(kept)
    return dumped


def referred(answer: Sequence[classad2.ClassAd], names: Iterable[str]) -> set[str]:
    """Return the attributes of others to which the expressions among ``names`` refer."""
    wanted, refers = _Wanted(names), set[str]()
    for ad in answer:
        for written in wanted.expressions(ad):
            refers |= {name.rpartition(".")[2] for name in ad.externalRefs(written)}
    return {name for name in refers if name and not _SECRET.search(name)}


class _Wanted:
    """Which attributes of ads are recorded."""

    def __init__(self, names: Iterable[str]) -> None:
        lower = {name.lower() for name in names}
        unasked = {*ads.SECRET, *map(str.lower, _HEARD)}  # times that a replay makes
        self._names = {name for name in lower if not name.endswith("*")} - unasked
        self._prefixes = tuple(name[:-1] for name in lower if name.endswith("*"))

    def of(self, ad: classad2.ClassAd) -> list[str]:
        """Return the names of the attributes of an ad, as the ad writes them."""
        refers = {
            name.lower()
            for written in self.expressions(ad)
            for name in ad.internalRefs(written)
            if not _SECRET.search(name)
        }
        return [
            name
            for name in ad.keys()  # noqa: SIM118 (a ClassAd's iterator is not its keys)
            if name.lower() in self._names
            or ((self.is_asked(name) or name.lower() in refers) and not _VOLATILE.match(name))
        ]

    def expressions(self, ad: classad2.ClassAd) -> Iterator[classad2.ExprTree]:
        """Yield the expressions among the attributes that are asked for."""
        for name in ad.keys():  # noqa: SIM118
            if self.is_asked(name):
                text = recorded_runs.text_of(ad, name)
                if text is not None and not _LITERAL.fullmatch(text):
                    yield ad.lookup(name)
        for name in (START, JOB_QUERY):
            text = ads.raw(ad, name)
            if text is not None and (written := ads.expression(text)) is not None:
                yield written

    def is_asked(self, name: str) -> bool:
        """Return whether gwmond asks for an attribute, whatever refers to it."""
        lower = name.lower()
        return lower in self._names or lower.startswith(self._prefixes)


class _Pseudonyms:
    """Replaces names of users, and of their programs and batches.

    The same name has always the same pseudonym within one recording.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(16)
        self._known: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def learn(self, answer: Iterable[Ad], kind: str) -> None:
        """Take note of every user name in some ads."""
        for ad in answer:
            for name in _USERS:
                self._add(ad.get(name, "").strip('"').partition("@")[0])
            if kind == "submitters":
                self._add(ad.get("Name", "").strip('"').partition("@")[0].rpartition(".")[2])

    def _add(self, user: str) -> None:
        if len(user) > 1 and re.fullmatch(r"[\w.+-]+", user) and user not in self._known:
            self._known[user] = f"user-{self._digest(user)}"
            names = "|".join(re.escape(n) for n in sorted(self._known, key=len, reverse=True))
            self._pattern = re.compile(rf"(?<![\w-])({names})(?![\w-])")

    def _digest(self, name: str) -> str:
        return hashlib.blake2b(name.encode(), key=self._key, digest_size=4).hexdigest()

    def clean(self, ad: Ad) -> Ad:
        """Return the ad with all known users replaced in its texts, and those of ``_HIDDEN``."""
        pattern = self._pattern
        secret = {
            name: f'"{prefix}-{self._digest(ad[name])}"' for name, prefix in _HIDDEN if name in ad
        }
        ad = {**ad, **secret} if secret else ad
        if pattern is None:
            return ad
        return {
            name: pattern.sub(lambda m: self._known[m[1]], text) if '"' in text else text
            for name, text in ad.items()
        }


class Writer:
    """Writes frames as they come; close it, also after an interruption, to have a whole file.

    Raises OSError; without ``overwrite`` FileExistsError where there is a file.
    """

    def __init__(
        self, path: Path, daemons: Mapping[str, Sequence[str]], *, overwrite: bool = False
    ) -> None:
        flags = os.O_RDWR | os.O_CREAT | (os.O_TRUNC if overwrite else os.O_EXCL)
        self._file = os.fdopen(os.open(path, flags, 0o600), "w+b")
        os.fchmod(self._file.fileno(), 0o600)  # also one that was there
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_LZMA)
        self._daemons = {kind: list(names) for kind, names in daemons.items()}
        self._times: list[float] = []
        self._last: dict[str, Answer] = {}
        self._block: dict[str, list[_Frame]] = {}
        self._streams: dict[str, None] = {}
        self._pseudonyms = _Pseudonyms()
        self._past: list[str] = []

    def add(self, time: float, answers: Mapping[str, Sequence[Ad]]) -> None:
        """Add one frame: what each stream answered at ``time``; a stream may be missing.

        Streams named by ``recorded_runs.stream`` have only what is new.
        """
        position = len(self._times) % FRAMES_A_BLOCK
        for stream, answer in answers.items():
            self._pseudonyms.learn(answer, stream.rpartition("/")[2])
            self._streams.setdefault(stream)
        for stream in self._streams:
            frames = self._block.setdefault(stream, [None] * position)
            frames.append(self._frame(stream, frames, answers.get(stream)))
        self._times.append(time)
        if len(self._times) % FRAMES_A_BLOCK == 0:
            self._flush()

    def _frame(self, stream: str, before: Sequence[_Frame], answer: Sequence[Ad] | None) -> _Frame:
        """Return what is written of an answer; ``before``: the block's frames up to now."""
        if answer is None:
            return None
        cleaned = [self._pseudonyms.clean(ad) for ad in answer]
        if stream.startswith(recorded_runs.MEMBER):
            return cleaned
        keyed = by_key(cleaned)
        whole = all(frame is None for frame in before)
        written = keyed if whole else difference(self._last[stream], keyed)
        self._last[stream] = keyed
        return written

    def _flush(self) -> None:
        number = (len(self._times) - 1) // FRAMES_A_BLOCK
        for stream, frames in self._block.items():
            body = json.dumps(frames, separators=(",", ":"), ensure_ascii=False)
            self._zip.writestr(_member(number, stream), body)
        self._block.clear()

    def add_past(self, ledger: Path, tour: Sequence[TourStop]) -> None:
        """Add what was before the first frame; so the recording is replayed at its own time."""
        self._past = ["past/ledger.sqlite", "past/tour.json"]
        self._zip.write(ledger, self._past[0])
        self._zip.writestr(self._past[1], json.dumps(tour))

    def close(self) -> None:
        """Write what is pending, and the list of frames."""
        if self._block:
            self._flush()
        meta = {
            "version": VERSION,
            "frames_a_block": FRAMES_A_BLOCK,
            "times": self._times,
            "streams": list(self._streams),
            **({"past": self._past} if self._past else {}),
            **self._daemons,
        }
        self._zip.writestr("meta.json", json.dumps(meta))
        self._zip.close()
        self._file.close()


def _member(block: int, stream: str) -> str:
    return f"{block:05d}/{stream}.json"


class Recording:
    """A recording, opened for reading.  Raises ValueError when it is none."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                meta = json.loads(archive.read("meta.json"))
        except OSError as error:
            raise ValueError(f"{path}: cannot read it: {error.strerror or error}") from None
        except (EOFError, KeyError, ValueError, zipfile.BadZipFile, LZMAError) as error:
            raise ValueError(f"{path}: not a recording made by gwmond record: {error}") from None
        if not isinstance(meta, dict) or meta.get("version") != VERSION or not meta.get("times"):
            raise ValueError(f"{path}: a recording without frames, or of another version")
        self.meta: dict[str, Any] = meta

    @cached_property
    def streams(self) -> frozenset[str]:
        """The names of all streams."""
        return frozenset(self.meta["streams"])

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of sources that collectors were asked for when it was made."""
        streams = (stream for stream in self.streams if stream.startswith("collector/"))
        return frozenset(self.names("kinds") or (stream.rpartition("/")[2] for stream in streams))

    @cached_property
    def times(self) -> list[float]:
        """Times of the frames, ascending, epoch seconds."""
        return [float(time) for time in self.meta["times"]]

    @property
    def has_jobs(self) -> bool:
        """Whether single jobs can be explained, and pilots."""
        return any(stream.endswith(f"/{JOB}") for stream in self.streams)

    @cached_property
    def past(self) -> tuple[str, ...]:
        """The members with what was before, if anything: a ledger (SQLite), and a tour (JSON)."""
        return tuple(self.meta.get("past", ()))

    @cached_property
    def tour(self) -> tuple[TourStop, ...]:
        """What there is to see."""
        if not self.past:
            return ()
        with zipfile.ZipFile(self.path) as archive:
            return tuple(TourStop(*stop) for stop in json.loads(archive.read(self.past[1])))

    def unpack(self, member: str, path: Path) -> None:
        """Write a member to a new file, which only its owner can read.  Raises OSError."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with (
            os.fdopen(descriptor, "wb") as file,
            zipfile.ZipFile(self.path) as archive,
            archive.open(member) as packed,
        ):
            shutil.copyfileobj(packed, file, 1 << 20)

    @property
    def duration_s(self) -> float:
        """Length of one pass in whole seconds: to the last frame and the usual step beyond."""
        steps = len(self.times) - 1
        span = self.times[-1] - self.times[0]
        return float(math.ceil(span + (span / steps if steps else 60.0)))

    def names(self, kind: str) -> list[str]:
        """Return daemons (collectors, wms_collectors, factory_schedds), or kinds of sources."""
        return list(self.meta.get(kind, []))

    @property
    def frames_a_block(self) -> int:
        """How many frames a member has."""
        return int(self.meta["frames_a_block"])

    def index(self, time: float) -> int:
        """Return which frame is the last at or before ``time``."""
        return max(0, bisect_right(self.times, time) - 1)

    def frame(self, stream: str, time: float) -> Answer | None:
        """Return what a stream answered last at or before ``time``; ``None``: it did not.

        A later frame tells when an ad that was not renewed any more was last heard of.
        """
        index = self.index(time)
        last = min(self.index(self.times[index] + STALE_S) + 1, len(self.times) - 1)
        answer, *later = self._answers(stream, index, last)
        if answer is None:
            return None
        told = {
            key: {"LastHeardFrom": ad["LastHeardFrom"]}
            for found in reversed(later)
            for key, ad in (found or {}).items()
            if key in answer and float(ad.get("LastHeardFrom", inf)) <= self.times[index]
        }
        return {key: told.get(key, {}) | ad for key, ad in answer.items()}

    def _answers(self, stream: str, first: int, last: int) -> Iterator[Answer | None]:
        """Yield what a stream answered in the frames first ... last, both included."""
        size, answer, frames = self.frames_a_block, Answer(), list[Any]()
        for number in range(first - first % size, last + 1):
            if number % size == 0:
                answer, frames = {}, self.block(stream, number // size)
            frame = frames[number % size] if number % size < len(frames) else None
            answer = answer if frame is None else apply(answer, frame)
            if number >= first:
                yield None if frame is None else answer

    def block(self, stream: str, number: int) -> list[Any]:
        """Return what is written of a stream in a block of frames; empty: nothing."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                frames: list[Any] = json.loads(archive.read(_member(number, stream)))
        except KeyError:
            return []
        return frames


class ReplayAccess(NamedTuple):
    """A recording in the place of live daemons, at one instant of its repetition.

    ``time`` is the recorded time, ``shift`` the whole seconds to add to every epoch in an ad.
    """

    path: str
    time: float
    shift: float

    def collector_ads(self, host: str, query: Query) -> list[classad2.ClassAd]:
        """Return the ads that the collector held then; of slots, those that are asked for.

        As a pass begins, old claims are among the new: they are new to whoever goes on from the
        pass before.
        """
        stream = f"collector/{host}/{query.kind}"
        if query.kind in _EXPLAINING:
            return self._explaining(stream, query)
        every = {claims.KIND: claims.query().constraint, slots.KIND: slots.EVERY}
        begins = self.time < _opened(self.path).times[0] + _BEGINNING_S
        if begins and claims.BEGUN in query.constraint:
            del every[claims.KIND]
        whole = every.get(query.kind, query.constraint)
        return self._ads(stream, query.constraint.removeprefix(whole).removeprefix(" && "))

    def job_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        """Return the rows that the schedd returned then."""
        stream = f"schedd/{schedd.name}/{query.kind}"
        if query.kind in _EXPLAINING:
            return self._explaining(stream, query)
        if query.kind == REMOVED and stream not in _opened(self.path).streams:
            return []  # recorded before that was asked for
        return self._ads(stream)

    def cluster_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        """Return the cluster ads that the schedd returned then."""
        return self._ads(f"schedd/{schedd.name}/{query.kind}")

    def history(
        self, daemon: Daemon, kind: str, query: Query, match: int, since: str
    ) -> list[classad2.ClassAd]:
        """Return what the schedd had written by then; recordings have no startds' histories."""
        recording = _opened(self.path)
        if kind not in recorded_runs.KINDS:
            return []
        stream, frame = recorded_runs.stream(daemon.name, kind), recording.index(self.time)
        frames = _block(self.path, stream, frame // recording.frames_a_block)
        position = frame % recording.frames_a_block
        if position >= len(frames) or frames[position] is None:
            streams = [recorded_runs.stream(daemon.name, kind) for kind in recorded_runs.KINDS]
            kept = stream in recording.streams or not recording.streams.intersection(streams)
            detail = f"{daemon.name}: did not answer for {kind} when recorded"
            raise QueryError(ProblemName.UNREACHABLE if kept else ProblemName.NOT_KEPT, detail)
        moment = replayed_runs.ReplayMoment(
            frame,
            len(recording.times),
            recording.frames_a_block,
            round(self.shift),
            round(recording.duration_s),
            lambda number: _block(self.path, stream, number),
        )
        return replayed_runs.history(moment, query, match, since)

    def _explaining(self, stream: str, query: Query) -> list[classad2.ClassAd]:
        known = stream in _opened(self.path).streams
        return self._ads(stream, query.constraint) if known else []

    def _ads(self, stream: str, narrowed: str = "") -> list[classad2.ClassAd]:
        answer = _opened(self.path).frame(stream, self.time)
        if answer is None:
            raise QueryError(ProblemName.UNREACHABLE, f"{stream}: did not answer when recorded")
        shift = round(self.shift)
        heard = {name: str(int(self.time) + shift) for name in _HEARD}
        moved = [
            heard | {name: replayed_runs.moved(name, text, shift) for name, text in ad.items()}
            for ad in answer.values()
        ]
        return [ads.parse(ads.written(ad)) for ad in replayed_runs.among(moved, narrowed)]


@lru_cache(maxsize=1)
def _opened(path: str) -> Recording:
    """Return a recording; a child asks several times for what is in the same one."""
    return Recording(path)


@lru_cache(maxsize=4)
def _block(path: str, stream: str, number: int) -> list[list[Ad] | None]:
    """Return the new records of a history in the frames of a block."""
    return _opened(path).block(stream, number)
