"""Forecasts of runs beside the runs themselves, on a virtual clock: `python -m benchmarks.forecast`.

Each service is sampled with 200 calls, as a user would, and forecast from them. Then the operator runs.
"""
