"""Runs in processes of their own: `benchmarks.instructions` runs `counted.py` with this tree or an old commit."""
