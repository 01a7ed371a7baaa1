"""Problems by their names: what each means, and what to do about it.

All that counts, logs or shows a problem names it by a member of ``ProblemName``.  docs/problems.md
is made of this list (``python -m gwmond.service.host.problem_help``), and so are the log's events
of problems, and what ``gwmond import`` and ``gwmond check`` say.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

_NOTHING = "nothing"
_DAMAGED = "nothing, if few; if many, ask why the site cuts or damages what pilots return"
_CLOCK = "compare the clocks and time zones (NTP) of the hosts named"
_REPORT = "please report it, with the file if you may"
_REPORT_LOG = "please report it, with the log"
_SYSLOG = "if many: what is sent to the log; docs/central-log.md"
_EXPECTED = "nothing: docs/central-log.md says which lines lead to nothing"
_DISK = "the log says what and where; counters stand still until then, and nothing is lost"


class ProblemName(StrEnum):
    """A kind of problem.

    - the word by which it is counted: the label ``problem`` of ``gwmond_problems_total``.
    - ``meaning``: a phrase for people.
    - ``remedy``: what an operator can do.
    """

    meaning: str
    remedy: str

    def __new__(cls, word: str, meaning: str = "", remedy: str = "") -> Self:
        """Make a member, which is its word; of a word alone it is looked up."""
        problem = str.__new__(cls, word)
        problem._value_ = word
        problem.meaning, problem.remedy = meaning, remedy
        return problem

    @property
    def shown(self) -> str:
        """The meaning, with the word in brackets."""
        return f"{self.meaning} [{self.value}]"

    AMBIGUOUS = (
        "ambiguous",
        "jobs of the factory that may belong to any of several pilots, as cluster numbers are "
        "used again",
        "nothing; import directories of several factories into different ledgers",
    )
    BAD_BASE64 = (
        "bad_base64",
        "a log within an output is damaged: not all of it is base64",
        _DAMAGED,
    )
    BAD_CONFIGURATION = (
        "bad_configuration",
        "the configuration that was to be read again is wrong: the previous one stays in use",
        "correct what the log names, then send SIGHUP again",
    )
    BAD_CONSTRAINT = (
        "bad_constraint",
        "a daemon does not understand the constraint of a query",
        "check [demand] constraint: it has to be a ClassAd expression that the schedd's version "
        "knows",
    )
    BAD_GZIP = "bad_gzip", "a log within an output that cannot be unpacked", _DAMAGED
    BAD_HOST = (
        "bad_host",
        "HTTP requests for a host name that is not this server's",
        "nothing, if no client misses an answer; else add the name to [http] hosts",
    )
    BAD_HTTP = (
        "bad_http",
        "data that is not HTTP, or not HTTP as gwmond takes it, came to the port of [http] listen",
        "nothing; if often, find out which host sends it",
    )
    BAD_REQUEST = (
        "bad_request",
        "jobs whose request_cpus, request_memory or request_gpus is not a number: a default is "
        "used",
        "tell the user; or let the schedd refuse such jobs (SUBMIT_REQUIREMENTS)",
    )
    BAD_SIZE = (
        "bad_size",
        "slots whose Cpus or Memory make no sense: the size of the entry's other pilots is used",
        "look at the ads that are named",
    )
    BAD_STATE = (
        "bad_state",
        "the position in a directory could not be read from the ledger: the directory is read "
        "from the beginning",
        "nothing: no record is counted twice",
    )
    BAD_TIME = "bad_time", "impossible times", _CLOCK
    BAD_TOKEN = (
        "bad_token",
        "a file of tokens has a line that is no token of HTCondor, which ignores it silently",
        "make the file anew (condor_token_create ... > FILE), and copy it as it is; no other files "
        "may be in that directory",
    )
    BELOW_ONE_UNIT = (
        "below_one_unit",
        "entries whose pilots have a core and less memory than a canonical unit: each such pilot "
        "counts as one unit",
        "nothing, if they are meant to be so small; else ask for more memory in the entry",
    )
    CLOCK_SET_BACK = (
        "clock_set_back",
        "the last record that was read has a time in the future: the file is read again from the "
        "beginning",
        _CLOCK,
    )
    CLOSED = "closed", "the connection to the ledger was lost; it is opened again", _NOTHING
    CONFLICT = (
        "conflict",
        "another process wrote to the ledger",
        "run only one gwmond with a ledger",
    )
    CONNECTION_CLOSED = (
        "connection_closed",
        "a daemon's port accepted the connection and closed it: the daemon is dead behind a "
        "shared port (a pilot that was killed), or it is just starting",
        "nothing for a pilot, or if it is over within minutes; else see whether the daemon runs",
    )
    CORRUPT = (
        "corrupt",
        "the ledger is damaged",
        "restore it from a backup; " + _DISK,
    )
    COSTLY_JOB = (
        "costly_job",
        "a job whose Requirements cannot be matched within the CPU time that a job has, or that "
        "crash HTCondor's library: where it could run is unknown, for an hour, and is tried again "
        "then. Others are matched",
        "look at the job that is named (condor_q -l), and ask its user for simpler Requirements",
    )
    COSTLY_START = (
        "costly_start",
        "a pilot whose START cannot be matched within the CPU time that it has, or crashes "
        "HTCondor's library: which jobs it would take is unknown, for an hour, and is tried again "
        "then. Others are matched",
        "look at START of the entry and frontend group that are named",
    )
    COUNTS_DIFFER = (
        "counts_differ",
        "the frontend or the factory counts none of what is there: slots, running jobs, waiting "
        "pilots, or idle jobs. States rest on slots, schedds and the queue",
        "the message says whose count it is. Slots: its pilots lack GLIDEIN_CredentialIdentifier. "
        "Jobs that run: the factory's collector has a port of its own. Waiting pilots: the "
        "factory's condor_q, before its limits fail. Idle jobs: CONDOR_Q_ONLY_MY_JOBS = False on "
        "the frontend, and its schedds",
    )
    CRASHED = (
        "crashed",
        "the process of a query died",
        "see the log; did it need more than [poll] memory_limit_mib, or than the system has? Else "
        "please report it, with the log",
    )
    CREDENTIAL_EXPIRES = (
        "credential_expires",
        "a certificate or a token of gwmond's own expires within two weeks and within a fifth of "
        "its life, or has expired: clients refuse gwmond then, or the pool does",
        "renew the file that is named. A new certificate is served at once; where the unit copies "
        "tokens, restart the service",
    )
    DANGLING_LINK = (
        "dangling_link",
        "symbolic links to files that do not exist",
        "remove the links, or restore the files",
    )
    DENIED = (
        "denied",
        "a daemon does not let gwmond read",
        "give this host READ: on the central manager, condor_token_create -identity gwmond@POOL "
        "-authz READ, and put the token where gwmond looks: /etc/gwmond/tokens.d of the service, "
        "else _CONDOR_SEC_TOKEN_DIRECTORY or [pool] token_directory (gwmond check names it)",
    )
    EMPTY_LOG = "empty_log", "a log within an output is empty", _NOTHING
    EMPTY_OUTPUT = (
        "empty_output",
        "empty outputs: the pilot was killed, or has not returned yet",
        "nothing, if few; if many, look at the site's batch system: are pilots killed there?",
    )
    FAILED = (
        "failed",
        "a query or an operation of the ledger failed for a reason without a word of its own",
        "see the message, and the daemon's own log",
    )
    FOREIGN = (
        "foreign",
        "the file of [ledger] url belongs to another program",
        "name another file in [ledger] url",
    )
    FULL = (
        "full",
        "the ledger's disk is full, or its quota",
        "make room; " + _DISK,
    )
    FUTURE_FILES = (
        "future_files",
        "files with a time in the future: a clock is wrong; they are read later",
        _CLOCK,
    )
    GARBAGE = (
        "garbage",
        "lines that do not belong to this kind of log, or outputs without any line that a pilot "
        "writes",
        "look at the file: is it complete, and really this kind of log?",
    )
    HISTORY_GAP = (
        "history_gap",
        "records of job runs were rotated away before gwmond read them",
        "they are lost; keep larger histories (MAX_HISTORY_LOG), and gwmond running",
    )
    IDLE_SLOTS_UNTAKEN = (
        "idle_slots_untaken",
        "entries with slots that have been unclaimed for long although idle jobs match them: more "
        "pilots would not help",
        "see what gwmond explain --entry says of the entry, the negotiator's log, and "
        "condor_userprio -quotas",
    )
    IN_USE = (
        "in_use",
        "another process listens at [factory] log_socket",
        "stop the other process, or configure another [factory] log_socket",
    )
    LINK_OUTSIDE = (
        "link_outside",
        "a symbolic link that leads out of the directory was not followed",
        "name the directory to which the link leads in [factory], or import it",
    )
    LOCATION = (
        "location",
        "the ledger cannot be at the place that [ledger] url names",
        "correct [ledger] url",
    )
    LOCKED = (
        "locked",
        "another gwmond uses this ledger: this one serves gauges, and takes over when the other "
        "ends",
        "stop one of them, if that was not intended",
    )
    LOG_GONE = (
        "log_gone",
        "central logs disappeared before all of their lines were accounted",
        "keep logs until after the import; lines that were not read are lost",
    )
    MATCHING_LATE = (
        "matching_late",
        "not all idle jobs were matched with all pilots within the deadline: where these could run "
        "is unknown. The next poll goes on",
        "nothing, if it is over within some polls; else raise [poll] deadline",
    )
    MOVED = "moved", "the ledger's file was moved or replaced", "nothing: the new file is opened"
    NO_COMPLETED_JOBS = (
        "no_completed_jobs",
        "pilots end in the factory's event logs, and no line of completed_jobs comes",
        "is the factory's server directory among [factory] directories? GlideinWMS 3.10.17 and "
        "later, and 3.11.3, write no such log where event logs have events 028: their parser "
        "compares bytes with text. Pilots' outputs and event logs tell the same",
    )
    NO_DIRECTORY = (
        "no_directory",
        "a path of [factory], or that of tokens, is no directory, or cannot be seen",
        "make it and let gwmond's user read it, or correct the path in the configuration",
    )
    NO_DURATION = (
        "no_duration",
        "completed_jobs lines without a duration (-1, 0, or more than 60 days): the output is "
        "truncated or missing",
        "nothing: the pilot's output or the factory's queue has it",
    )
    NO_ENTRY = (
        "no_entry",
        "glideresource ads that do not name an entry",
        "look at the frontend that advertises them",
    )
    NO_HOST = "no_host", "records of jobs that do not name the machine where the job ran", _NOTHING
    NO_JOB = "no_job", "records of jobs without a job id", _NOTHING
    NO_LEDGER = (
        "no_ledger",
        "there is no directory for the ledger, or it cannot be written",
        "make the directory of [ledger] url, writable for the user that runs gwmond",
    )
    NO_NAME = "no_name", "ads without a Name", "find out who advertises them"
    NO_OUTPUT = (
        "no_output",
        "pilots with a job.*.err file but no job.*.out file",
        "find out what removes the job.*.out files",
    )
    NO_OWN_AD = (
        "no_own_ad",
        "a collector holds no ad of itself, as its ads expire before it renews its own",
        "set CLASSAD_LIFETIME there to more than COLLECTOR_UPDATE_INTERVAL (900 s), as is the "
        "default: pilots' ads expire too early as well",
    )
    NO_PILOT = (
        "no_pilot",
        "lines that do not name a pilot, or (in a central log) name one that is not known",
        _SYSLOG,
    )
    NO_POOL = (
        "no_pool",
        "nothing says which pool to watch",
        "give --collector HOST[:PORT], [pool] collectors, or COLLECTOR_HOST in HTCondor's "
        "configuration",
    )
    NO_REQUEST = (
        "no_request",
        "connections that were closed because no complete request came within 10 s",
        "nothing; if many, find out which host opens them",
    )
    NO_ROOT = (
        "no_root",
        "none of the configured directories of files or logs can be listed",
        "mount them, let gwmond's user list them, or correct the paths in [factory]",
    )
    NO_RUN = (
        "no_run",
        "lines of central logs about a run of a job that is not known; records without a run",
        _EXPECTED,
    )
    NO_SCHEDD = (
        "no_schedd",
        "no schedd is known to ask",
        "name collectors that know schedds, or look at what is said of the collector",
    )
    NO_SITE = "no_site", "slots without the attribute that says their site", "set [attributes] site"
    NO_STARTD = "no_startd", "records of jobs that do not name a startd", _NOTHING
    NO_TIME = (
        "no_time",
        "lines without a readable time",
        "write logs with times (HTCondor) or with an offset to UTC (syslog)",
    )
    NO_TIME_LEFT = (
        "no_time_left",
        "no time of the deadline was left for a query: another one, which is named, had used it "
        "up. It says nothing about the daemon that was to be asked",
        "see what is said about the daemon that is named, or raise [poll] deadline",
    )
    NO_TIMES = (
        "no_times",
        "pilots whose beginning and end are both unknown 60 days after they started",
        "let gwmond read the factory's condor_activity logs of that time, too",
    )
    NO_TOKEN = (
        "no_token",
        "HTTP requests without the token of [http] auth_token_file",
        "give the client the token (Prometheus: authorization.credentials_file)",
    )
    NO_ZONE = (
        "no_zone",
        "logs whose time zone is not known",
        "set [factory] timezone, or gwmond import --timezone",
    )
    NOT_A_FILE = (
        "not_a_file",
        "directories or pipes with the name of a pilot's output or of a log",
        "move them away, unless they belong to a pilot",
    )
    NOT_KEPT = (
        "not_kept",
        "a schedd keeps no epoch history: of a job with several runs only the last one is known",
        "set JOB_EPOCH_HISTORY = $(SPOOL)/epoch_history there (the default of HTCondor 25)",
    )
    NOT_STORABLE = (
        "not_storable",
        "the ledger cannot store a pilot, which is left out",
        "please report it, with the file if you may; it is tried again after a restart",
    )
    NOT_YET = (
        "not_yet",
        "lines of central logs about pilots whose beginning is not known yet",
        "nothing: the lines are kept and tried again",
    )
    ODD_NAME = (
        "odd_name",
        "files whose names are not those of a pilot's output",
        "remove the files, if nobody needs them",
    )
    OTHER_ENTRY = (
        "other_entry",
        "outputs that name another entry than their directory",
        "move the files to where their factory wrote them",
    )
    OTHER_PILOT = (
        "other_pilot",
        "outputs that name another pilot than their file name: if that pilot has its own output, "
        "they are not accounted",
        "move the files to where their factory wrote them",
    )
    OTHER_ZONE = (
        "other_zone",
        "logs whose times are in another time zone than was assumed",
        "set [factory] timezone, or gwmond import --timezone, and import into a new ledger",
    )
    OVERFLOW = (
        "overflow",
        "lines that came to the socket were dropped: more came between two polls than gwmond keeps",
        "send fewer lines; docs/central-log.md",
    )
    PARSER_FAILED = "parser_failed", "a file that gwmond could not parse", _REPORT
    PLACE = (
        "place",
        "a socket cannot be made at [factory] log_socket",
        "the message says what; until then gwmond run does not start",
    )
    POLL_FAILED = "poll_failed", "a whole poll failed", _REPORT_LOG
    PORT = (
        "port",
        "another process listens at [http] listen",
        "stop the other process, or configure another [http] listen",
    )
    READONLY = (
        "readonly",
        "the ledger cannot be written",
        "its permissions, the mount; " + _DISK,
    )
    RECONCILE = (
        "reconcile",
        "the comparison with the factory's numbers failed, as the ledger could not be read",
        "see the log",
    )
    REFUSED = (
        "refused",
        "a daemon's port refuses connections (of the ledger: the database refuses what was to be "
        "stored)",
        "is the daemon running, and its port right (HTCondor's is 9618)?",
    )
    RESIDUAL = "residual", "the time of a site does not sum up to its total", _REPORT_LOG
    RUN_GOES_ON = (
        "run_goes_on",
        "lines of central logs about the end of a run that still goes on",
        _EXPECTED,
    )
    SEVERAL_PILOTS = (
        "several_pilots",
        "lines of central logs that match several pilots",
        "let lines name the pilot: GLIDEIN_ClusterId and GLIDEIN_Schedd",
    )
    SEVERAL_RUNS = (
        "several_runs",
        "lines of central logs that match several runs of jobs",
        _EXPECTED,
    )
    SHRUNK = (
        "shrunk",
        "files that became shorter while they were read",
        "nothing, if once: the file is read again when it changes",
    )
    SLOW_CLIENT = (
        "slow_client",
        "connections that were closed because the client did not take the answer within 60 s, or a "
        "refusal within 2 s",
        "nothing; if it is Prometheus, look at the network between",
    )
    START_ATTRIBUTE = (
        "start_attribute",
        "a START expression refers to a job attribute with another value for (nearly) every job: "
        "jobs cannot be grouped by it, so matches that depend on it are only possible "
        "(estimated). It is tried again after an hour",
        "nothing, if estimates suffice; else let START refer to an attribute that many jobs share",
    )
    STARTDS_CLOSED = (
        "startds_closed",
        "pilots let nobody ask for the histories of their startds, as GlideinWMS makes them: their "
        "HTCondor requires a token, and has no key to verify one",
        "nothing: schedds' histories and pilots' outputs tell how runs ended; or [histories] "
        "startds = []. To open them, the factory's pilots need SEC_READ_AUTHENTICATION = OPTIONAL "
        "with ALLOW_READ for this host",
    )
    SUSPECTED_BLACK_HOLE = (
        "suspected_black_hole",
        "places where jobs fail within five minutes, or exit with 0 within a "
        "minute, far more often than jobs of the same kind do elsewhere",
        "look at what the jobs did there (gwmond report --failures names the places of the last "
        "day); no category is changed",
    )
    TIMEOUT = (
        "timeout",
        "a daemon accepted the connection and did not answer, or answers too slowly",
        "see its log, or raise [poll] deadline; it is asked again at the next poll",
    )
    TOO_DEEP = (
        "too_deep",
        "directories too far below the one that is configured",
        "name a directory nearer to them",
    )
    TOO_LARGE = (
        "too_large",
        "files, or logs within them, that are too large: only a part is read",
        "of a file nothing, its beginning and end are read; of a query: raise [poll] "
        "memory_limit_mib",
    )
    TOO_LATE = (
        "too_late",
        "records of jobs that ended before the time that the ledger keeps",
        "nothing; [ledger] *_retention says how long pilots are kept",
    )
    TOO_LONG = "too_long", "lines too long for this kind of log", _SYSLOG
    TOO_MANY = (
        "too_many",
        "outputs with more records of jobs than gwmond reads",
        "nothing: the rest of the pilot's time is accounted",
    )
    TOO_MANY_AT_ONCE = (
        "too_many_at_once",
        "more records have the same second than one query returns",
        "raise [histories] records",
    )
    TOO_MANY_CONNECTIONS = (
        "too_many_connections",
        "connections that were closed because 200 were open",
        "find out which host opens them; let a firewall limit it",
    )
    TOO_MANY_DIRECTORIES = (
        "too_many_directories",
        "more directories than gwmond reads: some were not read",
        "name fewer, or name directories nearer to the files",
    )
    TOO_MANY_EVENTS = (
        "too_many_events",
        "jobs of the factory with more events than gwmond keeps (200): the oldest are left out",
        "find out why the site starts or holds such jobs again and again",
    )
    TOO_MANY_GROUPS = (
        "too_many_groups",
        "a schedd has more groups of idle jobs than are matched: the rest is unknown",
        "does [demand] attributes, or a job's Requirements, name an attribute that differs from "
        "job to job?",
    )
    TOO_MANY_LOGS = (
        "too_many_logs",
        "directories with more logs than gwmond follows: it follows the latest",
        "move old logs away, after an import",
    )
    TOO_MANY_NAMES = (
        "too_many_names",
        "more entries, frontend groups, accounting groups, schedds or frontends than are kept "
        "apart: the others are accounted under the name other; such schedds are not queried. "
        "Pilots, users and daemons choose these names",
        "look at the names in the message. If they are yours, raise the limit in [names]; if not, "
        "find out whose they are: who may advertise to the collector?",
    )
    TOO_MANY_RUNS = (
        "too_many_runs",
        "a pilot with more runs of jobs than gwmond reads: the rest is left out",
        "nothing: the rest of the pilot's time is accounted",
    )
    TOO_MANY_UNREAD = (
        "too_many_unread",
        "directories with so many unreadable files that later files have to wait",
        "let gwmond's user read them (SupplementaryGroups in its unit)",
    )
    TOO_MANY_WAITING = (
        "too_many_waiting",
        "lines of central logs that were dropped, as too many others wait",
        _SYSLOG,
    )
    TOO_MUCH_MEMORY = (
        "too_much_memory",
        "files that take too much memory to read: their logs are left out",
        "look at the file: it is damaged, or was made to be large",
    )
    TOO_SLOW = (
        "too_slow",
        "files that take too much CPU time to read: their logs are left out",
        "look at the file: it is damaged, or was made to be slow",
    )
    TOONEW = "toonew", "a later gwmond wrote this ledger", "install that version"
    TOOOLD = "tooold", "an earlier gwmond wrote this ledger", "start gwmond run, which upgrades it"
    TRACE_BACKLOG_SKIPPED = (
        "trace_backlog_skipped",
        "pilots, runs and jobs whose traces were not exported: they waited for the receiver "
        "for longer than traces.max_age",
        "see why the receiver does not take them (trace_export_failing), or is too slow",
    )
    TRACE_EXPORT_FAILING = (
        "trace_export_failing",
        "the receiver of traces cannot be reached, or takes none for now: they wait, as long as "
        "traces.max_age, and nothing else waits for them",
        "gwmond check tries the receiver and says what to do; the log and /problems say what it "
        "answered",
    )
    TRACE_SPANS_REFUSED = (
        "trace_spans_refused",
        "spans that the receiver of traces refused for good: they are not sent again",
        "gwmond check tries the receiver and says what to do; the log and /problems say what it "
        "answered: an endpoint that is none of OTLP over HTTP, a token that is missing "
        "(traces.headers_file), or its limits",
    )
    TRAILING_GARBAGE = (
        "trailing_garbage",
        "a log within an output is followed by other data",
        _DAMAGED,
    )
    TRUNCATED = "truncated", "truncated lines", _DAMAGED
    TRUNCATED_LOG = (
        "truncated_log",
        "a log became shorter and was read again",
        "let logs be rotated by renaming (no copytruncate)",
    )
    UNDATED = (
        "undated",
        "the factory's records without a time or an entry, which are in no sum",
        _NOTHING,
    )
    UNKNOWN_HOST = (
        "unknown_host",
        "DNS does not know a host name",
        "check the name in [pool], and this host's DNS",
    )
    UNKNOWN_SCHEDD = (
        "unknown_schedd",
        "no WMS collector knows a schedd of the factory",
        "check [pool.wms] collectors and factory_schedds",
    )
    UNREACHABLE = (
        "unreachable",
        "a daemon, the ledger's server or the log socket cannot be reached",
        "check the network and the firewalls between, and whether it runs",
    )
    UNREAD = (
        "unread",
        "lines that came to the socket and could not be read",
        "see what failed at the same time",
    )
    UNREADABLE = (
        "unreadable",
        "files or directories that gwmond's user may not read, or that cannot be read or listed: "
        "they are read as soon as that is possible",
        "let gwmond's user read them: the factory's group for gwmond's unit "
        "(SupplementaryGroups=gfactory), or setfacl -R -m u:gwmond:rX DIRECTORY; or mount them",
    )
    UNTIMED = "untimed", "outputs of pilots without any time", _DAMAGED
    VANISHED = (
        "vanished",
        "files that disappeared before they were read",
        "nothing, if few: the factory removes files while they are read",
    )
    XML_MALFORMED = (
        "xml_malformed",
        "validation reports (XML) that are truncated or malformed",
        _DAMAGED,
    )
    XML_REFUSED = (
        "xml_refused",
        "validation reports (XML) with elements that no such report has",
        _REPORT,
    )
    YOUNG_COLLECTOR = (
        "young_collector",
        "a collector has just been started and shows fewer pilots than before",
        "nothing: the log and the page say until when. Pilots are not taken for dead until those "
        "that live have renewed their ads: two updates, 10 minutes by default, at most "
        "site.collector_distrust",
    )
