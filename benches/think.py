"""What think times are for: one model on two devices, in order of dependencies and at recorded gaps.

The devices are a loop device over a file in memory, and the same one limited to some requests per second
(cgroup v1, blkio.throttle), so that they differ in nothing else. The trace is replayed and its model run on
both; how much longer the slow device takes should be the same for both. Needs root. Everything is taken down
at any exit.

    sudo .venv/bin/python benches/think.py [--rounds 3] [--limit 2000] [--trace FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from _common import ROOT, loadstone, machine, spread, table

GROUPS = Path("/sys/fs/cgroup/blkio")
MEMORY = Path("/dev/shm")
SIZE = 1 << 30
ORDERS = {
    "dependencies": ["--order", "dependency", "--independent", "max"],
    "recorded gaps": ["--pace", "recorded"],
}


def run(*words: str | Path, group: Path | None = None) -> str:
    """Output of a command, run in a cgroup where one is given; a failure ends the benchmark."""

    def enter() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    done = subprocess.run(
        [str(w) for w in words], capture_output=True, text=True, check=False, preexec_fn=enter
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


@contextmanager
def in_memory(folder: Path) -> Iterator[str]:
    """A loop device over a file in memory."""
    image = folder / "image"
    run("fallocate", "-l", str(SIZE), image)
    device = run("losetup", "--find", "--show", image)
    try:
        yield device
    finally:
        run("losetup", "-d", device)


@contextmanager
def limited(device: str, limit: int) -> Iterator[Path]:
    """A cgroup in which a device does so many reads, and as many writes, per second."""
    if not (GROUPS / "cgroup.procs").exists():
        sys.exit(f"{GROUPS}: is no cgroup of version 1, which this benchmark limits the device by")
    group = GROUPS / f"loadstone-think-{os.getpid()}"
    group.mkdir()
    try:
        number = Path(f"/sys/block/{Path(device).name}/dev").read_text().strip()
        for kind in ("read", "write"):
            (group / f"blkio.throttle.{kind}_iops_device").write_text(f"{number} {limit}")
        yield group
    finally:
        # A run that was cut off may still be ending.
        for _ in range(100):
            if not (group / "cgroup.procs").read_text():
                break
            time.sleep(0.1)
        group.rmdir()


def main() -> None:
    """Runs everything in turns, round after round, and prints the table and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--limit", type=int, default=2000, help="reads, and writes, per second of the slow one"
    )
    parser.add_argument("--trace", type=Path, default=ROOT / "examples/loop0.parquet")
    args = parser.parse_args()
    # Whoever ends it with a signal expects no device to stay.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found: dict[tuple[str, str, str], list[dict[str, float]]] = defaultdict(list)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY)))
        fitted = folder / "model.mdh"
        run(loadstone(), "model", "fit", "--think", args.trace, "-o", fitted)
        device = stack.enter_context(in_memory(folder))
        slow = stack.enter_context(limited(device, args.limit))
        common = ["--on", device, "--direct", "--offsets", "wrap", "--allow-destroy", device, "--json"]
        # Written once, so that no run finds holes.
        run(loadstone(), "run", "write", "--bs", "1m", "--requests", SIZE >> 20, *common)
        for number in range(args.rounds):
            for order, words in ORDERS.items():
                for name, group in (("fast", None), ("slow", slow)):
                    for what, verb in (("replay", ["replay", args.trace]), ("model", ["run", fitted])):
                        seed = ["--seed", str(number + 1)] if what == "model" else []
                        told = json.loads(
                            run(loadstone(), *verb, *common, "--no-fill", *words, *seed, group=group)
                        )
                        found[name, order, what].append(
                            {
                                "seconds": told["elapsed_ns"] / 1e9,
                                "rate": told["ops_per_s"],
                                "p50": (told["response_ns"]["p50"] or math.nan) / 1e6,
                                "p99": (told["response_ns"]["p99"] or math.nan) / 1e6,
                            }
                        )
                        print(name, order, what, found[name, order, what][-1], file=sys.stderr)
    print(machine() + "\n")
    rows = [
        [
            *key,
            *(
                spread([r[k] for r in runs], d)
                for k, d in (("seconds", 1), ("rate", 0), ("p50", 2), ("p99", 1))
            ),
        ]
        for key, runs in sorted(found.items(), key=lambda item: (item[0][1], item[0][0]))
    ]
    print(table(["device", "order", "load", "seconds", "requests/s", "p50 ms", "p99 ms"], rows) + "\n")
    ratios = []
    for order in ORDERS:
        line = [order]
        for what in ("replay", "model"):
            pairs = zip(found["slow", order, what], found["fast", order, what], strict=True)
            line.append(spread([a["seconds"] / b["seconds"] for a, b in pairs]))
        medians = [
            statistics.median(r["seconds"] for r in found["slow", order, what])
            / statistics.median(r["seconds"] for r in found["fast", order, what])
            for what in ("replay", "model")
        ]
        ratios.append([*line, f"{medians[1] / medians[0]:.2f}"])
    print(table(["order", "replay: slow / fast", "model: slow / fast", "model / replay"], ratios))


if __name__ == "__main__":
    main()
