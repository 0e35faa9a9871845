"""Figures over time: throughput, latency, requests in flight, lateness, response parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from loadstone.report.figure import Figure, Panel, axis, fade, layout, plotted, rounded
from loadstone.report.view import Floats, Group, Run

# Times its median that a panel's largest value may be before its axis becomes logarithmic.
WIDE = 20


def lines(
    groups: list[Group], values: Callable[[Run], tuple[Floats, Floats] | None], unit: str
) -> tuple[list[dict[str, Any]], dict[str, tuple[Floats, Floats]]]:
    """A line per group (mean of its runs) on a band from least to most.

    ``values`` gives a run's times (seconds) and values, on one grid for all runs of a group. Returns
    the traces and the drawn means by label.
    """
    traces: list[dict[str, Any]] = []
    means: dict[str, tuple[Floats, Floats]] = {}
    for group in groups:
        found = [v for v in map(values, group.runs) if v is not None and len(v[0])]
        if not found:
            continue
        mean, low, high = group.mean([v for _, v in found])
        x = max((t for t, _ in found), key=len)
        colour = f"var(--{group.colour})"
        if len(found) > 1:
            traces.append(
                {
                    **_band(x, low, high),
                    "mode": "lines",
                    "line": {"width": 0},
                    "fill": "toself",
                    "fillcolor": fade(colour),
                    "hoverinfo": "skip",
                    "showlegend": False,
                    "legendgroup": group.label,
                }
            )
        traces.append(
            {
                "x": rounded(x),
                "y": rounded(mean),
                "name": plotted(group.label),
                "legendgroup": group.label,
                "mode": _mode(mean),
                "line": {"color": colour, "width": 2, "dash": group.dash},
                "hovertemplate": f"%{{y:.4~g}} {unit}",
            }
        )
        means[group.label] = (x, mean)
    return traces, means


def _mode(values: Floats) -> str:
    """Lines, and points where one has no neighbour that a line could lead to."""
    known = np.concatenate(([False], ~np.isnan(values), [False]))
    alone = known[1:-1] & ~known[:-2] & ~known[2:]
    return "lines+markers" if alone.any() else "lines"


def _band(x: Floats, low: Floats, high: Floats) -> dict[str, Any]:
    """The outline of an area, one closed part for each stretch without gaps, parted by None."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    known = np.flatnonzero(~np.isnan(low))
    for part in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):
        if not len(part):
            continue
        xs += [*rounded(x[part]), *rounded(x[part][::-1]), None]
        ys += [*rounded(high[part]), *rounded(low[part][::-1]), None]
    return {"x": xs[:-1], "y": ys[:-1]}


def merged_rows(
    columns: dict[str, tuple[Floats, Floats]],
) -> tuple[list[str], list[list[float | None]]]:
    """Several series as one table by time; a cell is empty where a series has no value."""
    times = sorted({float(f"{t:.6g}") for x, _ in columns.values() for t in x.tolist()})
    at = {t: i for i, t in enumerate(times)}
    table = np.full((len(times), len(columns)), np.nan)
    for j, (x, y) in enumerate(columns.values()):
        for t, value in zip(x.tolist(), y.tolist(), strict=True):
            table[at[float(f"{t:.6g}")], j] = value
    names = ["time (s)", *columns]
    return names, [[t, *rounded(row)] for t, row in zip(times, table, strict=True)]


def longest(groups: list[Group]) -> float:
    """Seconds of the longest run, so that all figures have one time axis."""
    return float(max(run.widths.sum() for group in groups for run in group.runs))


def key(groups: list[Group]) -> list[tuple[str, str, str]]:
    """The legend of a figure whose panels have none."""
    dashes = {"solid": "", "dot": "dot"}
    return [(g.label, g.colour, dashes.get(g.dash, "dash")) for g in groups]


def _band_note(groups: list[Group]) -> str:
    most = max(len(group.runs) for group in groups)
    return (
        f" Lines are means of up to {most} runs, bands reach from the least to the most." if most > 1 else ""
    )


def _figure(
    id_: str,
    title: str,
    note: str,
    groups: list[Group],
    parts: list[tuple[str, str, Callable[[Run], tuple[Floats, Floats] | None]]],
    wide: bool = False,
) -> Figure | None:
    """A figure of one panel per part ``(heading, unit, values)``, or None without data.

    ``wide``: a panel whose largest value is many times its median gets a logarithmic axis.
    """
    panels: list[Panel] = []
    columns: dict[str, tuple[Floats, Floats]] = {}
    for heading, unit, values in parts:
        traces, means = lines(groups, values, unit)
        if not any(np.isfinite(mean).any() for _, mean in means.values()):
            continue
        drawn = np.concatenate([mean[mean > 0] for _, mean in means.values()])
        if wide and len(drawn) and drawn.max() > WIDE * np.median(drawn):
            y = axis(unit, type="log", dtick=1)
        else:
            y = axis(unit, rangemode="tozero")
        flat = layout(axis("time since start (s)", range=[0, longest(groups)]), y)
        flat["showlegend"] = not panels
        panels.append(Panel(heading, traces, flat, height=270 if panels else 300))
        columns.update({f"{label}: {heading or title} ({unit})": series for label, series in means.items()})
    if not panels:
        return None
    names, rows = merged_rows(columns)
    return Figure(id_, title, note + _band_note(groups), panels, names, rows)


def throughput(groups: list[Group]) -> Figure | None:
    """Requests and megabytes per second."""
    return _figure(
        "throughput",
        "Throughput over time",
        "Requests and bytes completed in each interval, failed ones left out.",
        groups,
        [
            ("Requests", "requests/s", lambda r: (r.time, r.requests / r.widths)),
            ("Bytes", "MB/s", lambda r: (r.time, r.bytes / r.widths / 1e6)),
        ],
    )


def _time_unit(groups: list[Group]) -> tuple[str, float]:
    runs = [run for group in groups for run in group.runs]
    values = np.concatenate([part for run in runs for part in (run.p50, run.p90, run.p99)] or [np.zeros(1)])
    values = values[~np.isnan(values)]
    most = float(values.max(initial=0.0))
    return next(((u, s) for u, s in (("µs", 1e3), ("ms", 1e6)) if most < s * 1e3), ("s", 1e9))


def latency(groups: list[Group]) -> Figure | None:
    """Median, 90th and 99th percentile of service latency, and of response latency where it is known."""
    unit, scale = _time_unit(groups)
    parts: list[tuple[str, str, Callable[[Run], tuple[Floats, Floats] | None]]] = [
        ("Median", unit, lambda r: (r.time, r.p50 / scale)),
        ("90th percentile", unit, lambda r: (r.time, r.p90 / scale)),
        ("99th percentile", unit, lambda r: (r.time, r.p99 / scale)),
    ]
    if any(run.response_p99 is not None for group in groups for run in group.runs):
        parts.append(
            (
                "99th percentile, from intended time",
                unit,
                lambda r: None if r.response_p99 is None else (r.time, r.response_p99 / scale),
            )
        )
    note = (
        "From issue to completion, in each interval. From the intended time it also counts how long a "
        "request waited because the target, or the load generator, was behind. An interval is left out where "
        "it has too few requests: 20 for the median, 100 and 1,000 for the others."
    )
    return _figure("latency", "Latency over time", note, groups, parts, wide=True)


def flight(groups: list[Group]) -> Figure | None:
    """Requests in flight, in the runs and in the trace they come from."""
    figure = _figure(
        "flight",
        "Requests in flight",
        "Mean number of requests issued and not yet completed, in each interval.",
        groups,
        [
            (
                "",
                "requests",
                lambda r: None if r.flight is None else (r.flight.time, r.flight.values),
            )
        ],
    )
    if figure is None:
        return None
    runs = [run for group in groups for run in group.runs]
    source = next((run.source_flight for run in runs if run.source_flight is not None), None)
    if source is not None and len(source.time):
        figure.panels[0].traces.append(
            {
                "x": rounded(source.time),
                "y": rounded(source.values),
                "name": "as recorded in the trace",
                "mode": "lines",
                "line": {"color": "var(--soft)", "width": 1.5, "dash": "dot"},
                "hovertemplate": "%{y:.4~g}",
            }
        )
        figure.note += " Dotted grey: the same for the trace when it was recorded."
        columns = {"as recorded in the trace": (source.time, source.values)}
        for group in groups:
            found = [r.flight for r in group.runs if r.flight is not None]
            if found:
                mean, _, _ = group.mean([f.values for f in found])
                columns[group.label] = (max((f.time for f in found), key=len), mean)
        figure.columns, rows = merged_rows(columns)
        figure.rows = rows
    return figure


def lateness(groups: list[Group]) -> Figure | None:
    """How late requests went out: the load generator's own honesty."""
    return _figure(
        "lateness",
        "Lateness",
        "How long after its intended time a request was issued, 99th percentile of each interval. A rising "
        "line means that the target or the load generator does not keep up.",
        groups,
        [
            (
                "",
                "ms",
                lambda r: (
                    None if r.lateness_p99 is None else (r.lateness_p99.time, r.lateness_p99.values / 1e6)
                ),
            )
        ],
    )


def parameters(groups: list[Group], titles: dict[str, tuple[str, str, float]]) -> Figure | None:
    """Small panels: what the system did, one per response parameter.

    ``titles`` gives title, unit and factor by the parameter's name, in the order of drawing.
    """
    panels: list[Panel] = []
    columns: dict[str, tuple[Floats, Floats]] = {}
    for name, (title, unit, factor) in titles.items():

        def values(run: Run, name: str = name, factor: float = factor) -> tuple[Floats, Floats] | None:
            series = run.parameters.get(name)
            if series is None or not np.isfinite(series.values).any():
                return None
            return series.time, series.values * factor

        traces, means = lines(groups, values, unit)
        if not any(np.nan_to_num(mean).any() for _, mean in means.values()):
            continue
        for trace in traces:
            trace["showlegend"] = False
        flat = layout(axis("time (s)", range=[0, longest(groups)]), axis(unit, rangemode="tozero"))
        flat["margin"] = {"l": 50, "r": 8, "t": 4, "b": 38}
        flat["font"]["size"] = 11
        panels.append(Panel(title, traces, flat, height=190))
        columns.update({f"{label}: {title}{f' ({unit})' if unit else ''}": s for label, s in means.items()})
    if not panels:
        return None
    names, rows = merged_rows(columns)
    note = (
        "The device behind the target and the host, sampled while the runs lasted; what stayed at zero is "
        "left out." + _band_note(groups)
    )
    return Figure(
        "parameters",
        "Device, CPU and memory",
        note,
        panels,
        names,
        rows,
        small=True,
        key=key(groups),
    )
