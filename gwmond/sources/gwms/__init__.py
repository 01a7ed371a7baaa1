"""GlideinWMS's own files: what pilots wrote, and what the factory wrote about them.

In: bytes; only ``tail`` opens files.  Out: facts and problems.  Never here: a write.

``GS:``, ``CS:`` and ``FM:`` name lines of glidein_startup.sh, condor_startup.sh and
glideFactoryMonitoring.py.
"""
