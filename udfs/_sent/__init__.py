"""Pickled on the driver and used in workers: settings, packed functions, rows, and the values of options."""
