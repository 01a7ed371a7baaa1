"""What was wrong with files that pilots and factories left: a sentence for each word."""

from __future__ import annotations

WORDS = {
    "ambiguous": "jobs of the factory that may be any of several pilots: its numbers come again",
    "bad_base64": "a log within an output that is damaged: it is not base64 all through",
    "bad_gzip": "a log within an output that cannot be unpacked",
    "bad_state": "what was remembered of a directory could not be read: read from its begin",
    "bad_time": "times that cannot be",
    "clock_set_back": "what was read last is from the future: read again from the begin",
    "dangling_link": "links to files that are not there",
    "empty_log": "a log within an output is empty",
    "empty_output": "outputs with nothing in them: the pilot was killed, or is still waiting",
    "future_files": "files from the future: a clock is wrong, they are read later",
    "garbage": "lines that are none of this log, outputs without a line that a pilot writes",
    "log_gone": "central logs with lines that are left to account are not there any more",
    "link_outside": "a link that leads out of the directory was not followed",
    "no_duration": "completed_jobs lines without a duration (-1 or 0): output cut off or missing",
    "no_host": "records of jobs that do not say where the job ran",
    "no_job": "records of jobs that do not say which job it was",
    "no_output": "pilots with a job.*.err and no job.*.out",
    "no_pilot": "lines that name no pilot, or in a central log none that is known",
    "no_run": "lines of central logs about a run of a job that is not known; records of no run",
    "no_startd": "records of jobs that name no startd",
    "no_time": "lines without a time that can be read",
    "no_times": "pilots of which nothing tells both when they began and when they ended",
    "not_storable": "pilots that the ledger refuses and that are left out: please report it",
    "no_zone": "logs of which the time zone is not known",
    "not_a_file": "directories and pipes with the name of a pilot's output or of a log",
    "not_yet": "lines of central logs about pilots of which the begin is not known yet",
    "odd_name": "files with a name that no pilot's output has",
    "other_entry": "outputs that name another entry than their directory",
    "other_pilot": "outputs that name another pilot than their file: where that has its own, "
    "they are not accounted",
    "other_zone": "logs whose times are of another time zone: name it (--timezone, or [factory] "
    "timezone) and import into a new ledger",
    "parser_failed": "a file that could not be understood: please report it",
    "run_goes_on": "lines of central logs about the end of a run that goes on",
    "several_pilots": "lines of central logs that may mean several pilots",
    "several_runs": "lines of central logs that may mean several runs of jobs",
    "same_file": "other names (links) of a file that is read: accounted once",
    "shrunk": "files that became shorter while they were read",
    "too_deep": "directories that are too far below the one named: name one nearer to them",
    "too_large": "files, or logs within, of which only a part is read: they are too large",
    "too_long": "lines that are too long to be any of this log",
    "too_late": "records of jobs that are older than what the ledger keeps",
    "too_many": "outputs with more records of jobs than are read",
    "too_many_directories": "directories that were not read, as there are too many: name fewer",
    "too_many_logs": "directories with more logs than are followed: the latest are",
    "too_many_waiting": "lines of central logs that too many others wait before",
    "too_many_runs": "runs of jobs that are left out: one pilot has more than are read",
    "too_many_unread": "directories in which so many files cannot be read, here and there, that "
    "what is later waits, too",
    "trailing_garbage": "a log within an output is followed by something else",
    "truncated": "lines that are cut off",
    "truncated_log": "a log became shorter and was read again",
    "vanished": "files that were gone when they were to be read",
    "unreadable": "files or directories that this user may not read, or that cannot be read or "
    "listed: what is in them is read once it can be",
    "untimed": "outputs that tell no time, though some of what a pilot writes",
    "xml_malformed": "reports of validation that are cut off or no XML",
    "xml_refused": "reports of validation with what no such report has",
}


def told(word: str) -> str:
    """Return what a word says, with the word in brackets; only the word where it is not known."""
    return f"{WORDS[word]} [{word}]" if word in WORDS else word
