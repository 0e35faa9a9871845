"""Making datasets: how fast trees are changed and what that takes, and whether runs are as long as real ones.

Speed and memory are those of a process of its own for each row: CPU time of its changes, and the most memory
it had. Runs are those of a series of real snapshots, by default this repository's own history, beside
those of two series that are made from its profile, with and without runs told (section 4.5.1 of the thesis).

    .venv/bin/python benches/making.py [--series real.fst] [--chunking fastcdc:256,1k,8k] [--files 1000000]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from _common import machine, table

from loadstone import dataset

ROOT = Path(__file__).resolve().parents[1]
SEEDS = 3
# What a child process runs: its CPU seconds, and its largest resident set in KiB.
CHILD = """
import json, resource, sys
from loadstone import dataset
profile, out, generations, scale = sys.argv[1:]
dataset.create(profile, out, generations=int(generations), scale=float(scale), force=True)
whole = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([whole.ru_utime + whole.ru_stime, whole.ru_maxrss]))
"""


def history(folder: Path, snapshots: int) -> list[Path]:
    """Archives of this repository at commits that are equally far from each other."""
    commits = subprocess.run(
        ["git", "rev-list", "--first-parent", "--reverse", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    chosen = [commits[i] for i in np.linspace(len(commits) // 3, len(commits) - 1, snapshots).astype(int)]
    archives = []
    for number, commit in enumerate(chosen):
        path = folder / f"{number:02}.tar"
        subprocess.run(["git", "archive", "-o", path, commit], cwd=ROOT, check=True)
        archives.append(path)
    return archives


def together(path: Path) -> dict[str, dict[int, int]]:
    """Runs of all snapshots but the first."""
    found: dict[str, dict[int, int]] = {"fresh": {}, "repeated": {}}
    for one in dataset.run_lengths(path)[1:]:
        for kind, lengths in found.items():
            for length, runs in one[kind].items():  # type: ignore[literal-required]
                lengths[length] = lengths.get(length, 0) + runs
    return found


def mean(lengths: dict[int, int]) -> float:
    return sum(length * runs for length, runs in lengths.items()) / sum(lengths.values())


def distance(one: dict[int, int], other: dict[int, int]) -> float:
    """Largest difference of the shares of runs up to a length."""
    lengths = sorted(one | other)
    shares = [np.cumsum([of.get(length, 0) for length in lengths]) / sum(of.values()) for of in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def runs(real: Path, folder: Path) -> list[list[str]]:
    """Rows of runs, real and made."""
    rows = []
    asked = together(real)
    rows.append(["real", "", *(f"{mean(asked[kind]):.2f}" for kind in asked), "", ""])
    for told in (False, True):
        profile, made = folder / "x.profile", folder / "made.fst"
        dataset.profile(real, profile, runs=told, force=True)
        means, distances = [], []
        for seed in range(SEEDS):
            dataset.create(profile, made, seed=seed, force=True)
            found = together(made)
            means.append([mean(found[kind]) for kind in asked])
            distances.append([distance(asked[kind], found[kind]) for kind in asked])
        size = f"{profile.stat().st_size / 1e3:.1f} kB"
        name = "made, runs told" if told else "made"
        numbers = [*(f"{one:.2f}" for one in np.mean(means, axis=0))]
        rows.append([name, size, *numbers, *(f"{one:.3f}" for one in np.mean(distances, axis=0))])
    return rows


def main() -> None:
    """Prints two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=Path)
    parser.add_argument("--chunking", default="fastcdc")
    parser.add_argument("--files", type=int, default=1_000_000)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        real = args.series or folder / "real.fst"
        if not args.series:
            dataset.scan(history(folder, 12), real, chunking=args.chunking, compress=False)
        heads = ["series", "profile", "fresh, chunks", "repeated, chunks", "fresh, KS", "repeated, KS"]
        print(table(heads, runs(real, folder)))
        rows = []
        for times, mu, snapshots in ((1, 9.0, 4), (1, 12.0, 4), (10, 8.6, 2)):
            first, profile = folder / "first.fst", folder / "speed.profile"
            dataset.populate(first, files=20_000, sizes=f"lognormal:{mu},1", force=True)
            dataset.mutate(first, folder / "next.fst", profile="preset:home", generations=3, force=True)
            told = dataset.profile(folder / "next.fst", profile, force=True)
            alone = told["snapshots"][0]["alone"]
            scale = times * args.files / alone["files"]
            cost = []
            for count in (snapshots - 1, snapshots):
                command = [sys.executable, "-c", CHILD, profile, folder / "large.fst", count, scale]
                words = [str(one) for one in command]
                done = subprocess.run(words, capture_output=True, text=True, check=True)
                cost.append(json.loads(done.stdout))
            (before, _), (whole, kib) = cost
            change = f"{whole - before:.2f} s"
            numbers = (f"{times * args.files:,}", f"{alone['chunks'] / alone['files']:.1f}", f"{snapshots}")
            rows.append([*numbers, change, f"{whole:.1f} s", f"{kib / 2**20:.2f} GiB"])
            (folder / "large.fst").unlink()
    heads = ["files", "chunks each", "snapshots", "last change", "all, counted and saved", "memory"]
    print(table(heads, rows))


if __name__ == "__main__":
    main()
