"""What think times are for: one model on two devices, in order of dependencies.

    sudo .venv/bin/python benches/think.py [--rounds 3] [--limit 2000]

The devices are a loop device over a file in memory, and the same one limited to some requests per second
(cgroup v1, blkio.throttle), so that they differ in nothing else. The demo trace is replayed and its model run
on both; how much longer the slow device takes should be the same for both.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _common import ROOT, Figure, Measured, Missing, Target, call, loadstone, loop, main, need, ours, rounds

FIGURES = {
    "think": Figure(
        "model with think times: slow device's time / fast one's, apart from the replay's",
        "%",
        Target(at_most=5),
    ),
}
GROUPS = Path("/sys/fs/cgroup/blkio")
SIZE = 1 << 30


@contextmanager
def limited(device: str, limit: int) -> Iterator[Path]:
    """A cgroup in which a device does so many reads, and as many writes, per second."""
    if not (GROUPS / "cgroup.procs").exists():
        raise Missing(f"{GROUPS} is no cgroup of version 1, which limits the device")
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


def think(_: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Replay and model on both devices, in turns."""
    need(root=True)
    trace = ROOT / "examples/loop0.parquet"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place, loop(Path(place) / "image", SIZE) as device:
        model = Path(place) / "model.mdh"
        call(loadstone(), "model", "fit", "--think", trace, "-o", model)
        common = ["--on", device, "--direct", "--allow-destroy", device]
        # Written once, so that no run finds holes.
        ours("run", "write", "--bs", "1m", "--requests", SIZE >> 20, *common)
        order = ["--offsets", "wrap", "--no-fill", "--order", "dependency", "--independent", "max"]
        with limited(device, args.limit) as slow:

            def seconds(*what: object, group: Path | None) -> float:
                def enter() -> None:
                    if group is not None:
                        (group / "cgroup.procs").write_text(str(os.getpid()))

                return float(ours(*what, *common, *order, preexec_fn=enter)["elapsed_ns"] / 1e9)

            found = rounds(
                args.rounds,
                {
                    f"{name} {speed}": lambda what=what, group=group: seconds(*what, group=group)  # type: ignore[misc]
                    for speed, group in (("fast", None), ("slow", slow))
                    for name, what in (("replay", ["replay", trace]), ("model", ["run", model]))
                },
            )
    slower = {
        name: [a / b for a, b in zip(found[f"{name} slow"], found[f"{name} fast"], strict=True)]
        for name in ("replay", "model")
    }
    print(slower)
    yield Measured(
        "think", [100 * abs(a / b - 1) for a, b in zip(slower["model"], slower["replay"], strict=True)]
    )


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit", type=int, default=2000, help="reads, and writes, per second of the slow one"
    )


if __name__ == "__main__":
    main(__doc__, FIGURES, {"think": think}, rounds=3, options=options)
