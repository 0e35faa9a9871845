"""A comparison as one HTML page, by what reports are made of."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from loadstone._files import refuse
from loadstone.compare import texts, words
from loadstone.compare.pictures import label, with_ratio
from loadstone.compare.verdicts import Finding
from loadstone.report import Page, save
from loadstone.report.figure import Figure, Panel, axis, fade, layout, plotted
from loadstone.report.page import Row, Section, Table

if TYPE_CHECKING:
    from loadstone.compare.comparison import Comparison

_TONES = {"better": "good", "worse": "bad", "undecided": "warn", "no verdict": "warn"}
_COLOURS = tuple(f"var(--c{number})" for number in range(6))
_DRAWN = {"better": "var(--good)", "worse": "var(--bad)", "higher": "var(--c0)", "lower": "var(--c0)"}


def write(of: Comparison, out: str | os.PathLike[str], force: bool = False) -> Page:
    """Writes the page; it appears only when it is whole, and an existing one is kept unless ``force``."""
    refuse(out, force)
    page = build(of)
    save(page, out, force=force)
    return page


def build(of: Comparison) -> Page:
    """The page of a comparison."""
    said = [f"{one.arm} against {one.base}: {texts.sentence(one, of.margin)}." for one in of.primary]
    names = [arm.name for arm in of.arms]
    runs = ", ".join(f"{arm.name}: {len(arm.runs)}" for arm in of.arms)
    verdicts = {one.verdict for one in of.primary}
    tone = _TONES.get(next(iter(verdicts)), "") if len(verdicts) == 1 else ""
    sections = [
        Section("differs", "What differs between the arms", tables=[_differences(of)]),
        Section("verdicts", "Verdicts", tables=[_table(of, found) for found in texts.by_arm(of)]),
        Section("ratios", "Ratios", figures=[_forest(of)] if with_ratio(of) else []),
        Section("runs", "Every run", figures=[_points(of)]),
    ]
    return Page(
        f"{' and '.join(names) if len(names) < 4 else f'{len(names)} arms'}",
        f"Runs: {runs}",
        " ".join(said),
        tone,
        ", ".join(names),
        [section for section in sections if section],
        texts.remarks(of),
    )


def _differences(of: Comparison) -> Table:
    rows = [
        Row([one.name, *texts.values_of(one, len(of.arms))], "warn" if one.refused else "")
        for one in of.differences
    ]
    if not rows:
        rows = [Row(["host, settings and load", *["the same"] * len(of.arms)])]
    columns = ["", *(arm.name for arm in of.arms)]
    return Table(columns, rows, text=tuple(range(len(columns))))


def _table(of: Comparison, found: list[Finding]) -> Table:
    rows = [Row(texts.cells(one), _TONES.get(one.verdict, "")) for one in found]
    note = (
        f"The same: within {words.percent(of.margin)}. Ratios are of geometric means over runs, figures are "
        "means of the kind that each metric has."
    )
    return Table(texts.heads(of, found[0]), rows, note=note, text=(0, 1), toned=1)


def _forest(of: Comparison) -> Figure:
    """Ratio with interval of each metric, and the margin as a band."""
    found = with_ratio(of)
    several = len(of.arms) > 2
    traces: list[dict[str, Any]] = []
    for one in found:
        assert one.ratio is not None
        known = one.ratio.low > 0 and math.isfinite(one.ratio.high)
        value = one.ratio.value
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [value],
                "y": [plotted(label(one, several))],
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [one.ratio.high - value if known else 0],
                    "arrayminus": [value - one.ratio.low if known else 0],
                    "thickness": 2,
                },
                "marker": {"size": 10, "color": _DRAWN.get(one.verdict, "var(--soft)")},
                "showlegend": False,
                "hovertemplate": f"{plotted(one.verdict)}: %{{x:.4~g}} times<extra></extra>",
            }
        )
    edges = 1 - of.margin, 1 / (1 - of.margin)
    band = {"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    flat = layout(
        axis(f"ratio to {plotted(of.arms[0].name)}", **_scale(found)),
        axis("", autorange="reversed", ticks=""),
        hovermode="closest",
        shapes=[
            {
                **band,
                "x0": edges[0],
                "x1": edges[1],
                "line": {"width": 0},
                "fillcolor": fade("var(--soft)", 0.2),
            },
            {**band, "type": "line", "x0": 1, "x1": 1, "line": {"color": "var(--ink)", "width": 1.2}},
        ],
    )
    rows = [
        [
            one.arm,
            one.metric.name,
            one.verdict,
            one.ratio.value,
            *_known(one.ratio.low, one.ratio.high),
            one.p,
        ]
        for one in found
        if one.ratio is not None
    ]
    note = (
        f"Bars are {words.percent(of.confidence)} intervals, the grey band is the margin of "
        f"{words.percent(of.margin)}. "
        "Left of 1 a rate is worse, and a latency better."
    )
    columns = ["arm", "metric", "verdict", "ratio", "low", "high", "p"]
    return Figure(
        "ratios",
        "Ratio of each metric",
        note,
        [Panel("", traces, flat, 110 + 30 * len(found))],
        columns,
        rows,
    )


def _scale(found: list[Finding]) -> dict[str, Any]:
    """A logarithmic axis, where ratios are not close to each other."""
    ratios = [one.ratio.value for one in found if one.ratio is not None]
    if max(ratios) < 2 * min(ratios):
        return {}
    ticks = [first * 10.0**power for power in range(-6, 7) for first in (1, 2, 5)]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def _known(low: float, high: float) -> list[float | None]:
    return [low, high] if low > 0 and math.isfinite(high) else [None, None]


def _points(of: Comparison) -> Figure:
    """The primary metric of every run, in the order of the runs, and as empirical distributions."""
    metric = of.primary[0].metric
    unit = f" ({metric.unit})" if metric.unit else ""
    runs: list[dict[str, Any]] = []
    shares: list[dict[str, Any]] = []
    rows: list[list[str | float | int | None]] = []
    for at, arm in enumerate(of.arms):
        values = [float(value) for value in arm.values(metric.name)]
        look = {"name": plotted(arm.name), "marker": {"color": _COLOURS[at % len(_COLOURS)], "size": 8}}
        runs.append(
            {"type": "scatter", "mode": "markers", "x": list(range(1, len(values) + 1)), "y": values, **look}
        )
        ordered = sorted(values)
        up = [(rank + 1) / len(ordered) for rank in range(len(ordered))]
        line = {"color": _COLOURS[at % len(_COLOURS)], "shape": "hv", "width": 2}
        shares.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": ordered,
                "y": up,
                "line": line,
                "name": plotted(arm.name),
                "showlegend": False,
            }
        )
        rows += [[arm.name, run, value] for run, value in enumerate(values, 1)]
    name = plotted(metric.name + unit)
    panels = [
        Panel("by run", runs, layout(axis("run"), axis(name, rangemode="tozero"))),
        Panel("share of runs up to", shares, layout(axis(name), axis("share of runs", range=[0, 1.02]))),
    ]
    note = "Points that climb, fall or come in two heights say that runs are not of one kind."
    return Figure(
        "points", f"{metric.name} of every run", note, panels, ["arm", "run", metric.name + unit], rows
    )
