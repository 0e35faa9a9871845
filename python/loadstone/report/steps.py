"""What each step of a program did, or each op: table, latency, and heat maps of those that matter."""

from __future__ import annotations

from typing import Any

from loadstone.report.facts import QUANTILES, duration
from loadstone.report.figure import Figure, Panel, axis, cell_text, layout, plotted, rounded, time_ticks
from loadstone.report.overtime import longest
from loadstone.report.page import Row, Table
from loadstone.report.spread import heat
from loadstone.report.view import Group, Kind, Run
from loadstone.stats.histogram import Histogram

# Most heat maps; who has more steps wants those that took the time.
MAPS = 12
# Most steps in the figure of latencies.
LINES = 40


def table(groups: list[Group]) -> Table | None:
    """One row per run and step of a program; None where there is none."""
    rows = []
    # A name that every row has would only make the table wider.
    several = sum(run.stepped for run in _runs(groups)) > 1
    for run in _runs(groups):
        if not run.stepped:
            continue
        seconds = run.widths.sum()
        for kind in run.kinds:
            row, told = kind.row, kind.service.summary()
            failed = ", ".join(f"{n:,} {name}" for name, n in row.failed.items()) or "0"
            cells = [
                *([run.name] if several else []),
                f"{kind.name} (waits)" if kind.waits else kind.name,
            ]
            cells += [f"{row.count:,}", cell_text(row.count / seconds)]
            cells += [cell_text(row.bytes / seconds / 1e6) if row.bytes else "–"]
            cells += [duration(told.get(q)) for q in ("mean", "min", *QUANTILES, "max")]
            rows.append(Row([*cells, failed], "bad" if row.failed else ""))
    if not rows:
        return None
    columns = [*(["run"] if several else []), "step", "count", "count/s", "MB/s", "mean", "least"]
    columns += [*QUANTILES.values(), "most"]
    note = "In the order of the program; rates are over the whole run. What waits is no request, and not "
    note += "among the totals."
    return Table(
        [*columns, "failed"],
        rows,
        title="By step",
        note=note,
        text=(0, 1) if several else (0,),
        toned=len(columns),
    )


def parts(groups: list[Group]) -> list[Table]:
    """Workers, groups or threads, of runs that were asked for them (``--by``)."""
    tables = []
    for what in ("worker", "group", "thread"):
        rows = []
        for run in _runs(groups):
            for part in run.summary.get(f"{what}s") or []:
                told = part["service_ns"]
                failed = ", ".join(f"{n:,} {name}" for name, n in part["errors"].items()) or "0"
                number = ".".join(str(part[key]) for key in ("worker", "thread") if key in part)
                cells = [run.name, f"{number} {part['group']}".strip() or "–", f"{part['count']:,}"]
                cells += [cell_text(part["ops_per_s"])]
                cells += [duration(told.get(q)) for q in ("mean", "min", *QUANTILES, "max")]
                rows.append(Row([*cells, failed], "bad" if part["errors"] else ""))
        if rows:
            columns = [
                "run",
                what,
                "count",
                "count/s",
                "mean",
                "least",
                *QUANTILES.values(),
                "most",
                "failed",
            ]
            tables.append(Table(columns, rows, title=f"By {what}", text=(0, 1), toned=len(columns) - 1))
    return tables


def latencies(groups: list[Group]) -> Figure | None:
    """Percentiles of every step or op, as points on a line from the median to the last that is told."""
    names = [
        name
        for name, found in _by_name(groups).items()
        if not any(kind.waits for _, kind in found)
        and Histogram.merged(kind.service for _, kind in found).told(50) is not None
    ]
    if len(names) < 2:
        return None
    names = names[:LINES]
    marks = {"p50": "circle", "p90": "diamond", "p99": "square", "p999": "triangle-up"}
    traces: list[dict[str, Any]] = []
    rows: list[list[str | float | None]] = []
    seen: list[float] = []
    for group in groups:
        told = {name: _merged(group, name).summary() for name in names}
        colour = f"var(--{group.colour})"
        for name, found in told.items():
            points = [found[q] for q in marks if found.get(q) is not None]
            rows.append([group.label, name, *(found.get(q) for q in QUANTILES), found.get("count", 0)])
            if not points:
                continue
            seen += points
            line = {"color": colour, "width": 2, "dash": group.dash}
            common = {"mode": "lines", "line": line, "showlegend": False, "hoverinfo": "skip"}
            traces.append({**common, "x": rounded([points[0], points[-1]]), "y": [plotted(name)] * 2})
        for q, symbol in marks.items():
            at = {name: found[q] for name, found in told.items() if found.get(q) is not None}
            label = QUANTILES[q] if len(groups) == 1 else f"{group.label}: {QUANTILES[q]}"
            if at:
                traces.append(
                    {
                        "mode": "markers",
                        "marker": {"color": colour, "symbol": symbol, "size": 9},
                        "name": plotted(label),
                        "x": rounded(list(at.values())),
                        "y": [plotted(name) for name in at],
                        "text": [duration(value) for value in at.values()],
                        "hovertemplate": "%{y}: %{text}",
                    }
                )
    if not seen:
        return None
    flat = layout(
        axis("latency", **time_ticks(min(seen), max(seen))),
        axis(
            "", type="category", categoryorder="array", categoryarray=[plotted(name) for name in names[::-1]]
        ),
        hovermode="closest",
    )
    what = "step" if any(run.stepped for run in _runs(groups)) else "op"
    note = (
        "From issue to completion. A percentile is drawn where at least ten requests are expected beyond it."
    )
    columns = ["run", what, *(f"{title} (ns)" for title in QUANTILES.values()), "count"]
    height = 90 + 24 * len(names)
    return Figure(f"by-{what}", f"Latency by {what}", note, [Panel("", traces, flat, height)], columns, rows)


def heat_maps(groups: list[Group], most: float) -> Figure | None:
    """A heat map for each step or op of each group, of those that took most time; None for one op.

    ``most``: decimal logarithm of the number of requests with the last of the colours.
    """
    parts: list[tuple[float, int, str, list[tuple[Run, Kind]]]] = []
    for group in groups:
        found: dict[str, list[tuple[Run, Kind]]] = {}
        for name, members in _by_name([group]).items():
            if not any(kind.waits for _, kind in members):
                found[name] = members
        for name, members in found.items():
            spent = sum(
                kind.service.mean() * len(kind.service) if len(kind.service) else 0.0 for _, kind in members
            )
            label = name if len(groups) == 1 else f"{group.label}: {name}"
            parts.append((spent, len(parts), label, members))
    parts = [part for part in parts if part[0] > 0]
    if len(parts) <= len(groups):
        return None
    kept = sorted(sorted(parts, key=lambda part: -part[0])[:MAPS], key=lambda part: part[1])
    counted = [
        (label, [run for run, _ in members], [kind.cells for _, kind in members])
        for _, _, label, members in kept
    ]
    what = "step" if any(run.stepped for run in _runs(groups)) else "op"
    note = (
        f"All panels have the same axes, and the colours of the map of all requests (up to {10**most:,.0f})."
    )
    if len(kept) < len(parts):
        note += f" Of {len(parts)} these are the {len(kept)} that took most time."
    return heat(counted, longest(groups), f"heat-{what}", f"Latency over time, by {what}", note, most)


def _runs(groups: list[Group]) -> list[Run]:
    return [run for group in groups for run in group.runs]


def _by_name(groups: list[Group]) -> dict[str, list[tuple[Run, Kind]]]:
    """Kinds of all runs by name, in the order of the first run that has them."""
    found: dict[str, list[tuple[Run, Kind]]] = {}
    for run in _runs(groups):
        for kind in run.kinds:
            found.setdefault(kind.name, []).append((run, kind))
    return found


def _merged(group: Group, name: str) -> Histogram:
    return Histogram.merged(kind.service for run in group.runs for kind in run.kinds if kind.name == name)
