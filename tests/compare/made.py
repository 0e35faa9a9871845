"""Arms and bundles made by hand."""

from __future__ import annotations

import json

from loadstone.compare import Arm, RunValues
from loadstone.stats.metric import Metric

RATE = Metric("ops_per_s", "ops/s", "higher", "harmonic")
P99 = Metric("service_p99", "ns", "lower")

HOST = {
    "host": "one",
    "kernel": "Linux 6.1",
    "cpu": {"model": "X", "count": 4},
    "versions": {"loadstone": "1", "python": "3"},
    "targets": {
        "t0": {
            "path": "/mnt/a/tree",
            "mount": {"point": "/mnt/a", "type": "ext4", "options": "rw", "super_options": "rw,noatime"},
            "device": {"name": "vdb", "settings": {"queue": {"scheduler": "none"}}},
        }
    },
}


def host(**changed):
    """The host with some of its facts changed; ``a__b`` stands for a key within another."""
    found = json.loads(json.dumps(HOST))
    for name, value in changed.items():
        *path, last = name.split("__")
        inner = found
        for key in path:
            inner = inner[key]
        inner[last] = value
    return found


def arm(name, rates, p99s=None, blocks=None, started=None, **more):
    runs = []
    for at, rate in enumerate(rates):
        values = {"ops_per_s": float(rate)}
        if p99s is not None:
            values["service_p99"] = float(p99s[at])
        block = None if blocks is None else blocks[at]
        runs.append(RunValues(values, block, None if started is None else started + at))
    metrics = {"ops_per_s": RATE, **({"service_p99": P99} if p99s is not None else {})}
    return Arm(name, metrics, runs, **more)
