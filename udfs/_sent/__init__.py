"""Pickled on the driver and used in workers: settings, the user's function, rows, types and extra columns."""
