"""What operators know from GlideinWMS's ``analyze_entries`` and ``analyze_frontends``.

In: stored pilots.  Out: the same figures, exact, in the same layout.
Never here: a figure that those programs do not have.
"""
