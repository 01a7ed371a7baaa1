r"""Numbers in text from outside: only the digits 0 to 9.

Patterns (``\d``), ``str.isdigit`` and ``int`` accept the digits of all scripts, and ``int``
accepts underscores.  But ``job.١٤.0.out`` is no job's file, and ``int`` refuses the digit ``²``.
"""

from __future__ import annotations


def is_number(text: str | bytes) -> bool:
    """Return whether a text is a whole number without a sign.

    >>> is_number("14"), is_number("١٤"), is_number("²"), is_number("1_4"), is_number("")
    (True, False, False, False, False)
    """
    return text.isascii() and text.isdigit()
