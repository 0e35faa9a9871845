"""Fitting until a model is as like its trace as was asked for.

The way of the MDH thesis, section 3.5: parameters are liberal at first (windows of 100 s, sizes by the MiB)
and then restricted, again and again, where the model is worst. What is measured is what a model draws, before
any device sees it (:func:`loadstone.model.compare`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from loadstone._scratch import scratch
from loadstone.errors import Error
from loadstone.model._check import compare, portrait
from loadstone.model._model import Model, fit
from loadstone.trace import Options
from loadstone.trace.options import Paths

MOST = 24
"""Fits at most."""

LEAST_GROUP = 16
"""Requests of a group at least; fewer tell nothing of how they are distributed."""

_RULES = {
    "size": ["linear:1048576", "linear:65536", "log2:1", "exact+log2:1", "exact+log2:4", "exact+log2:16"],
    "gap": ["log2:1", "log2:2", "log2:4", "log2:16"],
    "align": ["exact+log2:1", "exact+linear:4096", "linear:512"],
}
"""Bucket rules from coarse to fine; other dimensions have their usual ones."""

COUNTED = ("object", "op", "size", "gap", "align", "previous(run)")
"""Dimensions whose distances count, where a model has them: those that tables alone decide. Where requests go
depends on those before, and no finer bucket brings it nearer."""


@dataclass(frozen=True)
class Step:
    """One fit, and how far what it draws is from the trace."""

    window: float
    """Seconds."""
    group: int
    threshold: float
    rules: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_RULES, 0))
    """How far each dimension is refined."""
    error: float = 1.0
    worst: str = ""
    """What differs most: a dimension, or what changes over time."""
    bytes: int = 0
    """Size of the model file."""

    def rule(self, dimension: str) -> str:
        """The bucket rule of a dimension."""
        return _RULES[dimension][self.rules[dimension]]

    def finer(self, dimension: str) -> Step | None:
        """With the next rule of a dimension, where there is one."""
        if dimension not in _RULES or self.rules[dimension] + 1 == len(_RULES[dimension]):
            return None
        return replace(self, rules={**self.rules, dimension: self.rules[dimension] + 1})

    def shorter(self) -> Step | None:
        """With shorter windows and smaller groups that must be more alike, where these tell anything."""
        if self.group <= LEAST_GROUP:
            return None
        return replace(self, window=self.window / 2, group=self.group // 2, threshold=self.threshold / 1.5)


def error_of(found: dict[str, Any]) -> dict[str, float]:
    """The distances that count, by what they are of.

    Of the dimensions in :data:`COUNTED` the Kolmogorov-Smirnov distance; of reads, writes and their bytes the
    RMS difference by hundredths of the time, relative to the mean.
    """
    of = {row["dimension"]: float(row["ks"]) for row in found["dimensions"] if row["dimension"] in COUNTED}
    return of | {f"{name} over time": rms for name, rms in found["over_time"].items() if rms is not None}


def _next(step: Step, errors: dict[str, float]) -> Step | None:
    """The next step: what is worst is refined, or what else can be."""
    worst = sorted(errors, key=lambda name: -errors[name])
    if "bytes" in worst[0] and errors[worst[0]] > 2 * max(
        errors.get(f"{op}s over time", 0) for op in ("read", "write")
    ):
        # Not when requests come, but how large they are.
        worst.insert(0, "size")
    for name in worst:
        finer = step.finer(name)
        if name == "align":
            # A request that goes on begins where the one before ended: coarse sizes end anywhere.
            finer = finer or step.finer("size")
        if finer is None and ("over time" in name or name == "previous(run)"):
            finer = step.shorter()
        if finer is not None:
            return finer
    return None


def refine(
    paths: Paths,
    error: float,
    *,
    trace: Options | None = None,
    dimensions: tuple[str, ...] = (),
    progress: Callable[[Step], object] | None = None,
) -> tuple[Model, list[Step]]:
    """The first model of which nothing differs by more than ``error`` (0 to 1; :func:`error_of`), and the
    steps that led there.

    Where none of :data:`MOST` fits meets it, the best one. ``dimensions`` are those that are given, observed
    or have a rule that must stay, as :func:`fit` takes them. ``progress(step)`` is called after every fit.
    Raises ``Error`` where ``error`` is not between 0 and 1, and what :func:`fit` and :func:`check` raise.
    """
    if not 0 < error < 1:
        raise Error(f"a target error of {error} makes no sense; it is a share, above 0 and below 1")
    step: Step | None = Step(window=100.0, group=4096, threshold=0.3)
    best: tuple[float, Model] | None = None
    steps: list[Step] = []
    while step is not None and len(steps) < MOST:
        model = _fit(paths, step, dimensions, trace)
        # No longer than the whole, which a short trace would be one window of.
        if not steps and (span := model.header["source"]["span_ns"] / 1e9) < 4 * step.window:
            step = replace(step, window=max(span / 4, 1e-9))
            model = _fit(paths, step, dimensions, trace)
        real = portrait(model, paths, options=trace)
        found = compare(model, real, portrait(model, seed=1))
        errors = error_of(found)
        worst = max(errors, key=lambda name: errors[name])
        value = errors[worst]
        step = replace(step, error=value, worst=worst, bytes=_bytes(model))
        steps.append(step)
        if progress is not None:
            progress(step)
        if best is None or value < best[0]:
            best = value, model
        if value <= error:
            break
        step = _next(step, errors)
    assert best is not None
    return best[1], steps


def _fit(paths: Paths, step: Step, dimensions: tuple[str, ...], trace: Options | None) -> Model:
    fixed = {text.partition("=")[0].rpartition(":")[2] for text in dimensions}
    rules = [f"{name}={step.rule(name)}" for name in _RULES if name not in fixed]
    return fit(
        paths,
        window=step.window,
        group=step.group,
        threshold=step.threshold,
        dimensions=[*rules, *dimensions],
        trace=trace,
    )


def _bytes(model: Model) -> int:
    with scratch("target") as folder:
        path = folder / "model.mdh"
        model.save(path)
        return os.path.getsize(path)
