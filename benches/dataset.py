"""Datasets: how fast trees are scanned, changed and written, memory for it, and how far samples are off.

    .venv/bin/python benches/dataset.py [--only scan write change] [--rounds 5] [--tree /usr/lib/python3]
        [--files 1000000]

A tree of this machine is copied to memory, and everything is read from and written to tmpfs. Scanning is
per second of CPU time of one thread; cp and writing run in turns. What changes a tree is a process of its
own: CPU time of one change more, and the most memory it had.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _common import Figure, Measured, Target, call, main, measure, rounds

from loadstone import dataset

FIGURES = {
    "sample": Figure("scan of a tree, compressibility of a sample", "GB/s of a CPU", Target(at_least=0.7)),
    "off": Figure("compress ratio of a sample, off by", "%", Target(at_most=5, of="every")),
    "write": Figure("write of a tree to tmpfs", "GB/s", Target(at_least=0.8, of="ratio"), "cp -r"),
    "change": Figure(
        "a million files of 33 chunks changed, counted and saved", "s of CPU", Target(at_most=2)
    ),
    "memory": Figure("ten million files made and changed: memory", "GB", Target(at_most=2, of="every")),
}
STEPS = 32
"""Of a ratio are a doubling (docs/reference/formats/fstree.md)."""
# What a child process runs.
CHILD = """
import sys
from loadstone import dataset
profile, out, generations, scale = sys.argv[1:]
dataset.create(profile, out, generations=int(generations), scale=float(scale), force=True)
"""


def ratio(path: Path) -> float:
    """How many times smaller all chunks of a series become together."""
    with path.open("rb") as file:
        file.seek(16)
        while True:
            tag, _, length = struct.unpack("<4sIQ8x", file.read(24))
            if tag == b"csiz":
                packed = np.frombuffer(file.read(length), "<u4")
                break
            file.seek(length, 1)
    sizes = (packed & 0xFFFFFF).astype(float)
    return float(sizes.sum() / (sizes / 2 ** (((packed >> 24) - 1.0) / STEPS)).sum())


def scan(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Scans with each kind of compressibility in turns; each turn draws by another key."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        tree, series, key = Path(place) / "0", Path(place) / "x.fst", Path(place) / "key"
        shutil.copytree(args.tree, tree, symlinks=True, ignore_dangling_symlinks=True)
        size = dataset.scan(tree, series, compress="none")["scanned"][0]["bytes"]
        ratios: dict[str, list[float]] = {"sample": [], "whole": []}

        def once(how: str) -> float:
            key.write_bytes(bytes([len(ratios[how])]) * 32)
            begun = time.process_time()
            dataset.scan(tree, series, threads=1, compress=how, key=key, force=True)
            spent = time.process_time() - begun
            ratios[how].append(ratio(series))
            return float(size / spent / 1e9)

        found = rounds(args.rounds, {how: lambda how=how: once(how) for how in ratios})  # type: ignore[misc]
    yield Measured("sample", found["sample"])
    pairs = zip(ratios["sample"], ratios["whole"], strict=True)
    yield Measured("off", [100 * abs(sample / whole - 1) for sample, whole in pairs])


def write(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """The tree written by all threads, beside cp from tmpfs to tmpfs."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        tree, copy, series = (Path(place) / name for name in ("0", "copy", "x.fst"))
        shutil.copytree(args.tree, tree, symlinks=True, ignore_dangling_symlinks=True)
        size = dataset.scan(tree, series)["scanned"][0]["bytes"]

        def once(what: str) -> float:
            shutil.rmtree(copy, ignore_errors=True)
            begun = time.perf_counter()
            if what == "cp":
                call("cp", "-r", tree, copy)
            else:
                dataset.write(series, copy, threads=len(os.sched_getaffinity(0)))
            return float(size / (time.perf_counter() - begun) / 1e9)

        found = rounds(args.rounds, {what: lambda what=what: once(what) for what in ("cp", "write")})  # type: ignore[misc]
    yield Measured("write", found["write"], found["cp"])


def change(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Trees from distributions, changed by a profile of ``preset:home``."""
    for name, times, mu, snapshots, turns in (("change", 1, 12.0, 4, args.rounds), ("memory", 10, 8.6, 2, 1)):
        first, profile, large = (folder / each for each in ("first.fst", "a.profile", "large.fst"))
        dataset.populate(first, files=20_000, sizes=f"lognormal:{mu},1", force=True)
        dataset.mutate(first, folder / "next.fst", profile="preset:home", generations=3, force=True)
        told = dataset.profile(folder / "next.fst", profile, force=True)
        scale = times * args.files / told["snapshots"][0]["alone"]["files"]
        values = []
        for _ in range(turns):
            costs = [
                measure(sys.executable, "-c", CHILD, profile, large, count, scale)
                for count in (snapshots - 1, snapshots)
            ]
            print(name, *(f"{cost.cpu:.2f} s, {cost.peak / 1e9:.2f} GB" for cost in costs), file=sys.stderr)
            values.append(costs[1].cpu - costs[0].cpu if name == "change" else costs[1].peak / 1e9)
        large.unlink()
        yield Measured(name, values)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tree", type=Path, default=Path("/usr/lib/python3"), help="[%(default)s]")
    parser.add_argument("--files", type=int, default=1_000_000, help="changed; ten times as many made")


if __name__ == "__main__":
    main(__doc__, FIGURES, {"scan": scan, "write": write, "change": change}, options=options)
