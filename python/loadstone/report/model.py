"""Figures of a model: its phases, and what it generates against what the trace had."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone.model import Marginal, Model
from loadstone.report.facts import duration, size
from loadstone.report.figure import Figure, Panel, axis, layout, plotted, rounded, size_ticks, time_ticks

Ints = NDArray[np.int64]

# Requests that are generated to look at their distributions.
SAMPLE = 2_000_000
# Columns that a time line is drawn in.
COLUMNS = 400

_TITLES = {"op": "Kind of request", "object": "Object", "size": "Request size", "gap": "Inter-arrival time"}
_TITLES |= {
    "jump": "Jump, where near",
    "op_jump": "Jump, of the same op, where near",
    "region": "Region, where the jump is far",
    "resume": "Goes on from an earlier request",
    "reuse": "Comes back to a place",
    "reuse_distance": "Comes to a block that was used",
    "align": "Offset modulo 4 KiB",
}


def phases(model: Model) -> Figure:
    """Requests per second over the trace, coloured by the matrix that the requests are drawn from."""
    length, over = model.over_time(COLUMNS)
    windows = len(model.windows()[0])
    used = np.flatnonzero(over.any(axis=0))
    traces: list[dict[str, Any]] = []
    rows: list[tuple[float | None, float | None, int, int]] = []
    for i, matrix in enumerate(used.tolist()):
        requests = over[:, matrix]
        at = np.flatnonzero(requests)
        starts = rounded(at * length)
        rows += [(t, *rounded([length]), matrix, round(n)) for t, n in zip(starts, requests[at], strict=True)]
        traces.append(
            {
                "type": "bar",
                "x": rounded((at + 0.5) * length),
                "y": rounded(requests[at] / length),
                "width": length,
                "name": f"matrix {matrix}",
                "marker": {
                    "color": f"var(--c{i % 6})",
                    "line": {"width": 0},
                    "pattern": {
                        "shape": ("", "/", "x", ".", "-", "+")[i // 6 % 6],
                        "fillmode": "overlay",
                        "fgcolor": "var(--card)",
                        "solidity": 0.3,
                    },
                },
                "hovertemplate": f"%{{x:.5~g}} s: %{{y:.4~g}} requests/s of matrix {matrix}<extra></extra>",
            }
        )
    flat = layout(
        axis("time in the trace (s)", range=[0, float(model.window_starts()[-1])]),
        axis("requests/s", rangemode="tozero"),
        hovermode="closest",
        barmode="stack",
        bargap=0,
        showlegend=len(used) <= 12,
    )
    flat["legend"]["traceorder"] = "normal"
    cells = sum(m["cells"] for m in model.matrices())
    lengths = duration(model.window * 1e9)
    note = (
        f"{len(model.phases())} phases are drawn from {len(used)} matrices with {cells:,} cells. "
        f"Each of {windows:,} windows of {lengths} keeps its own number of requests."
    )
    columns = ["from (s)", "length (s)", "matrix", "requests"]
    rows.sort(key=lambda row: (row[0] or 0.0, row[2]))
    return Figure("phases", "Phases of the model", note, [Panel("", traces, flat, 300)], columns, rows)


def distributions(model: Model, seed: int = 1) -> Figure:
    """Each dimension of the trace, as the model counted it, against requests drawn from the model.

    Cumulated shares over the model's own buckets; the title of a panel says what share of the
    requests would have to move for the two to be equal (total variation).
    """
    count = min(model.requests, SAMPLE)
    drawn = model.measured(count, seed=seed)
    panels: list[Panel] = []
    rows: list[list[str | float | int | None]] = []
    for name in model.dimensions:
        marginal = model.marginal(name)
        # What is given follows from the others, and one number is no distribution.
        least = 1 if name in ("op", "object") else 2
        numbers = int((~marginal.none).sum())
        if name.startswith("previous(") or numbers < least or len(marginal.counts) < 2:
            continue
        generated = drawn[name]
        apart = _apart(np.append(marginal.counts, 0), generated)
        generated = generated[:-1]
        title = f"{_TITLES.get(name, name)}: {100 * apart:.2g} % difference"
        panels.append(_panel(name, title, marginal, generated))
        total, theirs = marginal.counts.sum(), max(int(generated.sum()), 1)
        for i in range(len(marginal.counts)):
            span = [None, None] if marginal.none[i] else [int(marginal.first[i]), int(marginal.last[i])]
            shares = rounded([100 * marginal.counts[i] / total, 100 * generated[i] / theirs])
            rows.append([name, *span, int(marginal.counts[i]), int(generated[i]), *shares])
    note = (
        f"Solid: all {model.requests:,} requests of the trace, as the model counted them. Dashed: "
        f"{count:,} requests drawn from the model (seed {seed}), measured anew. Shares are cumulated over "
        "the model's buckets; each title says how many percent of the requests would have to move for both "
        "to be equal."
    )
    columns = ["dimension", "from", "to", "trace", "generated", "trace (%)", "generated (%)"]
    figure = Figure("distributions", "Trace and generated load", note, panels, columns, rows, small=True)
    figure.key = [("trace", "c0", ""), ("generated", "c1", "dash")]
    return figure


def caches(content: dict[str, Any]) -> Figure:
    """How often LRU caches of 4 KiB blocks would miss, in the trace and in what the model draws."""
    found = content["miss_ratio"]
    size = np.asarray(found["sizes"], dtype=float) / 2**20
    panels = []
    for title, scale in (("linear sizes", "linear"), ("geometric sizes", "log")):
        traces = [
            {
                "x": rounded(size, 6),
                "y": rounded(100 * np.asarray(found[who])),
                "name": label,
                "mode": "lines",
                "line": {"color": f"var(--{colour})", "width": 2, "dash": dash},
                "hovertemplate": "%{x:.4~g} MiB: %{y:.3~g} %",
            }
            for who, label, colour, dash in (
                ("trace", "trace", "c0", "solid"),
                ("drawn", "generated", "c1", "dash"),
            )
        ]
        flat = layout(axis("size of the cache (MiB)", type=scale), axis("misses (%)", range=[0, 102]))
        flat["showlegend"] = False
        panels.append(Panel(title, traces, flat, height=280))
    how = "" if found["exact"] else " They are estimates from a sample of the blocks."
    note = (
        "Share of the blocks of 4 KiB that are not in an LRU cache when they are read or written, by its "
        f"size. They differ by {100 * found['mean']:.2g} % on average, {100 * found['max']:.2g} % "
        f"at most.{how}"
    )
    percent = [rounded(100 * np.asarray(found[who])) for who in ("trace", "drawn")]
    rows = [list(row) for row in zip(found["sizes"], *percent, strict=True)]
    columns = ["cache (bytes)", "trace (%)", "generated (%)"]
    figure = Figure("caches", "What a cache would miss", note, panels, columns, rows, small=True)
    figure.key = [("trace", "c0", ""), ("generated", "c1", "dash")]
    return figure


def _apart(a: Ints, b: Ints) -> float:
    """Total variation of two histograms over the same buckets."""
    total, theirs = max(int(a.sum()), 1), max(int(b.sum()), 1)
    return float(0.5 * np.abs(a / total - b / theirs).sum())


def _panel(name: str, title: str, marginal: Marginal, generated: Ints) -> Panel:
    if name in ("op", "object"):
        return _bars(name, title, marginal, generated)
    # An exact value may lie inside a range of others: cumulate in order of the upper ends.
    known = np.flatnonzero(~marginal.none)
    known = known[np.argsort(marginal.last[known], kind="stable")]
    x, ticks = _positions(name, marginal.first[known], marginal.last[known])
    traces: list[dict[str, Any]] = []
    styles = (("trace", "c0", "solid", marginal.counts), ("generated", "c1", "dash", generated))
    for label, colour, dash, counts in styles:
        share = 100 * np.cumsum(counts[known]) / max(int(counts.sum()), 1)
        traces.append(
            {
                "x": rounded(x, 9),
                "y": rounded(share),
                "name": label,
                "mode": "lines",
                "line": {"color": f"var(--{colour})", "width": 2, "dash": dash, "shape": "vh"},
                "hovertemplate": "%{y:.4~g} %",
            }
        )
    flat = layout(axis("", **ticks), axis("% of requests up to here", range=[0, 102]))
    flat["xaxis"]["title"] = {"text": _unit(name), "standoff": 4, "font": {"size": 11}}
    flat["showlegend"] = False
    flat["font"]["size"] = 11
    flat["margin"] = {"l": 50, "r": 10, "t": 6, "b": 40}
    return Panel(title, traces, flat, height=240)


def _unit(name: str) -> str:
    return {
        "size": "request size",
        "gap": "time since the previous request",
        "jump": "from the end of the previous request on the object",
        "op_jump": "from the end of the previous request of the op",
        "resume": "requests since the one it goes on from",
        "reuse": "requests since the place was used",
        "reuse_distance": "other blocks used since",
        "align": "bytes into a page",
    }.get(name, name)


def _bars(name: str, title: str, marginal: Marginal, generated: Ints) -> Panel:
    from loadstone.bundle.codes import op_name

    labels = [
        "none" if n else (op_name(int(v)) if name == "op" else f"{v}")
        for v, n in zip(marginal.first, marginal.none, strict=True)
    ]
    traces = [
        {
            "type": "bar",
            "x": labels,
            "y": rounded(100 * counts / max(int(counts.sum()), 1)),
            "name": label,
            "marker": {"color": f"var(--{colour})", "pattern": {"shape": shape, "solidity": 0.35}},
            "hovertemplate": "%{y:.4~g} %",
        }
        for label, colour, shape, counts in (
            ("trace", "c0", "", marginal.counts),
            ("generated", "c1", "/", generated),
        )
    ]
    flat = layout(axis("", type="category"), axis("% of requests", rangemode="tozero"), barmode="group")
    flat["showlegend"] = False
    flat["font"]["size"] = 11
    flat["margin"] = {"l": 50, "r": 10, "t": 6, "b": 40}
    flat["xaxis"]["title"] = {
        "text": plotted(_TITLES.get(name, name).lower()),
        "standoff": 4,
        "font": {"size": 11},
    }
    return Panel(title, traces, flat, height=240)


def _positions(name: str, first: Ints, last: Ints) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Where the upper end of each bucket is drawn, and the axis' ticks."""
    top = last.astype(np.float64)
    if name in ("jump", "op_jump"):
        # Symmetric logarithm with one unit per factor of two, linear within a page.
        page = 4096.0
        low = min(float(first.min()), 0.0)
        reach = int(np.ceil(np.log2(max(abs(low), float(top.max()), page) / page))) + 1
        exponents = [e for e in (8, 18, 28, 38) if e <= reach] or [0]
        marks = sorted({0.0, *(s * page * 2.0**e for e in exponents for s in (-1, 1))})
        return _symlog(top, page), {
            "tickvals": rounded(_symlog(np.array(marks), page)),
            "ticktext": [("-" if m < 0 else "") + (size(abs(m)) if m else "0") for m in marks],
            "tickangle": 0,
        }
    if name in ("resume", "reuse"):
        marks = [1, 16, 256, 4096, 65536]
        return np.log2(top + 1), {
            "tickvals": rounded(np.log2(np.array(marks) + 1.0)),
            "ticktext": [f"{mark:,}" for mark in marks],
        }
    if name == "size":
        top = np.maximum(top, 1)
        return top, size_ticks(float(np.maximum(first, 1).min()), float(top.max()))
    if name == "gap":
        top = np.maximum(top, 100)
        ticks = time_ticks(100, float(top.max()))
        # Three labels are as many as a small panel holds.
        step = max(1, -(-len(ticks["tickvals"]) // 4))
        return top, {**ticks, "tickvals": ticks["tickvals"][::step], "ticktext": ticks["ticktext"][::step]}
    return top, {}


def _symlog(values: NDArray[np.float64], unit: float) -> NDArray[np.float64]:
    return np.asarray(np.sign(values) * np.log2(1 + np.abs(values) / unit), dtype=np.float64)
