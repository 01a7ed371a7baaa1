"""Makes docs/problems.md of the table of problems.

``python -m gwmond.service.problem_help > docs/problems.md``
"""

from __future__ import annotations

from gwmond.service.problem_words import FILES, SOURCES

_HEAD = """\
# Problems

Made from the code by `python -m gwmond.service.problem_help`.
`gwmond_problems_total{source, problem}`
counts them, the log has one event when one begins, with what is said here and what it was, and
one when it is over; `gwmond import` lists them at its end.

**What is counted.** Records, lines and runs: each. A file or a directory: once a look, however
often it is come upon in it. A query that fails: once. What lasts is counted at each look again
(`[factory] every`; of daemons at each poll), but not at the polls between two looks; it is over
when a look does not find it any more. What is wrong with lines of the log socket, and records that
cannot be accounted, come now and then: that is over when none came for two times `every`. Where
none of the directories can be listed, `gwmond_source_up` is 0, `no_root` says why, and what was
found before is not over."""


def page() -> str:
    """Return the list of problems in Markdown."""
    lines = [_HEAD]
    for title, words in (
        ("Files, and what they and records of jobs tell", FILES),
        ("Daemons, their ads, the ledger, gwmond", SOURCES),
    ):
        lines += ["", f"## {title}", "", "| problem | meaning | what to do |", "|---|---|---|"]
        for word in sorted(words):
            lines.append(f"| `{word}` | {words[word].meaning} | {words[word].remedy} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
