"""Recordings of a pool: what ``gwmond record`` writes and the replay reads.

A recording is a zip archive.  ``meta.json`` has the times of all frames and the names of the
daemons; each stream (the answer of one daemon to one kind of query) has a member for every block
of frames, a JSON list of the whole answer first and then only what changed, compressed by LZMA.
Attributes are kept as ClassAd text.  Secrets are left out, user names replaced by pseudonyms; times
of hearing are not kept, because a replayed ad is always heard now.
"""

from __future__ import annotations

import json
import re
import zipfile
from bisect import bisect_right
from functools import cache, cached_property
from lzma import LZMAError
from typing import TYPE_CHECKING, Any, NamedTuple

from gwmond.sources import ads
from gwmond.sources.child import QueryError
from gwmond.sources.pseudonyms import Pseudonyms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import classad2

    from gwmond.sources.access import Daemon, Query

Ad = dict[str, str]
Answer = dict[str, Ad]
Delta = dict[str, "dict[str, str | None] | None"]

VERSION = 1
FRAMES_A_BLOCK = 48

_HEARD = ("LastHeardFrom", "MyCurrentTime", "ServerTime")
_VOLATILE = re.compile(
    r"^(LastHeardFrom|MyCurrentTime|ServerTime|Id|JobIds|Update.*|Recent(?!DaemonCoreDutyCycle).*"
    r"|MonitorSelf.*|.*LoadAvg|TotalTime.*|DaemonCore.*|DC.*|Last.*|.*Idle(Time)?Sec.*)$",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"token|claim|secret|passw|credential|environment|^env$|arguments|^args$|capability"
    r"|x509userproxy(?!voname)|subject|email|authenticatedidentity|pubkey|sessioninfo",
    re.IGNORECASE,
)
_STRING_OR_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')
_EPOCH = re.compile(
    r"^(DaemonStartTime|StatsLastUpdateTime|GLIDEIN_ToRetire|GLIDEIN_ToDie|MyCurrentTime|QDate"
    r"|EnteredCurrent\w+|JobStart|MonitorSelfTime|JobCurrentStart\w*|CompletionDate"
    r"|EpochWriteDate)$"
)


def dump(found: Sequence[classad2.ClassAd]) -> list[Ad]:
    """Turn ads into attribute texts, without secrets and without what changes at every update."""
    return [
        {
            name: written
            for name in ad.keys()  # noqa: SIM118 (a ClassAd's iterator is not its keys)
            if not _SECRET.search(name)
            and not _VOLATILE.match(name)
            and (written := _text(ad, name)) is not None
        }
        for ad in found
    ]


def _text(ad: classad2.ClassAd, name: str) -> str | None:
    """Return an attribute's text on one line: the bindings write lists on several."""
    try:
        text = str(ad.lookup(name))
    except (KeyError, UnicodeDecodeError, ValueError):
        return None
    return _STRING_OR_SPACE.sub(lambda m: m[1] or " ", text).strip() if "\n" in text else text


class Writer:
    """Writes frames as they come; close it, also after an interruption, to have a whole file."""

    def __init__(self, path: Path, daemons: Mapping[str, Sequence[str]]) -> None:
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA)
        self._daemons = {kind: list(names) for kind, names in daemons.items()}
        self._times: list[float] = []
        self._last: dict[str, Answer] = {}
        self._block: dict[str, list[Delta | Answer | None]] = {}
        self._streams: list[str] = []
        self._pseudonyms = Pseudonyms()

    def add(self, time: float, answers: Mapping[str, Sequence[Ad]]) -> None:
        """Add one frame: what each stream answered at ``time``; a stream may be missing."""
        for stream, found in answers.items():
            self._pseudonyms.learn(found, stream.rpartition("/")[2])
            if stream not in self._streams:
                self._streams.append(stream)
        position = len(self._times) % FRAMES_A_BLOCK
        for stream in self._streams:
            frames = self._block.setdefault(stream, [None] * position)
            if stream not in answers:
                frames.append(None)
                continue
            answer = _by_key(self._pseudonyms.clean(ad) for ad in answers[stream])
            whole = all(frame is None for frame in frames)
            frames.append(answer if whole else difference(self._last[stream], answer))
            self._last[stream] = answer
        self._times.append(time)
        if len(self._times) % FRAMES_A_BLOCK == 0:
            self._flush()

    def _flush(self) -> None:
        number = (len(self._times) - 1) // FRAMES_A_BLOCK
        for stream, frames in self._block.items():
            body = json.dumps(frames, separators=(",", ":"), ensure_ascii=False)
            self._zip.writestr(f"{number:05d}/{stream}.json", body)
        self._block.clear()

    def close(self) -> None:
        """Write what is pending, and the list of frames."""
        if self._block:
            self._flush()
        meta = {
            "version": VERSION,
            "frames_a_block": FRAMES_A_BLOCK,
            "times": self._times,
            "streams": self._streams,
            **self._daemons,
        }
        self._zip.writestr("meta.json", json.dumps(meta))
        self._zip.close()


def _by_key(found: Iterable[Ad]) -> Answer:
    """Return ads by what makes each the same one in the next frame; alike ones are numbered."""
    answer: Answer = {}
    for ad in found:
        key = first = _key(ad)
        number = 1
        while key in answer:
            number += 1
            key = f"{first}#{number}"
        answer[key] = ad
    return answer


def _key(ad: Ad) -> str:
    """Return what an ad is known by: a row of jobs by all that it says, for it has no name."""
    if "JobCount" in ad:
        rest = sorted((name, text) for name, text in ad.items() if name != "JobCount")
        return ads.signature(json.dumps(rest))
    return "/".join(ad.get(name, "").strip('"') for name in ("Name", "ScheddName", "ClusterId"))


def difference(before: Answer, after: Answer) -> Delta:
    """Return what makes ``after`` of ``before``; ``None`` removes an ad or an attribute."""
    delta: Delta = dict.fromkeys(key for key in before if key not in after)
    for key, ad in after.items():
        old = before.get(key, {})
        changed: dict[str, str | None] = {n: t for n, t in ad.items() if old.get(n) != t}
        changed |= {name: None for name in old if name not in ad}
        if changed or key not in before:
            delta[key] = changed
    return delta


def apply(answer: Answer, delta: Mapping[str, Mapping[str, str | None] | None]) -> Answer:
    """Return the answer after a change."""
    result = dict(answer)
    for key, changed in delta.items():
        if changed is None:
            result.pop(key, None)
        else:
            merged = {**result.get(key, {}), **changed}
            result[key] = {name: text for name, text in merged.items() if text is not None}
    return result


class Recording:
    """A recording, opened for reading.  Raises ValueError when it is none."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                meta = json.loads(archive.read("meta.json"))
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, LZMAError) as error:
            raise ValueError(f"{path}: not a recording made by gwmond record: {error}") from None
        if not isinstance(meta, dict) or meta.get("version") != VERSION or not meta.get("times"):
            raise ValueError(f"{path}: a recording without frames, or of another version")
        self.meta: dict[str, Any] = meta

    @cached_property
    def times(self) -> list[float]:
        """Times of the frames, ascending, epoch seconds."""
        return [float(time) for time in self.meta["times"]]

    @property
    def duration_s(self) -> float:
        """Length of one pass: to the last frame and the usual step beyond."""
        steps = len(self.times) - 1
        span = self.times[-1] - self.times[0]
        return span + (span / steps if steps else 60.0)

    @property
    def tells_runs(self) -> bool:
        """Whether it has which jobs ran where; older recordings do not."""
        return bool(self.meta.get("runs"))

    def names(self, kind: str) -> list[str]:
        """Return the daemons of a kind: collectors, wms_collectors, factory_schedds."""
        return list(self.meta.get(kind, []))

    def frame(self, stream: str, time: float) -> Answer | None:
        """Return what a stream answered last at or before ``time``; ``None``: it did not."""
        index = max(0, bisect_right(self.times, time) - 1)
        size = int(self.meta["frames_a_block"])
        try:
            with zipfile.ZipFile(self.path) as archive:
                frames = json.loads(archive.read(f"{index // size:05d}/{stream}.json"))
        except KeyError:
            return None
        wanted = frames[: index % size + 1]
        if len(wanted) <= index % size or wanted[-1] is None:
            return None
        answer: Answer = {}
        for frame in wanted:
            if frame is not None:
                answer = apply(answer, frame)
        return answer


class ReplayAccess(NamedTuple):
    """A recording in the place of live daemons, at one instant of its repetition.

    ``time`` is the recorded time, ``shift`` the whole seconds to add to every epoch in an ad.
    """

    path: str
    time: float
    shift: float

    def collector_ads(self, host: str, query: Query) -> list[classad2.ClassAd]:
        """Return the ads that the collector held then."""
        return self._ads(f"collector/{host}/{query.kind}")

    def job_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        """Return the rows that the schedd returned then."""
        return self._ads(f"schedd/{schedd.name}/{query.kind}")

    def cluster_ads(self, schedd: Daemon, query: Query) -> list[classad2.ClassAd]:
        """Return the cluster ads that the schedd returned then."""
        return self._ads(f"schedd/{schedd.name}/{query.kind}")

    def history(
        self, daemon: Daemon, kind: str, query: Query, match: int, since: str
    ) -> list[classad2.ClassAd]:
        """Return nothing: recordings hold no records of job runs yet."""
        del daemon, kind, query, match, since
        return []

    def _ads(self, stream: str) -> list[classad2.ClassAd]:
        answer = Recording(self.path).frame(stream, self.time)
        if answer is None:
            raise QueryError("unreachable", f"{stream}: did not answer when recorded")
        shift = round(self.shift)
        heard = int(self.time) + shift
        found = []
        for ad in answer.values():
            parts = [f"{name} = {_moved(name, text, shift)}" for name, text in ad.items()]
            parts += [f"{name} = {heard}" for name in _HEARD]
            found.append(ads.parse("[" + "; ".join(parts) + "]"))
        return found


def _moved(name: str, text: str, shift: int) -> str:
    if _is_epoch(name) and text.isdigit() and int(text) > 0:
        return str(int(text) + shift)
    return text


@cache
def _is_epoch(name: str) -> bool:
    return _EPOCH.match(name) is not None
