"""How results are shown in a Python session: one line, a table for notebooks, a picture."""

from __future__ import annotations

import html as markup
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import _pictures, _units
from loadstone.errors import Error

if TYPE_CHECKING:
    from loadstone.bundle.ops import Ops

_STEPS = 600
"""Most intervals of a run in a picture."""


def line(path: Path | None, summary: Mapping[str, Any]) -> str:
    """What was run, and how fast."""
    name = f"{path}: " if path is not None else ""
    rows = summary.get("figures")
    if rows is None and "requests" not in summary:
        return f"{name}{summary.get('verdict') or 'several runs'}"
    told = [_of(row) for row in rows or [summary]]
    more = f"{len(told)} runs; " if rows is not None else ""
    early = " (partial)" if summary["partial"] else ""
    return f"{name}{more}{'; '.join(told[:3])}{'; ...' if len(told) > 3 else ''}{early}"


def _of(row: Mapping[str, Any]) -> str:
    seconds = row["elapsed_ns"] / 1e9
    rate = f"{row['ops_per_s']:,.0f} ops/s, {row['bytes_per_s'] / 1e6:,.1f} MB/s"
    failed = row.get("errors", 0) + row.get("short", 0)
    return (
        f"{row['requests']:,} requests in {seconds:.3f} s, {rate}{f', {failed:,} failed' if failed else ''}"
    )


def html(path: Path | None, summary: Mapping[str, Any]) -> str:
    """One row for each kind of request of a run, or for each run of several."""
    if rows := summary.get("figures"):
        heads = ["run", "requests", "seconds", "ops/s", "MB/s", "errors"]
        cells = [
            [
                str(row["name"]),
                f"{row['requests']:,}",
                f"{row['elapsed_ns'] / 1e9:.3f}",
                f"{row['ops_per_s']:,.0f}",
                f"{row['bytes_per_s'] / 1e6:,.1f}",
                f"{row['errors']:,}",
            ]
            for row in rows
        ]
    else:
        heads = ["op", "requests", "ops/s", "p50", "p99", "errors"]
        told = summary.get("steps") or summary.get("ops") or {}
        cells = [
            [
                name,
                f"{op['count']:,}",
                f"{op['ops_per_s']:,.0f}",
                *(_time(op["service_ns"].get(p)) for p in ("p50", "p99")),
                f"{sum(op['errors'].values()):,}",
            ]
            for name, op in told.items()
        ]
    head = "".join(f"<th>{markup.escape(one)}</th>" for one in heads)
    body = "".join(f"<tr>{''.join(f'<td>{markup.escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
    return f"<p>{markup.escape(line(path, summary))}</p><table><tr>{head}</tr>{body}</table>"


def _time(ns: float | None) -> str:
    return "-" if ns is None else _units.duration(ns)


def figure(runs: Sequence[tuple[Mapping[str, Any], Ops]]) -> Any:
    """Requests per second, and percentiles of the service latency, by interval; runs below each other.

    ``runs``: summary and table of each. Raises ``Error`` where there is no run.
    """
    import numpy as np

    from loadstone.stats.histogram import Histogram

    _pictures.ready()
    from matplotlib.figure import Figure

    if not runs:
        raise Error("there is no run to plot")
    made = Figure(figsize=(8, 2.5 * len(runs)), layout="constrained")
    for row, ((summary, ops), axes) in enumerate(
        zip(runs, made.subplots(len(runs), 2, squeeze=False), strict=True)
    ):
        intervals = max(summary["elapsed_ns"] // summary["interval_ns"], 1)
        # Neighbours are drawn as one where there are more than a picture can show.
        together = -(-intervals // _STEPS)
        seconds = together * summary["interval_ns"] / 1e9
        requests, _ = ops.by_interval(together=together)
        at = np.arange(len(requests)) * seconds
        # The last interval ends with the run.
        lengths = np.clip(summary["elapsed_ns"] / 1e9 - at, 1e-9, seconds)
        # Too short a rest of one says nothing of the rate, and looks like a fall or a jump.
        shown = len(lengths) - (1 if len(lengths) > 1 and lengths[-1] < seconds / 2 else 0)
        heat = ops.heat(together=together)[:shown]
        at, lengths, requests = at[:shown], lengths[:shown], requests[:shown]
        edges = np.append(at, at[-1] + lengths[-1]) if shown else np.zeros(1)
        rates = requests / lengths
        axes[0].stairs(rates, edges, baseline=None)
        axes[0].set(xlabel="seconds", ylabel="requests/s", ylim=(0, 1.05 * max(rates, default=1) or 1))
        for q in (50.0, 99.0):
            told = [Histogram(counts).told(q) for counts in heat]
            values = [np.nan if value is None else value / 1e3 for value in told]
            axes[1].stairs(values, edges, baseline=None, label=f"p{q:g}")
        axes[1].set(xlabel="seconds", ylabel="service, us", yscale="log")
        axes[1].legend()
        if len(runs) > 1:
            axes[0].set_title(f"run {row + 1}", loc="left")
    return made
