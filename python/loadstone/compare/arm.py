"""Arms: what is compared, each with the figures of all its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone.stats.metric import Metric


@dataclass(frozen=True)
class RunValues:
    """Figures of one run."""

    values: Mapping[str, float]
    """By name of the metric; a metric that the run does not tell is left out."""
    block: int | None = None
    """The block of a study that it belongs to: runs of one block were made close in time, in random order."""
    started: float | None = None
    """When it began, seconds since the epoch."""
    path: Path | None = None
    """Its bundle, where it has one."""


@dataclass(frozen=True)
class Arm:
    """One of the things that are compared, such as a file system or a build."""

    name: str
    metrics: Mapping[str, Metric]
    """By name; the first is the primary one."""
    runs: Sequence[RunValues]
    environment: Mapping[str, Any] = field(default_factory=dict)
    """The host as of ``environment.json`` of a bundle."""
    factors: Mapping[str, str] = field(default_factory=dict)
    """What was meant to differ: name and level of each factor; empty for bundles."""
    load: Any = None
    """What was run, without places and names, as plain data; None where that is not known."""
    mixed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What of the host or the load differs between runs of this arm: its name and all values."""
    notes: Sequence[str] = ()
    """What should be known of it besides, such as runs that were left out."""

    def values(self, metric: str) -> NDArray[np.float64]:
        """One value a run, of those that tell it."""
        return np.array([run.values[metric] for run in self.runs if metric in run.values], dtype=np.float64)
