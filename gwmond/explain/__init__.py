"""Why a job is not running: one reason, what would change it, and whose move it is.  No I/O."""
