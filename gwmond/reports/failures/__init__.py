"""Why validations failed: by entry, node, class and test, in a period or lately.

In: stored pilots.  Out: counts, and the failures that are no site's.
Never here: failed runs of jobs (``gwmond.pilots.early``).
"""
