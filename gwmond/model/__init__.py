"""The vocabulary: units, facts, pilots and runs, and what is shown.  Imports nothing of ours."""
