"""Peers that need a process, and mostly an environment, of their own: these files run there, not here.

`with_*.py` are run by the interpreter of `.bench/<peer>`, and `AsyncJob.java` by the machine's Java: they import
nothing of this project but `serving`, which lies beside them.
"""
