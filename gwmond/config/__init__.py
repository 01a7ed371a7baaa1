"""The configuration: one TOML file, validated whole before anything starts.

In: a file.  Out: a validated ``Config``, or all that is wrong with it.
Never here: what an option does.
"""
