"""The demo: a year of flights, each enriched with its weather and its aircraft over HTTP."""
