"""Carrying over: what keeps unfinished rows from one micro-batch of a stream to the next."""
