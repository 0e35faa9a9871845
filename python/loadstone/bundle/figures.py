"""Figures of the rows of an outcome: counts, rates, errors, latency; by op, worker, group or thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from loadstone.bundle.codes import OTHER, errno_name, op_name
from loadstone.errors import Error
from loadstone.stats.histogram import Histogram, supported

By = Literal["worker", "group", "thread"]
"""What a summary can be divided by besides ops and steps."""


OF_RUN = ("elapsed_ns", "requests", "bytes", "ops_per_s", "bytes_per_s", "errors", "short", "failure")
"""Totals that the summary of several runs tells of each."""


def of_run(name: str, summary: Mapping[str, Any]) -> dict[str, Any]:
    """What the summary of several runs tells of one: totals, what became of what was written."""
    found = {key: summary[key] for key in ("written_back", "content", "verified") if key in summary}
    return {"name": name, **{key: summary.get(key) for key in OF_RUN}, **found}


def not_written_back(summaries: Iterable[Mapping[str, Any]]) -> list[str]:
    """What was written and did not become stable, target by target; earlier builds tell nothing."""
    told = (summary.get("written_back") or {} for summary in summaries)
    return [str(error) for one in told for error in one.get("errors", ())]


def merged(ops: Mapping[str, Any], kind: str, rows: Any) -> Histogram:
    """One histogram (``response`` or ``service``) of the chosen rows of an outcome's ops."""
    offsets = np.asarray(ops[f"{kind}_offsets"], dtype=np.int64)
    picked = np.repeat(np.asarray(rows, dtype=bool), np.diff(offsets))
    return Histogram.from_sparse(
        np.asarray(ops[f"{kind}_bucket"])[picked], np.asarray(ops[f"{kind}_count"])[picked]
    )


def step_names(ops: Mapping[str, Any]) -> list[str]:
    """Name of each row's step, empty where the load is no program."""
    names = ["", *ops.get("names", [])]
    return [names[int(number)] for number in ops.get("name", [0] * len(ops["op"]))]


def figures(ops: Mapping[str, Any], mine: Any, seconds: float) -> dict[str, Any]:
    """``count``, ``bytes``, ``errors`` by name, ``ops_per_s``, ``bytes_per_s``, ``response_ns`` and
    ``service_ns`` of the rows ``mine``; rates and latencies are of the successful ones."""
    errno = np.asarray(ops["errno"])
    count, size = (np.asarray(ops[name]).astype(np.int64) for name in ("count", "bytes"))
    good = errno == 0
    entry: dict[str, Any] = {
        "count": int(count[mine].sum()),
        "bytes": int(size[mine].sum()),
        "ops_per_s": float(count[mine & good].sum() / seconds),
        "bytes_per_s": float(size[mine].sum() / seconds),
        "errors": {
            errno_name(int(e)): int(count[mine & (errno == e)].sum()) for e in np.unique(errno[mine & ~good])
        },
    }
    for kind in ("response", "service"):
        entry[f"{kind}_ns"] = merged(ops, kind, mine & good).summary()
    return entry


def by_op(ops: Mapping[str, Any], mine: Any, seconds: float) -> dict[str, Any]:
    """Figures of the requests among the rows ``mine`` by name of op."""
    codes = np.asarray(ops["op"])
    return {
        op_name(int(code)): figures(ops, mine & (codes == code), seconds)
        for code in np.unique(codes[mine & (codes != OTHER)])
    }


def by_step(ops: Mapping[str, Any], mine: Any, seconds: float) -> dict[str, Any]:
    """Figures of a program's steps among the rows ``mine``, in the order of the program."""
    codes = np.asarray(ops["op"])
    names = np.asarray(step_names(ops), dtype=object)
    steps = {}
    for name in dict.fromkeys(ops.get("names", [])):
        rows = mine & (names == name)
        if rows.any():
            steps[name] = {"op": op_name(int(codes[rows][0])), **figures(ops, rows, seconds)}
    return steps


def divided(plan: Mapping[str, Any], by: By | None) -> Mapping[str, Any]:
    """The plan, which records threads apart where figures by thread are asked for."""
    return {**plan, "by_thread": True} if by == "thread" else plan


def parts(ops: Mapping[str, Any], by: By, seconds: float) -> list[dict[str, Any]]:
    """Figures by worker, group or thread, each with its own ``ops`` and ``steps``.

    They are told apart by ``worker`` (its position in the plan), ``thread`` (of the worker) and ``group``.
    Rates are those of the time from the begin of the worker, or of the first of a group, to its last
    completion, ``begin_ns`` to ``end_ns`` from the start of the run; of the run's ``seconds`` where the
    outcome does not tell these. Threads are known only where the plan asked for them (``by_thread``).
    """
    workers = np.asarray(ops["worker"]).astype(np.int64)
    groups = list(ops["group"])
    keys: list[tuple[dict[str, Any], Any]]
    if by == "group":
        mine = np.array([groups[w] for w in workers], dtype=object)
        keys = [({"group": name}, mine == name) for name in dict.fromkeys(groups)]
    else:
        keys = [({"worker": w, "group": name}, workers == w) for w, name in enumerate(groups)]
    if by == "thread":
        if "thread" not in ops:
            raise Error("figures by thread: the run did not record them; its plan must say by_thread")
        threads = np.asarray(ops["thread"]).astype(np.int64)
        keys = [
            ({"worker": about["worker"], "thread": int(t), "group": about["group"]}, rows & (threads == t))
            for about, rows in keys
            for t in np.unique(threads[rows])
        ]
    requests = np.asarray(ops["op"]) != OTHER
    found: list[dict[str, Any]] = []
    for about, rows in keys:
        own = [w for w, name in enumerate(groups) if about.get("worker", w) == w and about["group"] == name]
        begin, end = _worked(ops, own) or (0, round(seconds * 1e9))
        span = (end - begin) / 1e9
        part = {**about, "begin_ns": begin, "end_ns": end, **figures(ops, rows & requests, span)}
        part["ops"] = by_op(ops, rows, span)
        if steps := by_step(ops, rows, span):
            part["steps"] = steps
        found.append(part)
    return found


def _worked(ops: Mapping[str, Any], workers: Iterable[int]) -> tuple[int, int] | None:
    """From when to when some workers worked, ns from the start; None where that is not known."""
    spans = [ops["worked"][w] for w in workers] if "worked" in ops else []
    # One that never began, or did nothing, has no time.
    spans = [span for span in spans if span[1] > span[0]]
    if not spans:
        return None
    return min(span[0] for span in spans), max(span[1] for span in spans)


def lateness(told: Mapping[str, Any]) -> dict[str, Any]:
    """Lateness of the whole run; percentiles that it has too few requests for are None."""
    found = {name: value for name, value in told.items() if not isinstance(value, np.ndarray)}
    count = int(np.sum(told.get("count", 0)))
    for name, q in (("p50_ns", 50.0), ("p99_ns", 99.0)):
        if name in found and not supported(count, q):
            found[name] = None
    return found
