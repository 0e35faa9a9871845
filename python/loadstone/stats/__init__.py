"""Statistics: latency histograms and the distance between runs."""

from loadstone.stats.histogram import Histogram

__all__ = ["Histogram"]
