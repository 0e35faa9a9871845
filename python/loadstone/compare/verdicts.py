"""Verdicts: which of two arms is better in a metric, by how much, and how sure that is.

The unit of replication is the run. The ratio of two arms is that of their geometric means, with Welch's
interval of the logarithms, or that of pairs of one block. Two arms differ where the test of that ratio says
so at the asked confidence; they are the same where two one-sided tests at 5 % put the ratio within the margin
(D. Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987). What is neither is undecided,
which is not "no difference".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from loadstone.compare.arm import Arm
from loadstone.stats.equivalence import ERROR, LEAST_TO_DIFFER, MOST_RUNS, POWER, runs_to_decide
from loadstone.stats.intervals import Blocks, Contrast, Interval, contrast, exponential, logs, t_interval
from loadstone.stats.many import benjamini_hochberg, holm
from loadstone.stats.means import mean_of
from loadstone.stats.metric import Metric
from loadstone.stats.planning import runs_for_difference

Verdict = Literal["better", "worse", "higher", "lower", "same", "undecided", "no verdict"]

FEW = 20
"""Up to so many metrics none may be called different wrongly (Holm); of more a share of those called so."""


@dataclass(frozen=True)
class Finding:
    """One metric of an arm beside that of the base."""

    metric: Metric
    base: str
    """Name of the arm that is compared with."""
    arm: str
    primary: bool
    """Whether it is judged by itself; the others are judged together."""
    runs: tuple[int, int]
    """Of the base and of the arm."""
    values: tuple[Interval, Interval]
    """Their means over runs, in the unit of the metric."""
    ratio: Interval | None
    """Arm over base; None where a value is zero."""
    difference: Interval
    """Arm minus base, in the unit of the metric."""
    p: float
    """Chance of arms as far apart, were they alike; corrected for how many are judged together."""
    verdict: Verdict
    more: int | None = None
    """Runs of each arm that likely decide, where it is undecided; None beyond thirty, or where none would."""
    floor: float | None = None
    """How far a ratio is from 1 where nothing differs, as a share; None where that is not known."""
    below_floor: bool = False
    """Whether it would differ, were it not below the floor."""

    @property
    def change(self) -> float | None:
        """By how much the arm is better (positive) or worse, as a share of the base; higher for neither."""
        value = self.ratio.value if self.ratio is not None else None
        if value is None:
            base = self.values[0].value
            value = self.values[1].value / base if base else None
        if value is None:
            return None
        return 1 - value if self.metric.better == "lower" else value - 1


@dataclass(frozen=True)
class _Pair:
    """A metric of two arms, before it is judged."""

    metric: Metric
    base: Arm
    arm: Arm
    first: list[float]
    second: list[float]
    blocks: Blocks | None
    contrast: Contrast
    """Of logarithms where all values are above zero."""
    of_logs: bool

    @property
    def equal(self) -> bool:
        """Whether no value differs from another."""
        return len({*self.first, *self.second}) == 1


def pair(base: Arm, arm: Arm, metric: Metric) -> _Pair:
    """The runs of two arms that tell a metric; both have one at least."""
    groups, blocks = [], []
    for one in (base, arm):
        told = [run for run in one.runs if metric.name in run.values]
        groups.append([float(run.values[metric.name]) for run in told])
        blocks.append([run.block for run in told])
    found: Blocks | None = None
    common = {one for one in blocks[0] if one is not None} & {one for one in blocks[1] if one is not None}
    if len(common) > 1 and None not in blocks[0] and None not in blocks[1]:
        found = ([int(one or 0) for one in blocks[0]], [int(one or 0) for one in blocks[1]])
    first, second = groups
    of_logs = min(*first, *second) > 0
    if not of_logs:
        made = contrast(first, second, found)
    elif found is None:
        made = contrast(*logs(first, second))
    else:
        made = _paired_logs(first, second, found)
    return _Pair(metric, base, arm, first, second, found, made, of_logs)


def _paired_logs(first: Sequence[float], second: Sequence[float], blocks: Blocks) -> Contrast:
    return contrast(list(np.log(first)), list(np.log(second)), blocks)


def judge(
    pairs: Sequence[_Pair], primary: str, margin: float, confidence: float, floors: dict[str, float]
) -> list[Finding]:
    """Findings in the order of the pairs; those of the primary metric are judged by themselves."""
    ps = [_p(one) for one in pairs]
    tests = [1] * len(pairs)
    for mine in (True, False):
        rows = [at for at, one in enumerate(pairs) if (one.metric.name == primary) is mine]
        if rows:
            correct = holm if len(rows) <= FEW else benjamini_hochberg
            for at, p in zip(rows, correct([ps[at] for at in rows]), strict=True):
                ps[at], tests[at] = float(p), len(rows)
    return [
        _finding(one, one.metric.name == primary, p, of, margin, confidence, floors.get(one.metric.name))
        for one, p, of in zip(pairs, ps, tests, strict=True)
    ]


def _p(one: _Pair) -> float:
    if one.metric.exact:
        return 1.0 if one.equal else 0.0
    return 1.0 if one.equal else one.contrast.p()


def _finding(
    one: _Pair, primary: bool, p: float, tests: int, margin: float, confidence: float, floor: float | None
) -> Finding:
    n = len(one.first), len(one.second)
    made = one.contrast.interval(confidence)
    plain = contrast(one.first, one.second, one.blocks).interval(confidence)
    ratio = exponential(made) if one.of_logs else None
    values = interval(one.metric, one.first, confidence), interval(one.metric, one.second, confidence)
    found = Finding(
        one.metric, one.base.name, one.arm.name, primary, n, values, ratio, plain, p, "no verdict"
    )
    exact = one.metric.exact
    if min(n) < 2 and not exact:
        return found
    same = one.equal or _p_same(one, margin) < ERROR
    if same and not (exact and not one.equal):
        verdict: Verdict = "same"
    elif p < 1 - confidence and (exact or min(n) >= LEAST_TO_DIFFER):
        verdict = _direction(one)
    else:
        verdict = "undecided"
    below = floor is not None and verdict not in ("same", "undecided") and _apart(one) <= floor
    if below:
        verdict = "undecided"
    more = None
    if verdict == "undecided" and not below and one.of_logs:
        more = _more(one, margin, 1 - (1 - confidence) / tests, tests)
    return replace(found, verdict=verdict, more=more, floor=floor, below_floor=below)


def _more(one: _Pair, margin: float, confidence: float, tests: int) -> int | None:
    """Runs of each arm, as noisy as these, that decide in four of five cases: one way or the other."""
    n = len(one.first), len(one.second)
    apart = abs(one.contrast.value)
    found = [runs_to_decide(one.first, one.second, margin, tests, one.blocks)]
    if apart and math.isfinite(one.contrast.error):
        pairs = one.blocks is not None
        # The spread of runs, or of pairs, behind the error of the difference of means.
        spread = one.contrast.error * math.sqrt(one.contrast.n if pairs else 1 / (1 / n[0] + 1 / n[1]))
        found.append(runs_for_difference(spread, apart, POWER, confidence, pairs))
    return min((runs for runs in found if runs is not None and max(n) < runs <= MOST_RUNS), default=None)


def _direction(one: _Pair) -> Verdict:
    higher = one.contrast.value > 0
    if one.metric.better == "neither":
        return "higher" if higher else "lower"
    return "better" if higher is (one.metric.better == "higher") else "worse"


def _apart(one: _Pair) -> float:
    """How far the ratio is from 1, either way, as a share."""
    return math.expm1(abs(one.contrast.value)) if one.of_logs else math.inf


def _p_same(one: _Pair, margin: float) -> float:
    """The larger chance of the two one-sided tests."""
    edge = -math.log1p(-margin) if one.of_logs else margin * abs(float(np.mean(one.first)))
    if edge == 0:
        return 1.0
    return max(one.contrast.p(-edge, "above"), one.contrast.p(edge, "below"))


def interval(metric: Metric, values: Sequence[float], confidence: float) -> Interval:
    """The mean over runs, of the kind that the metric declares, with its interval."""
    if metric.mean == "arithmetic" or min(values) <= 0:
        return t_interval(values, confidence)
    if metric.mean == "geometric":
        return exponential(t_interval([math.log(one) for one in values], confidence))
    of = t_interval([1 / one for one in values], confidence)
    high = 1 / of.low if of.low > 0 else math.inf
    low = 1 / of.high if math.isfinite(of.high) else 0.0
    return Interval(mean_of(values, "harmonic"), low, high, confidence, "harmonic", len(values))
