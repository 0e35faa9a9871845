"""Datasets: how fast trees are scanned, evolved and written, and what they take in memory.

A tree (of this machine's libraries unless another is named) is copied to memory twice, the second time with
one file in a hundred changed, added and removed. Everything is read from the page cache and written to tmpfs;
cp beside it copies from tmpfs to tmpfs, in turns with what writes. Each figure is the best of three; of cp
and writing, of --rounds.

    .venv/bin/python benches/dataset.py [--tree /usr/lib/python3] [--files 1000000] [--rounds 7] [--writing]
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import statistics
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _common import loadstone, machine, table

from loadstone import dataset

ROUNDS = 3
GIB = 1 << 30
# Sections of a file by what they hold.
PARTS = {
    "directory": ("dpar", "dnam", "dprv"),
    "file": ("fdir", "fnam", "fext", "fmrk", "fsiz", "fsta", "fprv"),
    "chunk of a file": ("refs",),
    "distinct chunk": ("csiz", "cprt"),
}
# What each object has 4 bytes of.
COUNTED = {"directory": "dpar", "file": "fdir", "chunk of a file": "refs", "distinct chunk": "csiz"}


def seconds(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """The shortest time of several."""
    times = []
    for _ in range(ROUNDS):
        before()
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def on_cpu() -> float:
    """Seconds that this process and its children were on a CPU, which others do not add to."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def in_turns(
    size: int, works: dict[str, Callable[[], object]], before: Callable[[], object], rounds: int
) -> list[list[str]]:
    """Bytes a second of the fastest of several and of the one with the least time on a CPU.

    Of each but the first also how fast it was on a CPU beside the first in the same round, median and range.
    """
    took: dict[str, list[float]] = {name: [] for name in works}
    cpu: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds):
        for name, work in list(works.items())[:: -1 if turn % 2 else 1]:
            before()
            begun = time.perf_counter(), on_cpu()
            work()
            took[name].append(time.perf_counter() - begun[0])
            cpu[name].append(on_cpu() - begun[1])
    before()
    rows = []
    first = next(iter(cpu.values()))
    for name, own in cpu.items():
        told = f"{size / min(took[name]) / 1e9:.2f} GB/s, {size / min(own) / 1e9:.2f} a CPU's"
        if own is not first:
            ratios = [one / other for one, other in zip(first, own, strict=True)]
            told += f"; {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) of the first"
        rows.append([name, told])
    return rows


def sections(path: Path) -> dict[str, int]:
    """Bytes of a series' sections."""
    found: dict[str, int] = {}
    with path.open("rb") as file:
        file.seek(16)
        while head := file.read(24):
            tag, _, length = struct.unpack_from("<4sIQ", head)
            found[tag.decode()] = found.get(tag.decode(), 0) + length
            file.seek(length, os.SEEK_CUR)
    return found


def change(tree: Path, seed: random.Random) -> None:
    """One file in a hundred is changed in its middle, one goes, one is copied."""
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    for path in seed.sample(files, len(files) // 100):
        data = path.read_bytes()
        middle = len(data) // 2
        path.write_bytes(data[:middle] + seed.randbytes(100) + data[middle:])
    for path in seed.sample(files, len(files) // 100):
        shutil.copy(path, path.with_name(f"new-{path.name}"))
        path.unlink()


def main() -> None:
    """Prints two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, default=Path("/usr/lib/python3"))
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7, help="Of cp and writing.")
    parser.add_argument("--writing", action="store_true", help="Only cp and writing.")
    args = parser.parse_args()
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        here = Path(folder)
        shutil.copytree(args.tree, here / "0", symlinks=True, ignore_dangling_symlinks=True)
        shutil.copytree(here / "0", here / "1", symlinks=True)
        change(here / "1", random.Random(1))
        series = here / "x.fst"

        ways = (
            ("without compressibility", "none"),
            ("with a sample", "sample"),
            ("with every chunk", "whole"),
        )
        for title, compress in () if args.writing else ways:
            took = seconds(
                lambda compress=compress: dataset.scan(  # type: ignore[misc]
                    here / "0", series, threads=1, compress=compress, force=True
                )
            )
            size = dataset.describe(series)["snapshots"][0]["alone"]["bytes"]
            rows.append([f"scan, 1 thread, {title}", f"{size / took / 1e9:.2f} GB/s"])

        found = dataset.scan([here / "0", here / "1"], series, force=True)
        size = found["snapshots"][1]["alone"]["bytes"]

        def clear() -> None:
            shutil.rmtree(here / "copy", ignore_errors=True)

        works: dict[str, Callable[[], object]] = {
            "cp -r of the tree, tmpfs to tmpfs": lambda: subprocess.run(
                ["cp", "-r", here / "1", here / "copy"], check=True
            )
        }
        for threads in (1, len(os.sched_getaffinity(0))):
            works[f"write of the tree to tmpfs, {threads} threads"] = lambda threads=threads: dataset.write(  # type: ignore[misc]
                series, here / "copy", threads=threads
            )
        rows += in_turns(size, works, clear, args.rounds)
        if args.writing:
            print(machine(), table(["what", "figure"], rows), sep="\n")
            return

        (here / "random").mkdir()
        (here / "random/file").write_bytes(os.urandom(GIB // 2))
        dataset.scan(here / "random", here / "random.fst", compress="none")
        with open(os.devnull, "wb") as null:
            for title, path in (("incompressible", here / "random.fst"), ("of the tree", series)):
                size = dataset.describe(path)["snapshots"][-1]["alone"]["bytes"]
                command = [loadstone(), "dataset", "write", path, "--tar", "--to", "-"]
                empty = seconds(lambda: subprocess.run([loadstone(), "--version"], check=True, stdout=null))
                took = seconds(lambda command=command: subprocess.run(command, check=True, stdout=null))  # type: ignore[misc]
                rows.append([f"tar to /dev/null, {title}", f"{size / (took - empty) / 1e9:.2f} GB/s"])

        told = dataset.profile(series, here / "x.profile")
        rows.append(["profile of two snapshots", f"{(here / 'x.profile').stat().st_size / 1e3:.0f} kB"])
        scale = args.files / told["steps"][0]["new"]
        took = {}
        for generations in (1, 2):
            took[generations] = seconds(
                lambda generations=generations: dataset.create(  # type: ignore[misc]
                    here / "x.profile", here / "large.fst", generations=generations, scale=scale, force=True
                )
            )
        rows.append([f"make {args.files:,} files, counted and saved", f"{took[1]:.2f} s"])
        rows.append(["mutate them once, counted and saved", f"{took[2] - took[1]:.2f} s"])
        parts = sections(series)

    print(machine())
    print(table(["what", "figure"], rows))
    cells = []
    for name, tags in PARTS.items():
        count = parts[COUNTED[name]] // 4
        cells.append([name, f"{count:,}", f"{sum(parts[tag] for tag in tags) / count:.1f}"])
    print(table(["object", "there are", "bytes of each"], cells))


if __name__ == "__main__":
    main()
