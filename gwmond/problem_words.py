"""What each problem means and what to do about it: a row for each word.

docs/problems.md is made of this (``python -m gwmond.problem_help``), and so are the log's events of
problems and what ``gwmond import`` and ``gwmond check`` say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


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
_DISK = "the log says what and where; counters stand still until then, and nothing is lost"

FILES: Mapping[str, Help] = {
    "ambiguous": Help(
        "jobs of the factory that may be any of several pilots: its numbers come again",
        "nothing; import directories of several factories into ledgers of their own",
    ),
    "below_one_unit": Help(
        "entries whose pilots have a core and less memory than a canonical unit: each such pilot "
        "counts as one unit",
        "nothing, if they are meant to be so small; else ask for more memory in the entry",
    ),
    "bad_base64": Help(
        "a log within an output that is damaged: it is not base64 all through", _DAMAGED
    ),
    "bad_gzip": Help("a log within an output that cannot be unpacked", _DAMAGED),
    "bad_state": Help(
        "what was remembered of a directory could not be read: read from its begin",
        _NOTHING + ": nothing is counted twice",
    ),
    "bad_time": Help("times that cannot be", _CLOCK),
    "clock_set_back": Help(
        "what was read last is from the future: read again from the begin", _CLOCK
    ),
    "dangling_link": Help(
        "links to files that are not there", "remove the links, or put the files where they lead"
    ),
    "empty_log": Help("a log within an output is empty", _NOTHING),
    "empty_output": Help(
        "outputs with nothing in them: the pilot was killed, or is still waiting",
        "nothing, if few; if many, look at the site's queue: are pilots killed there?",
    ),
    "future_files": Help("files from the future: a clock is wrong, they are read later", _CLOCK),
    "garbage": Help(
        "lines that are none of this log, outputs without a line that a pilot writes",
        "look at the file that is named: is it really this kind of log, and whole?",
    ),
    "link_outside": Help(
        "a link that leads out of the directory was not followed",
        "name the directory where the link leads in [factory], or import it",
    ),
    "log_gone": Help(
        "central logs with lines that are left to account are not there any more",
        "keep logs until after the import; what they told is left out",
    ),
    "no_duration": Help(
        "completed_jobs lines without a duration (-1, 0, or longer than 60 days): output cut off "
        "or missing",
        "nothing: the pilot's output, or the queue, tells more",
    ),
    "no_host": Help("records of jobs that do not say where the job ran", _NOTHING),
    "no_job": Help("records of jobs that do not say which job it was", _NOTHING),
    "no_output": Help(
        "pilots with a job.*.err and no job.*.out", "look for what removes the job.*.out files"
    ),
    "no_pilot": Help("lines that name no pilot, or in a central log none that is known", _SYSLOG),
    "no_run": Help(
        "lines of central logs about a run of a job that is not known; records of no run", _EXPECTED
    ),
    "no_startd": Help("records of jobs that name no startd", _NOTHING),
    "no_time": Help(
        "lines without a time that can be read",
        "let logs be written with times (condor) or with an offset to UTC (syslog)",
    ),
    "no_times": Help(
        "pilots of which nothing tells both when they began and when they ended (60 days after "
        "they started, if they did)",
        "read the factory's condor_activity logs of that time, too",
    ),
    "no_zone": Help(
        "logs of which the time zone is not known",
        "name it: [factory] timezone, or gwmond import --timezone",
    ),
    "not_a_file": Help(
        "directories and pipes with the name of a pilot's output or of a log",
        "move what is named away, if it is not a pilot's",
    ),
    "not_storable": Help(
        "pilots that the ledger refuses and that are left out: please report it",
        _REPORT + "; it is tried again after a restart",
    ),
    "not_yet": Help(
        "lines of central logs about pilots of which the begin is not known yet",
        _NOTHING + ": they wait",
    ),
    "odd_name": Help(
        "files with a name that no pilot's output has", "remove the files, if nobody needs them"
    ),
    "other_entry": Help(
        "outputs that name another entry than their directory",
        "put the files where their factory wrote them",
    ),
    "other_pilot": Help(
        "outputs that name another pilot than their file: where that has its own, "
        "they are not accounted",
        "put the files where their factory wrote them",
    ),
    "other_zone": Help(
        "logs whose times are of another time zone: name it (--timezone, or [factory] "
        "timezone) and import into a new ledger",
        "name it: [factory] timezone, or gwmond import --timezone, into a new ledger",
    ),
    "parser_failed": Help("a file that could not be understood: please report it", _REPORT),
    "run_goes_on": Help("lines of central logs about the end of a run that goes on", _EXPECTED),
    "same_file": Help("other names (links) of a file that is read: accounted once", _NOTHING),
    "several_pilots": Help(
        "lines of central logs that may mean several pilots",
        "let lines name the pilot: GLIDEIN_ClusterId and GLIDEIN_Schedd",
    ),
    "several_runs": Help("lines of central logs that may mean several runs of jobs", _EXPECTED),
    "shrunk": Help(
        "files that became shorter while they were read",
        "nothing, if once: it is read again when it changes",
    ),
    "too_deep": Help(
        "directories that are too far below the one named: name one nearer to them",
        "name a directory nearer to them",
    ),
    "too_large": Help(
        "files, or logs within, of which only a part is read: they are too large",
        "of a file nothing, its begin and end are read; of a query: raise [poll] memory_limit_mib",
    ),
    "too_much_memory": Help(
        "files that cost too much memory to read: what their logs say is left out",
        "look at the file named: it is damaged, or was made to be large",
    ),
    "too_slow": Help(
        "files that cost too much CPU time to read: what their logs say is left out",
        "look at the file named: it is damaged, or was made to be slow",
    ),
    "too_late": Help(
        "records of jobs that are older than what the ledger keeps",
        "nothing; [ledger] *_retention says how long pilots are kept",
    ),
    "too_long": Help("lines that are too long to be any of this log", _SYSLOG),
    "too_many": Help(
        "outputs with more records of jobs than are read",
        _NOTHING + ": the rest of the pilot's time is accounted",
    ),
    "too_many_directories": Help(
        "directories that were not read, as there are too many: name fewer",
        "name fewer, or one nearer to them",
    ),
    "too_many_events": Help(
        "jobs of the factory of which more is told than is kept (200 events): the oldest are "
        "left out",
        "look at why the site has such jobs started, or held, again and again",
    ),
    "too_many_logs": Help(
        "directories with more logs than are followed: the latest are",
        "move old logs away, after an import",
    ),
    "too_many_runs": Help(
        "runs of jobs that are left out: one pilot has more than are read",
        _NOTHING + ": the rest of the pilot's time is accounted",
    ),
    "too_many_unread": Help(
        "directories in which so many files cannot be read, here and there, that "
        "what is later waits, too",
        "let gwmond's user read them (SupplementaryGroups in its unit)",
    ),
    "too_many_waiting": Help("lines of central logs that too many others wait before", _SYSLOG),
    "trailing_garbage": Help("a log within an output is followed by something else", _DAMAGED),
    "truncated": Help("lines that are cut off", _DAMAGED),
    "truncated_log": Help(
        "a log became shorter and was read again",
        "let logs be rotated by renaming (no copytruncate)",
    ),
    "unreadable": Help(
        "files or directories that this user may not read, or that cannot be read or "
        "listed: what is in them is read once it can be",
        "let gwmond's user read them (SupplementaryGroups in its unit), mount them",
    ),
    "untimed": Help("outputs that tell no time, though some of what a pilot writes", _DAMAGED),
    "vanished": Help(
        "files that were gone when they were to be read",
        "nothing, if few: files are cleaned up while they are read",
    ),
    "xml_malformed": Help("reports of validation that are cut off or no XML", _DAMAGED),
    "xml_refused": Help("reports of validation with what no such report has", _REPORT),
}
"""Words of files, and of what they and records of jobs tell."""

SOURCES: Mapping[str, Help] = {
    "bad_configuration": Help(
        "the configuration that was to be read again is wrong: the one of before goes on",
        "correct what the log names, then SIGHUP again",
    ),
    "bad_constraint": Help(
        "a daemon does not understand a constraint",
        "check [demand] constraint: a ClassAd expression that the schedd's version knows",
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
    "connection_closed": Help(
        "a daemon's port accepted the connection and closed it: the daemon is dead behind a shared "
        "port (a pilot that was killed), or it is just starting",
        "nothing for a pilot, or if it is over within minutes; else see whether the daemon runs",
    ),
    "corrupt": Help("the ledger is damaged", "restore it from a backup; " + _DISK),
    "crashed": Help(
        "a query's process died",
        "see the log; more than [poll] memory_limit_mib, or the system's memory? else "
        + _REPORT_LOG,
    ),
    "denied": Help(
        "a daemon does not let gwmond read",
        "give this host READ: on the central manager, condor_token_create -identity gwmond@POOL "
        "-authz READ, and put the token in [pool] token_directory",
    ),
    "failed": Help(
        "a query failed, or the ledger, for a cause that has no word of its own",
        "see the message, and the daemon's own log",
    ),
    "foreign": Help("the ledger's file is another program's", "[ledger] url"),
    "full": Help("the ledger's disk is full, or its quota", "make room; " + _DISK),
    "history_gap": Help(
        "records of job runs were rotated away before they were read",
        "nothing brings them back; larger histories (MAX_HISTORY_LOG), shorter downtimes",
    ),
    "idle_slots_untaken": Help(
        "entries with slots that have been free for long though jobs match them, and that nobody "
        "takes: more pilots would not help",
        "the negotiator's log, condor_userprio -quotas, condor_q -better-analyze of such a job",
    ),
    "location": Help("the ledger cannot be where the URL says", "[ledger] url"),
    "locked": Help(
        "another gwmond has this ledger: this one serves gauges and takes over when it ends",
        "stop one of them, if that was not meant",
    ),
    "moved": Help("the ledger's file was moved or replaced", "nothing: it is opened anew"),
    "no_entry": Help("glideresource ads that do not name an entry", "look at the frontend"),
    "no_name": Help("ads without a name", "look for who sends them"),
    "no_pool": Help(
        "nothing says which pool is watched",
        "--collector HOST[:PORT], [pool] collectors, or COLLECTOR_HOST in HTCondor's configuration",
    ),
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
        "is the daemon running, and its port right (HTCondor's is 9618)?",
    ),
    "bad_host": Help(
        "requests under a name that is not this server's",
        "nothing, if nobody misses an answer; else add the name to [http] hosts",
    ),
    "bad_http": Help(
        "what is no HTTP came to the port of [http] listen",
        "nothing; if many, find out which host sends them",
    ),
    "no_request": Help(
        "connections that were closed since no whole request came within 10 s",
        "nothing; if many, find out which host opens them",
    ),
    "no_token": Help(
        "requests without the token of [http] auth_token_file",
        "give the client the token (Prometheus: authorization.credentials_file)",
    ),
    "slow_client": Help(
        "connections that were closed since the client did not take the answer within 60 s",
        "nothing; if it is Prometheus, look at the network between",
    ),
    "suspected_black_hole": Help(
        "places where jobs exit with 0 within a minute far more often than the same jobs elsewhere",
        "look at what the jobs did there (gwmond report --failures names the places of the last "
        "day); it changes no category",
    ),
    "too_many_connections": Help(
        "connections that were closed since there were 200",
        "find out which host opens them; let a firewall limit it",
    ),
    "residual": Help("a site's time does not sum up to its total", _REPORT_LOG),
    "start_attribute": Help(
        "a START expression refers to a job attribute that is other for (nearly) every job: jobs "
        "cannot be grouped by it, so matches that depend on it are only possible (estimated)",
        "nothing, if estimates will do; else let START refer to an attribute that many jobs share",
    ),
    "no_time_left": Help(
        "a query had no time left: another one, which is named, had used up the deadline; it says "
        "nothing about the daemon that was to be asked",
        "see what is said of the daemon that is named, or raise [poll] deadline",
    ),
    "timeout": Help(
        "a daemon accepts connections and stays silent, or is overloaded",
        "see its log, or give [poll] deadline more time; it is asked again",
    ),
    "too_many_at_once": Help(
        "more records have the same second than are asked for at once",
        "[histories] records",
    ),
    "too_many_groups": Help(
        "more groups of jobs than are matched: the rest is unknown",
        "is one grouped by an attribute that differs from job to job? [demand] attributes",
    ),
    "too_many_names": Help(
        "more entries, frontend groups or accounting groups than are kept apart: the others are "
        "accounted under the name other. A pilot chooses the names that it advertises, a user "
        "those of jobs",
        "look at the names in the message. If they are yours, raise the bound in [names]; if not, "
        "find out whose pilots or jobs they are: who may advertise to the collector?",
    ),
    "toonew": Help("a later gwmond wrote this ledger", "install that version"),
    "tooold": Help("an earlier gwmond wrote this ledger", "start gwmond run, which upgrades it"),
    "undated": Help("what a factory tells without a time or an entry, and is in no sum", _NOTHING),
    "unknown_host": Help(
        "a name that DNS does not know", "check the name in [pool], and this host's DNS"
    ),
    "unknown_schedd": Help(
        "no WMS collector knows a factory's schedd", "[pool.wms] collectors and factory_schedds"
    ),
    "unreachable": Help(
        "a daemon, the ledger's server or the log socket cannot be reached",
        "check the network and the firewalls between, and whether it runs",
    ),
    "unread": Help("lines of the socket that could not be read", "see what failed beside it"),
    "no_own_ad": Help(
        "a collector holds no ad of itself, as its ads expire before it renews its own",
        "set CLASSAD_LIFETIME there to more than COLLECTOR_UPDATE_INTERVAL (900 s), as is the "
        "default: pilots' ads expire too early as well",
    ),
    "young_collector": Help(
        "a collector has just been started and shows fewer pilots than before",
        "nothing: the log and the page say until when. Pilots are not taken for dead until those "
        "that live have renewed their ads: two updates, 10 minutes by default, at most "
        "site.collector_distrust",
    ),
}
"""Words of daemons that are asked, of their ads, of the ledger and of gwmond itself."""

WORDS: Mapping[str, Help] = {**FILES, **SOURCES}


def explained(word: str) -> dict[str, str]:
    """Return the fields that a log event of a problem has besides; none of an unknown word."""
    return WORDS[word]._asdict() if word in WORDS else {}


def told(word: str) -> str:
    """Return what a word means, with the word in brackets; only the word where it is not known."""
    return f"{WORDS[word].meaning} [{word}]" if word in WORDS else word
