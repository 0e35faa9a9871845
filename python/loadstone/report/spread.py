"""Figures of latency's distribution: histogram and heat map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone.report.figure import Figure, Panel, axis, layout, plotted, rounded, time_ticks
from loadstone.report.overtime import longest
from loadstone.report.view import Cells, Group, Run
from loadstone.stats.histogram import BUCKETS, Histogram, lower_edges

_EDGES = lower_edges().astype(float)


def _coarse(per_octave: int, low: int, high: int) -> NDArray[np.float64]:
    """Edges of ``per_octave`` buckets per octave, in nanoseconds, that cover ``low`` to ``high``."""
    first = np.floor(np.log2(max(low, 1)) * per_octave)
    last = np.ceil(np.log2(max(high, 2)) * per_octave) + 1
    return np.asarray(2.0 ** (np.arange(first, last + 1) / per_octave))


def _place(edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """The coarse bucket of each frozen bucket's middle (clipped to the ends)."""
    middles = (_EDGES[:-1] + _EDGES[1:]) / 2
    return np.asarray(np.clip(np.searchsorted(edges, middles, side="right") - 1, 0, len(edges) - 2))


def _range(parts: list[Histogram]) -> tuple[int, int] | None:
    total = Histogram.merged(parts)
    used = np.flatnonzero(total.counts)
    return (int(_EDGES[used[0]]), int(_EDGES[used[-1] + 1])) if used.size else None


def histogram(groups: list[Group], kind: str = "service") -> Figure | None:
    """Share of requests by latency; ``kind`` is ``service`` (from issue) or ``response``."""
    parts = [(g, g.service() if kind == "service" else g.response()) for g in groups]
    known = [(g, h) for g, h in parts if h is not None and len(h)]
    span = _range([h for _, h in known])
    if span is None:
        return None
    edges = _coarse(8, *span)
    place = _place(edges)
    shares, tails, columns = [], [], ["latency from (ns)", "to (ns)"]
    data: list[NDArray[Any]] = [edges[:-1], edges[1:]]
    middles = np.sqrt(edges[:-1] * edges[1:])
    for group, h in known:
        counts = np.bincount(place, weights=h.counts, minlength=len(edges) - 1)
        share = 100 * counts / counts.sum()
        above = np.concatenate([[100.0], 100 - np.cumsum(share)])
        above[above < 5e-7] = np.nan
        line: dict[str, Any] = {"color": f"var(--{group.colour})", "width": 2, "dash": group.dash}
        common: dict[str, Any] = {"name": plotted(group.label), "legendgroup": group.label, "mode": "lines"}
        shares.append(
            {
                **common,
                "x": rounded(middles),
                "y": rounded(share),
                "line": {**line, "shape": "hvh"},
                "hovertemplate": "%{y:.3~g} %",
            }
        )
        tails.append(
            {
                **common,
                "x": rounded(edges),
                "y": rounded(above),
                "line": line,
                "showlegend": False,
                "hovertemplate": "%{y:.3~g} %",
            }
        )
        columns += [f"{group.label}: requests", f"{group.label}: share (%)"]
        data += [counts, share]
    x = axis("latency", **time_ticks(*span), hoverformat=".3s")
    tail_axis = axis("%", type="log", dtick=1, range=[-3.1, 2.1])
    panels = [
        Panel("Share of requests", shares, layout(x, axis("%", rangemode="tozero"))),
        Panel("Share of requests that took longer", tails, layout(x, tail_axis), height=300),
    ]
    what = "From issue to completion" if kind == "service" else "From the intended time to completion"
    note = f"{what}, all requests, in steps of an eighth of an octave."
    title = "Latency histogram" if kind == "service" else "Latency histogram, from intended time"
    rows = [list(row) for row in zip(*(rounded(column, 7) for column in data), strict=True)]
    return Figure(f"histogram-{kind}", title, note, panels, columns, list(rows))


Counted = tuple[str, list[Run], list[Cells]]
"""One panel's name, its runs, and what each of them counted."""


def heat_map(groups: list[Group]) -> Figure | None:
    """Latency over time of all requests, one panel per group, coloured by the number of requests."""
    parts = [(g.label, g.runs, [run.cells for run in g.runs]) for g in groups]
    return heat(
        parts,
        longest(groups),
        "heat",
        "Latency over time, all requests",
        "A second band is a second kind of request: a cache, a flush, a seek.",
    )


def heat(
    parts: list[Counted], seconds: float, id_: str, title: str, note: str, most: float | None = None
) -> Figure | None:
    """A heat map per part, all on the same axes and in the same colours; ``seconds``: of the time axis.

    ``most``: decimal logarithm of the count with the last colour; with it panels are small, without a key.
    """
    used = [cells[1] for _, _, found in parts for cells in found if cells[1].size]
    if not used:
        return None
    span = (
        int(_EDGES[min(int(b.min()) for b in used)]),
        int(_EDGES[max(int(b.max()) for b in used) + 1]),
    )
    edges = _coarse(4, *span)
    place = _place(edges)
    count = max(len(run.requests) for _, runs, _ in parts for run in runs)
    panels: list[Panel] = []
    rows: list[list[str | float | None]] = []
    grids = []
    for _, runs, found in parts:
        grid = np.zeros((len(edges) - 1, count))
        for interval, bucket, n in found:
            np.add.at(grid, (place[np.clip(bucket, 0, BUCKETS - 1)], interval), n)
        grids.append(grid / len(runs))
    small = most is not None
    if most is None:
        most = max(float(np.log10(max(grid.max(), 1.0))) for grid in grids) or 1.0
    ticks = list(range(int(np.ceil(most)) + 1))
    for (label, runs, _), grid in zip(parts, grids, strict=True):
        step = max((run.widths for run in runs), key=len)
        shown = np.where(grid > 0, np.log10(np.maximum(grid, 0.1)), np.nan)
        times = np.concatenate([[0.0], np.cumsum(step)])
        trace = {
            "type": "heatmap",
            "x": rounded(times),
            "y": rounded(edges),
            "z": [rounded(row, 3) for row in shown[:, : len(step)]],
            "customdata": [rounded(row, 4) for row in grid[:, : len(step)]],
            "hovertemplate": "%{x:.4~g} s, %{y:.3s} ns: %{customdata:,.4~g} requests<extra></extra>",
            "colorscale": "Cividis",
            "showscale": not small,
            "zmin": 0,
            "zmax": most,
            "colorbar": {
                "title": {"text": "requests", "side": "right", "font": {"size": 12}},
                "tickvals": ticks,
                "ticktext": [f"{10**t:,}" for t in ticks],
                "thickness": 12,
                "outlinewidth": 0,
            },
        }
        flat = layout(
            axis("time since start (s)", range=[0, seconds]),
            axis("latency", **time_ticks(*span), range=np.log10(edges[[0, -1]]).tolist()),
            hovermode="closest",
        )
        if small:
            flat["margin"] = {"l": 50, "r": 8, "t": 4, "b": 38}
            flat["font"]["size"] = 11
        panels.append(Panel(label, [trace], flat, height=220 if small else 300))
        for b, i in zip(*np.nonzero(grid), strict=True):
            low, high = rounded(edges[[b, b + 1]])
            rows.append([label, *rounded([times[i]]), low, high, *rounded([grid[b, i]])])
    told = (
        "Each cell counts the requests that completed in an interval with that latency (mean of the runs). "
    )
    columns = ["run", "time (s)", "latency from (ns)", "to (ns)", "requests"]
    return Figure(id_, title, told + note, panels, columns, list(rows), small=small)
