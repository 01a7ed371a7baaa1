"""What to type to install a package that only some ledgers need."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from importlib import metadata


def install(extra: str) -> str:
    """Return the command that puts what an extra of gwmond needs where this gwmond runs.

    It names the packages, as gwmond itself may be on no index.
    """
    requires: list[str] = []
    with suppress(metadata.PackageNotFoundError):  # a mere copy of the source
        requires = metadata.requires("gwmond") or []
    marker = f'extra == "{extra}"'
    wanted = [
        require.partition(";")[0].strip()
        for require in requires
        if marker in require.replace("'", '"')
    ]
    return shlex.join([sys.executable, "-m", "pip", "install", *(wanted or [f"gwmond[{extra}]"])])
