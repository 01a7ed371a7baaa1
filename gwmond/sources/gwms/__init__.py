"""GlideinWMS's own files: what pilots wrote, and what the factory wrote about them.

Everything here reads and never writes.  Parsers take bytes and return facts and problems; only
``tail`` opens files.  ``GS:``, ``CS:`` and ``FM:`` name lines of
glidein_startup.sh, condor_startup.sh and glideFactoryMonitoring.py, as the facts page has them.
"""
