"""Forecasts a run: `record` makes a few real calls, and `rehearse` simulates the rest.

    sample = await record(source, function, 200, loads=(5, 150), timeout=5.0)
    forecast = rehearse(sample, elements=1_000_000, capacity=[20, 50, 100, 150])
    print(forecast)
    async with ordered_wait(source, function, **forecast.best) as results: ...

The simulation runs the operator's own parts against a model of the service.
"""

# The layout. Imports point down only. Only `_record` imports Trio.
#
#     _forecast              simulates each setting several times, and compares them
#     _drawing  _sentences   a forecast as a table and as a drawing, and in words
#     _record  _simulation   takes a sample with the operator; one simulated run, without tasks
#     _service  _row         the model of the service, fitted to a sample; the forecast for one capacity
#     _cap                   the rates at which the service may admit calls
#     _sample                the calls of a sample

from .._values.public import publish
from ._forecast import Forecast, rehearse
from ._record import record
from ._row import ForecastRow
from ._sample import RecordedCall, Sample

__all__ = ["Forecast", "ForecastRow", "RecordedCall", "Sample", "record", "rehearse"]

publish(globals())
