"""Pictures of a comparison: ratios with their intervals, and the primary metric of every run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from loadstone import _pictures
from loadstone.compare import words
from loadstone.compare.verdicts import Finding

if TYPE_CHECKING:
    from loadstone.compare.comparison import Comparison

COLOURS = {"better": "#2a7f3f", "worse": "#b3261e", "higher": "#1f5fa8", "lower": "#1f5fa8"}


def with_ratio(of: Comparison) -> list[Finding]:
    """Findings that have a ratio to draw."""
    return [one for one in of.verdicts if one.ratio is not None and one.ratio.value > 0]


def label(one: Finding, several: bool) -> str:
    """What a row is called; ``several``: there is more than one arm beside the base."""
    return f"{one.metric.name}, {one.arm}" if several else one.metric.name


def forest(of: Comparison) -> Any:
    """A matplotlib figure of both."""
    _pictures.ready()
    from matplotlib.figure import Figure

    rows = with_ratio(of)
    made = Figure(figsize=(9, 1.8 + 0.3 * max(len(rows), 4)), layout="constrained")
    left, right = made.subplots(1, 2, width_ratios=(3, 2))
    for at, one in enumerate(rows):
        assert one.ratio is not None
        colour = COLOURS.get(one.verdict, "#777777")
        low, high = one.ratio.low, one.ratio.high
        if low > 0 and math.isfinite(high):
            left.plot([low, high], [at, at], color=colour, linewidth=2)
        left.plot([one.ratio.value], [at], "o", color=colour)
    left.axvline(1, color="black", linewidth=0.8)
    left.axvspan(1 - of.margin, 1 / (1 - of.margin), color="black", alpha=0.07, linewidth=0)
    several = len(of.arms) > 2
    left.set_yticks(range(len(rows)), [_pictures.plain(label(one, several)) for one in rows])
    left.invert_yaxis()
    left.set(xlabel=f"ratio to {_pictures.plain(of.arms[0].name)}, {words.percent(of.confidence)} interval")
    ratios = [one.ratio.value for one in rows if one.ratio is not None]
    if ratios and max(ratios) > 3 * min(ratios):
        left.set(xscale="log")
        left.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        left.xaxis.set_minor_formatter("")
    metric = of.primary[0].metric
    for at, arm in enumerate(of.arms):
        values = arm.values(metric.name)
        # Side by side, in the order of the runs.
        spread = [at + (0.3 * (run / max(len(values) - 1, 1) - 0.5)) for run in range(len(values))]
        right.plot(spread, values, "o", markersize=4, alpha=0.7)
    right.set_xticks(range(len(of.arms)), [_pictures.plain(arm.name) for arm in of.arms])
    right.set(
        ylabel=_pictures.plain(f"{metric.name}{f' ({metric.unit})' if metric.unit else ''}"), ylim=(0, None)
    )
    right.set_xlim(-0.5, len(of.arms) - 0.5)
    return made
