"""What each problem means and what to do about it: a row for each word.

docs/problems.md is made of this (``python -m gwmond.service.problem_help``), and so are the log's
events of problems and what ``gwmond import`` and ``gwmond check`` say.
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
        "jobs of the factory that may belong to any of several pilots, as cluster numbers are "
        "used again",
        "nothing; import directories of several factories into different ledgers",
    ),
    "below_one_unit": Help(
        "entries whose pilots have a core and less memory than a canonical unit: each such pilot "
        "counts as one unit",
        "nothing, if they are meant to be so small; else ask for more memory in the entry",
    ),
    "bad_base64": Help("a log within an output is damaged: not all of it is base64", _DAMAGED),
    "bad_gzip": Help("a log within an output that cannot be unpacked", _DAMAGED),
    "bad_state": Help(
        "the position in a directory could not be read from the ledger: the directory is read "
        "from the beginning",
        "nothing: no record is counted twice",
    ),
    "bad_time": Help("impossible times", _CLOCK),
    "clock_set_back": Help(
        "the last record that was read has a time in the future: the file is read again from the "
        "beginning",
        _CLOCK,
    ),
    "dangling_link": Help(
        "symbolic links to files that do not exist", "remove the links, or restore the files"
    ),
    "empty_log": Help("a log within an output is empty", _NOTHING),
    "empty_output": Help(
        "empty outputs: the pilot was killed, or has not returned yet",
        "nothing, if few; if many, look at the site's batch system: are pilots killed there?",
    ),
    "future_files": Help(
        "files with a time in the future: a clock is wrong; they are read later", _CLOCK
    ),
    "garbage": Help(
        "lines that do not belong to this kind of log, or outputs without any line that a pilot "
        "writes",
        "look at the file: is it complete, and really this kind of log?",
    ),
    "link_outside": Help(
        "a symbolic link that leads out of the directory was not followed",
        "name the directory to which the link leads in [factory], or import it",
    ),
    "log_gone": Help(
        "central logs disappeared before all of their lines were accounted",
        "keep logs until after the import; lines that were not read are lost",
    ),
    "no_duration": Help(
        "completed_jobs lines without a duration (-1, 0, or more than 60 days): the output is "
        "truncated or missing",
        "nothing: the pilot's output or the factory's queue has it",
    ),
    "no_host": Help("records of jobs that do not name the machine where the job ran", _NOTHING),
    "no_job": Help("records of jobs without a job id", _NOTHING),
    "no_output": Help(
        "pilots with a job.*.err file but no job.*.out file",
        "find out what removes the job.*.out files",
    ),
    "no_pilot": Help(
        "lines that do not name a pilot, or (in a central log) name one that is not known", _SYSLOG
    ),
    "no_run": Help(
        "lines of central logs about a run of a job that is not known; records without a run",
        _EXPECTED,
    ),
    "no_startd": Help("records of jobs that do not name a startd", _NOTHING),
    "no_time": Help(
        "lines without a readable time",
        "write logs with times (HTCondor) or with an offset to UTC (syslog)",
    ),
    "no_times": Help(
        "pilots whose beginning and end are both unknown 60 days after they started",
        "let gwmond read the factory's condor_activity logs of that time, too",
    ),
    "no_zone": Help(
        "logs whose time zone is not known", "set [factory] timezone, or gwmond import --timezone"
    ),
    "not_a_file": Help(
        "directories or pipes with the name of a pilot's output or of a log",
        "move them away, unless they belong to a pilot",
    ),
    "not_storable": Help(
        "the ledger cannot store a pilot, which is left out",
        "please report it, with the file if you may; it is tried again after a restart",
    ),
    "not_yet": Help(
        "lines of central logs about pilots whose beginning is not known yet",
        "nothing: the lines are kept and tried again",
    ),
    "odd_name": Help(
        "files whose names are not those of a pilot's output",
        "remove the files, if nobody needs them",
    ),
    "other_entry": Help(
        "outputs that name another entry than their directory",
        "move the files to where their factory wrote them",
    ),
    "other_pilot": Help(
        "outputs that name another pilot than their file name: if that pilot has its own output, "
        "they are not accounted",
        "move the files to where their factory wrote them",
    ),
    "other_zone": Help(
        "logs whose times are in another time zone than was assumed",
        "set [factory] timezone, or gwmond import --timezone, and import into a new ledger",
    ),
    "parser_failed": Help("a file that gwmond could not parse", _REPORT),
    "run_goes_on": Help(
        "lines of central logs about the end of a run that still goes on", _EXPECTED
    ),
    "same_file": Help(
        "further names (links) of a file that is read: it is accounted once", _NOTHING
    ),
    "several_pilots": Help(
        "lines of central logs that match several pilots",
        "let lines name the pilot: GLIDEIN_ClusterId and GLIDEIN_Schedd",
    ),
    "several_runs": Help("lines of central logs that match several runs of jobs", _EXPECTED),
    "shrunk": Help(
        "files that became shorter while they were read",
        "nothing, if once: the file is read again when it changes",
    ),
    "too_deep": Help(
        "directories too far below the one that is configured", "name a directory nearer to them"
    ),
    "too_large": Help(
        "files, or logs within them, that are too large: only a part is read",
        "of a file nothing, its beginning and end are read; of a query: raise [poll] "
        "memory_limit_mib",
    ),
    "too_much_memory": Help(
        "files that take too much memory to read: their logs are left out",
        "look at the file: it is damaged, or was made to be large",
    ),
    "too_slow": Help(
        "files that take too much CPU time to read: their logs are left out",
        "look at the file: it is damaged, or was made to be slow",
    ),
    "too_late": Help(
        "records of jobs that ended before the time that the ledger keeps",
        "nothing; [ledger] *_retention says how long pilots are kept",
    ),
    "too_long": Help("lines too long for this kind of log", _SYSLOG),
    "too_many": Help(
        "outputs with more records of jobs than gwmond reads",
        "nothing: the rest of the pilot's time is accounted",
    ),
    "too_many_directories": Help(
        "more directories than gwmond reads: some were not read",
        "name fewer, or name directories nearer to the files",
    ),
    "too_many_events": Help(
        "jobs of the factory with more events than gwmond keeps (200): the oldest are left out",
        "find out why the site starts or holds such jobs again and again",
    ),
    "too_many_logs": Help(
        "directories with more logs than gwmond follows: it follows the latest",
        "move old logs away, after an import",
    ),
    "too_many_runs": Help(
        "a pilot with more runs of jobs than gwmond reads: the rest is left out",
        "nothing: the rest of the pilot's time is accounted",
    ),
    "too_many_unread": Help(
        "directories with so many unreadable files that later files have to wait",
        "let gwmond's user read them (SupplementaryGroups in its unit)",
    ),
    "too_many_waiting": Help(
        "lines of central logs that were dropped, as too many others wait", _SYSLOG
    ),
    "trailing_garbage": Help("a log within an output is followed by other data", _DAMAGED),
    "truncated": Help("truncated lines", _DAMAGED),
    "truncated_log": Help(
        "a log became shorter and was read again",
        "let logs be rotated by renaming (no copytruncate)",
    ),
    "unreadable": Help(
        "files or directories that gwmond's user may not read, or that cannot be read or listed: "
        "they are read as soon as that is possible",
        "let gwmond's user read them (SupplementaryGroups in its unit), or mount them",
    ),
    "untimed": Help("outputs of pilots without any time", _DAMAGED),
    "vanished": Help(
        "files that disappeared before they were read",
        "nothing, if few: the factory removes files while they are read",
    ),
    "xml_malformed": Help("validation reports (XML) that are truncated or malformed", _DAMAGED),
    "xml_refused": Help("validation reports (XML) with elements that no such report has", _REPORT),
}
"""Words of files, and of what they and records of jobs tell."""

SOURCES: Mapping[str, Help] = {
    "bad_configuration": Help(
        "the configuration that was to be read again is wrong: the previous one stays in use",
        "correct what the log names, then send SIGHUP again",
    ),
    "bad_constraint": Help(
        "a daemon does not understand the constraint of a query",
        "check [demand] constraint: it has to be a ClassAd expression that the schedd's version "
        "knows",
    ),
    "bad_request": Help(
        "jobs whose request_cpus, request_memory or request_gpus is not a number: a default is "
        "used",
        "tell the user; or let the schedd refuse such jobs (SUBMIT_REQUIREMENTS)",
    ),
    "bad_size": Help(
        "slots whose Cpus or Memory make no sense: the size of the entry's other pilots is used",
        "look at the ads that are named",
    ),
    "closed": Help("the connection to the ledger was lost; it is opened again", _NOTHING),
    "conflict": Help("another process wrote to the ledger", "run only one gwmond with a ledger"),
    "connection_closed": Help(
        "a daemon's port accepted the connection and closed it: the daemon is dead behind a shared "
        "port (a pilot that was killed), or it is just starting",
        "nothing for a pilot, or if it is over within minutes; else see whether the daemon runs",
    ),
    "corrupt": Help("the ledger is damaged", "restore it from a backup; " + _DISK),
    "crashed": Help(
        "the process of a query died",
        "see the log; did it need more than [poll] memory_limit_mib, or than the system has? Else "
        "please report it, with the log",
    ),
    "denied": Help(
        "a daemon does not let gwmond read",
        "give this host READ: on the central manager, condor_token_create -identity gwmond@POOL "
        "-authz READ, and put the token in [pool] token_directory",
    ),
    "failed": Help(
        "a query or an operation of the ledger failed for a reason without a word of its own",
        "see the message, and the daemon's own log",
    ),
    "foreign": Help(
        "the file of [ledger] url belongs to another program", "name another file in [ledger] url"
    ),
    "full": Help("the ledger's disk is full, or its quota", "make room; " + _DISK),
    "history_gap": Help(
        "records of job runs were rotated away before gwmond read them",
        "they are lost; keep larger histories (MAX_HISTORY_LOG), and gwmond running",
    ),
    "idle_slots_untaken": Help(
        "entries with slots that have been unclaimed for long although idle jobs match them: more "
        "pilots would not help",
        "see the negotiator's log, condor_userprio -quotas, and condor_q -better-analyze of such "
        "a job",
    ),
    "location": Help(
        "the ledger cannot be at the place that [ledger] url names", "correct [ledger] url"
    ),
    "locked": Help(
        "another gwmond uses this ledger: this one serves gauges, and takes over when the other "
        "ends",
        "stop one of them, if that was not intended",
    ),
    "moved": Help("the ledger's file was moved or replaced", "nothing: the new file is opened"),
    "no_entry": Help(
        "glideresource ads that do not name an entry", "look at the frontend that advertises them"
    ),
    "no_name": Help("ads without a Name", "find out who advertises them"),
    "no_pool": Help(
        "nothing says which pool to watch",
        "give --collector HOST[:PORT], [pool] collectors, or COLLECTOR_HOST in HTCondor's "
        "configuration",
    ),
    "no_root": Help(
        "none of the configured directories of files or logs can be listed",
        "mount them, let gwmond's user list them, or correct the paths in [factory]",
    ),
    "no_site": Help("slots without the attribute that says their site", "set [attributes] site"),
    "overflow": Help(
        "lines that came to the socket were dropped: more came between two polls than gwmond keeps",
        "send fewer lines; docs/central-log.md",
    ),
    "poll_failed": Help("a whole poll failed", _REPORT_LOG),
    "readonly": Help("the ledger cannot be written", "its permissions, the mount; " + _DISK),
    "reconcile": Help(
        "the comparison with the factory's numbers failed, as the ledger could not be read",
        "see the log",
    ),
    "refused": Help(
        "a daemon's port refuses connections (of the ledger: the database refuses what was to be "
        "stored)",
        "is the daemon running, and its port right (HTCondor's is 9618)?",
    ),
    "bad_host": Help(
        "HTTP requests for a host name that is not this server's",
        "nothing, if no client misses an answer; else add the name to [http] hosts",
    ),
    "bad_http": Help(
        "data that is not HTTP came to the port of [http] listen",
        "nothing; if often, find out which host sends it",
    ),
    "no_request": Help(
        "connections that were closed because no complete request came within 10 s",
        "nothing; if many, find out which host opens them",
    ),
    "no_token": Help(
        "HTTP requests without the token of [http] auth_token_file",
        "give the client the token (Prometheus: authorization.credentials_file)",
    ),
    "slow_client": Help(
        "connections that were closed because the client did not take the answer within 60 s",
        "nothing; if it is Prometheus, look at the network between",
    ),
    "suspected_black_hole": Help(
        "places where jobs exit with 0 within a minute far more often than jobs of the same kind "
        "do elsewhere",
        "look at what the jobs did there (gwmond report --failures names the places of the last "
        "day); no category is changed",
    ),
    "too_many_connections": Help(
        "connections that were closed because 200 were open",
        "find out which host opens them; let a firewall limit it",
    ),
    "residual": Help("the time of a site does not sum up to its total", _REPORT_LOG),
    "start_attribute": Help(
        "a START expression refers to a job attribute with another value for (nearly) every job: "
        "jobs cannot be grouped by it, so matches that depend on it are only possible "
        "(estimated). It is tried again after an hour",
        "nothing, if estimates suffice; else let START refer to an attribute that many jobs share",
    ),
    "no_time_left": Help(
        "no time of the deadline was left for a query: another one, which is named, had used it "
        "up. It says nothing about the daemon that was to be asked",
        "see what is said about the daemon that is named, or raise [poll] deadline",
    ),
    "timeout": Help(
        "a daemon accepted the connection and did not answer, or answers too slowly",
        "see its log, or raise [poll] deadline; it is asked again at the next poll",
    ),
    "too_many_at_once": Help(
        "more records have the same second than one query returns", "raise [histories] records"
    ),
    "too_many_groups": Help(
        "a schedd has more groups of idle jobs than are matched: the rest is unknown",
        "does [demand] attributes, or a job's Requirements, name an attribute that differs from "
        "job to job?",
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
    "undated": Help(
        "the factory's records without a time or an entry, which are in no sum", _NOTHING
    ),
    "unknown_host": Help(
        "DNS does not know a host name", "check the name in [pool], and this host's DNS"
    ),
    "unknown_schedd": Help(
        "no WMS collector knows a schedd of the factory",
        "check [pool.wms] collectors and factory_schedds",
    ),
    "unreachable": Help(
        "a daemon, the ledger's server or the log socket cannot be reached",
        "check the network and the firewalls between, and whether it runs",
    ),
    "unread": Help(
        "lines that came to the socket and could not be read", "see what failed at the same time"
    ),
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
