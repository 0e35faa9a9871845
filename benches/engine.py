"""The engine beside fio: cost on null, 4 KiB reads from the page cache and of a loop device, drift.

    .venv/bin/python benches/engine.py [--rounds 5] [--seconds 3] [--cpu 1] [--only null cache direct drift]
        [--scratch DIR]

Every load runs pinned to one CPU by taskset, its threads included; rounds are interleaved, so that
both sides meet the same machine. Prints Markdown tables of medians and ranges.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _common import ROOT, loadstone, machine, spread, table

import loadstone as package
from loadstone import model as package_model
from loadstone import trace

FILE = 256 << 20
IMAGE = 2 << 30
# The capture is repeated so often that a run at full speed takes about a second.
COPIES = 60
# A model that knows nothing of earlier requests but the last.
PLAIN = ["observed:reuse", "observed:resume", "observed:run"]


def call(command: list[str], cpu: int) -> str:
    """Output of a command pinned to one CPU; a failure ends the benchmark."""
    done = subprocess.run(["taskset", "-c", str(cpu), *command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Side(NamedTuple):
    """One run: what the clock says, and what it cost. The latter hardly minds a busy machine."""

    wall: float
    """Nanoseconds of the run per request."""
    cpu: float
    """Nanoseconds of CPU time per request."""


def ours(words: list[str], cpu: int) -> Side:
    """A run of Loadstone."""
    s = json.loads(call([str(loadstone()), *words, "--json"], cpu))
    spent = s["cpu"]["user_ns"] + s["cpu"]["system_ns"]
    return Side(s["elapsed_ns"] / s["requests"], spent / s["requests"])


def fio(words: list[str], cpu: int) -> Side:
    """A run of fio."""
    out = call(["fio", "--name=x", "--output-format=json", "--time_based", "--norandommap", *words], cpu)
    job = json.loads(out[out.index("{") :])["jobs"][0]
    spent = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1e6
    return Side(1e9 / job["read"]["iops"], spent / job["read"]["total_ios"])


def rounds(
    n: int, sides: dict[str, Callable[[], Side]], before: Callable[[], object] = lambda: None
) -> dict[str, list[Side]]:
    """Every side once per round, in turn; ``before`` is called before each."""
    found: dict[str, list[Side]] = {name: [] for name in sides}
    for i in range(n):
        for name, run in sides.items():
            before()
            found[name].append(run())
            last = found[name][-1]
            print(f"round {i + 1} {name}: {last.wall:.1f} ns, CPU {last.cpu:.1f} ns", file=sys.stderr)
    return found


def cells(mine: list[Side], peer: list[Side] | None) -> list[str]:
    """Requests per second, CPU time per request, and how many times better than the peer's both are."""
    out = [spread([1e9 / side.wall for side in mine], 0), spread([side.cpu for side in mine], 0)]
    if peer is None:
        return [*out, "1", "1"]
    pairs = list(zip(mine, peer, strict=True))
    return [*out, spread([b.wall / a.wall for a, b in pairs]), spread([b.cpu / a.cpu for a, b in pairs])]


HEAD = ["requests/s", "CPU ns per request", "speed / fio's", "fio's CPU / ours"]


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


def null(folder: Path, args: argparse.Namespace) -> None:
    """Nanoseconds per request of the engine alone."""
    long = repeated(folder)
    model = folder / "long.mdh"
    package_model.fit(long).save(model)
    plain = folder / "plain.mdh"
    package_model.fit(long, dimensions=PLAIN).save(plain)
    seconds = f"{args.seconds}s"
    commands = {
        "uniform": ["run", "randread", "--on", "null:", "--duration", seconds],
        "trace cursor": ["replay", str(long), "--on", "null:", "--pace", "max"],
        "model sampler": ["run", str(model), "--on", "null:", "--pace", "max"],
        "the same without locality": ["run", str(plain), "--on", "null:", "--pace", "max"],
    }
    peer = ["--ioengine=null", "--rw=randread", "--bs=4k", "--size=64g", f"--runtime={args.seconds}"]

    sides: dict[str, Callable[[], Side]] = {"fio": lambda: fio(peer, args.cpu)}
    for name, words in commands.items():
        sides[name] = lambda words=words: ours(words, args.cpu)  # type: ignore[misc]
    found = rounds(args.rounds, sides)

    def wall(name: str) -> str:
        return spread([side.wall for side in found[name]], 0)

    lines = [
        [
            "fio null",
            f"`fio {' '.join(peer)} --time_based --norandommap`",
            wall("fio"),
            *cells(found["fio"], None),
        ]
    ]
    for name, words in commands.items():
        command = " ".join(w.replace(str(folder) + "/", "") for w in words)
        lines.append([name, f"`loadstone {command}`", wall(name), *cells(found[name], found["fio"])])
    print("\n### null: one CPU for everything, all histograms on\n")
    print(table(["source", "command", "ns per request", *HEAD], lines))


# What of fio's io_uring options helps differs by machine; the best of these is the peer.
URING = [
    [],
    ["--registerfiles=1"],
    ["--registerfiles=1", "--fixedbufs=1"],
    ["--registerfiles=1", "--fixedbufs=1", "--iodepth_batch_submit=8", "--iodepth_batch_complete_max=8"],
    ["--registerfiles=1", "--iodepth_batch_submit=8", "--iodepth_batch_complete_max=8"],
    ["--registerfiles=1", "--fixedbufs=1", "--iodepth_batch_submit=32", "--iodepth_batch_complete_max=32"],
    ["--registerfiles=1", "--iodepth_batch_submit=32", "--iodepth_batch_complete_max=32"],
]


def beside(
    args: argparse.Namespace,
    peer: list[str],
    mine: list[str],
    before: Callable[[], object],
    mapped: bool = False,
) -> str:
    """A table of random reads by fio and by Loadstone: by system calls, io_uring and, if asked, mapped."""
    psync = [*peer, "--ioengine=psync"]
    uring = [*peer, "--ioengine=io_uring", "--iodepth=32"]

    def mine_at(backend: str, depth: int) -> Side:
        words = [*mine, "--duration", f"{args.seconds}s", "--backend", backend, "--depth", str(depth)]
        return ours(words, args.cpu)

    sides: dict[str, Callable[[], Side]] = {
        "fio psync": lambda: fio(psync, args.cpu),
        "sync": lambda: mine_at("sync", 1),
    }
    for extra in URING:
        sides[" ".join(["fio io_uring", *extra])] = lambda extra=extra: fio([*uring, *extra], args.cpu)  # type: ignore[misc]
    sides["io_uring"] = lambda: mine_at("io_uring", 32)
    if mapped:
        sides["fio mmap"] = lambda: fio([*peer, "--ioengine=mmap"], args.cpu)
        sides["mmap"] = lambda: mine_at("mmap", 1)
    found = rounds(args.rounds, sides, before)
    peers = [name for name in sides if name.startswith("fio io_uring")]
    best = min(peers, key=lambda name: statistics.median(side.wall for side in found[name]))

    def shown(tool: str, words: list[str]) -> str:
        return f"`{tool} {' '.join(Path(w).name if w.startswith('/') else w for w in words)}`"

    def fio_command(words: list[str]) -> str:
        words = [re.sub("filename=.*/", "filename=", word) for word in words]
        return shown("fio", [*words, "--time_based", "--norandommap"])

    def our_command(backend: str, depth: int) -> str:
        return shown("loadstone", [*mine, "--backend", backend, "--depth", str(depth)])

    lines = [
        ["fio psync", fio_command(psync), *cells(found["fio psync"], None)],
        ["sync", our_command("sync", 1), *cells(found["sync"], found["fio psync"])],
    ]
    for name, extra in zip(peers, URING, strict=True):
        label, figures = "fio io_uring", cells(found[name], None)
        if name == best:
            label += ", its best"
        else:
            figures[2:] = ["", ""]
        lines.append([label, fio_command([*uring, *extra]), *figures])
    lines.append(["io_uring", our_command("io_uring", 32), *cells(found["io_uring"], found[best])])
    if mapped:
        lines.append(["fio mmap", fio_command([*peer, "--ioengine=mmap"]), *cells(found["fio mmap"], None)])
        lines.append(["mmap", our_command("mmap", 1), *cells(found["mmap"], found["fio mmap"])])
    return table(["engine", "command", *HEAD], lines)


def written(file: Path, size: int) -> Path:
    """A file of random data that is on the disk."""
    with file.open("wb") as out:
        for _ in range(size >> 20):
            out.write(os.urandom(1 << 20))
        out.flush()
        os.fsync(out.fileno())
    return file


def cache(folder: Path, args: argparse.Namespace) -> None:
    """4 KiB random reads from the page cache."""
    file = written(folder / "cached", FILE)
    peer = [f"--filename={file}", f"--size={FILE}", "--rw=randread", "--bs=4k", "--invalidate=0"]
    mine = ["run", "randread", "--on", str(file), "--cache", "none"]
    # Read anew before each: something else may have dropped the caches.
    found = beside(args, [*peer, f"--runtime={args.seconds}"], mine, file.read_bytes, mapped=True)
    print(f"\n### 4 KiB random reads of a file of {FILE >> 20} MiB in the page cache, one CPU\n")
    print(found)


def direct(folder: Path, args: argparse.Namespace) -> None:
    """4 KiB direct random reads of a loop device."""
    if os.geteuid():
        sys.exit("the part direct attaches a loop device, for which one must be root")
    image = written(folder / "image", IMAGE)
    attach = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
    device = subprocess.run(attach, capture_output=True, text=True, check=True).stdout.strip()
    try:
        peer = [f"--filename={device}", f"--size={IMAGE}", "--rw=randread", "--bs=4k", "--direct=1"]
        mine = ["run", "randread", "--on", device, "--direct"]
        found = beside(args, [*peer, f"--runtime={args.seconds}"], mine, lambda: None)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
    print(f"\n### 4 KiB direct random reads of a loop device, --direct-io=on, {IMAGE >> 30} GiB, one CPU\n")
    print(found)


def drift(_: Path, args: argparse.Namespace) -> None:
    """An open loop of 50,000 requests per second for a minute."""
    words = ["run", "randread", "--on", "null:", "--rate", "50000", "--duration", f"{args.drift}s", "--json"]
    lines = []
    for pin in ([], ["taskset", "-c", str(args.cpu)]):
        command = [*pin, str(loadstone()), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        s = json.loads(done.stdout)
        late, cpu = s["lateness"], s["cpu"]
        lines.append(
            [
                "one CPU" if pin else "all CPUs",
                f"{s['ops_per_s']:,.1f}",
                f"{late['p50_ns'] / 1e3:.2f} us",
                f"{late['p99_ns'] / 1e3:.2f} us",
                f"{late['max_ns'] / 1e6:.2f} ms",
                f"{late['slope_ns_per_s']:+.1f} ns/s",
                f"{(cpu['user_ns'] + cpu['system_ns']) / 1e9:.1f} s",
            ]
        )
    print(f"\n### Drift: `loadstone {' '.join(words)}`\n")
    head = ["may use", "requests/s", "lateness p50", "p99", "max", "slope", "CPU time"]
    print(table(head, lines))


def main() -> None:
    """Runs the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--drift", type=int, default=60)
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--scratch", default="/var/tmp", help="where files are made (default: %(default)s)")
    parts = {"null": null, "cache": cache, "direct": direct, "drift": drift}
    parser.add_argument("--only", nargs="*", choices=parts, default=list(parts))
    args = parser.parse_args()
    if not shutil.which("fio"):
        sys.exit("fio is not installed (apt-get install fio)")
    print(
        f"Loadstone {package.__version__} on {machine()}; "
        f"{args.rounds} interleaved rounds of {args.seconds} s"
    )
    with tempfile.TemporaryDirectory(dir=args.scratch) as folder:
        for name in args.only:
            parts[name](Path(folder), args)


if __name__ == "__main__":
    main()
