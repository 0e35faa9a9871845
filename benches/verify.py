"""What verification costs, beside fio's: direct I/O to a loop device, with and without it.

    sudo .venv/bin/python benches/verify.py [--rounds 15] [--seconds 0.4]

Runs of one load differ by as much as verification costs, so there are many short ones: each round has every
kind of run once, in an order by chance. A value is what a round with ``--verify`` keeps of the same loads
without: the geometric mean of reads, writes and both. fio writes blocks with crc32c headers
(``verify=crc32c``) and reads what it has written so (reads and writes only); it keeps no generations.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import geometric_mean

from _common import Figure, Measured, Target, call, fio, loop, main, need, ours

FIGURES = {
    block: Figure(
        f"--verify, {block.replace('k', ' KiB')} direct: kept", "%", Target(at_least=least), "fio crc32c"
    )
    for block, least in (("4k", 70), ("128k", 90))
}
SIZE = 512 << 20
LOADS = {"read": 1.0, "write": 0.0, "both": 0.5}
DEPTHS = {"4k": 32, "128k": 8}


def mine(device: str, block: str, load: str, seconds: float, *options: str) -> float:
    """Requests per second of ours."""
    words = ["run", "randrw", "--on", device, "--size", SIZE, "--bs", block, "--direct", "--duration"]
    words += [f"{seconds}s", "-D", f"reads={LOADS[load]}", "--depth", DEPTHS[block]]
    found = ours(*words, "--allow-destroy", device, *options)
    if options and found["verified"]["wrong"]:
        sys.exit(f"{device}: {found['verified']}")
    return float(found["ops_per_s"])


def theirs(device: str, block: str, load: str, seconds: float, verify: bool) -> float:
    """Requests per second of fio."""
    words = [f"--filename={device}", f"--size={SIZE}", f"--bs={block}", "--direct=1", "--ioengine=io_uring"]
    words.append(f"--iodepth={DEPTHS[block]}")
    if verify:
        words += ["--verify=crc32c", "--do_verify=0", "--verify_fatal=1", "--verify_state_save=0"]
        if load == "read":
            fio(*words, "--rw=write")
    job = fio(*words, f"--rw=rand{load}", f"--runtime={1000 * seconds:.0f}ms", "--time_based")
    return float(job[load]["iops"])


def on(device: str, block: str, args: argparse.Namespace) -> dict[str, list[float]]:
    """What each round keeps, in percent: ours, and fio's."""
    runs = {}
    for load in LOADS:
        runs[load, "ours", False] = lambda n=load: mine(device, block, n, args.seconds)
        runs[load, "ours", True] = lambda n=load: mine(device, block, n, args.seconds, "--verify")
        if load != "both":
            for verify in (False, True):
                how = (device, block, load, args.seconds, verify)
                runs[load, "fio", verify] = lambda how=how: theirs(*how)  # type: ignore[misc]
    kept: dict[str, list[float]] = {"ours": [], "fio": []}
    for _ in range(args.rounds):
        found = {key: runs[key]() for key in random.sample(list(runs), len(runs))}
        for side, ratios in kept.items():
            loads = [load for load, of, verify in found if of == side and verify]
            each = [found[load, side, True] / found[load, side, False] for load in loads]
            ratios.append(100 * geometric_mean(each))
        print(block, *(f"{side} {ratios[-1]:.1f}" for side, ratios in kept.items()), file=sys.stderr)
    return kept


def kept(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Both sizes, the image on disk and in memory: rounds of both count."""
    need("fio", root=True)
    found: dict[str, dict[str, list[float]]] = {block: {"ours": [], "fio": []} for block in DEPTHS}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        for place in (folder, Path(memory)):
            with loop(place / "image", SIZE) as device:
                call("dd", "if=/dev/urandom", f"of={device}", "bs=1M", f"count={SIZE >> 20}")
                for block, sides in found.items():
                    for side, values in on(device, block, args).items():
                        sides[side] += values
    yield from (Measured(block, sides["ours"], sides["fio"]) for block, sides in found.items())


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=0.4, help="of a run [%(default)s]")


if __name__ == "__main__":
    main(__doc__, FIGURES, {"kept": kept}, rounds=15, options=options)
