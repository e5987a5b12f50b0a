"""All experiments, in the order of the page."""

from __future__ import annotations

from . import _capacities, _costs, _counted, _held_out, _limits, _outages, _rates, _sources, _weights
from ._experiment import Experiment

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for module in (_rates, _counted, _limits, _weights, _capacities, _held_out, _outages, _sources, _costs)
    for experiment in module.EXPERIMENTS
}
