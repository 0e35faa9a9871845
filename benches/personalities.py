"""Personalities (docs/reference/workloads.md): their mixes, and dbench and fs_mark at the same work.

    sudo .venv/bin/python benches/personalities.py [--only mixes dbench fsmark] [--rounds 3] [--seconds 20]
        [--clients 4] [--files 50000]

All run on ext4 of a loop device, which is made anew for each run that is compared.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from _common import Figure, Measured, Target, call, ext4, loadstone, main, need, ours, rounds

from loadstone.personalities import find, names
from loadstone.wml._program import ACTS

FIGURES = {
    "mix": Figure(
        "personalities: share of a flowop in the mix, off by", "points", Target(at_most=1, of="every")
    ),
    "dbench": Figure("dbench-like: requests of four clients", "requests/s", None, "dbench"),
    "empty": Figure("files made in one directory, empty", "files/s", None, "fs_mark"),
}
FEW = 1000
"""Requests of a process from which its mix is judged: threads stop amid their loops."""
# What would take more room or time than the mix needs.
SMALLER = {
    "videoserver": ["--size", "2g"],
    "oltp-sync": ["--size", "1g"],
    "mail-server-like": ["--size", "1g"],
    "postmark": ["-D", "nfiles=20000", "-D", "transactions=200000"],
}


def run(workload: str, on: Path, *words: str) -> dict[str, Any]:
    """The summary of a run, with the flowop of each step."""
    plan = json.loads(call(loadstone(), "run", workload, "--on", on, "--yes", *words, "--dry-run"))
    found = ours("run", workload, "--on", on, "--yes", *words)
    found["flowops"] = {
        worker["group"]: dict(flowops(worker["source"]["ops"], found["steps"])) for worker in plan["workers"]
    }
    shutil.rmtree(on)
    return found


def flowops(ops: Sequence[Mapping[str, Any]], steps: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of steps and what flowops they are."""
    words = {act: word for word, act in ACTS.items()}
    for op in ops:
        if op["act"] == "group":
            yield from flowops(op["ops"], steps)
        elif op["name"] in steps:
            yield op["name"], words[op["act"]]


def mixes(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Each personality that models something; the largest difference of each process."""
    off = []
    with ext4(folder, 8 << 30) as disk:
        for name in (name for name in names() if not name.startswith("micro-")):
            found = run(name, disk / "d", "--duration", f"{args.seconds}s", *SMALLER.get(name, []))
            rate = found["requests"] / found["elapsed_ns"] * 1e9
            for loop in find(name).mix:
                steps = found["flowops"].get(loop.process, next(iter(found["flowops"].values())))
                done: Counter[str] = Counter()
                for step, flowop in steps.items():
                    done[flowop] += found["steps"][step]["count"]
                total = sum(done[flowop] for flowop, _ in loop.counts)
                if total < FEW:
                    continue
                shares = {of: (share, done[of] / total) for of, share in loop.shares().items()}
                off.append(100 * max(abs(a - b) for a, b in shares.values()))
                told = ", ".join(f"{of} {100 * a:.1f}/{100 * b:.1f}" for of, (a, b) in shares.items())
                print(f"{name}: {rate:,.0f}/s, {loop.process} {total:,}: {told}", file=sys.stderr)
    yield Measured("mix", off)


def dbench(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """The same clients, by dbench from its load file and by dbench-like, with as many files for each."""
    need("dbench", root=True)

    def theirs() -> float:
        with ext4(folder, 8 << 30) as disk:
            out = call("dbench", "-t", f"{args.seconds:.0f}", "-D", disk, args.clients)
        told = re.findall(r"^ +\w+ +(\d+) +[\d.]+ +[\d.]+$", out, re.M)
        return sum(map(int, told)) / args.seconds

    def mine() -> float:
        files = ["-D", f"nclients={args.clients}", "-D", f"nfiles={170 * args.clients}"]
        with ext4(folder, 8 << 30) as disk:
            found = run("dbench-like", disk / "d", "--duration", f"{args.seconds}s", *files)
        return float(found["requests"] / found["elapsed_ns"] * 1e9)

    found = rounds(args.rounds, {"dbench": theirs, "dbench-like": mine})
    yield Measured("dbench", found["dbench-like"], found["dbench"])


def fsmark(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Empty files made in one directory by one thread."""
    need("fs_mark", root=True)

    def theirs() -> float:
        with ext4(folder, 8 << 30) as disk:
            (disk / "f").mkdir()
            words = ["-d", disk / "f", "-n", args.files, "-s", 0, "-S", 0, "-k"]
            out = call("fs_mark", *words, "-l", folder / "fs_mark.log")
        line = re.search(r"^\s+\d+\s+\d+\s+\d+\s+([\d.]+)\s+\d+\s*$", out, re.M)
        if line is None:
            sys.exit(f"fs_mark printed no line of results:\n{out}")
        return float(line[1])

    def mine() -> float:
        with ext4(folder, 8 << 30) as disk:
            found = run(
                "micro-create", disk / "d", "-D", f"nfiles={args.files}", "-D", "meandirwidth=1000000"
            )
        return float(found["steps"]["create"]["count"] / found["elapsed_ns"] * 1e9)

    found = rounds(args.rounds, {"fs_mark": theirs, "micro-create": mine})
    yield Measured("empty", found["micro-create"], found["fs_mark"])


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=20, help="of a run [%(default)s]")
    parser.add_argument("--clients", type=int, default=4, help="of dbench [%(default)s]")
    parser.add_argument("--files", type=int, default=50_000, help="made [%(default)s]")


if __name__ == "__main__":
    main(__doc__, FIGURES, {"mixes": mixes, "dbench": dbench, "fsmark": fsmark}, rounds=3, options=options)
