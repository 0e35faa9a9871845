"""How faithful models are: replay against emulation on real storage.

Two targets of 8 GiB, fully written: a file with O_DIRECT on ext4 on a loop device, and a raw loop
device with direct I/O to its backing file. Needs root for both. Everything is taken down at any exit.

    sudo .venv/bin/python benches/faithfulness.py [--trace dtrs ...] [--pace max ...] [--on file ...] \
        [--fit="--dimension reuse_distance"] [--apart]

Where the scheduler keeps the kernel's workers, beside the load or on another CPU, decides how many interrupts
their wake-ups are, for a tenth of a second and more. With --apart the load keeps to the first CPU and they to
the others.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from _common import ROOT, TRACES, fit, loadstone, machine, table

TRACE_FILES = {
    "dtrs": TRACES / "spc/dtrs.spc",
    "cloudPhysicsIO": TRACES / "cloudphysics/cloudPhysicsIO.vscsi",
    "loop0": ROOT / "examples/loop0.parquet",
}
# Acceleration that brings the device to 50-90 % utilisation in replay, by trace.
PACES = {"dtrs": "x2500", "cloudPhysicsIO": "x2000", "loop0": "x7"}
GIB = 1 << 30
WORKERS = Path("/sys/devices/virtual/workqueue/cpumask")
"""CPUs of the kernel's workers that are bound to none, such as those of loop devices."""


def run(*words: str | Path) -> str:
    """Output of a command; a failure ends the benchmark."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


@contextmanager
def loop(image: Path, size: int) -> Iterator[str]:
    """A loop device with direct I/O over a new image."""
    run("fallocate", "-l", str(size), image)
    device = run("losetup", "--find", "--show", "--direct-io=on", image)
    try:
        yield device
    finally:
        run("losetup", "-d", device)
        image.unlink()


@contextmanager
def file_on_ext4(folder: Path) -> Iterator[Path]:
    """The place of a file of 8 GiB on ext4 on a loop device."""
    with loop(folder / "ext4.img", 10 * GIB) as device:
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
        mount = folder / "mnt"
        mount.mkdir()
        run("mount", device, mount)
        try:
            yield mount / "target"
        finally:
            # Where an evaluation was killed, the kernel lets go of its file a moment later.
            deadline = time.monotonic() + 10
            while os.path.ismount(mount) and subprocess.run(["umount", mount], check=False).returncode:
                if time.monotonic() > deadline:
                    sys.exit(f"{mount} is in use; unmount it and detach {device} by hand")
                time.sleep(0.2)


@contextmanager
def raw_device(folder: Path) -> Iterator[Path]:
    """A loop device of 8 GiB."""
    with loop(folder / "raw.img", 8 * GIB) as device:
        yield Path(device)


@contextmanager
def workers_apart() -> Iterator[list[str]]:
    """Options that keep the load to the first CPU, while the kernel's workers have the others."""
    allowed = WORKERS.read_text()
    words = allowed.strip().split(",")
    low = int(words[-1], 16)
    if len(words) > 1 or low & 1 == 0 or low == 1:
        sys.exit(f"{WORKERS} is {allowed.strip()}: --apart needs CPU 0 and 1 to 31 others there")
    WORKERS.write_text(f"{low & ~1:x}")
    try:
        yield ["--cpus", "0"]
    finally:
        WORKERS.write_text(allowed)


TARGETS = {"file": file_on_ext4, "device": raw_device}


def main() -> None:
    """Evaluates each trace at each pace on each target and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", action="append", choices=list(TRACE_FILES))
    parser.add_argument("--pace", action="append", choices=["paced", "max"])
    parser.add_argument("--on", action="append", choices=list(TARGETS))
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--keep", type=Path, help="folder for the bundles")
    parser.add_argument("--draw-first", action="store_true", help="as of evaluate")
    parser.add_argument("--fit", default="", help="options of model fit, in one argument")
    parser.add_argument("--apart", action="store_true", help="the kernel's workers off the load's CPU")
    args = parser.parse_args()
    # Whoever ends it with a signal expects nothing to stay mounted, either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rows, verdicts = [], []
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")))
        )
        apart = stack.enter_context(workers_apart()) if args.apart else []
        keep = args.keep or folder
        keep.mkdir(exist_ok=True)
        models = {}
        for name in args.trace or TRACE_FILES:
            models[name] = folder / f"{name}.mdh"
            fit(TRACE_FILES[name], models[name], args.fit)
        for kind in args.on or TARGETS:
            with TARGETS[kind](folder) as target:
                for name, model in models.items():
                    for pace in args.pace or ["paced", "max"]:
                        factor = PACES[name] if pace == "paced" else "max"
                        out = keep / f"{name}-{factor}-{kind}.bundle"
                        command = [
                            loadstone(),
                            "evaluate",
                            TRACE_FILES[name],
                            "--model",
                            model,
                            "--on",
                            target,
                            "--pace",
                            factor,
                            "--direct",
                            "--offsets",
                            "wrap",
                            "--size",
                            "8g",
                            "--repeat",
                            str(args.repeat),
                            "--allow-destroy",
                            target,
                            "--out",
                            out,
                            "--force",
                            "--json",
                            *(["--draw-first"] if args.draw_first else []),
                            *apart,
                        ]
                        result = json.loads(run(*command))
                        (keep / f"{name}-{factor}-{kind}.json").write_text(json.dumps(result))
                        for row in result["distances"]:
                            rows.append(
                                [
                                    name,
                                    kind,
                                    factor,
                                    row["parameter"],
                                    *(
                                        f"{100 * row[k]:.1f}" if row.get(k) is not None else "-"
                                        for k in ("rms", "max", "floor_rms", "floor_max")
                                    ),
                                    row["verdict"] if row["usable"] else f"not usable: {row['reason']}",
                                ]
                            )
                        digest = hashlib.sha256(model.read_bytes()).hexdigest()[:12]
                        verdicts.append([name, kind, factor, result["verdict"], f"`{digest}`"])
                        print(verdicts[-1], file=sys.stderr)
    print(machine() + "\n")
    print(table(["trace", "target", "pace", "verdict", "model"], verdicts) + "\n")
    print(
        table(
            [
                "trace",
                "target",
                "pace",
                "parameter",
                "RMS %",
                "max %",
                "floor RMS %",
                "floor max %",
                "verdict",
            ],
            rows,
        )
    )


if __name__ == "__main__":
    main()
