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
#     _record  _simulation  _views
#                            takes a sample with the operator; one simulated run, without tasks;
#                            a row of a forecast, and all rows as a table, as a drawing and in sentences
#     _service               the model of the service, fitted to a sample
#     _cap                   the rates at which the service may admit calls
#     _sample                the calls of a sample

from .._values.public import publish
from ._forecast import Forecast, rehearse
from ._record import record
from ._sample import RecordedCall, Sample
from ._views import ForecastRow

__all__ = ["Forecast", "ForecastRow", "RecordedCall", "Sample", "record", "rehearse"]

publish(globals())
