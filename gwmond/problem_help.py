"""What each problem means and what to do about it; docs/problems.md is made of this.

``python -m gwmond.problem_help > docs/problems.md``
"""

from __future__ import annotations

from typing import NamedTuple

from gwmond.problem_words import WORDS


class Help(NamedTuple):
    """What a word means, and what an operator can do."""

    meaning: str
    remedy: str


_NOTHING = "nothing"
_DAMAGED = "nothing, if few; if many, ask why the site cuts or damages what pilots return"
_CLOCK = "compare the clocks and time zones (NTP) of the hosts named"
_REPORT = "please report it, with the file if you may"
_REPORT_LOG = "please report it, with the log"
_SYSLOG = "if many: what is sent to the log; docs/central-log.md"
_EXPECTED = "nothing: docs/central-log.md says which lines lead to nothing"

REMEDIES = {
    "ambiguous": "nothing; import directories of several factories into ledgers of their own",
    "bad_base64": _DAMAGED,
    "bad_gzip": _DAMAGED,
    "bad_state": _NOTHING + ": nothing is counted twice",
    "bad_time": _CLOCK,
    "clock_set_back": _CLOCK,
    "dangling_link": "remove the links, or put the files where they lead",
    "empty_log": _NOTHING,
    "empty_output": "nothing, if few; if many, look at the site's queue: are pilots killed there?",
    "future_files": _CLOCK,
    "garbage": "look at the file that is named: is it really this kind of log, and whole?",
    "link_outside": "name the directory where the link leads in [factory], or import it",
    "log_gone": "keep logs until after the import; what they told is left out",
    "no_duration": "nothing: the pilot's output, or the queue, tells more",
    "no_host": _NOTHING,
    "no_job": _NOTHING,
    "no_output": "look for what removes the job.*.out files",
    "no_pilot": _SYSLOG,
    "no_run": _EXPECTED,
    "no_startd": _NOTHING,
    "no_time": "let logs be written with times (condor) or with an offset to UTC (syslog)",
    "no_times": "read the factory's condor_activity logs of that time, too",
    "no_zone": "name it: [factory] timezone, or gwmond import --timezone",
    "not_a_file": "move what is named away, if it is not a pilot's",
    "not_storable": _REPORT + "; it is tried again after a restart",
    "not_yet": _NOTHING + ": they wait",
    "odd_name": "remove the files, if nobody needs them",
    "other_entry": "put the files where their factory wrote them",
    "other_pilot": "put the files where their factory wrote them",
    "other_zone": "name it: [factory] timezone, or gwmond import --timezone, into a new ledger",
    "parser_failed": _REPORT,
    "run_goes_on": _EXPECTED,
    "same_file": _NOTHING,
    "several_pilots": "let lines name the pilot: GLIDEIN_ClusterId and GLIDEIN_Schedd",
    "several_runs": _EXPECTED,
    "shrunk": "nothing, if once: it is read again when it changes",
    "too_deep": "name a directory nearer to them",
    "too_large": "nothing, its begin and end are read; of a query: [poll] memory_limit_mib",
    "too_late": "nothing; [ledger] *_retention says how long pilots are kept",
    "too_long": _SYSLOG,
    "too_many": _NOTHING + ": the rest of the pilot's time is accounted",
    "too_many_directories": "name fewer, or one nearer to them",
    "too_many_logs": "move old logs away, after an import",
    "too_many_runs": _NOTHING + ": the rest of the pilot's time is accounted",
    "too_many_unread": "let gwmond's user read them (SupplementaryGroups in its unit)",
    "too_many_waiting": _SYSLOG,
    "trailing_garbage": _DAMAGED,
    "truncated": _DAMAGED,
    "truncated_log": "let logs be rotated by renaming (no copytruncate)",
    "unreadable": "let gwmond's user read them (SupplementaryGroups in its unit), mount them",
    "untimed": _DAMAGED,
    "vanished": "nothing, if few: files are cleaned up while they are read",
    "xml_malformed": _DAMAGED,
    "xml_refused": _REPORT,
}
"""What to do about the words of ``problem_words``: what was wrong with files and records."""

_DISK = "the log says what and where; counters stand still until then, and nothing is lost"

OF_SOURCES = {
    "bad_configuration": Help(
        "the configuration that was to be read again is wrong: the one of before goes on",
        "correct what the log names, then SIGHUP again",
    ),
    "bad_constraint": Help(
        "a daemon does not understand a constraint", "[demand] constraint; the schedd's version"
    ),
    "bad_request": Help(
        "jobs that ask for something that is no number: a default stands in",
        "tell the user; the schedd's SUBMIT_REQUIREMENTS",
    ),
    "bad_size": Help(
        "slots whose cores or memory make no sense; the entry's other pilots stand in",
        "look at the ads that are named",
    ),
    "closed": Help("the ledger was lost and is opened again", _NOTHING),
    "conflict": Help("another writer was at the ledger", "run one gwmond on a ledger"),
    "corrupt": Help("the ledger is damaged", "restore it from a backup; " + _DISK),
    "crashed": Help("a query's process died", "the system's memory; " + _REPORT_LOG),
    "denied": Help(
        "a daemon does not let gwmond read", "give it a token with READ; [pool] token_directory"
    ),
    "failed": Help(
        "a query failed, or the ledger, for a cause that has no word of its own", "see the log"
    ),
    "foreign": Help("the ledger's file is another program's", "[ledger] url"),
    "full": Help("the ledger's disk is full, or its quota", "make room; " + _DISK),
    "history_gap": Help(
        "records of job runs were rotated away before they were read",
        "nothing brings them back; larger histories (MAX_HISTORY_LOG), shorter downtimes",
    ),
    "location": Help("the ledger cannot be where the URL says", "[ledger] url"),
    "locked": Help(
        "another gwmond has this ledger: this one serves gauges and takes over when it ends",
        "stop one of them, if that was not meant",
    ),
    "moved": Help("the ledger's file was moved or replaced", "nothing: it is opened anew"),
    "no_entry": Help("glideresource ads that do not name an entry", "look at the frontend"),
    "no_name": Help("ads without a name", "look for who sends them"),
    "no_root": Help(
        "none of the configured directories of files or logs can be listed",
        "mount them, let gwmond's user list them, or correct the paths in [factory]",
    ),
    "no_site": Help("pilots without a site attribute", "[attributes] site"),
    "overflow": Help(
        "lines of the socket were dropped: more came between two polls than are kept",
        "send fewer lines; docs/central-log.md",
    ),
    "poll_failed": Help("a whole poll failed", _REPORT_LOG),
    "readonly": Help("the ledger cannot be written", "its permissions, the mount; " + _DISK),
    "reconcile": Help("the ledger could not be read to be reconciled", "see the log"),
    "refused": Help(
        "a daemon's port refuses connections (of the ledger: a batch that makes no sense)",
        "is the daemon up, and its address right?",
    ),
    "residual": Help("a site's time does not sum up to its total", _REPORT_LOG),
    "timeout": Help(
        "a daemon hangs, or is overloaded", "its log; [poll] deadline; it is asked again"
    ),
    "too_many_at_once": Help(
        "more records have the same second than are asked for at once",
        "[histories] records",
    ),
    "too_many_groups": Help(
        "more groups of jobs than are matched: the rest is unknown",
        "is one grouped by an attribute that differs from job to job? [demand] attributes",
    ),
    "toonew": Help("a later gwmond wrote this ledger", "install that version"),
    "tooold": Help("an earlier gwmond wrote this ledger", "start gwmond run, which upgrades it"),
    "undated": Help("what a factory tells without a time or an entry, and is in no sum", _NOTHING),
    "unknown_host": Help("a name that DNS does not know", "the address in [pool]; DNS"),
    "unknown_schedd": Help(
        "no WMS collector knows a factory's schedd", "[pool.wms] collectors and factory_schedds"
    ),
    "unreachable": Help(
        "a daemon, the ledger's server or the log socket cannot be reached",
        "the network, a firewall, the daemon",
    ),
    "unread": Help("lines of the socket that could not be read", "see what failed beside it"),
    "young_collector": Help(
        "a collector has just been started and shows fewer pilots than before",
        "nothing: pilots are not taken for dead until it has run for a while",
    ),
}
"""Words of daemons that are asked, of their ads, of the ledger and of gwmond itself."""


_HEAD = """\
# Problems

Made from the code by `python -m gwmond.problem_help`. `gwmond_problems_total{source, problem}`
counts them, the log has one event when one begins, with what is said here and what it was, and
one when it is over; `gwmond import` lists them at its end.

**What is counted.** Records, lines and runs: each. A file or a directory: once a look, however
often it is come upon in it. A query that fails: once. What lasts is counted at each look again
(`[factory] every`; of daemons at each poll), but not at the polls between two looks; it is over
when a look does not find it any more. What is wrong with lines of the log socket, and records that
cannot be accounted, come now and then: that is over when none came for two times `every`. Where
none of the directories can be listed, `gwmond_source_up` is 0, `no_root` says why, and what was
found before is not over."""


def helped(word: str) -> Help | None:
    """Return what a word means and what to do; None for one that is not known."""
    if word in WORDS:
        return Help(WORDS[word], REMEDIES.get(word, ""))
    return OF_SOURCES.get(word)


def explained(word: str) -> dict[str, str]:
    """Return the fields that a log event of a problem has besides."""
    found = helped(word)
    return {} if found is None else {name: text for name, text in found._asdict().items() if text}


def page() -> str:
    """Return the list of problems in Markdown."""
    lines = [_HEAD]
    tables: dict[str, dict[str, Help | None]] = {
        "Files, and what they and records of jobs tell": {of: helped(of) for of in WORDS},
        "Daemons, their ads, the ledger, gwmond": dict(OF_SOURCES),
    }
    for title, words in tables.items():
        lines += ["", f"## {title}", "", "| problem | meaning | what to do |", "|---|---|---|"]
        for word in sorted(words):
            of = words[word] or Help("", "")
            lines.append(f"| `{word}` | {of.meaning} | {of.remedy} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
