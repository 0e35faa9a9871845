"""Observation: the host's counters while a load runs, and what they say of each interval."""

from loadstone.observe.metrics import ENGINE, METRICS, PARAMETERS, Metric
from loadstone.observe.observer import Observation, Observer, ProbeSpec, device_of
from loadstone.observe.response import (
    Response,
    engine_parameters,
    progress_edges,
    response_parameters,
    time_edges,
)

__all__ = [
    "ENGINE",
    "METRICS",
    "PARAMETERS",
    "Metric",
    "Observation",
    "Observer",
    "ProbeSpec",
    "Response",
    "device_of",
    "engine_parameters",
    "progress_edges",
    "response_parameters",
    "time_edges",
]
