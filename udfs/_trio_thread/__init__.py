"""Code that runs in the Trio thread of a Python worker, and `bridge`, its only entry point."""
