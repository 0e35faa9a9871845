"""Metrics: what a figure of a run is called, its unit, and which way is better.

Whoever reads figures declares these once; tests and texts ask them instead of guessing by a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower", "neither"]
"""Which way of two values is the better one."""
Mean = Literal["arithmetic", "harmonic", "geometric"]
"""How values of several runs make one: rates of equal work harmonic, ratios geometric, others
arithmetic.
"""


@dataclass(frozen=True)
class Metric:
    """One figure that every run of an arm has."""

    name: str
    """Unique among the metrics of a run, such as ``ops_per_s`` or ``read.service_p99``."""
    unit: str
    """``ops/s``, ``bytes/s``, ``ns``, ``s``, ``%``; empty for counts and ratios."""
    better: Better
    """Which way is better."""
    mean: Mean = "arithmetic"
    """How to average it over runs."""
    exact: bool = False
    """Whether equal work must give the same value, so that any difference is real (bytes
    written).
    """
    positive: bool = True
    """Whether values cannot be negative: an interval that reaches below zero is flagged then."""
