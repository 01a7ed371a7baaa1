"""Who is to blame for early failures: a simulator whose truth is known, and what it shows."""
