"""To be as a user whom a file's mode keeps out, also where the tests run as root."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_LIBC = ctypes.CDLL(None, use_errno=True)
_VERSION_3, _DROP_BOUND = 0x20080522, 24
_MODES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Set(ctypes.Structure):
    _fields_ = tuple(
        (literal, ctypes.c_uint32) for literal in ("effective", "permitted", "inheritable")
    )


@contextmanager
def unprivileged() -> Iterator[None]:
    """Let modes of files count for this thread; not for programs that it starts."""
    header, sets = _Header(_VERSION_3, 0), (_Set * 2)()
    assert _LIBC.capget(ctypes.byref(header), sets) == 0
    before = sets[0].effective
    sets[0].effective = before & ~sum(1 << number for number in _MODES)
    assert _LIBC.capset(ctypes.byref(header), sets) == 0
    try:
        yield
    finally:
        sets[0].effective = before
        assert _LIBC.capset(ctypes.byref(header), sets) == 0


def give_up() -> None:
    """Let modes of files count for the program that is started next (``preexec_fn``)."""
    for number in _MODES:
        _LIBC.prctl(_DROP_BOUND, number, 0, 0, 0)
