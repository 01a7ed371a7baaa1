"""Pilots' time: what is known of each pilot, and where its time goes.  Pure."""
