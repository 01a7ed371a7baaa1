"""gwmond: where the time of GlideinWMS pilots goes, and why a site is idle."""

import os
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

# Else NumPy starts a thread for each core as it is loaded, and each takes 25 ms of CPU to find out
# that there is nothing to do: what gwmond computes is too small to be divided.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
