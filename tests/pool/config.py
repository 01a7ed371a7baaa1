"""The configuration of test pools and their pilots: short intervals, no barriers on loopback."""

from __future__ import annotations

COMMON_CONFIG = """
include ifexist : /etc/condor/condor_config
LOCAL_CONFIG_DIR =
LOCAL_CONFIG_FILE =
LOCAL_DIR = {local}
LOG = $(LOCAL_DIR)/log
SPOOL = $(LOCAL_DIR)/spool
EXECUTE = $(LOCAL_DIR)/execute
LOCK = $(LOCAL_DIR)/lock
RUN = $(LOCAL_DIR)/run
CRED_STORE_DIR = $(LOCAL_DIR)/cred
SEC_CREDENTIAL_DIRECTORY =
BASE_CGROUP =
MAIL =
COLLECTOR_HOST = {collector}
NETWORK_INTERFACE = 127.0.0.1
ENABLE_IPV6 = False
USE_SHARED_PORT = False
UID_DOMAIN = pool.test
TRUST_UID_DOMAIN = True
DAEMON_LIST = {daemons}
# Else the master, being root, rewrites sysctls of the whole machine.
ENABLE_KERNEL_TUNING = False
LINUX_KERNEL_TUNING_SCRIPT =
# The other ones are Python programs, which each start of a starter asks what they can.
FILETRANSFER_PLUGINS = $(LIBEXEC)/curl_plugin
UPDATE_INTERVAL = 5
MASTER_UPDATE_INTERVAL = 5
# A startd of another master on the same machine is refused with a family session.
SEC_USE_FAMILY_SESSION = False
SEC_DEFAULT_AUTHENTICATION = OPTIONAL
SEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE
SEC_READ_AUTHENTICATION_METHODS = CLAIMTOBE
SEC_WRITE_AUTHENTICATION_METHODS = CLAIMTOBE
SEC_DAEMON_AUTHENTICATION_METHODS = CLAIMTOBE
SEC_CLIENT_AUTHENTICATION_METHODS = CLAIMTOBE
SEC_DEFAULT_ENCRYPTION = OPTIONAL
SEC_DEFAULT_INTEGRITY = OPTIONAL
ALLOW_READ = *
ALLOW_WRITE = *
ALLOW_DAEMON = *
ALLOW_ADMINISTRATOR = *
ALLOW_NEGOTIATOR = *
ALLOW_ADVERTISE_STARTD = *
ALLOW_ADVERTISE_SCHEDD = *
ALLOW_ADVERTISE_MASTER = *
ALLOW_CONFIG =
# Killed daemons are back after a second.
MASTER_BACKOFF_CONSTANT = 1
MASTER_BACKOFF_FACTOR = 1
MASTER_BACKOFF_CEILING = 1
MASTER_NEW_BINARY_RESTART = NEVER
MASTER_CHECK_NEW_EXEC_INTERVAL = 86400
MAX_DEFAULT_LOG = 20 Mb
"""

POOL_CONFIG = """
COLLECTOR_NAME = test pool
COLLECTOR_UPDATE_INTERVAL = 5
NEGOTIATOR_INTERVAL = 5
NEGOTIATOR_CYCLE_DELAY = 2
NEGOTIATOR_MIN_INTERVAL = 2
NEGOTIATOR_UPDATE_INTERVAL = 5
SCHEDD_INTERVAL = 5
SCHEDD_MIN_INTERVAL = 1
JOB_START_DELAY = 0
JOB_STOP_DELAY = 0
MAX_JOBS_PER_SUBMISSION = 1000000
MAX_JOBS_PER_OWNER = 1000000
MAX_JOBS_SUBMITTED = 1000000
SCHEDD_NAME = schedd1@{domain}
SCHEDD2 = $(SCHEDD)
SCHEDD2_ARGS = -f -local-name schedd2
SCHEDD2.SCHEDD_NAME = schedd2@{domain}
SCHEDD2.SPOOL = $(LOCAL_DIR)/spool2
SCHEDD2.HISTORY = $(LOCAL_DIR)/spool2/history
SCHEDD2.SCHEDD_LOG = $(LOG)/Schedd2Log
SCHEDD2.SCHEDD_ADDRESS_FILE = $(LOCAL_DIR)/spool2/.schedd_address
SCHEDD2.SCHEDD_DAEMON_AD_FILE = $(LOCAL_DIR)/spool2/.schedd_classad
SCHEDD2.LOCAL_UNIVERSE_EXECUTE = $(LOCAL_DIR)/execute
"""

_LEVELS = (
    "WRITE",
    "DAEMON",
    "ADMINISTRATOR",
    "NEGOTIATOR",
    "ADVERTISE_STARTD",
    "ADVERTISE_SCHEDD",
    "ADVERTISE_MASTER",
)


def deny_read_config(daemon: str) -> str:
    """Has a daemon (COLLECTOR, SCHEDD) answer only who authenticates as the user "reader".

    The other levels have to be restricted too, for each of them would allow to read.
    """
    lines = [
        "SEC_DAEMON_AUTHENTICATION = REQUIRED",
        "SEC_ADVERTISE_MASTER_AUTHENTICATION = REQUIRED",
        "SEC_ADVERTISE_SCHEDD_AUTHENTICATION = REQUIRED",
        f"{daemon}.ALLOW_READ = reader@pool.test",
        *(f"{daemon}.ALLOW_{level} = condor@pool.test, root@pool.test" for level in _LEVELS),
    ]
    return "\n".join([*lines, ""])


PILOT_CONFIG = """
MASTER_NAME = {name}
STARTD_NAME = {name}
STARTD.DAEMON_SHUTDOWN = time() > GLIDEIN_ToDie
# As a pilot's master does: it ends when its startd has ended.
MASTER.DAEMON_SHUTDOWN_FAST = (STARTD_StartTime =?= 0) && (time() - DaemonStartTime > 10)
NUM_CPUS = {cores}
MEMORY = {memory}
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
NUM_SLOTS_TYPE_1 = 1
START = ifThenElse(GLIDEIN_ToRetire =!= UNDEFINED, time() < GLIDEIN_ToRetire, True)
SUSPEND = False
PREEMPT = False
KILL = False
RANK = 0
CLAIM_WORKLIFE = 3600
MAXJOBRETIREMENTTIME = {retirement}
MACHINEMAXVACATETIME = 10
RUNBENCHMARKS = False
STARTD_NOCLAIM_SHUTDOWN = 0
STARTER_UPDATE_INTERVAL = 5
STARTER_INITIAL_UPDATE_INTERVAL = 2
# No job can run in the sandbox's mount namespace otherwise.
PER_JOB_NAMESPACES = False
MOUNT_UNDER_SCRATCH =
HISTORY = $(SPOOL)/history
STARTD_HISTORY = $(SPOOL)/startd_history
"""
