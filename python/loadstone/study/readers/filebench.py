"""Filebench's summary, of versions 1.4 and 1.5: the line "IO Summary" and those of flowops."""

from __future__ import annotations

import re

from loadstone.errors import Error
from loadstone.stats.metric import Metric

_NUMBER = r"([\d.]+)"
_SUMMARY = re.compile(
    rf"IO Summary:\s*\d+ ops,?\s*{_NUMBER} ops/s,?.*?{_NUMBER}mb/s.*?{_NUMBER}ms(?:/op| latency)"
)
_FLOWOP = re.compile(rf"^(?:[\d.]+: )?(\S+)\s+\d+ops\s+{_NUMBER}ops/s\s+{_NUMBER}mb/s\s+{_NUMBER}ms/op", re.M)
_MB = 1 << 20


def read(text: str) -> list[tuple[Metric, float]]:
    """``ops_per_s``, ``bytes_per_s``, ``latency_mean``, and the same of flowops, as ``NAME.ops_per_s``."""
    told = _SUMMARY.findall(text)
    if not told:
        raise Error('has no line "IO Summary" of Filebench')
    # Of several runs of a script the last one stands for it.
    found = _figures("", told[-1])
    for name, *values in _FLOWOP.findall(text):
        found += _figures(f"{name}.", values)
    return found


def _figures(before: str, values: list[str] | tuple[str, ...]) -> list[tuple[Metric, float]]:
    rate, megabytes, latency = map(float, values)
    return [
        (Metric(f"{before}ops_per_s", "ops/s", "higher", "harmonic"), rate),
        (Metric(f"{before}bytes_per_s", "bytes/s", "higher", "harmonic"), megabytes * _MB),
        (Metric(f"{before}latency_mean", "ns", "lower"), latency * 1e6),
    ]
