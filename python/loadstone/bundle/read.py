"""Reading bundles: all is checked when one is opened, tables are read when asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone import Error
from loadstone._arrow import AsArrow
from loadstone.bundle import shown, table
from loadstone.bundle.check import check_ops, check_summary, damaged, read_json, run_folder
from loadstone.bundle.check import folder as inside
from loadstone.bundle.codes import OTHER, VERSION, op_name
from loadstone.bundle.figures import OF_RUN, of_run
from loadstone.bundle.write import Event, ops_columns, series_columns
from loadstone.observe.observer import Observation
from loadstone.observe.response import (
    Response,
    engine_parameters,
    progress_edges,
    response_parameters,
    time_edges,
)
from loadstone.stats.histogram import BUCKETS, Histogram, middles

_OPS = (
    "host",
    "worker",
    "group",
    "op",
    "errno",
    "interval",
    "count",
    "bytes",
    "response_bucket",
    "response_count",
    "service_bucket",
    "service_count",
)


class Ops(AsArrow):
    """The table ``ops.parquet``: what was done, by worker, thread, op, step, errno and interval.

    pyarrow, pandas, Polars and DuckDB read it: ``pyarrow.table(bundle.ops)``.
    """

    def __repr__(self) -> str:
        """``<Ops 12 rows: worker, group, op, ...>``."""
        return f"<Ops {len(self):,} rows: {', '.join(self.columns)}>"

    def __init__(self, columns: dict[str, Any]) -> None:
        """``columns`` as :func:`loadstone.bundle.table.read` returns them."""
        self.columns = columns

    def _columns(self) -> Mapping[str, Any]:
        """Those of ``ops.parquet``, and in place of a code the name of the op."""
        return {**self.columns, "op": [op_name(int(code)) for code in self.columns["op"]]}

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.columns["op"])

    def where(
        self,
        op: int | None = None,
        errno: int | None = None,
        worker: int | None = None,
        group: str | None = None,
        step: str | None = None,
        thread: int | None = None,
    ) -> NDArray[np.bool_]:
        """The rows of one op, errno, worker, group, step of a program; all of those left out.

        ``thread``: of the worker; raises ``Error`` where the run did not record them apart.
        """
        rows = np.ones(len(self), dtype=bool)
        for name, value in (("op", op), ("errno", errno), ("worker", worker), ("thread", thread)):
            if value is not None:
                if name not in self.columns:
                    raise Error("threads were not recorded apart; run it again with `by` thread")
                rows &= np.asarray(self.columns[name]) == value
        if group is not None:
            rows &= np.array([g == group for g in self.columns["group"]], dtype=bool)
        if step is not None:
            rows &= np.array([s == step for s in self.steps()], dtype=bool)
        return rows

    def steps(self) -> list[str]:
        """Name of each row's step; empty where the load was no program."""
        return list(self.columns.get("name", [""] * len(self)))

    def requests(self, errno: int | None = 0) -> NDArray[np.bool_]:
        """The rows of requests, by default successful ones: not of steps that wait or think."""
        rows = self.where(errno=errno)
        rows &= np.asarray(self.columns["op"]) != OTHER
        return rows

    def names(self) -> dict[int, str]:
        """Codes and names of the ops that occur."""
        return {int(code): op_name(int(code)) for code in np.unique(self.columns["op"])}

    def histogram(self, kind: str = "service", rows: NDArray[np.bool_] | None = None) -> Histogram:
        """The latencies of the chosen rows, by default all successful ones.

        ``kind``: ``service`` from issue to completion, ``response`` from the intended time (empty
        where the pace was closed).
        """
        rows = self.requests() if rows is None else rows
        buckets, counts = self.columns[f"{kind}_bucket"], self.columns[f"{kind}_count"]
        picked = np.repeat(rows, np.diff(buckets.offsets))
        return Histogram.from_sparse(buckets.values[picked], counts.values[picked])

    def by_interval(
        self, rows: NDArray[np.bool_] | None = None, together: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Requests and bytes per interval of the chosen rows, by default all successful ones.

        ``together``: so many intervals count as one.
        """
        rows = self.requests() if rows is None else rows
        interval = np.asarray(self.columns["interval"]) // together
        length = int(interval.max()) + 1 if len(interval) else 0
        out = []
        for name in ("count", "bytes"):
            total = np.zeros(length, dtype=np.int64)
            np.add.at(total, interval[rows], np.asarray(self.columns[name])[rows].astype(np.int64))
            out.append(total)
        return out[0], out[1]

    def service(self) -> NDArray[np.int64]:
        """Number and sum (ns) of the service latencies of successful requests, one row per interval."""
        rows = self.requests()
        interval = np.asarray(self.columns["interval"]).astype(np.int64)
        buckets, counts = self.columns["service_bucket"], self.columns["service_count"]
        each = np.diff(buckets.offsets)
        picked = np.repeat(rows, each)
        out = np.zeros((int(interval.max()) + 1 if len(interval) else 0, 2))
        number = counts.values[picked].astype(np.float64)
        at = np.repeat(interval, each)[picked]
        np.add.at(out[:, 0], at, number)
        np.add.at(out[:, 1], at, number * middles(buckets.values[picked]))
        return out.round().astype(np.int64)

    def heat(
        self, kind: str = "service", rows: NDArray[np.bool_] | None = None, together: int = 1
    ) -> NDArray[np.int64]:
        """Counts by interval and bucket, shape (intervals, BUCKETS); ``together`` as of ``by_interval``."""
        rows = self.requests() if rows is None else rows
        interval = np.asarray(self.columns["interval"]).astype(np.int64) // together
        out = np.zeros((int(interval.max()) + 1 if len(interval) else 0, BUCKETS), dtype=np.int64)
        buckets, counts = self.columns[f"{kind}_bucket"], self.columns[f"{kind}_count"]
        each = np.diff(buckets.offsets)
        picked = np.repeat(rows, each)
        where = (np.repeat(interval, each)[picked], buckets.values[picked].astype(np.int64))
        np.add.at(out, where, counts.values[picked].astype(np.int64))
        return out


class Summary(dict[str, Any], AsArrow):
    """``summary.json``; as an Arrow table one row for each run, with its totals and latencies."""

    def _columns(self) -> Mapping[str, Any]:
        rows = self.get("figures") or [of_run(str(self.get("workload") or ""), self)]
        found: dict[str, Any] = {"name": [str(row["name"]) for row in rows]}
        for key in OF_RUN:
            if key == "failure":
                found[key] = [str(row.get(key) or "") for row in rows]
            else:
                found[key] = np.array([row.get(key) or 0 for row in rows])
        for kind in ("response_ns", "service_ns"):
            for name, value in (self.get(kind) or {}).items():
                found[f"{kind.removesuffix('_ns')}_{name}"] = np.array([np.nan if value is None else value])
        return found


@dataclass(repr=False)
class Bundle:
    """One run's results, read from its folder when they are asked for, or kept in memory only."""

    path: Path | None
    """The folder; None for results in memory only."""
    plan: dict[str, Any]
    """What was run."""
    summary: Summary
    """``summary.json``: ``ops_per_s``, ``partial``, latencies, lateness, ..."""
    environment: dict[str, dict[str, Any]]
    """By host: kernel, devices, settings."""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Bundle:
        """Opens a bundle and checks that it is whole; ``Error`` says what is missing."""
        folder = Path(path)
        if not folder.is_dir():
            raise Error(f"{folder}: is not a folder; a bundle is the folder in which a run kept its results")
        if (folder / "bundle.json").is_file():
            raise Error(f"{folder}: holds several runs; open one of its sub-folders, or read it as a Series")
        if not (folder / "summary.json").is_file():
            raise Error(f"{folder}: has no summary.json, so it is not a bundle")
        summary = read_json(folder / "summary.json")
        _check(folder / "summary.json", summary, "loadstone-run")
        check_summary(folder / "summary.json", summary)
        hosts = sorted(inside(folder / "environment").glob("*.json"))
        if not hosts:
            raise Error(f"{folder / 'environment'}: holds no host; the bundle is damaged")
        for name in ("ops.parquet", "events.parquet", "series.parquet"):
            if not (folder / name).is_file():
                raise Error(f"{folder / name}: is missing; the bundle is damaged")
        return cls(
            folder, read_json(folder / "plan.json"), Summary(summary), {h.stem: read_json(h) for h in hosts}
        )

    @classmethod
    def of(cls, plan: Mapping[str, Any], outcome: Mapping[str, Any], summary: Mapping[str, Any]) -> Bundle:
        """What a run measured that was neither kept nor observed; ``outcome``: what ``execute`` returns."""
        found = cls(None, dict(plan), Summary(summary), {})
        start, told = int(summary["started_monotonic_ns"]), outcome["summary"]
        found.ops = Ops(ops_columns(outcome, ""))
        found.series = series_columns(plan, outcome)
        found.events = [Event(start, "note", str(note)) for note in told.get("notes", [])]
        found.observation = None
        return found

    def bundles(self) -> list[Bundle]:
        """Every run, in order: this one."""
        return [self]

    @property
    def folder(self) -> Path:
        """The folder; raises ``Error`` where there is none."""
        if self.path is None:
            raise Error("the run was kept in memory only; name a folder (`out`) to keep all of it")
        return self.path

    def __repr__(self) -> str:
        """``<Bundle run.bundle: 1,000 requests in 2.500 s, 400 ops/s, 1.6 MB/s>``."""
        return f"<{type(self).__name__} {shown.line(self)}>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return shown.html(self)

    def plot(self) -> Any:
        """A matplotlib figure: requests per second and latency over time.

        Raises ``Error`` where matplotlib is not installed (the extra ``plot``).
        """
        return shown.figure(self)

    @property
    def partial(self) -> bool:
        """Whether the run was interrupted."""
        return bool(self.summary["partial"])

    @cached_property
    def ops(self) -> Ops:
        """What was done."""
        columns = table.read(self.folder / "ops.parquet", _OPS)
        check_ops(self.folder / "ops.parquet", columns, self.summary)
        return Ops(columns)

    @cached_property
    def series(self) -> dict[str, Any]:
        """Per recorder interval: ``time`` (ns from the start), ``flight_*``, ``lateness_*``."""
        return table.read(self.folder / "series.parquet", ("time",))

    @cached_property
    def events(self) -> list[Event]:
        """Everything that happened, in order of time."""
        columns = table.read(self.folder / "events.parquet", ("time", "kind", "text"))
        with damaged(str(self.folder / "events.parquet")):
            return [
                Event(int(t), str(k), str(x))
                for t, k, x in zip(columns["time"], columns["kind"], columns["text"], strict=True)
            ]

    @cached_property
    def observation(self) -> Observation | None:
        """The raw samples, or None where the run was not observed."""
        told = self.summary.get("observation")
        if told is None:
            return None
        columns = table.read(self.folder / "response.parquet", ("time", "progress"))
        readings: list[tuple[int, str, float]] = []
        if (self.folder / "probes.parquet").is_file():
            probes = table.read(self.folder / "probes.parquet", ("time", "name", "value"))
            with damaged(str(self.folder / "probes.parquet")):
                readings = [
                    (int(t), str(n), float(v))
                    for t, n, v in zip(probes["time"], probes["name"], probes["value"], strict=True)
                ]
        return Observation(
            columns,
            readings,
            [],
            told["missed"],
            told["ticks_per_s"],
            told["interval_ns"] / 1e9,
            told["device"],
        )

    def response(self, intervals: int = 20, by: str = "time", seconds: float | None = None) -> Response:
        """The response parameters over equal intervals of ``time`` or of ``progress``.

        ``seconds``: the span of time cut into intervals, from the run's start; by default all of
        it. Raises ``Error`` where the run was not observed.
        """
        observation = self.observation
        if observation is None:
            where = self.path or "memory"
            raise Error(f"{where}: the run was not observed, so there are no response parameters")
        if by == "progress":
            edges = progress_edges(observation.columns, intervals)
        else:
            start = float(self.summary["started_monotonic_ns"])
            span = self.summary["elapsed_ns"] if seconds is None else seconds * 1e9
            edges = time_edges(start, start + span, intervals)
        found = response_parameters(observation.columns, edges, observation.ticks_per_s)
        begin, each = int(self.summary["started_monotonic_ns"]), int(self.summary["interval_ns"])
        rows = self.ops.service()
        # The last interval ends with the run.
        end = max(begin + int(self.summary["elapsed_ns"]), begin + (len(rows) - 1) * each + 1)
        ends = np.minimum(begin + np.arange(len(rows) + 1) * each, end)
        for into, what in zip(
            (found.values, found.counts),
            engine_parameters(observation.columns, edges, ends, rows),
            strict=True,
        ):
            into.update(what)
        return found


class Series(Bundle):
    """Several runs in order: a bundle of their bundles, whose tables have a column ``run``."""

    def __init__(
        self,
        path: Path | None,
        kind: str,
        runs: list[dict[str, Any]],
        summary: Mapping[str, Any],
        bundles: Sequence[Bundle] = (),
    ) -> None:
        """``kind``: ``evaluate``, ``script``, ``repeats``. ``runs``: each with ``name``, ``path``
        and what the kind adds. ``bundles``: those in memory; others are read from the folder."""
        super().__init__(path, {}, Summary(summary), {})
        self.kind, self.runs, self._bundles = kind, runs, list(bundles)

    @classmethod
    def gathered(cls, bundles: Sequence[Bundle], summary: Mapping[str, Any]) -> Series:
        """Several runs that are kept in memory."""
        names = [{"name": f"run{number}"} for number in range(1, len(bundles) + 1)]
        failure = next((one.summary["failure"] for one in bundles if one.summary.get("failure")), None)
        told = {"partial": any(one.partial for one in bundles), "failure": failure, "runs": len(bundles)}
        return cls(None, "script", names, {**told, **summary}, bundles)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Series:
        """Opens a bundle of bundles; its runs are opened by :meth:`bundle`."""
        folder = Path(path)
        if not (folder / "bundle.json").is_file():
            raise Error(f"{folder}: has no bundle.json, so it is not a bundle of several runs")
        listed = read_json(folder / "bundle.json")
        _check(folder / "bundle.json", listed, "loadstone-series")
        runs = listed.get("runs")
        if not isinstance(runs, list):
            raise Error(f"{folder / 'bundle.json'}: its list of runs is damaged")
        for run in runs:
            place = folder / run_folder(folder / "bundle.json", run)
            if place.is_symlink() or not (place / "summary.json").is_file():
                raise Error(f"{place}: is missing; the bundle is damaged")
        summary = read_json(folder / "summary.json")
        _check(folder / "summary.json", summary, "loadstone-series")
        return cls(folder, str(listed.get("kind")), runs, summary)

    def bundle(self, name: str) -> Bundle:
        """One run by its name."""
        for run, bundle in zip(self.runs, self.bundles(), strict=True):
            if run["name"] == name:
                return bundle
        raise Error(f"{self.path}: has no run {name!r}; it has {', '.join(r['name'] for r in self.runs)}")

    def bundles(self) -> list[Bundle]:
        """Every run, in order."""
        return self._bundles or [Bundle.read(self.folder / run["path"]) for run in self.runs]

    def repeats(self) -> list[Bundle]:
        """Of a job that was repeated, the results of each whole repeat, in order.

        That is a run, or of a job with several runs a ``Series`` of them. Raises ``Error`` where nothing was
        repeated.
        """
        if self.kind != "repeats":
            raise Error(f"{self.path or 'these runs'}: are of kind {self.kind}, and none repeats another")
        by_repeat: dict[Any, list[tuple[dict[str, Any], Bundle]]] = {}
        with damaged(str(self.path or "these runs")):
            for run, bundle in self._named():
                by_repeat.setdefault(run["repeat"], []).append((run, bundle))
            # What the summary does not tell of did not end.
            told = zip(self.summary["repeats"], by_repeat.values(), strict=False)
            return [_repeat(of, parts) for of, parts in told]

    @cached_property
    def ops(self) -> Ops:
        """What was done, run after run; columns that only some runs have are left out."""
        return Ops(_joined([(run["name"], bundle.ops.columns) for run, bundle in self._named()]))

    def response(self, intervals: int = 20, by: str = "time", seconds: float | None = None) -> Response:
        """Raises ``Error``: each run has its own, see :meth:`bundles`."""
        raise Error("several runs have no response together; ask each of bundles()")

    def _named(self) -> list[tuple[dict[str, Any], Bundle]]:
        return list(zip(self.runs, self.bundles(), strict=True))


def _repeat(told: Mapping[str, Any], parts: Sequence[tuple[dict[str, Any], Bundle]]) -> Bundle:
    """A repeat: the one run it has, or several as they were without repetition."""
    runs, bundles = [run for run, _ in parts], [bundle for _, bundle in parts]
    if len(bundles) == 1 and not told.get("suite"):
        return bundles[0]
    summary = {"partial": any(one.partial for one in bundles), "failure": None, "runs": len(bundles), **told}
    return Series(None, "script", runs, summary, bundles)


def _joined(parts: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Columns of several tables one below the other, and which table each row is of."""
    found: dict[str, Any] = {"run": [name for name, columns in parts for _ in columns["op"]]}
    common = [name for name in parts[0][1] if all(name in columns for _, columns in parts)] if parts else []
    for name in common:
        of = [columns[name] for _, columns in parts]
        if isinstance(of[0], table.Lists):
            ends = np.cumsum([0, *(len(one.values) for one in of)])
            offsets = [one.offsets[:-1] + end for one, end in zip(of, ends[:-1], strict=True)]
            values = np.concatenate([one.values for one in of])
            found[name] = table.Lists(np.concatenate([*offsets, ends[-1:]]), values)
        elif isinstance(of[0], np.ndarray):
            found[name] = np.concatenate(of)
        else:
            found[name] = [value for one in of for value in one]
    return found


def _check(path: Path, value: dict[str, Any], wanted: str) -> None:
    if value.get("format") != wanted:
        raise Error(f"{path}: is of format {value.get('format')!r}, not {wanted!r}")
    if not isinstance(value.get("version"), int) or value["version"] > VERSION:
        raise Error(
            f"{path}: is of version {value.get('version')}, this build reads up to {VERSION}; "
            "use a newer Loadstone"
        )
