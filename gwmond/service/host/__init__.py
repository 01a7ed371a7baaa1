"""The host: clocks, logs, sockets, paths, the service manager, other servers.

In: bytes and signals.  Out: what the daemon says of itself.  Never here: a pilot, a job.
"""
