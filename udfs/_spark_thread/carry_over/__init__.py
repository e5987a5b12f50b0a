"""Carry-over: unfinished rows of a streaming query go from one micro-batch to the next."""
