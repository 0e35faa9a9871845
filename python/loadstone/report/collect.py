"""Bundles to what the report draws."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone._core import open_regular
from loadstone._files import distinct
from loadstone.bundle import Bundle, Ops, Series
from loadstone.bundle.check import damaged
from loadstone.bundle.codes import OTHER, errno_name
from loadstone.bundle.figures import not_written_back
from loadstone.errors import Error
from loadstone.observe.metrics import METRICS
from loadstone.observe.response import response_parameters
from loadstone.report import view
from loadstone.stats.histogram import BUCKETS, Histogram, supported

# Most intervals that response parameters, and everything else, are drawn over.
POINTS = 60
STEPS = 600


@dataclass
class Collected:
    """All that a report is made of."""

    runs: list[view.Run]
    series: list[Series] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """What each of these is called."""
    warnings: list[str] = field(default_factory=list)
    model: Path | None = None
    """The model that was run, where it can still be read."""


def collect(paths: Iterable[str | os.PathLike[str]]) -> Collected:
    """Reads bundles, and bundles of several runs; raises ``Error`` for what is not one.

    Bundles have the shortest ends of their paths that differ as names; runs of one name have their bundle's
    behind.
    """
    out = Collected([])
    opened: list[tuple[Bundle, str, str | None, str | None]] = []
    folders = [Path(path) for path in paths]
    for folder, called in zip(folders, distinct(folders, ".bundle"), strict=True):
        if (folder / "bundle.json").is_file():
            series = Series.read(folder)
            out.series.append(series)
            out.names.append(called)
            for listed, bundle in zip(series.runs, series.bundles(), strict=True):
                name = str(listed["name"])
                # Runs of a script are none of each other's repetitions.
                role = listed.get("role") or (name if series.kind == "script" else None)
                opened.append((bundle, name, role, called))
        else:
            opened.append((Bundle.read(folder), called, None, None))
    if not opened:
        raise Error("there is no run to report; name at least one bundle")
    grid = Grid.of([bundle for bundle, *_ in opened])
    times = Counter(name for _, name, *_ in opened)
    for bundle, name, role, part_of in opened:
        name += f" ({part_of})" if part_of and times[name] > 1 else ""
        with damaged(str(bundle.path)):
            out.runs.append(run_of(bundle, name, grid, role, part_of))
    told: dict[str, list[str]] = {}
    for run in out.runs:
        for text in warnings_of(run):
            told.setdefault(text, []).append(run.name)
    for text, all_names in told.items():
        names = list(dict.fromkeys(all_names))
        who = "all runs" if 1 < len(names) == len(out.runs) else ", ".join(names)
        out.warnings.append(f"{who}: {text}")
    for series in out.series:
        notes = [str(note) for note in series.summary.get("notes") or []]
        # What every run says is among the warnings already.
        out.warnings += [note for note in notes if not any(note in text for text in out.warnings)]
    out.model = _model_of(out)
    return out


def _model_of(found: Collected) -> Path | None:
    """The one model of all runs: the copy in a bundle of several runs, else where the plan found it.

    A bundle may come from a stranger, and a report shows the model. So a link is none, and what lies
    elsewhere must have the digest that the plan tells: whoever made the bundle knew what it holds.
    """
    copies = [file for one in found.series if os.path.lexists(file := one.folder / "model.mdh")]
    if copies:
        return copies[0] if len(copies) == 1 and copies[0].is_file() and not copies[0].is_symlink() else None
    named = {
        (str(a.get("path")), str(a.get("digest")))
        for r in found.runs
        for a in r.plan.get("artefacts") or []
        if a.get("kind") == "model"
    }
    if len(named) != 1:
        return None
    ((path, digest),) = named
    try:
        with open(open_regular(path), "rb") as opened:
            same = digest == "sha256:" + hashlib.file_digest(opened, "sha256").hexdigest()
    except (Error, OSError, ValueError):
        return None
    return Path(path) if same else None


@dataclass
class Grid:
    """One grid in time for all runs of a report, so that their means are of the same moments."""

    together: int
    """Recorder intervals drawn as one."""
    sampled: float
    """Seconds of each interval of the response parameters."""

    @classmethod
    def of(cls, bundles: list[Bundle]) -> Grid:
        """The finest grid on which the longest run has at most STEPS and POINTS."""
        longest = max(b.summary["elapsed_ns"] for b in bundles) / 1e9
        shortest = min(b.summary["interval_ns"] for b in bundles) / 1e9
        samples = [(b.summary.get("observation") or {}).get("interval_ns", 0) / 1e9 for b in bundles]
        return cls(max(int(np.ceil(longest / shortest / STEPS)), 1), max(2 * max(samples), longest / POINTS))


def role_of(plan: dict[str, Any]) -> str:
    """``replay``, ``model`` or ``uniform``, by what the plan's first worker issues."""
    workers = plan.get("workers") or [{}]
    return view.ROLES.get(str((workers[0].get("source") or {}).get("kind")), "load")


def run_of(
    bundle: Bundle, name: str, grid: Grid, role: str | None = None, series: str | None = None
) -> view.Run:
    """One run as the report draws it."""
    ops = bundle.ops
    good = ops.requests()
    interval = bundle.summary["interval_ns"] / 1e9
    elapsed = bundle.summary["elapsed_ns"] / 1e9
    length = interval * grid.together
    # A last step of less than half the length, and what completed after the end, count to the one before.
    steps = max(round(elapsed / length), 1)
    widths = np.full(steps, length)
    widths[-1] = elapsed - (steps - 1) * length
    done, size = (_clamped(values, steps) for values in ops.by_interval(good, grid.together))
    everything = _clamped(ops.by_interval(ops.requests(errno=None), grid.together)[0], steps)
    cells = _cells(ops, "service", good, grid.together, steps)
    response = ops.histogram("response", good)
    is_open = len(response) > 0
    over_time = {k: v for k, v in bundle.series.items() if k != "time"}

    def column(name: str) -> view.Series | None:
        return _column(over_time.get(name), interval, elapsed)

    return view.Run(
        name=name,
        role=role or role_of(bundle.plan),
        interval=length,
        widths=widths,
        requests=done,
        bytes=size,
        failed=everything - done,
        p50=_percentiles(cells, steps, 50),
        p90=_percentiles(cells, steps, 90),
        p99=_percentiles(cells, steps, 99),
        service=ops.histogram("service", good),
        cells=cells,
        ops=_op_rows(bundle),
        kinds=_kinds(bundle, grid.together, steps),
        summary=bundle.summary,
        plan=bundle.plan,
        environment=next(iter(bundle.environment.values())),
        series=series,
        response=response if is_open else None,
        response_p99=_percentiles(_cells(ops, "response", good, grid.together, steps), steps, 99)
        if is_open
        else None,
        flight=column("flight_mean"),
        source_flight=column("flight_source_mean"),
        lateness_p99=_column(_late(over_time), interval, elapsed) if is_open else None,
        parameters=_parameters(bundle, grid.sampled),
        events=[
            ((e.time - bundle.summary["started_monotonic_ns"]) / 1e9, e.kind, e.text) for e in bundle.events
        ],
    )


def _clamped(values: NDArray[Any], steps: int) -> view.Floats:
    """So many values; what lies past the last one counts to it."""
    step = np.minimum(np.arange(len(values)), steps - 1)
    return np.bincount(step, weights=values, minlength=steps).astype(np.float64)


def _cells(ops: Ops, kind: str, rows: NDArray[np.bool_], together: int, steps: int) -> view.Cells:
    """The chosen rows' histograms as ``(step, bucket, count)``, one entry per non-empty cell."""
    buckets, counts = ops.columns[f"{kind}_bucket"], ops.columns[f"{kind}_count"]
    each = np.diff(buckets.offsets)
    picked = np.repeat(rows, each)
    step = np.repeat(np.asarray(ops.columns["interval"]).astype(np.int64), each)[picked] // together
    step = np.minimum(step, steps - 1)
    keys, where = np.unique(step * BUCKETS + buckets.values[picked].astype(np.int64), return_inverse=True)
    total = np.bincount(where, weights=counts.values[picked].astype(np.float64), minlength=len(keys))
    return keys // BUCKETS, keys % BUCKETS, total.astype(np.int64)


def _percentiles(cells: view.Cells, steps: int, q: float) -> view.Floats:
    step, bucket, count = cells
    out = np.full(steps, np.nan)
    first = np.searchsorted(step, np.arange(steps + 1))
    for i in range(steps):
        part = slice(first[i], first[i + 1])
        told = Histogram.from_sparse(bucket[part], count[part]).told(q)
        out[i] = np.nan if told is None else told
    return out


def _late(columns: dict[str, Any]) -> Any:
    """The 99th percentiles of lateness, where their intervals have enough requests."""
    told, count = columns.get("lateness_p99"), columns.get("lateness_count")
    if told is None or count is None:
        return told
    enough = [supported(n, 99) for n in np.nan_to_num(np.asarray(count, dtype=np.float64))]
    return np.where(enough, told, np.nan)


def _row(ops: Ops, name: str, mine: NDArray[np.bool_]) -> tuple[view.OpRow, Histogram]:
    """The figures of some rows, and their service latency."""
    errno = np.asarray(ops.columns["errno"])
    good = mine & (errno == 0)
    count = np.asarray(ops.columns["count"]).astype(np.int64)
    size = np.asarray(ops.columns["bytes"]).astype(np.int64)
    kinds: set[int] = set(errno[mine & ~good].tolist())
    failed = {errno_name(e): int(count[mine & (errno == e)].sum()) for e in sorted(kinds)}
    service = ops.histogram("service", good)
    return view.OpRow(name, int(count[good].sum()), int(size[good].sum()), failed, service.summary()), service


def _op_rows(bundle: Bundle) -> list[view.OpRow]:
    ops = bundle.ops
    return [_row(ops, name, ops.where(op=code))[0] for code, name in ops.names().items() if code != OTHER]


def _kinds(bundle: Bundle, together: int, steps: int) -> list[view.Kind]:
    """The steps of a program in its order; else the ops."""
    ops = bundle.ops
    if "steps" in bundle.summary:
        found = [(name, ops.where(step=name)) for name in bundle.summary["steps"]]
    else:
        found = [(name, ops.where(op=code)) for code, name in ops.names().items()]
    out = []
    for name, mine in found:
        row, service = _row(ops, name, mine)
        cells = _cells(ops, "service", mine & ops.where(errno=0), together, steps)
        waits = bool((mine & ops.where(op=OTHER)).any())
        out.append(view.Kind(name, row, service, cells, waits))
    return out


def _column(values: Any, interval: float, elapsed: float) -> view.Series | None:
    """A column of ``series.parquet`` with its times, up to the end of the run."""
    if values is None:
        return None
    kept = np.asarray(values, dtype=np.float64)[: max(int(np.ceil(elapsed / interval)), 1)]
    if not np.isfinite(kept).any():
        return None
    edges = np.minimum(np.arange(len(kept) + 1) * interval, elapsed)
    return view.Series(np.asarray((edges[:-1] + edges[1:]) / 2, dtype=np.float64), kept)


def _parameters(bundle: Bundle, step: float) -> dict[str, view.Series]:
    """The response parameters over the whole intervals of ``step`` seconds, and the probes' readings."""
    observation = bundle.observation
    if observation is None or len(observation.columns["time"]) < 3:
        return {}
    time = observation.columns["time"].astype(np.float64)
    zero = float(bundle.summary["started_monotonic_ns"])
    end = min(zero + bundle.summary["elapsed_ns"], float(time[-1]))
    points = int((end - zero) / 1e9 / step)
    if points < 2:
        return {}
    edges = zero + np.arange(points + 1) * step * 1e9
    found = response_parameters(observation.columns, edges, observation.ticks_per_s)
    middle = np.asarray((np.arange(points) + 0.5) * step, dtype=np.float64)
    return {
        name: view.Series(middle, values)
        for name, values in found.values.items()
        if np.isfinite(values).any()
    }


# Unit of the metric table -> unit shown, factor.
_SHOWN = {"share": ("%", 100.0), "byte": ("KiB", 1 / 1024), "byte/s": ("MB/s", 1e-6), "1/s": ("/s", 1.0)}
_SHOWN_BY_NAME = {"memory": ("MiB", 1 / 1048576), "dirty": ("MiB", 1 / 1048576)}


def parameter_titles(runs: Iterable[view.Run]) -> dict[str, tuple[str, str, float]]:
    """Title, unit and factor of each metric as the report shows it, in the metric table's order.

    What the users' own probes printed comes last, under its own name and without a unit.
    """
    out = {}
    for metric in METRICS:
        unit, factor = _SHOWN_BY_NAME.get(metric.name) or _SHOWN.get(metric.unit, (metric.unit, 1.0))
        out[metric.name] = (metric.title[0].upper() + metric.title[1:], unit, factor)
    for name in sorted({name for run in runs for name in run.parameters} - out.keys()):
        out[name] = (name, "", 1.0)
    return out


def warnings_of(run: view.Run) -> list[str]:
    """What a reader must know before trusting the numbers of a run."""
    out = []
    summary = run.summary
    if failure := summary.get("failure"):
        out.append(f"stopped early: {failure}; what is shown was measured until then")
    elif summary.get("partial"):
        out.append("interrupted; what is shown was measured until then")
    failed = int(summary.get("errors", 0)) + int(summary.get("short", 0))
    if failed:
        share = 100 * failed / max(int(summary["requests"]), 1)
        some = "request failed or was" if failed == 1 else "requests failed or were"
        out.append(f"{failed:,} {some} short ({share:.3g} %)")
    out += not_written_back([summary])
    dropped = int((summary.get("log") or {}).get("dropped", 0))
    if dropped:
        out.append(f"{dropped:,} rows of the full log were dropped")
    if reason := (summary.get("log") or {}).get("failure"):
        out.append(f"the full log was not written: {reason}")
    verified = summary.get("verified") or {}
    if reason := verified.get("unread"):
        out.append(f"not all that was written was read from end to end: {reason}")
    if reason := verified.get("unkept"):
        out.append(f"the state of the verification is not where it was to be kept: {reason}")
    return out + [str(text) for text in summary.get("warnings", [])]


__all__ = ["Collected", "collect", "parameter_titles", "role_of", "run_of", "warnings_of"]
