"""Reading bundles: all is checked when one is opened, tables are read when asked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone import Error
from loadstone.bundle import table
from loadstone.bundle.check import check_ops, check_summary, damaged, read_json, run_folder
from loadstone.bundle.check import folder as inside
from loadstone.bundle.codes import OTHER, VERSION, op_name
from loadstone.bundle.write import Event
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


class Ops:
    """The table ``ops.parquet``: what was done, by worker, thread, op, step, errno and interval."""

    def __init__(self, columns: dict[str, Any]) -> None:
        """``columns`` as :func:`loadstone.bundle.table.read` returns them."""
        self.columns = columns

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
                    raise Error("threads were not recorded apart; run it again with --by thread")
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
        self, rows: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Requests and bytes per interval of the chosen rows, by default all successful ones."""
        rows = self.requests() if rows is None else rows
        interval = np.asarray(self.columns["interval"])
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

    def heat(self, kind: str = "service", rows: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Counts by interval and bucket, shape (intervals, BUCKETS)."""
        rows = self.requests() if rows is None else rows
        interval = np.asarray(self.columns["interval"]).astype(np.int64)
        out = np.zeros((int(interval.max()) + 1 if len(interval) else 0, BUCKETS), dtype=np.int64)
        buckets, counts = self.columns[f"{kind}_bucket"], self.columns[f"{kind}_count"]
        each = np.diff(buckets.offsets)
        picked = np.repeat(rows, each)
        where = (np.repeat(interval, each)[picked], buckets.values[picked].astype(np.int64))
        np.add.at(out, where, counts.values[picked].astype(np.int64))
        return out


@dataclass
class Bundle:
    """One run's results. Every property is read from the folder; nothing is kept elsewhere."""

    path: Path
    """The folder."""
    plan: dict[str, Any]
    """What was run."""
    summary: dict[str, Any]
    """``summary.json``: ``ops_per_s``, ``partial``, latencies, lateness, ..."""
    environment: dict[str, dict[str, Any]]
    """By host: kernel, devices, settings."""

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Bundle:
        """Opens a bundle and checks that it is whole; ``Error`` says what is missing."""
        folder = Path(path)
        if not folder.is_dir():
            raise Error(f"{folder}: is not a folder; a bundle is the folder that --out named")
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
        return cls(folder, read_json(folder / "plan.json"), summary, {h.stem: read_json(h) for h in hosts})

    @property
    def partial(self) -> bool:
        """Whether the run was interrupted."""
        return bool(self.summary["partial"])

    @cached_property
    def ops(self) -> Ops:
        """What was done."""
        columns = table.read(self.path / "ops.parquet", _OPS)
        check_ops(self.path / "ops.parquet", columns, self.summary)
        return Ops(columns)

    @cached_property
    def series(self) -> dict[str, Any]:
        """Per recorder interval: ``time`` (ns from the start), ``flight_*``, ``lateness_*``."""
        return table.read(self.path / "series.parquet", ("time",))

    @cached_property
    def events(self) -> list[Event]:
        """Everything that happened, in order of time."""
        columns = table.read(self.path / "events.parquet", ("time", "kind", "text"))
        with damaged(str(self.path / "events.parquet")):
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
        columns = table.read(self.path / "response.parquet", ("time", "progress"))
        readings: list[tuple[int, str, float]] = []
        if (self.path / "probes.parquet").is_file():
            probes = table.read(self.path / "probes.parquet", ("time", "name", "value"))
            with damaged(str(self.path / "probes.parquet")):
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
            raise Error(f"{self.path}: the run was not observed, so there are no response parameters")
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


@dataclass
class Series:
    """Several runs in order, in one folder."""

    path: Path
    """The folder."""
    kind: str
    """``evaluate``, ``script``, ``compare``, ``study``."""
    runs: list[dict[str, Any]]
    """Each with ``name``, ``path`` and what the kind adds."""
    summary: dict[str, Any]
    """``summary.json``."""

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
        return cls(folder, str(listed.get("kind")), runs, read_json(folder / "summary.json"))

    def bundle(self, name: str) -> Bundle:
        """One run by its name."""
        for run in self.runs:
            if run["name"] == name:
                return Bundle.read(self.path / run["path"])
        raise Error(f"{self.path}: has no run {name!r}; it has {', '.join(r['name'] for r in self.runs)}")

    def bundles(self) -> list[Bundle]:
        """Every run, in order."""
        return [Bundle.read(self.path / run["path"]) for run in self.runs]


def _check(path: Path, value: dict[str, Any], wanted: str) -> None:
    if value.get("format") != wanted:
        raise Error(f"{path}: is of format {value.get('format')!r}, not {wanted!r}")
    if not isinstance(value.get("version"), int) or value["version"] > VERSION:
        raise Error(
            f"{path}: is of version {value.get('version')}, this build reads up to {VERSION}; "
            "use a newer Loadstone"
        )
