"""Site time: capacity, demand, and why an entry is idle.  Pure."""
