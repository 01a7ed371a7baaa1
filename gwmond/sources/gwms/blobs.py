"""Compressed logs inside a pilot's stderr: gzip, then base64 between two lines.

Format: CS:320-335 (cond_print_log), GS (print_tail)::

    StarterLog.slot1_1
    ======== gzip | uuencode =============
    begin-base64 644 -
    H4sI...
    ====

Memory is bounded: no more than ``BLOB_BYTES`` come out of one blob, however little went in.  A
blob that was cut off gives what there is (``truncated``); one that is damaged gives nothing, since
what a wrong byte has changed is not known (``bad_base64``, ``bad_gzip``).
"""

from __future__ import annotations

import binascii
import zlib
from typing import TYPE_CHECKING, NamedTuple

from gwmond.model.problem_names import ProblemName
from gwmond.sources.gwms import texts

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOB_BYTES = 32 << 20
MAX_BLOBS = 2000
RESULT = "=== Encoded XML description of glidein activity ==="
_BEGIN, _END = b"begin-base64 ", b"\n===="
_PACKED = b"======== gzip"
_CHUNK = 1 << 18
_NOT_BASE64 = bytes(
    code
    for code in range(256)
    if not (chr(code).isascii() and chr(code).isalnum()) and code not in b"+/="
)
_SPACE = b" \t\r\n"


class Blob(NamedTuple):
    """A compressed text in a file: its name, and where its base64 is; ``whole``: has an end."""

    name: str
    start: int
    end: int
    whole: bool


class Unpacked(NamedTuple):
    """What came out of a blob; ``wrong`` is what was not right.

    ``size``: how many bytes were unpacked, also where none of them can be used.
    """

    data: bytes
    wrong: ProblemName | None = None
    size: int = 0


def find(raw: bytes) -> Iterator[Blob]:
    """Yield the blobs of a stderr in their order; a name without a body is none."""
    at = 0
    for _ in range(MAX_BLOBS):
        at = raw.find(_BEGIN, at)
        if at < 0:
            return
        start = raw.find(b"\n", at) + 1
        if start <= 0:
            return
        if at and raw[at - 1 : at] != b"\n":
            at = start
            continue
        name = _name(raw, at)
        end = raw.find(_END, start - 1)
        whole = end >= 0
        end = end if whole else len(raw)
        if name:
            yield Blob(name, start, max(start, end), whole)
        at = max(start, end)


def _name(raw: bytes, at: int) -> str:
    """Return what a blob is called, by the one or two lines before it."""
    before = raw[max(0, at - 400) : at].replace(b"\r", b"").split(b"\n")[:-1]
    if before and before[-1].startswith(RESULT.encode()[:-4]):
        return RESULT
    if len(before) >= 2 and before[-1].startswith(_PACKED):
        return texts.label(before[-2])
    return ""


def unpack(raw: bytes, blob: Blob, limit: int = BLOB_BYTES) -> Unpacked:
    """Return the text of a blob, at most ``limit`` bytes of it."""
    coded = raw[blob.start : blob.end]
    if not coded.strip(_SPACE):
        return Unpacked(b"", ProblemName.EMPTY_LOG)
    packed, wrong = _decode(coded)
    if not packed:
        return Unpacked(b"", wrong or ProblemName.BAD_BASE64)
    data, of_gzip, size = gunzip(packed, limit)
    if wrong == ProblemName.BAD_BASE64:
        return Unpacked(data if not of_gzip else b"", wrong, size)
    if not of_gzip and not blob.whole:
        return Unpacked(data, None, size)  # only the line after it is missing
    return Unpacked(data, of_gzip or wrong, size)


def _decode(coded: bytes) -> tuple[bytes, ProblemName | None]:
    """Return base64 decoded; what is not base64 is left out, an incomplete end is cut off."""
    wrong = (
        ProblemName.BAD_BASE64
        if coded.translate(None, _SPACE) != coded.translate(None, _NOT_BASE64)
        else None
    )
    try:
        return binascii.a2b_base64(coded), wrong
    except binascii.Error:
        plain = coded.translate(None, _NOT_BASE64).rstrip(b"=")
        try:
            return binascii.a2b_base64(plain[: len(plain) // 4 * 4]), wrong or ProblemName.TRUNCATED
        except binascii.Error:
            return b"", ProblemName.BAD_BASE64


def gunzip(packed: bytes, limit: int = BLOB_BYTES) -> Unpacked:
    """Return the unpacked bytes (of several gzip files in a row too), and the error."""
    parts: list[bytes] = []
    size = 0
    view: bytes = packed
    while view:
        unzip = zlib.decompressobj(wbits=31)
        try:
            while view and not unzip.eof:
                part = unzip.decompress(view, min(_CHUNK, limit - size + 1))
                size += len(part)
                parts.append(part)
                view = unzip.unconsumed_tail
                if size > limit:
                    return Unpacked(b"".join(parts)[:limit], ProblemName.TOO_LARGE, size)
                if not part and not view:
                    break
        except zlib.error:
            if parts and not _magic(view):
                return Unpacked(b"".join(parts), ProblemName.TRAILING_GARBAGE, size)
            return Unpacked(b"", ProblemName.BAD_GZIP, size)
        if not unzip.eof:
            return Unpacked(b"".join(parts), ProblemName.TRUNCATED, size)
        view = unzip.unused_data
        if view and not _magic(view):
            wrong = ProblemName.TRAILING_GARBAGE if view.strip(b"\0") else None
            return Unpacked(b"".join(parts), wrong, size)
    return Unpacked(b"".join(parts), None, size)


def _magic(view: bytes) -> bool:
    return view[:2] == b"\x1f\x8b"[: len(view)]
