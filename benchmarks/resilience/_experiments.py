"""All experiments, in the order of the page."""

from __future__ import annotations

from . import _automatic, _outages, _rates
from ._experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for module in (_automatic, _rates, _outages) for experiment in module.EXPERIMENTS
}
