"""Open loops: how even a million arrivals a second are, and whether issued gaps follow their law.

    .venv/bin/python benches/arrivals.py [--only windows gaps] [--rounds 3] [--seconds 10]

On null:, beside fio's null engine and a loop in C that never sleeps and only looks at the clock
(bare_arrivals.c): what that loop misses the machine takes away. Issue counts, not intention: windows are
those of completion, which on null: is within a microsecond of issue, and gaps are those between the issue
times of the full log. Their distance from the law is the Kolmogorov-Smirnov statistic D.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from _common import Figure, Measured, Target, call, main, need, ours, rounds
from numpy.typing import NDArray

from loadstone.bundle import Bundle
from loadstone.bundle import table as columns

Law = Callable[[NDArray[np.float64]], NDArray[np.float64]]

RATE, WINDOW = 1_000_000, 0.1
SLOWER = 50_000
ON, OFF = 0.002, 0.006
FIGURES = {
    "windows": Figure("a million arrivals/s: worst window of 100 ms off by", "%", Target(at_most=1), "fio"),
    "poisson": Figure("Poisson gaps at 50,000/s: D", "", Target(at_most=0.01), "a loop in C"),
    "bursts": Figure("on-off gaps at 50,000/s: D", "", Target(at_most=0.01), "a loop in C"),
}


def interrupted(rate: float, on: float, off: float) -> Law:
    """Gaps of a Poisson process that is on and off, in mean gaps: two exponentials (Kuczura 1973)."""
    busy, ends, begins = (on + off) / on, 1 / (on * rate), 1 / (off * rate)
    total = busy + ends + begins
    root = math.sqrt(total * total - 4 * busy * begins)
    fast, slow = (total + root) / 2, (total - root) / 2
    share = (busy - slow) / (fast - slow)
    return lambda x: 1 - share * np.exp(-fast * x) - (1 - share) * np.exp(-slow * x)


LAWS: dict[str, tuple[str, Law, tuple[object, ...]]] = {
    "poisson": ("poisson", lambda x: 1 - np.exp(-x), ()),
    "bursts": (f"onoff:{ON},{OFF}", interrupted(SLOWER, ON, OFF), (ON, OFF)),
}


def distance(gaps: NDArray[np.float64], law: Law) -> float:
    """The Kolmogorov-Smirnov statistic D of gaps in mean gaps."""
    n, expected = len(gaps), law(np.sort(gaps))
    steps = np.arange(n + 1) / n
    return float(max((expected - steps[:-1]).max(), (steps[1:] - expected).max()))


def load(rate: int, seconds: int, *words: object) -> dict[str, object]:
    """A run of uniform reads on nothing, as its summary."""
    return ours("run", "randread", "--on", "null:", "--rate", rate, "--duration", f"{seconds}s", *words)


def windows(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Constant arrivals, counted in windows of 100 ms; percent that the worst is off."""
    need("fio")
    bundle, log = folder / "a.bundle", folder / "fio"
    job = ["--name=x", "--ioengine=null", "--filename=x", "--size=1t", "--rw=randread", "--bs=4k", "--thread"]
    pace = [f"--rate_iops={RATE}", "--time_based", f"--runtime={args.seconds}", "--norandommap"]

    def mine() -> float:
        load(RATE, args.seconds, "--interval", "100ms", "--out", bundle, "--force")
        counts, _ = Bundle.read(bundle).ops.by_interval()
        # What completes just after the end has a window to itself.
        return worst(counts[: round(args.seconds / WINDOW)] / (RATE * WINDOW))

    def theirs() -> float:
        call("fio", *job, *pace, f"--output={folder}/o", f"--write_iops_log={log}", "--log_avg_msec=100")
        return worst(np.loadtxt(f"{log}_iops.1.log", delimiter=",", usecols=1) / RATE)

    def worst(shares: NDArray[np.float64]) -> float:
        return float(100 * np.abs(shares - 1).max())

    found = rounds(args.rounds, {"loadstone": mine, "fio": theirs})
    yield Measured("windows", found["loadstone"], found["fio"])


def gaps(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Issued gaps at 50,000 arrivals/s against the law that was asked for."""
    need("cc")
    program, log = folder / "bare", folder / "log.parquet"
    call("cc", "-O2", "-o", program, Path(__file__).with_name("bare_arrivals.c"), "-lm")
    seeds = iter(range(1, sys.maxsize))

    def mine(name: str) -> float:
        log.unlink(missing_ok=True)
        arrival, law, _ = LAWS[name]
        found = load(SLOWER, args.seconds, "--arrival", arrival, "--log", log, "--seed", next(seeds))
        if found["log"]["dropped"]:  # type: ignore[index]
            sys.exit("the log lost rows, so its gaps are not those that were issued")
        times = np.sort(columns.read(log, ["time"])["time"])
        return distance(np.diff(times) * (SLOWER / 1e9), law)

    def loop(name: str) -> float:
        _, law, words = LAWS[name]
        command = [str(word) for word in (program, SLOWER, args.seconds, next(seeds), *words)]
        done = subprocess.run(command, capture_output=True, check=True)
        return distance(np.diff(np.frombuffer(done.stdout, dtype=np.int64)) * (SLOWER / 1e9), law)

    for name in LAWS:
        sides = {"loadstone": lambda name=name: mine(name), "loop": lambda name=name: loop(name)}
        found = rounds(args.rounds, sides)  # type: ignore[arg-type]
        yield Measured(name, found["loadstone"], found["loop"])


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=int, default=10, help="of a run [%(default)s]")


if __name__ == "__main__":
    main(__doc__, FIGURES, {"windows": windows, "gaps": gaps}, rounds=3, options=options)
