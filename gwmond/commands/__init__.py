"""The commands of ``gwmond``, one file each: options that only it has, and what it does.

In: a command line.  Out: a document on standard output, a status.
Never here: a figure that a page could not show as well.
"""
