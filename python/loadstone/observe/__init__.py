"""Observation: the host's counters while a load runs, and what they say of each interval."""

from loadstone.observe.metrics import METRICS, PARAMETERS, Metric
from loadstone.observe.observer import Observation, Observer, ProbeSpec, device_of
from loadstone.observe.response import Response, progress_edges, response_parameters, time_edges

__all__ = [
    "METRICS",
    "PARAMETERS",
    "Metric",
    "Observation",
    "Observer",
    "ProbeSpec",
    "Response",
    "device_of",
    "progress_edges",
    "response_parameters",
    "time_edges",
]
