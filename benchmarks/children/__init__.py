"""Peers in processes, and mostly environments, of their own; these files run there.

The interpreter of `.bench/<peer>` runs `with_*.py`, and the machine's Java runs `AsyncJob.java`. They import nothing of
this project except `serving` in the same folder.

`counted.py` is the exception: `benchmarks.instructions` runs it with the operator of this tree or of an old commit.
"""
