"""Open loops: how even a million arrivals a second are, and whether issued gaps follow their law.

    .venv/bin/python benches/arrivals.py [--rounds 3] [--seconds 10] [--only windows gaps]

On null:, beside fio's null engine. Issue counts, not intention: windows are those of completion, which on
null: is within a microsecond of issue, and gaps are those between the issue times of the full log. fio's own
log has whole microseconds, and so have its drawn gaps; a random part of one is added to each time, or the
rounding alone would fail the test. KS tests of many gaps reject the smallest of jitter, so samples of a
thousand are tested, too; a law that is kept is rejected in 5 % of these. What the machine itself takes away a
loop in C shows that never sleeps and only looks at the clock (bare_arrivals.c, where there is a C compiler).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _common import loadstone, machine, spread, table
from numpy.typing import NDArray

from loadstone.bundle import Bundle
from loadstone.bundle import table as columns

Law = Callable[[NDArray[np.float64]], NDArray[np.float64]]

RATE, WINDOW = 1_000_000, 0.1
SLOWER = 50_000
ON, OFF = 0.002, 0.006
SAMPLE, SAMPLES = 1000, 400
# 5 % point of the Kolmogorov distribution (Smirnov 1948).
CRITICAL = 1.3581


def hyper(variation: float) -> Law:
    """Two exponentials with balanced means."""
    share = 0.5 * (1 + math.sqrt((variation - 1) / (variation + 1)))
    return lambda x: 1 - share * np.exp(-2 * share * x) - (1 - share) * np.exp(-2 * (1 - share) * x)


def erlang(shape: int) -> Law:
    """Gamma of a whole shape and mean 1."""
    terms = [shape**k / math.factorial(k) for k in range(shape)]
    return lambda x: 1 - np.exp(-shape * x) * sum(term * x**k for k, term in enumerate(terms))


def interrupted(rate: float, on: float, off: float) -> Law:
    """Gaps of a Poisson process that is on and off, in mean gaps: two exponentials (Kuczura 1973)."""
    busy, ends, begins = (on + off) / on, 1 / (on * rate), 1 / (off * rate)
    total = busy + ends + begins
    root = math.sqrt(total * total - 4 * busy * begins)
    fast, slow = (total + root) / 2, (total - root) / 2
    share = (busy - slow) / (fast - slow)
    return lambda x: 1 - share * np.exp(-fast * x) - (1 - share) * np.exp(-slow * x)


LAWS: dict[str, Law] = {
    "poisson": lambda x: 1 - np.exp(-x),
    "gamma:4": erlang(4),
    "hyper:4": hyper(4),
    f"onoff:{ON},{OFF}": interrupted(SLOWER, ON, OFF),
}


def distance(sample: NDArray[np.float64], law: Law) -> float:
    """The Kolmogorov-Smirnov statistic D."""
    n, expected = len(sample), law(np.sort(sample))
    steps = np.arange(n + 1) / n
    return float(max((expected - steps[:-1]).max(), (steps[1:] - expected).max()))


def rejected(gaps: NDArray[np.float64], law: Law) -> float:
    """Share of samples of a thousand gaps that the test rejects at 5 %."""
    random = np.random.default_rng(1)
    found = (distance(random.choice(gaps, SAMPLE, replace=False), law) for _ in range(SAMPLES))
    return float(np.mean([d > CRITICAL / math.sqrt(SAMPLE) for d in found]))


def call(command: list[str]) -> str:
    """Output of a command; a failure ends the benchmark."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def ours(folder: Path, rate: int, seconds: int, *words: str) -> dict[str, object]:
    """A run of uniform reads on nothing, as its summary."""
    base = ["run", "randread", "--on", "null:", "--rate", str(rate), "--duration", f"{seconds}s", "--json"]
    return json.loads(call([str(loadstone()), *base, *words]))


def theirs(folder: Path, rate: int, seconds: int, *words: str) -> None:
    """The same by fio."""
    job = ["--name=x", "--ioengine=null", "--filename=x", "--size=1t", "--rw=randread", "--bs=4k", "--thread"]
    pace = [f"--rate_iops={rate}", "--time_based", f"--runtime={seconds}", "--norandommap"]
    call(["fio", *job, *pace, f"--output={folder / 'fio.out'}", *words])


def windows(folder: Path, args: argparse.Namespace) -> None:
    """Constant arrivals, counted in windows of 100 ms."""
    rows: dict[str, list[NDArray[np.float64]]] = {"loadstone": [], "fio rate_iops": []}
    cpu: list[float] = []
    for i in range(args.rounds):
        bundle = folder / f"{i}.bundle"
        summary = ours(folder, RATE, args.seconds, "--interval", "100ms", "--out", str(bundle))
        counts, _ = Bundle.read(bundle).ops.by_interval()
        # What completes just after the end has a window to itself.
        rows["loadstone"].append(counts[: round(args.seconds / WINDOW)] / (RATE * WINDOW))
        used = summary["cpu"]
        cpu.append((used["user_ns"] + used["system_ns"]) / 1e9 / args.seconds)  # type: ignore[index]
        theirs(folder, RATE, args.seconds, f"--write_iops_log={folder / 'fio'}", "--log_avg_msec=100")
        found = np.loadtxt(folder / "fio_iops.1.log", delimiter=",", usecols=1)
        rows["fio rate_iops"].append(found / RATE)
    lines = []
    for name, rounds in rows.items():
        worst = [float(np.abs(one - 1).max()) for one in rounds]
        off = [float((np.abs(one - 1) > 0.01).mean()) for one in rounds]
        total = [float(one.mean()) for one in rounds]
        lines.append(
            [
                name,
                *(f"{spread([100 * share for share in v])} %" for v in (worst, off)),
                f"{100 * statistics.median(total):.3f} %",
            ]
        )
    print(f"\n### {RATE:,} arrivals/s in windows of 100 ms\n")
    print(table(["", "worst window off by", "windows off by more than 1 %", "mean"], lines))
    print(f"\nCPUs in use by loadstone: {statistics.median(cpu):.2f}.")


def issued(folder: Path, arrival: str, seconds: int, seed: int) -> NDArray[np.float64]:
    """Gaps between issues, in mean gaps, from the full log."""
    log = folder / "log.parquet"
    log.unlink(missing_ok=True)
    summary = ours(folder, SLOWER, seconds, "--arrival", arrival, "--log", str(log), "--seed", str(seed))
    if summary["log"]["dropped"]:  # type: ignore[index]
        sys.exit("the log lost rows, so its gaps are not those that were issued")
    times = columns.read(log, ["time"])["time"]
    return np.diff(np.sort(times)) * (SLOWER / 1e9)


def issued_by_fio(folder: Path, law: str, seconds: int, seed: int) -> NDArray[np.float64]:
    """The same from fio's log, whose microseconds are made continuous."""
    log = folder / "fio.log"
    theirs(folder, SLOWER, seconds, f"--rate_process={law}", f"--write_iolog={log}", f"--randseed={seed}")
    lines = (line.split() for line in log.read_text().splitlines())
    times = np.array([float(line[0]) for line in lines if len(line) > 2 and line[2] == "read"])
    times = np.sort(times + np.random.default_rng(2).random(len(times)))
    return np.diff(times) * (SLOWER / 1e6)


def bare(folder: Path) -> Callable[..., NDArray[np.float64]] | None:
    """The loop in C, which gives gaps as `issued` does; `None` without a compiler."""
    compiler, program = shutil.which("cc"), folder / "bare"
    if not compiler:
        return None
    call([compiler, "-O2", "-o", str(program), str(Path(__file__).with_name("bare_arrivals.c")), "-lm"])

    def gaps_of(seconds: int, seed: int, *words: object) -> NDArray[np.float64]:
        command = [str(word) for word in (program, SLOWER, seconds, seed, *words)]
        done = subprocess.run(command, capture_output=True, check=True)
        return np.diff(np.frombuffer(done.stdout, dtype=np.int64)) * (SLOWER / 1e9)

    return gaps_of


def gaps(folder: Path, args: argparse.Namespace) -> None:
    """Issued gaps at 50,000 arrivals/s against the law that was asked for."""
    found: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    loop, bursts = bare(folder), f"onoff:{ON},{OFF}"
    for seed in range(args.rounds):
        if loop:
            found.setdefault(("a loop in C", "poisson"), []).append(loop(args.seconds, seed))
            found.setdefault(("a loop in C", bursts), []).append(loop(args.seconds, seed, ON, OFF))
        for arrival in (*LAWS, "constant"):
            found.setdefault(("loadstone", arrival), []).append(issued(folder, arrival, args.seconds, seed))
            if arrival in ("poisson", "constant"):
                law = arrival.replace("constant", "linear")
                one = issued_by_fio(folder, law, args.seconds, seed)
                found.setdefault(("fio", arrival), []).append(one)
    lines, even = [], []
    for (who, arrival), rounds in found.items():
        if arrival == "constant":
            near = np.abs(np.concatenate(rounds) - 1)
            even.append([who, *(f"{100 * (near <= width).mean():.2f} %" for width in (0.01, 0.05, 0.5))])
            continue
        law = LAWS[arrival]
        n = min(len(one) for one in rounds)
        lines.append(
            [
                f"{who} {arrival}",
                f"{n:,}",
                spread([distance(one, law) for one in rounds], 4),
                f"{CRITICAL / math.sqrt(n):.4f}",
                f"{spread([100 * rejected(one, law) for one in rounds], 0)} %",
                f"{statistics.median(float(one.mean()) for one in rounds):.4f}",
            ]
        )
    print(f"\n### Issued gaps at {SLOWER:,} arrivals/s\n")
    sample = f"samples of {SAMPLE:,} rejected at 5 %"
    print(table(["", "gaps", "D of all", "5 % point", sample, "mean, in mean gaps"], lines))
    print(f"\nIn a sample of {SAMPLE:,} the 5 % point is {CRITICAL / math.sqrt(SAMPLE):.4f}.")
    print(
        "\nConstant gaps have a law of one point, from which any jitter is as far as can be. So the share of"
    )
    print("gaps that are near it; fio's log is too coarse for the first column:\n")
    print(table(["", "within 1 %", "5 %", "50 %"], even))


def main() -> None:
    """Runs the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10)
    parts = {"windows": windows, "gaps": gaps}
    parser.add_argument("--only", nargs="*", choices=parts, default=list(parts))
    args = parser.parse_args()
    if not shutil.which("fio"):
        sys.exit("fio is not installed (apt-get install fio)")
    load = os.getloadavg()[0]
    print(f"{machine()}; load average {load:.1f}; {args.rounds} interleaved rounds of {args.seconds} s")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for name in args.only:
            parts[name](Path(folder), args)


if __name__ == "__main__":
    main()
