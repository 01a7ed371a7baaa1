"""What was wrong with files that pilots and factories left: a sentence for each word."""

from __future__ import annotations

WORDS = {
    "bad_gzip": "a log within an output that cannot be unpacked",
    "bad_state": "what was remembered of a directory could not be read: read from its begin",
    "bad_time": "times that cannot be",
    "empty_log": "a log within an output is empty",
    "empty_output": "outputs with nothing in them: the pilot was killed, or is still waiting",
    "future_files": "files from the future: a clock is wrong, they are read later",
    "garbage": "lines that are none of this log",
    "log_gone": "central logs with lines that are left to account are not there any more",
    "link_outside": "a link that leads out of the directory was not followed",
    "no_duration": "completed_jobs lines without a duration (-1 or 0): output cut off or missing",
    "no_output": "pilots with a job.*.err and no job.*.out",
    "no_pilot": "lines that name no pilot, or in a central log none that is known",
    "no_run": "lines of central logs about a run of a job that is not known",
    "no_time": "lines without a time that can be read",
    "no_times": "pilots of which nothing tells both when they began and when they ended",
    "not_storable": "pilots that the ledger refuses and that are left out: please report it",
    "no_zone": "logs of which the time zone is not known",
    "odd_name": "files with a name that no pilot's output has",
    "other_entry": "outputs that name another entry than their directory",
    "other_pilot": "outputs that name another pilot than their file",
    "parser_failed": "a file that could not be understood: please report it",
    "run_goes_on": "lines of central logs about the end of a run that goes on",
    "several_pilots": "lines of central logs that may mean several pilots",
    "several_runs": "lines of central logs that may mean several runs of jobs",
    "too_large": "files, or logs within, of which only a part is read: they are too large",
    "too_long": "lines that are too long to be any of this log",
    "too_many": "outputs with more records of jobs than are read",
    "trailing_garbage": "a log within an output is followed by something else",
    "truncated": "lines that are cut off",
    "truncated_log": "a log became shorter and was read again",
    "unreadable": "files or directories that this user may not read",
    "xml_malformed": "reports of validation that are cut off or no XML",
    "xml_refused": "reports of validation with what no such report has",
}


def told(word: str) -> str:
    """Return what a word says, with the word in brackets; only the word where it is not known."""
    return f"{WORDS[word]} [{word}]" if word in WORDS else word
