"""What a run did, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone._arrow import AsArrow
from loadstone.bundle.codes import OTHER, op_name
from loadstone.errors import Error
from loadstone.stats.histogram import BUCKETS, Histogram, middles


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
