"""Makes docs/problems.md from the list of problems.

``python -m gwmond.service.host.problem_help > docs/problems.md``
"""

from __future__ import annotations

from gwmond.model.problem_names import ProblemName

_HEAD = """\
# Problems

Made from the code by `python -m gwmond.service.host.problem_help`.

`gwmond_problems_total{source, problem}` counts problems. The log has one event when a problem
begins, with its meaning, what to do and an example, and one event when the problem is over.
`gwmond import` lists problems at its end.

**What is counted.** Each record, line and run. A file or directory once a scan. A query that fails
once. A problem that lasts is counted again at each scan (`[factory] every`; for daemons at each
poll). It is over when a scan does not find it any more. Problems with lines of the log socket, and
with records that cannot be accounted, are over when none came for two times `every`. If none of the
directories can be listed, `gwmond_source_up` is 0, `no_root` says why, and earlier problems are
not over."""


def page() -> str:
    """Return the list of problems in Markdown."""
    lines = [_HEAD, "", "| problem | meaning | what to do |", "|---|---|---|"]
    lines += [
        f"| `{problem.value}` | {problem.meaning} | {problem.remedy} |" for problem in ProblemName
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
