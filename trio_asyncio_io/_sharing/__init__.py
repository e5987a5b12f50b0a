"""Sharing by name: one resource for all operators of a Trio run that use its name."""
