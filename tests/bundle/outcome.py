"""An outcome as the engine hands it over, made by hand."""

import time

import numpy as np

from loadstone.stats.histogram import Histogram


def outcome(seed=1, rows=6, partial=False):
    rng = np.random.default_rng(seed)
    hists = [Histogram.of(rng.integers(1_000, 10_000_000, size=50)) for _ in range(rows)]
    sparse = [h.sparse() for h in hists]
    offsets = np.concatenate(([0], np.cumsum([len(b) for b, _ in sparse]))).astype(np.int64)
    ops = {
        "worker": np.arange(rows, dtype=np.uint16) % 2,
        "group": ["", "vm1"],
        "op": np.arange(rows, dtype=np.uint8) % 2,
        "errno": np.zeros(rows, dtype=np.int32),
        "interval": np.arange(rows, dtype=np.uint32) // 2,
        "count": np.full(rows, 50, dtype=np.uint64),
        "bytes": np.full(rows, 50 * 4096, dtype=np.uint64),
    }
    for kind in ("service", "response"):
        ops[f"{kind}_offsets"] = offsets
        ops[f"{kind}_bucket"] = np.concatenate([b for b, _ in sparse])
        ops[f"{kind}_count"] = np.concatenate([c for _, c in sparse])
    ops["errno"][-1] = 5
    return {
        "ops": ops,
        "flight": {"mean": np.array([1.0, 2.0, 1.5]), "max": np.array([3, 4, 2], dtype=np.uint64)},
        "lateness": {
            "count": np.array([100, 100], dtype=np.uint64),
            "p50_ns": 10,
            "p99_ns": 99,
            "slope_ns_per_s": 0.0,
        },
        "summary": {
            "started": time.time_ns(),
            "monotonic_start_ns": time.monotonic_ns(),
            "elapsed_ns": 3_000_000_000,
            "requests": 50 * rows,
            "bytes": 50 * 4096 * rows,
            "errors": 50,
            "short": 0,
            "cpu_user_ns": 5,
            "cpu_system_ns": 6,
            "partial": partial,
            "logged": 0,
            "dropped": 0,
        },
    }, hists


PLAN = {"version": 1, "interval_ns": 1_000_000_000, "targets": [], "workers": [], "steps": []}
