"""What verification costs, beside fio's: direct I/O to a loop device, with and without it.

    sudo .venv/bin/python benches/verify.py [--rounds 15] [--seconds 0.4] [--scratch DIR]
        [--only marks] [--image disk] [--bs 128k]

Runs of one load differ by as much as verification costs, so there are many short ones: each round has every
kind of run once, in an order by chance. Throughput is relative to that of the same runs without verification:
the ratio of the medians, and where 95 % of the ratios lie that resampled rounds give. ``again`` is
the run without once more, so that one sees what chance does. fio writes blocks with crc32c headers
(``verify=crc32c``) and reads what it has written so; it keeps no order of generations.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from _common import loadstone, machine, spread, table
from faithfulness import loop

SIZE = 512 << 20
LOADS = {"read": 1.0, "write": 0.0, "both": 0.5}


def output(words: list[str | Path]) -> str:
    """Output of a command; a failure ends the benchmark."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def ours(device: str, block: int, reads: float, seconds: float, options: list[str]) -> tuple[float, float]:
    """Requests per second and CPU microseconds per request."""
    depth = 32 if block == 4096 else 8
    words = [loadstone(), "run", "randrw", "--on", device, "--size", str(SIZE), "-D", f"bs={block}"]
    words += [
        "-D",
        f"reads={reads}",
        "--direct",
        "--depth",
        str(depth),
        "--duration",
        f"{seconds}s",
        "--json",
    ]
    found = json.loads(output([*words, "--allow-destroy", device, *options]))
    if "--verify" in options and found["verified"]["wrong"]:
        sys.exit(f"{device}: {found['verified']}")
    cpu = found["cpu"]["user_ns"] + found["cpu"]["system_ns"]
    return found["ops_per_s"], cpu / found["requests"] / 1e3


def fio(device: str, block: int, reads: float, seconds: float, verify: bool) -> float:
    """Requests per second."""
    words = ["fio", "--name=x", f"--filename={device}", f"--size={SIZE}", f"--bs={block}", "--direct=1"]
    words += ["--ioengine=io_uring", f"--iodepth={32 if block == 4096 else 8}", "--output-format=json"]
    if verify:
        words += ["--verify=crc32c", "--do_verify=0", "--verify_fatal=1", "--verify_state_save=0"]
        if reads:
            output([*words, "--rw=write"])
    way = "randread" if reads else "randwrite"
    out = output([*words, f"--rw={way}", f"--runtime={1000 * seconds:.0f}ms", "--time_based"])
    job = json.loads(out[out.index("{") :])["jobs"][0]
    return float(job["read" if reads else "write"]["iops"])


def relative(values: list[float], base: list[float]) -> str:
    """Ratio of the medians, and where 95 % of those of resampled rounds lie."""
    rng = np.random.default_rng(1)
    rounds = rng.integers(0, len(base), (2000, len(base)))
    ratios = np.median(np.array(values)[rounds], axis=1) / np.median(np.array(base)[rounds], axis=1)
    low, high = np.percentile(ratios, (2.5, 97.5))
    return f"{statistics.median(values) / statistics.median(base):.2f} ({low:.2f}-{high:.2f})"


def row(
    device: str, block: int, load: str, given: argparse.Namespace, kinds: dict[str, list[str]]
) -> list[str]:
    """What one load gives: requests per second, what each kind keeps of it, CPU of marks, and fio's."""
    rates: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    reads = LOADS[load]

    def once(name: str, options: list[str]) -> None:
        rate, us = ours(device, block, reads, given.seconds, options)
        rates.setdefault(name, []).append(rate)
        cpu.setdefault(name, []).append(us)

    def peer(verify: bool) -> None:
        rates.setdefault(f"fio {verify}", []).append(fio(device, block, reads, given.seconds, verify))

    runs = [lambda: once("again", [])]
    for name, options in kinds.items():
        # Content alone has its cost, too.
        runs.append(lambda name=name, options=options: once(f"{name} without", options[1:]))
        runs.append(lambda name=name, options=options: once(name, options))
    if load != "both":
        runs += [lambda: peer(False), lambda: peer(True)]
    for _ in range(given.rounds):
        for run in random.sample(runs, len(runs)):
            run()
    marks = "marks" in kinds
    more = [us - base for us, base in zip(cpu["marks"], cpu["marks without"], strict=True)] if marks else []
    return [
        spread(rates["again"], 0),
        relative(rates["again"], rates["marks without"]) if marks else "-",
        *(relative(rates[name], rates[f"{name} without"]) for name in kinds),
        f"{statistics.median(more):.2f}" if marks else "-",
        relative(rates["fio True"], rates["fio False"]) if load != "both" else "-",
    ]


def main() -> None:
    """Prints one table for images on the disk and in memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.4, help="of a run")
    parser.add_argument("--only", action="append", help="marks, which tell CPU, or another column, too [all]")
    parser.add_argument("--image", choices=("disk", "memory"), help="where [both]")
    parser.add_argument("--bs", choices=("4k", "128k"), help="of what size [both]")
    parser.add_argument("--scratch", type=Path, default=Path(os.environ.get("TMPDIR", "/var/tmp")))
    args = parser.parse_args()
    kinds = {
        "marks": ["--verify"],
        "made again": ["--verify", "--content", "unique"],
        "dedupe 2, compress 2": ["--verify", "--dedupe", "2", "--compress", "2"],
    }
    kinds = {name: options for name, options in kinds.items() if name in (args.only or kinds)}
    places = {"disk": args.scratch, "memory": Path("/dev/shm")}
    blocks = {"4k": 4096, "128k": 128 << 10}
    rows = []
    for image in [args.image] if args.image else places:
        folder = tempfile.TemporaryDirectory(dir=places[image])
        with folder as at, loop(Path(at) / "image", SIZE) as device:
            for block in [args.bs] if args.bs else blocks:
                for load in LOADS:
                    found = row(device, blocks[block], load, args, kinds)
                    rows.append([image, f"{blocks[block] >> 10} KiB", load, *found])
                    print(rows[-1], file=sys.stderr)
    head = ["image", "requests", "load", "requests/s", "again", *kinds]
    print(machine() + "\n")
    print(table([*head, "CPU of marks, us a request", "fio with crc32c"], rows))


if __name__ == "__main__":
    main()
