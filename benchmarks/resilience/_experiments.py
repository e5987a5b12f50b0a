"""All experiments, in the order of the page."""

from __future__ import annotations

from . import _capacities, _costs, _hedging, _limits, _outages, _rates, _sources
from ._experiment import Experiment

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for module in (_rates, _limits, _capacities, _hedging, _outages, _sources, _costs)
    for experiment in module.EXPERIMENTS
}
