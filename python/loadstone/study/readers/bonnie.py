"""Bonnie++'s line of CSV (``-q``), of format 1.9x (``bon_csv2html(1)``)."""

from __future__ import annotations

import csv
import re

from loadstone.errors import Error
from loadstone.stats.metric import Metric

_RATES = {
    **{9: "write_char", 11: "write_block", 13: "rewrite", 15: "read_char", 17: "read_block"},
    19: "seeks",
    **{26: "create", 28: "stat", 30: "delete", 32: "random_create", 34: "random_stat", 36: "random_delete"},
}
"""Field and name: bytes per second up to ``read_block`` (KiB/s in the file), else operations per second."""
_SEEKS = 19
_NAMES = list(_RATES.values())
_UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9}
_FIELDS = 50


def read(text: str) -> list[tuple[Metric, float]]:
    """Rates that Bonnie++ tells, and the longest latency of each test (``write_block.latency_max``)."""
    rows = [
        row for row in csv.reader(text.splitlines()) if len(row) >= _FIELDS and re.match(r"1\.9\d", row[0])
    ]
    if not rows:
        raise Error("has no line of CSV of Bonnie++ 1.9x or 2.x; run it with -q, which prints only that")
    row = rows[-1]
    found: list[tuple[Metric, float]] = []
    for at, name in _RATES.items():
        # +++++ is what took too little time, and nothing is what was not run.
        if re.fullmatch(r"[\d.]+", row[at]):
            blocks = at < _SEEKS
            unit, scale = ("bytes/s", 1024) if blocks else ("ops/s", 1)
            found.append((Metric(name, unit, "higher", "harmonic"), float(row[at]) * scale))
    for name, told in zip(_NAMES, row[38:50], strict=False):
        if match := re.fullmatch(r"(\d+)(us|ms|s)", told):
            metric = Metric(f"{name}.latency_max", "ns", "lower")
            found.append((metric, float(match[1]) * _UNITS[match[2]]))
    if not found:
        raise Error("Bonnie++ tells no figure; each test took too little time")
    return found
