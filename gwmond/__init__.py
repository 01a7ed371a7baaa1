"""gwmond: where the time of GlideinWMS pilots goes, and why a site is idle."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("gwmond")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"
