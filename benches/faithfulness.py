"""How faithful models are: replay against emulation on real storage.

    sudo .venv/bin/python benches/faithfulness.py [--trace dtrs ...] [--repeat 10]

Default models. Two targets of 8 GiB, fully written: a file with O_DIRECT on ext4 on a loop device, and a raw
loop device, both with direct I/O to the backing file; each trace paced and at full speed. A value is one
evaluation (``loadstone evaluate``): the share of its usable parameters. What is undecided is neither.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _common import Figure, Measured, Target, call, loadstone, loop, main, mounted, need, ours, trace_file

FIGURES = {
    "faithful": Figure("evaluate: parameters faithful", "% of the usable"),
    "not faithful": Figure(
        "evaluate: parameters not faithful", "% of the usable", Target(at_most=0, of="every")
    ),
}
FILES = {
    "dtrs": "spc/dtrs.spc",
    "cloudPhysicsIO": "cloudphysics/cloudPhysicsIO.vscsi",
    "loop0": "examples/loop0.parquet",
}
PACES = {"dtrs": "x2500", "cloudPhysicsIO": "x2000", "loop0": "x7"}
"""Acceleration that brings the device to 50-90 % utilisation in replay, by trace."""
GIB = 1 << 30


@contextmanager
def file_on_ext4(folder: Path) -> Iterator[Path]:
    """The place of a file of 8 GiB on ext4 on a loop device."""
    with loop(folder / "ext4.img", 10 * GIB) as device:
        call("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
        with mounted(folder / "mnt", device) as at:
            yield at / "target"


@contextmanager
def raw_device(folder: Path) -> Iterator[Path]:
    """A loop device of 8 GiB."""
    with loop(folder / "raw.img", 8 * GIB) as device:
        yield Path(device)


TARGETS = {"file": file_on_ext4, "device": raw_device}


def evaluate(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Evaluates each trace at both paces on both targets."""
    need(root=True)
    shares: dict[str, list[float]] = {name: [] for name in FIGURES}
    for kind, made in TARGETS.items():
        with made(folder) as target:
            for name in args.trace or FILES:
                trace, model = trace_file(FILES[name]), folder / f"{name}.mdh"
                call(loadstone(), "model", "fit", trace, "-o", model, "--force")
                for pace in (PACES[name], "max"):
                    how = ["--model", model, "--on", target, "--pace", pace, "--direct", "--offsets", "wrap"]
                    how += ["--size", "8g", "--repeat", args.repeat, "--allow-destroy", target, "--yes"]
                    found = ours("evaluate", trace, *how)
                    usable, passed = found["usable"], found["passed"]
                    shares["faithful"].append(100 * passed / usable)
                    shares["not faithful"].append(100 * (usable - passed - found["undecided"]) / usable)
                    print(name, kind, pace, found["verdict"], file=sys.stderr)
    yield from (Measured(name, values) for name, values in shares.items())


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trace", action="append", choices=list(FILES))
    parser.add_argument("--repeat", type=int, default=10, help="runs of each kind [%(default)s]")


if __name__ == "__main__":
    main(__doc__, FIGURES, {"evaluate": evaluate}, rounds=1, options=options)
