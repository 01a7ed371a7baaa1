"""How reports are written: words, times, colours, one kind of table and document.

In: figures, names, times.  Out: terminals, files and pages.  Never here: where a figure is from.
"""
