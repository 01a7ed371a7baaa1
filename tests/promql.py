"""The PromQL of the documentation, as it stands there: in indented blocks, beside comments."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "metrics-guide.md"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
#: Functions of gwmond-trace.sh are no metrics.
_METRIC = re.compile(r"\bgwmond_(?!span|trace_end)[a-z_]+[a-z]\b")


class Query(NamedTuple):
    """A query, and the comment above it."""

    comment: str
    text: str

    @property
    def metrics(self) -> set[str]:
        """The names of metrics in it."""
        return set(_METRIC.findall(self.text))


def queries(page: Path) -> list[Query]:
    """Return the queries of a page; a line that is indented further goes on with the one above.

    What goes on with a backslash is a command of a shell.
    """
    found: list[Query] = []
    comment = ""
    for line in page.read_text().splitlines():
        text = line[4:].partition(" # ")[0].rstrip()
        if not line.startswith("    ") or not text:
            comment = "" if line else comment
        elif text.startswith("# "):
            comment = text.removeprefix("# ")
        elif text.startswith(" ") and found:
            last = found.pop()
            found.append(last._replace(text=f"{last.text}\n{text.strip()}"))
        else:
            found.append(Query(comment, text))
    return [query for query in found if query.metrics and "\\" not in query.text]
