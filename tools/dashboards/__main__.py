"""Write the boards: ``python -m tools.dashboards``."""

from __future__ import annotations

from tools.dashboards.boards import BOARDS, DIRECTORY
from tools.dashboards.render import rendered

if __name__ == "__main__":
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for board in BOARDS:
        (DIRECTORY / f"{board.uid}.json").write_text(rendered(board))
