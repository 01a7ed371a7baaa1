"""gwmond: where the time of GlideinWMS pilots goes, and why a site is idle."""

import sys
from importlib.metadata import PackageNotFoundError, version

if sys.version_info < (3, 11):  # noqa: UP036 (what an older Python can read of gwmond ends here)
    sys.exit(
        f"gwmond: Python 3.11 or later is needed, and {sys.executable} is "
        f"{sys.version_info[0]}.{sys.version_info[1]}: the README says where to get it"
    )

try:
    __version__ = version("gwmond")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"
