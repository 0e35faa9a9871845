"""Personalities (docs/reference/workloads.md): whether their mixes are those that are written down.

sudo .venv/bin/python benches/personalities.py
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from _common import Figure, Measured, Target, call, ext4, loadstone, main, ours

from loadstone.personalities import find, names
from loadstone.wml._program import ACTS

FIGURES = {
    "mix": Figure(
        "personalities: share of a flowop in the mix, off by", "points", Target(at_most=1, of="every")
    ),
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


if __name__ == "__main__":
    main(__doc__, FIGURES, {"mixes": mixes})
