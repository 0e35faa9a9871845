"""Figures of metrics as people read them."""

from __future__ import annotations

import math

from loadstone._units import duration, number
from loadstone.stats.metric import Metric


def value(metric: Metric, found: float) -> str:
    """``81,234 ops/s``, ``12.3 us``, ``1.5 GB/s``; a dash for what is no number."""
    if not math.isfinite(found):
        return "–"
    match metric.unit:
        case "ns":
            return duration(found)
        case "s":
            return duration(found * 1e9)
        case "bytes/s":
            return f"{number(found / 1e6)} MB/s"
        case "":
            return number(found)
        case unit:
            return f"{number(found)} {unit}"


def percent(share: float) -> str:
    """``4.1 %`` of 0.041; three digits at most."""
    if not math.isfinite(share):
        return "–"
    return f"{number(100 * share, 3 if abs(share) >= 0.1 else 2)} %"


def ratio(found: float) -> str:
    """``1.082``; a dash for what is no number."""
    return number(found) if math.isfinite(found) else "–"
