"""The loop: what runs in the worker's Trio thread, and the way into it."""
