"""How a model's stream differs from its trace before any device sees either.

Both are cut into 25 intervals, of equal time or of equal progress. For what a device feels, the table
gives the RMS and the largest difference relative to the trace's mean, beside the RMS between seeds.

    .venv/bin/python benches/stream.py [--seeds 3] [--trace dtrs ...] [--fit="--small"]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from _common import ROOT, TRACES, fit, machine, table
from numpy.typing import NDArray

from loadstone import model, trace

FILES = {
    "dtrs": TRACES / "spc/dtrs.spc",
    "cloudPhysicsIO": TRACES / "cloudphysics/cloudPhysicsIO.vscsi",
    "loop0": ROOT / "examples/loop0.parquet",
}
PARTS = 25
# Bytes that the block layer makes one request of at most, and those that offsets are wrapped to.
LARGEST = 1280 << 10
TARGET = 8 << 30
# Requests that a model looks back at most.
REACH = 65536

Numbers = NDArray[np.int64]
Figures = dict[str, NDArray[np.float64]]


def columns(requests: Any) -> dict[str, Numbers]:
    """Columns of an Arrow table, -1 where there is nothing."""

    def numbers(column: Any) -> Numbers:
        if column.null_count == 0:
            return np.asarray(column.to_numpy()).astype(np.int64)
        return np.array([-1 if v is None else v for v in column.to_pylist()], dtype=np.int64)

    return {name: numbers(requests[name]) for name in ("time", "op", "object", "offset", "size")}


def second_pass(c: dict[str, Numbers]) -> NDArray[np.bool_]:
    """Which requests go on from one of their op at an offset that was used before, both in reach."""
    found = np.zeros(len(c["op"]), dtype=np.bool_)
    ends: dict[tuple[int, int, int], int] = {}
    used: dict[tuple[int, int], int] = {}
    rows = zip(c["op"], c["object"], c["offset"], c["size"], strict=True)
    for i, (op, at, offset, size) in enumerate(rows):
        if offset < 0:
            continue
        ended, begun = ends.pop((op, at, offset), -REACH), used.get((at, offset), -REACH)
        found[i] = i - ended < REACH and i - begun < REACH
        ends[op, at, offset + max(size, 0)] = i
        used[at, offset] = i
    return found


def figures(c: dict[str, Numbers], part: Numbers) -> Figures:
    """What a device feels, by interval."""
    again = second_pass(c)
    op, offset, size = c["op"], c["offset"], np.maximum(c["size"], 0)
    same = np.r_[False, op[1:] == op[:-1]]
    follows = np.r_[False, (offset[1:] == offset[:-1] + size[:-1]) & (offset[1:] >= 0)]
    starts = ~(same & follows)
    run = np.cumsum(starts) - 1
    requests = 1 + np.floor((np.bincount(run, weights=size) - 1).clip(0) / LARGEST)

    def each(of: Callable[[NDArray[np.bool_]], float]) -> NDArray[np.float64]:
        mine = (part == p for p in range(PARTS))
        return np.array([of(m) if m.any() else 0.0 for m in mine])

    return {
        "reads, share": each(lambda m: float((op[m] == 0).mean())),
        "writes": each(lambda m: float((op[m] == 1).sum())),
        "writes after merging": each(lambda m: float(requests[run[m & starts & (op == 1)]].sum())),
        "bytes read": each(lambda m: float(size[m & (op == 0)].sum())),
        "bytes written": each(lambda m: float(size[m & (op == 1)].sum())),
        "request size": each(lambda m: float(size[m].mean())),
        "request size after merging": each(
            lambda m: float(size[m].sum() / max(1.0, requests[run[m & starts]].sum()))
        ),
        "share that follows directly": each(lambda m: float((~starts)[m].mean())),
        "changes of op, share": each(lambda m: float((~same)[m].mean())),
        "goes on over used places, share": each(lambda m: float(again[m].mean())),
        "blocks of 64 KiB": each(lambda m: float(len(np.unique(offset[m & (offset >= 0)] % TARGET >> 16)))),
    }


def distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """RMS and largest difference relative to the mean of ``a``, percent."""
    d = 100 * (b - a) / (a.mean() or 1.0)
    return float(np.sqrt((d**2).mean())), float(np.abs(d).max())


def main() -> None:
    """Fits each trace, draws from it, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", action="append", choices=list(FILES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--fit", default="", help="options of model fit, in one argument")
    args = parser.parse_args()
    rows = []
    for name in args.trace or FILES:
        asked = columns(trace.read(FILES[name]))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.mdh"
            fit(FILES[name], path, args.fit)
            fitted = model.Model.load(path)
        drawn = [columns(fitted.sample(seed=seed)) for seed in range(1, args.seeds + 1)]
        end = int(asked["time"].max()) + 1
        cuts: dict[str, Callable[[dict[str, Numbers]], Numbers]] = {
            "time": lambda c, end=end: np.minimum(c["time"] * PARTS // end, PARTS - 1),  # type: ignore[misc]
            "progress": lambda c: np.arange(len(c["time"])) * PARTS // len(c["time"]),
        }
        for how, cut in cuts.items():
            trace_figures = figures(asked, cut(asked))
            each = [figures(c, cut(c)) for c in drawn]
            for what, wanted in trace_figures.items():
                off = [distance(wanted, found[what]) for found in each]
                seeds = [distance(a[what], b[what])[0] for a, b in combinations(each, 2)]
                cells = [np.mean([d[0] for d in off]), np.mean([d[1] for d in off]), np.mean(seeds or [0.0])]
                rows.append([name, how, what, *(f"{cell:.1f}" for cell in cells)])
    print(machine() + "\n")
    print(table(["trace", "intervals of", "what", "RMS %", "max %", "RMS between seeds %"], rows))


if __name__ == "__main__":
    main()
