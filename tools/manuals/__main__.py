"""Write the manual pages and the completion: ``python -m tools.manuals``."""

from __future__ import annotations

from tools.manuals.completion import completions
from tools.manuals.pages import ROOT, pages

if __name__ == "__main__":
    for name, text in {**pages(), **completions()}.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(text)
