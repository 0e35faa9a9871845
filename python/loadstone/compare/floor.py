"""The A/A floor: how far apart figures are where nothing differs.

Runs of one arm are split at random into two halves, many times, and in order once: a host that drifts shows
in the second. What differs by less than the floor says nothing, whatever a test says of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loadstone import Error
from loadstone.compare.arm import Arm

SPLITS = 500
"""Random splits; of a share of 5 % the standard error is 1 %."""
LEAST = 4
"""Runs that can be split: two in each half."""


def floors(arms: Sequence[Arm], seed: int = 1) -> dict[str, float]:
    """The floor of each metric as a share: of one arm by its halves, of two by their own ratio, too.

    That is what 95 % of the random splits stay below, or what the halves in order, or both arms, differ by
    where that is more. Raises ``Error`` where an arm has too few runs.
    """
    found: dict[str, float] = {}
    for arm in arms:
        _enough(arm)
        for name in arm.metrics:
            values = _in_time(arm, name)
            if len(values) >= LEAST and min(values) > 0:
                found[name] = max(found.get(name, 0.0), _halves(np.log(values), seed))
    if len(arms) == 2:
        for name in found:
            first, second = (np.log(arm.values(name)) for arm in arms)
            if len(first) and len(second):
                apart = math.expm1(abs(float(second.mean() - first.mean())))
                found[name] = max(found[name], apart)
    return found


def _in_time(arm: Arm, name: str) -> list[float]:
    told = [run for run in arm.runs if name in run.values]
    if all(run.started is not None for run in told):
        told.sort(key=lambda run: run.started or 0.0)
    return [float(run.values[name]) for run in told]


def _halves(values: np.ndarray, seed: int) -> float:
    rng = np.random.default_rng(seed)
    middle = len(values) // 2
    apart = [abs(float(values[:middle].mean() - values[middle:].mean()))]
    drawn = []
    for _ in range(SPLITS):
        order = rng.permutation(values)
        drawn.append(abs(float(order[:middle].mean() - order[middle:].mean())))
    return math.expm1(max(*apart, float(np.quantile(drawn, 0.95))))


def _enough(arm: Arm) -> None:
    if len(arm.runs) < LEAST:
        what = f"has {len(arm.runs)} runs, and halves need {LEAST}; make more: loadstone run --repeat"
        raise Error(f"{arm.name}: {what}")


def halves(arm: Arm, seed: int = 1) -> tuple[list[int], list[int]]:
    """A random split of an arm's runs, as their positions."""
    _enough(arm)
    order = np.random.default_rng(seed).permutation(len(arm.runs)).tolist()
    middle = len(order) // 2
    return sorted(order[:middle]), sorted(order[middle:])
