"""``python -m gwmond``, which has the current directory in its path only if gwmond is there."""

import os
import sys

if not sys.flags.safe_path and os.path.dirname(os.path.dirname(__file__)) != sys.path[0]:
    del sys.path[0]

from gwmond.cli import main

if __name__ == "__main__":
    sys.exit(main())
