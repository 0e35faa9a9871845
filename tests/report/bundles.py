"""Bundles with fixed numbers, written by the real writer."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from loadstone.bundle import Event, aside, write_bundle, write_series
from loadstone.model import Model
from loadstone.observe.observer import Observation
from loadstone.stats.histogram import Histogram

SECONDS = 24
START = 10_000_000_000
BEGUN = 1_780_000_000_000_000_000


def plan(kind: str, seed: int) -> dict:
    artefact = {"id": "a", "kind": kind, "path": "examples/loop0.parquet" if kind == "trace" else "loop0.mdh"}
    return {
        "version": 1,
        "seed": seed,
        "interval_ns": 1_000_000_000,
        "targets": [
            {
                "id": "t",
                "kind": "file",
                "path": "target.img",
                "size": 1 << 30,
                "prepare": "fill",
                "direct": True,
            }
        ],
        "artefacts": [artefact],
        "workers": [
            {
                "source": {"kind": kind, "artefact": "a"},
                "pace": {"kind": "open", "speed": 4.0},
                "order": "none",
                "backend": "io_uring",
                "depth": 32,
                "map": {
                    "objects": [{"object": 0, "target": "t", "base": 0, "size": 1 << 30}],
                    "offsets": "wrap",
                },
            }
        ],
        "steps": [{"step": "prepare"}, {"step": "drop_caches"}, {"step": "run", "duration_ns": 0}],
    }


def rates(rng: np.random.Generator, seconds: int = SECONDS) -> tuple[np.ndarray, np.ndarray]:
    """Reads and writes per second: a burst in the middle, and noise."""
    t = np.arange(seconds)
    base = 400 + 900 * np.exp(-(((t - seconds / 2) / 3.0) ** 2))
    return tuple(np.maximum(base * share + rng.normal(0, 12, seconds), 1).astype(int) for share in (0.4, 0.6))


def outcome(
    seed: int, seconds: int = SECONDS, failed: int = 0, partial: bool = False, slow: float = 1.0
) -> dict:
    rng = np.random.default_rng(seed)
    reads, writes = rates(rng, seconds)
    rows = []
    for interval in range(seconds):
        for op, count, middle in ((0, reads[interval], 90e3), (1, writes[interval], 2.5e6)):
            service = rng.lognormal(np.log(middle * slow), 0.35, count).astype(np.int64)
            waiting = rng.exponential(40e3, count).astype(np.int64)
            rows.append((op, 0, interval, count, service, service + waiting))
    if failed:
        rows.append((1, 28, seconds - 1, failed, np.full(failed, 5000), np.full(failed, 5000)))
    sparse = {
        "service": [Histogram.of(row[4]).sparse() for row in rows],
        "response": [Histogram.of(row[5]).sparse() for row in rows],
    }
    ops = {
        "group": [""],
        "worker": np.zeros(len(rows), dtype=np.uint16),
        "op": np.array([r[0] for r in rows], dtype=np.uint8),
        "errno": np.array([r[1] for r in rows], dtype=np.int32),
        "interval": np.array([r[2] for r in rows], dtype=np.uint32),
        "count": np.array([r[3] for r in rows], dtype=np.uint64),
        "bytes": np.array([0 if r[1] else r[3] * (4096 if r[0] else 16384) for r in rows], dtype=np.uint64),
    }
    for kind, lists in sparse.items():
        ops[f"{kind}_offsets"] = np.concatenate([[0], np.cumsum([len(b) for b, _ in lists])])
        ops[f"{kind}_bucket"] = np.concatenate([b for b, _ in lists])
        ops[f"{kind}_count"] = np.concatenate([c for _, c in lists])
    total = (reads + writes).astype(float)
    return {
        "ops": ops,
        "flight": {
            "mean": total / 400,
            "max": total / 100,
            "source_mean": total / 380,
            "source_max": total / 90,
        },
        "lateness": {
            "count": total,
            "p50": 9_000.0,
            "p99": 21_000.0,
            "slope_ns_per_s": 0.4,
        },
        "summary": {
            "started": BEGUN,
            "monotonic_start_ns": START,
            "elapsed_ns": seconds * 1_000_000_000,
            "requests": int(ops["count"].sum()),
            "bytes": int(ops["bytes"].sum()),
            "errors": failed,
            "short": 0,
            "cpu_user_ns": 900_000_000,
            "cpu_system_ns": 700_000_000,
            "partial": partial,
            "logged": 0,
            "dropped": 0,
        },
    }


def observation(seed: int, seconds: int = SECONDS) -> Observation:
    rng = np.random.default_rng(seed)
    reads, writes = rates(rng, seconds)
    n = 4 * seconds + 1
    time = START + np.arange(n, dtype=np.int64) * 250_000_000

    def counter(per_second: np.ndarray) -> np.ndarray:
        steps = np.repeat(per_second / 4, 4)
        return np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)

    total = reads + writes
    columns = {
        "time": time,
        "progress": counter(total),
        "disk_reads": counter(reads),
        "disk_writes": counter(writes),
        "disk_read_sectors": counter(reads * 32),
        "disk_write_sectors": counter(writes * 8),
        "disk_read_ms": counter(reads * 0.1),
        "disk_write_ms": counter(writes * 2.6),
        "disk_busy_ms": counter(np.minimum(total * 0.6, 990)),
        "disk_queue_ms": counter(total * 1.7),
        "disk_discards": counter(total * 0),
        "disk_flushes": counter(total * 0.02),
        "cpu_user": counter(20 + total * 0.01),
        "cpu_nice": counter(total * 0),
        "cpu_system": counter(10 + total * 0.02),
        "cpu_idle": counter(150 - total * 0.03),
        "cpu_iowait": counter(total * 0.01),
        "interrupts": counter(800 + total * 1.5),
        "context_switches": counter(1500 + total * 2.5),
        "procs_blocked": [*np.repeat(np.arange(seconds) % 3, 4).tolist(), 0],
        "mem_cached": (2 << 30) + counter(total * 4096),
        "mem_dirty": np.full(n, 40 << 20),
        "process_user_us": counter(total * 20),
        "process_system_us": counter(total * 15),
    }
    columns = {k: np.asarray(v, dtype=np.int64) for k, v in columns.items()}
    return Observation(columns, [], [], 0, 100, 0.25, None)


ENVIRONMENT = {
    "host": "bench1",
    "kernel": "Linux 6.1.0-40-amd64 #1 SMP",
    "machine": "x86_64",
    "cmdline": "quiet",
    "cpu": {"model": "Example CPU", "count": 8, "governor": "performance"},
    "memory": {"MemTotal": 16 << 30},
    "clock_source": "tsc",
    "load": [0.1, 0.2, 0.3],
    "versions": {"loadstone": "0.1.0", "python": "3.11.7"},
    "targets": {
        "t": {
            "path": "target.img",
            "mount": {"point": "/srv", "type": "ext4", "source": "/dev/sda2", "options": "rw,noatime"},
            "device": {
                "name": "sda2",
                "below": ["sda"],
                "settings": {
                    "size_bytes": 480 << 30,
                    "model": "SSD 860",
                    "queue": {
                        "scheduler": "[none] mq-deadline",
                        "rotational": "0",
                        "write_cache": "write back",
                    },
                },
            },
        }
    },
}


def run(folder: Path, kind: str, seed: int, **more) -> Path:
    """One bundle at ``folder``."""
    seconds = more.get("seconds", SECONDS)
    events = [Event(START - 5, "prepared", "filled 1 GiB"), Event(START, "started", "workers run")]
    with aside(folder) as inside:
        write_bundle(
            inside, plan(kind, seed), outcome(seed, **more), ENVIRONMENT, observation(seed, seconds), events
        )
    return folder


def evaluation(
    folder: Path, repeat: int = 2, summary: dict | None = None, model: Model | None = None
) -> Path:
    """A bundle of interleaved replays and emulations at ``folder``."""
    listed = []
    with aside(folder) as inside:
        for i in range(1, repeat + 1):
            for role, kind in (("replay", "trace"), ("model", "model")):
                name = f"{role}-{i}"
                run(inside / name, kind, seed=10 * i + (kind == "model"))
                listed.append({"name": name, "path": name, "role": role})
        if model is not None:
            model.save(inside / "model.mdh")
        write_series(inside, "evaluate", listed, summary or {})
    return folder


def finding(parameter: str, title: str, verdict: str, rms: float | None, reason: str | None = None) -> dict:
    """One of ``evaluate``'s findings, with a floor of 3 %."""
    return {
        "parameter": parameter,
        "title": title,
        "unit": "",
        "verdict": verdict,
        "reason": reason,
        "note": None,
        "intervals": 24,
        "rms": rms,
        "max": None if rms is None else 1.8 * rms,
        "floor_rms": None if rms is None else 0.03,
        "floor_max": None if rms is None else 0.05,
        "chance": None if rms is None else 0.29,
        "ratio": None if rms is None else 1 + rms,
        "ratio_low": None if rms is None else 1 + rms / 2,
        "ratio_high": None if rms is None else 1 + 2 * rms,
        "over_time": None if rms is None else "within target" if rms <= 0.1 else "differs",
        "runs": 7 if verdict == "undecided" else None,
    }


SUMMARY = {
    "distances": [
        finding("reads_per_s", "reads", "faithful", 0.021),
        finding("writes_per_s", "writes", "undecided", 0.043),
        finding("latency_ms", "request latency", "faithful", 0.035),
        finding("utilisation", "utilisation", "faithful", 0.06),
        finding("queue_length", "queue length", "not faithful", 0.19),
        finding("request_size", "request size", "faithful", 0.008),
        finding("memory", "memory (page cache)", "unusable", None, "the load does not move it"),
    ],
    "trace": "examples/loop0.parquet",
    "target": "target.img",
    "model": {"path": None, "file": "model.mdh", "fitted_here": True},
    "schedule": {"pace": 4.0, "repeat": 2},
    "reset": "refill",
    "alignment": "time",
    "intervals": 24,
    "faithful": False,
    "verdict": "not faithful in queue length; faithful in 4 of 6 usable parameters; undecided in writes",
    "usable": 6,
    "passed": 4,
}
