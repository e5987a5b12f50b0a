"""A package, for pytest ends what has the scope of one with its last test; a plain folder has no such scope."""
