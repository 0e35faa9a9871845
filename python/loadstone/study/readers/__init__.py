"""Readers of what other programs print: one module a program, each a function from a text to figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadstone.stats.metric import Metric
from loadstone.study.readers import bonnie, filebench, fio, iozone, pgbench, sysbench, times

Read = Callable[[str], list[tuple[Metric, float]]]
"""Takes a program's output; the first figure is the primary one. Raises ``Error`` for what is none."""


@dataclass(frozen=True)
class Reader:
    """How to read a program's output."""

    read: Read
    output: str = "stdout"
    """Where the program prints it."""


READERS: Mapping[str, Reader] = {
    "fio": Reader(fio.read),
    "filebench": Reader(filebench.read),
    "iozone": Reader(iozone.read),
    "bonnie++": Reader(bonnie.read),
    "sysbench": Reader(sysbench.read),
    "pgbench": Reader(pgbench.read),
    "time": Reader(times.read, "stderr"),
}
"""By the name that a study file says."""


def finite(found: list[tuple[Metric, float]]) -> dict[str, tuple[Metric, float]]:
    """Figures by name, without those that are no finite number."""
    return {metric.name: (metric, value) for metric, value in found if math.isfinite(value)}
