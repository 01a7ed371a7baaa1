"""``python -m gwmond``."""

import sys

from gwmond.cli import main

if __name__ == "__main__":
    sys.exit(main())
