"""The engine beside fio: cost on null, 4 KiB reads from the page cache and of a loop device, drift.

    .venv/bin/python benches/engine.py [--only null cache direct drift] [--rounds 5] [--seconds 3]

Every load runs pinned to one CPU, its threads included. Which of fio's io_uring options help differs by
machine: they are chosen by a run of each before the rounds that count.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from _common import ROOT, Figure, Measured, Target, cpu_ns, fio, loop, main, need, ours, rounds

from loadstone import trace

FIGURES = {
    "uniform": Figure(
        "uniform requests on null:", "ns/request", Target(at_most=1 / 3, of="ratio"), "fio null"
    ),
    "model": Figure("drawing from a default model, on null:", "M requests/s", Target(at_least=1.0)),
    "sync": Figure(
        "4 KiB page cache reads, sync", "requests/s", Target(at_least=1.3, of="ratio"), "fio psync"
    ),
    "uring": Figure(
        "4 KiB page cache reads, io_uring, depth 32",
        "requests/s",
        Target(at_least=1.0, of="ratio"),
        "fio's best",
    ),
    "direct": Figure(
        "4 KiB direct reads of a loop device, depth 32",
        "requests/s",
        Target(at_least=1.0, of="ratio"),
        "fio's best",
    ),
    "drift": Figure("50,000 requests/s for a minute: drift", "ns/s", Target(at_most=1000, of="every")),
}
FILE, IMAGE = 256 << 20, 2 << 30
COPIES = 60
"""Of the demo trace, so that a run at full speed takes about a second."""
URING: list[list[str]] = [
    [],
    ["--registerfiles=1"],
    ["--registerfiles=1", "--fixedbufs=1"],
    ["--registerfiles=1", "--fixedbufs=1", "--iodepth_batch_submit=8", "--iodepth_batch_complete_max=8"],
    ["--registerfiles=1", "--iodepth_batch_submit=8", "--iodepth_batch_complete_max=8"],
    ["--registerfiles=1", "--fixedbufs=1", "--iodepth_batch_submit=32", "--iodepth_batch_complete_max=32"],
    ["--registerfiles=1", "--iodepth_batch_submit=32", "--iodepth_batch_complete_max=32"],
]


def repeated(folder: Path) -> Path:
    """The demo trace, COPIES times in a row."""
    from arro3.core import Array, RecordBatch, Table
    from arro3.io import read_parquet, write_parquet

    one = read_parquet(str(ROOT / "examples/loop0.parquet")).read_all().combine_chunks().to_batches()[0]
    columns = [one.column(name) for name in one.schema.names]
    time = np.asarray(columns[0])
    span = int(time[-1]) + 1_000_000
    batches = [
        RecordBatch.from_arrays([Array.from_numpy(time + i * span), *columns[1:]], schema=one.schema)
        for i in range(COPIES)
    ]
    plain, out = folder / "plain.parquet", folder / "long.parquet"
    write_parquet(Table.from_batches(batches), str(plain))
    trace.convert(plain, out)
    return out


def null(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """The engine alone."""
    need("fio")
    long = repeated(folder)
    model = folder / "model.mdh"
    ours("model", "fit", long, "-o", model)
    peer = ["--ioengine=null", "--rw=randread", "--bs=4k", "--size=64g", f"--runtime={args.seconds}"]

    def each(*words: object) -> Callable[[], float]:
        def run() -> float:
            found = ours(*words, "--on", "null:", cpu=args.cpu)
            return float(found["elapsed_ns"] / found["requests"])

        return run

    found = rounds(
        args.rounds,
        {
            "fio": lambda: 1e9 / fio(*peer, "--time_based", "--norandommap", cpu=args.cpu)["read"]["iops"],
            "uniform": each("run", "randread", "--duration", f"{args.seconds}s"),
            "trace": each("replay", long, "--pace", "max"),
            "model": each("run", model, "--pace", "max", "--draw-meanwhile"),
        },
    )
    yield Measured("uniform", found["uniform"], found["fio"])
    yield Measured("model", [1e3 / ns for ns in found["model"]])


def beside(
    args: argparse.Namespace, peer: list[str], mine: list[str], before: Callable[[], object]
) -> dict[str, list[float]]:
    """Random reads a second by system calls and by io_uring, ours and fio's."""
    peer = [*peer, f"--runtime={args.seconds}", "--time_based", "--norandommap"]

    def theirs(*words: str) -> float:
        before()
        return float(fio(*peer, *words, cpu=args.cpu)["read"]["iops"])

    def us(backend: str, depth: int) -> float:
        before()
        how = ["--duration", f"{args.seconds}s", "--backend", backend, "--depth", depth]
        found = ours(*mine, *how, cpu=args.cpu)
        print(f"CPU {cpu_ns(found):.0f} ns a request", end=" ", flush=True)
        return float(found["ops_per_s"])

    uring = ["--ioengine=io_uring", "--iodepth=32"]
    best = max(URING, key=lambda extra: theirs(*uring, *extra))
    print("fio's best:", *best)
    return rounds(
        args.rounds,
        {
            "fio sync": lambda: theirs("--ioengine=psync"),
            "sync": lambda: us("sync", 1),
            "fio uring": lambda: theirs(*uring, *best),
            "uring": lambda: us("io_uring", 32),
        },
    )


def written(file: Path, size: int) -> None:
    """Fills a file or device with random data."""
    with file.open("r+b" if file.exists() else "wb") as out:
        for _ in range(size >> 20):
            out.write(os.urandom(1 << 20))
        out.flush()
        os.fsync(out.fileno())


def cache(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """4 KiB random reads from the page cache."""
    need("fio")
    file = folder / "cached"
    written(file, FILE)
    peer = [f"--filename={file}", f"--size={FILE}", "--rw=randread", "--bs=4k", "--invalidate=0"]
    # Read anew before each: something else may have dropped the caches.
    found = beside(args, peer, ["run", "randread", "--on", str(file), "--cache", "none"], file.read_bytes)
    yield from (Measured(name, found[name], found[f"fio {name}"]) for name in ("sync", "uring"))


def direct(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """4 KiB direct random reads of a loop device."""
    need("fio", root=True)
    with loop(folder / "image", IMAGE) as device:
        written(Path(device), IMAGE)
        peer = [f"--filename={device}", f"--size={IMAGE}", "--rw=randread", "--bs=4k", "--direct=1"]
        found = beside(args, peer, ["run", "randread", "--on", device, "--direct"], lambda: None)
    yield Measured("direct", found["uring"], found["fio uring"])


def drift(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """An open loop on all CPUs, and on one."""
    words = ["run", "randread", "--on", "null:", "--rate", "50000", "--duration", "60s"]
    slopes = [ours(*words, cpu=cpu)["lateness"]["slope_ns_per_s"] for cpu in (None, args.cpu)]
    yield Measured("drift", [abs(slope) for slope in slopes])


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=int, default=3, help="of a run [%(default)s]")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))


if __name__ == "__main__":
    parts = {"null": null, "cache": cache, "direct": direct, "drift": drift}
    main(__doc__, FIGURES, parts, options=options)
