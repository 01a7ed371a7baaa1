"""What a record of transfers has: the files that plugins transferred for a run, by server.

The shadow writes one for the input and one for the output of a run, where plugins transferred
files (HTCondor 25.14.1, measured; 25.7 and later name the slot).  ``...PluginResultList`` has what
the plugins say of each file, ``...PluginInvocations`` how their programs ended.  HTCondor's own
transfers have no record.

URLs have users, passwords, paths and tokens: protocol and host are all that leaves this module.

Source of the attributes: HTCondor's manual, "File Transfer Plugins"; filter.cpp of its starter says
which of a plugin's attributes are kept; Pelican's plugin (cmd/plugin.go) numbers its attempts in
DeveloperData.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.runs.run_facts import Move
from gwmond.model.times import SECOND_US
from gwmond.sources.htcondor import ads
from gwmond.sources.htcondor.histories.history_endings import epoch, server_of

if TYPE_CHECKING:
    import classad2

LISTS: Mapping[str, tuple[str, str]] = {
    "input": ("InputPluginResultList", "InputPluginInvocations"),
    "output": ("OutputPluginResultList", "OutputPluginInvocations"),
}
"""For each way: what became of the files, and of the programs of plugins."""

_FILES = 2000  # of one record and way: so many are looked at
_SERVERS, _ATTEMPTS = 20, 50  # of one record, of one file: so many are told apart
_HOST = re.compile(r"([a-zA-Z0-9._-]{1,253})(?::[0-9]{1,5})?")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,30}")
_LONGEST_S = 30 * 86400
_MOST_BYTES = 1 << 62


class _Attempt(NamedTuple):
    """An attempt at a file: protocol and host of the server, with a blank between."""

    server: str
    moved: int | None = None
    took_us: int | None = None


def moves_of(ad: classad2.ClassAd, written_us: int) -> tuple[Move, ...]:
    """Return what plugins transferred, each server once, in the order of the record."""
    moves: dict[tuple[str, str, str], Move] = {}
    for way, (results, programs) in LISTS.items():
        files, ended = _ads(ad, results)[:_FILES], _ads(ad, programs)[:_SERVERS]
        told = set[str]()
        for file in files:
            server = server_of(ads.raw(file, "TransferUrl") or "")
            protocol = server.partition(" ")[0]
            told.add(protocol)
            plugin = next((_name(one) for one in ended if protocol in _schemes(one)), "")
            done = ads.truth(file, "TransferSuccess") is True
            at_us = (epoch(file, "TransferEndTime") or 0) * SECOND_US or written_us
            start = epoch(file, "TransferStartTime")
            *before, last = _attempts(file, server, done=done)
            for attempt in before:
                _add(moves, _move(way, attempt, plugin, at_us)._replace(again=1))
            start_us = None if start is None else start * SECOND_US
            move = _move(way, last, plugin, at_us)
            _add(moves, move._replace(files=int(done), failed=int(not done), start_us=start_us))
        for one in ended:  # a plugin that died tells of no file
            schemes = _schemes(one)
            died = ads.truth(one, "ExitBySignal") or ads.integer(one, "Result")
            if died and schemes and not told.intersection(schemes):
                _add(moves, Move(way, schemes[0], "", _name(one), written_us, failed=1))
    return tuple(moves.values())


def failed_of(moves: tuple[Move, ...]) -> str | None:
    """Return the server of the first file that did not arrive; None: all did."""
    return next((move.server for move in moves if move.failed), None)


def _attempts(file: classad2.ClassAd, server: str, *, done: bool) -> list[_Attempt]:
    """Return the attempts at a file, the last of them last.

    Pelican's plugin has each attempt, with the cache, under a number; else each failed one is in
    TransferErrorData, and gwmond-path-transfer names the waypoint that was reached.
    """
    start, end = epoch(file, "TransferStartTime"), epoch(file, "TransferEndTime")
    whole = _Attempt(server, _size(file, "TransferTotalBytes"), None)
    if start is not None and end is not None:
        whole = whole._replace(took_us=_length(end - start))
    data = _inner(file, "DeveloperData")
    if data is not None and ads.text(data, "Endpoint0"):
        return list(_numbered(data, server)) or [whole]
    errors = (_failed_server(error, server) for error in _ads(file, "TransferErrorData"))
    failed = [_Attempt(at) for at in errors][-_ATTEMPTS:]
    if done:
        reached = None if data is None else ads.raw(data, "Waypoint")
        return [*failed, whole._replace(server=server_of(reached) if reached else server)]
    last = failed.pop().server if failed else server
    return [*failed, whole._replace(server=last)]


def _numbered(data: classad2.ClassAd, server: str) -> Iterator[_Attempt]:
    for number in range(_ATTEMPTS):
        endpoint = ads.raw(data, f"Endpoint{number}")
        if endpoint is None:
            return
        took = ads.number(data, f"TransferTime{number}")
        moved = _size(data, f"TransferFileBytes{number}")
        yield _Attempt(_at(endpoint, server), moved, None if took is None else _length(took))


def _failed_server(error: classad2.ClassAd, server: str) -> str:
    """Return the server that an error names, which may be a cache; else that of the URL."""
    names = "IntermediateServer", "FailedServer"
    named = next((name for one in names if (name := ads.raw(error, one))), None)
    return server if named is None else _at(named, server)


def _at(name: str, server: str) -> str:
    """Return the server of this name, a URL or a host with the protocol of the URL."""
    if "://" in name:
        return server_of(name)
    host = _HOST.fullmatch(name)
    return server if host is None else f"{server.partition(' ')[0]} {host[1].lower()}"


def _move(way: str, attempt: _Attempt, plugin: str, at_us: int) -> Move:
    protocol, _, host = attempt.server.partition(" ")
    return Move(way, protocol, host, plugin, at_us, 0, 0, 0, attempt.moved, attempt.took_us)


def _add(moves: dict[tuple[str, str, str], Move], move: Move) -> None:
    """Add up what is of one server; beyond so many servers nothing more is told apart."""
    key = move.way, move.server, move.plugin
    before = moves.get(key)
    if before is None and len(moves) < _SERVERS:
        moves[key] = move
    elif before is not None:
        starts = [at for at in (before.start_us, move.start_us) if at is not None]
        moves[key] = before._replace(
            end_us=max(before.end_us, move.end_us),
            files=before.files + move.files,
            failed=before.failed + move.failed,
            again=before.again + move.again,
            moved=_sum(before.moved, move.moved),
            took_us=_sum(before.took_us, move.took_us),
            start_us=min(starts, default=None),
        )


def _sum(one: int | None, other: int | None) -> int | None:
    """Return the sum of what is known."""
    return other if one is None else one if other is None else one + other


def _ads(ad: classad2.ClassAd, name: str) -> list[classad2.ClassAd]:
    value = ads.evaluate(ad, name)
    items = value if isinstance(value, list) else []
    return [item for item in items if type(item).__name__ == "ClassAd"]


def _inner(ad: classad2.ClassAd, name: str) -> classad2.ClassAd | None:
    value = ads.evaluate(ad, name)
    return value if type(value).__name__ == "ClassAd" else None


def _schemes(program: classad2.ClassAd) -> list[str]:
    schemes = (one.strip().lower() for one in (ads.text(program, "Schemes") or "").split(","))
    return [one for one in schemes if _SCHEME.fullmatch(one)]


def _name(program: classad2.ClassAd) -> str:
    return ads.printable(PurePosixPath(ads.text(program, "PluginBasename") or "").name)


def _size(ad: classad2.ClassAd, name: str) -> int | None:
    value = ads.count(ad, name)
    return value if value is not None and value < _MOST_BYTES else None


def _length(seconds: float) -> int | None:
    return round(seconds * SECOND_US) if 0 <= seconds <= _LONGEST_S else None
