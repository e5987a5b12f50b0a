"""Experiments with gates: simulated services on a virtual clock, so that each run has the same numbers."""
