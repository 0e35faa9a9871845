"""How results are shown in a Python session: one line, a table for notebooks, a picture."""

from __future__ import annotations

import html as markup
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loadstone import _pictures, _units
from loadstone.errors import Error

if TYPE_CHECKING:
    from loadstone.bundle.read import Bundle

_STEPS = 600
"""Most intervals of a run in a picture."""


def line(bundle: Bundle) -> str:
    """What was run, and how fast."""
    name = f"{bundle.path}: " if bundle.path is not None else ""
    rows = bundle.summary.get("figures")
    if rows is None and "requests" not in bundle.summary:
        return f"{name}{bundle.summary.get('verdict') or 'several runs'}"
    told = [_of(row) for row in rows or [bundle.summary]]
    more = f"{len(told)} runs; " if rows is not None else ""
    early = " (partial)" if bundle.partial else ""
    return f"{name}{more}{'; '.join(told[:3])}{'; ...' if len(told) > 3 else ''}{early}"


def _of(row: Mapping[str, Any]) -> str:
    seconds = row["elapsed_ns"] / 1e9
    rate = f"{row['ops_per_s']:,.0f} ops/s, {row['bytes_per_s'] / 1e6:,.1f} MB/s"
    failed = row.get("errors", 0) + row.get("short", 0)
    return (
        f"{row['requests']:,} requests in {seconds:.3f} s, {rate}{f', {failed:,} failed' if failed else ''}"
    )


def html(bundle: Bundle) -> str:
    """One row for each kind of request of a run, or for each run of several."""
    if rows := bundle.summary.get("figures"):
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
        told = bundle.summary.get("steps") or bundle.summary.get("ops") or {}
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
    return f"<p>{markup.escape(line(bundle))}</p><table><tr>{head}</tr>{body}</table>"


def _time(ns: float | None) -> str:
    return "-" if ns is None else _units.duration(ns)


def figure(bundle: Bundle) -> Any:
    """Requests per second, and percentiles of the service latency, by interval; runs below each other."""
    import numpy as np

    from loadstone.stats.histogram import Histogram

    _pictures.ready()
    from matplotlib.figure import Figure

    several = bundle.bundles()
    if not several:
        raise Error("there is no run to plot")
    made = Figure(figsize=(8, 2.5 * len(several)), layout="constrained")
    for row, (one, axes) in enumerate(
        zip(several, made.subplots(len(several), 2, squeeze=False), strict=True)
    ):
        intervals = max(one.summary["elapsed_ns"] // one.summary["interval_ns"], 1)
        # Neighbours are drawn as one where there are more than a picture can show.
        together = -(-intervals // _STEPS)
        seconds = together * one.summary["interval_ns"] / 1e9
        requests, _ = one.ops.by_interval(together=together)
        at = np.arange(len(requests)) * seconds
        # The last interval ends with the run.
        lengths = np.clip(one.summary["elapsed_ns"] / 1e9 - at, 1e-9, seconds)
        # Too short a rest of one says nothing of the rate, and looks like a fall or a jump.
        shown = len(lengths) - (1 if len(lengths) > 1 and lengths[-1] < seconds / 2 else 0)
        heat = one.ops.heat(together=together)[:shown]
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
        if len(several) > 1:
            axes[0].set_title(f"run {row + 1}", loc="left")
    return made
