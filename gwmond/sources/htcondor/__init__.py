"""Sources that are daemons of HTCondor: collectors, schedds, startds."""
