"""Experiments: one run, an ordered list of runs, and what they say together."""
