"""Real series and generated ones side by side: their counts, and what other programs find in both.

    sudo .venv/bin/python benches/dataset_judges.py [--data FOLDER] [--seeds 5] [--series django,...]

Successive releases from package registries are the snapshots: Django's source archives (thousands of small
texts), npm's typescript (few large ones) and numpy's wheels (compiled code). They are fetched by pip and npm
to --data, where they stay. Each series is scanned and profiled; one is made of the profile for each seed and
counted; the first is verified, and all are written and given to restic, borg, and btrfs with duperemove,
which get the real files, too. Needs root, npm, restic, borgbackup, duperemove, btrfs-progs and
btrfs-compsize. Prints Markdown tables; what is further off than wanted has an asterisk.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from _common import machine, table
from content_stores import TOOLS, Judge, Ratios, borg, on_btrfs, restic

from loadstone import content, dataset

COUNTED = ("files", "chunks", "unique", "dup1", "dup2")
FEW = 1000
"""Classes of fewer chunks may be off by three times the square root of their count."""
ROUNDS = 5
"""Of what varies from one to the next: series that are made, and readers."""
CUTS = 6
"""Polynomials that restic cuts each of these series by: what it finds of few large files differs by a tenth
from one to the next."""
LARGE = "btrfs, duperemove -b 128k"
VARYING = (LARGE,)
"""Readers that find other ratios of the same files another time."""
ANYWHERE, AT_THE_END, ON_AVERAGE, RATIO = 10.0, 5.0, 2.0, 5.0
"""Percent wanted at most: at any generation, of each count at the end, of these on average, of ratios."""

DJANGO = ("4.2", *(f"4.2.{patch}" for patch in range(1, 12)))
TYPESCRIPT = [
    "4.9.3",
    "4.9.4",
    "4.9.5",
    "5.0.2",
    "5.0.3",
    "5.0.4",
    "5.1.3",
    "5.1.6",
    "5.2.2",
    "5.3.3",
    "5.4.2",
    "5.4.5",
]
NUMPY = ["1.26.0", "1.26.1", "1.26.2", "1.26.3", "1.26.4", "2.0.0", "2.0.1", "2.0.2"]


def run(*command: str | Path, within: Path | None = None) -> None:
    """A command that must succeed."""
    done = subprocess.run(
        [str(word) for word in command], cwd=within, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def pip(package: str, *how: str) -> Callable[[Path, str], None]:
    """Fetches releases of a package from the Python package index."""

    def fetch(folder: Path, version: str) -> None:
        run(
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            *how,
            f"{package}=={version}",
            "-d",
            folder,
        )

    return fetch


def npm(package: str) -> Callable[[Path, str], None]:
    """Fetches releases of a package from npm's registry."""

    def fetch(folder: Path, version: str) -> None:
        run("npm", "pack", "--silent", f"{package}@{version}", within=folder)

    return fetch


WHEEL = ("--only-binary", ":all:", "--python-version", "3.11", "--platform", "manylinux2014_x86_64")
SERIES = {
    "django": ("Django-{}.tar.gz", DJANGO, pip("Django", "--no-binary", ":all:")),
    "typescript": ("typescript-{}.tgz", TYPESCRIPT, npm("typescript")),
    "numpy": ("numpy-{}-*.whl", NUMPY, pip("numpy", *WHEEL)),
}


def releases(name: str, data: Path, out: Path) -> None:
    """Unpacks the releases of a series to ``out/000`` and so on, and fetches those that are not there."""
    pattern, versions, fetch = SERIES[name]
    folder = data / name
    folder.mkdir(parents=True, exist_ok=True)
    for number, version in enumerate(versions):
        if not any(folder.glob(pattern.format(version))):
            fetch(folder, version)
        archive = next(folder.glob(pattern.format(version)))
        into = out / f"{number:03}"
        into.mkdir(parents=True)
        if archive.suffix == ".whl":
            zipfile.ZipFile(archive).extractall(into)
        else:
            run("tar", "-xf", archive, "-C", into, "--strip-components=1", "--no-same-owner")


def off(asked: float, found: float) -> float:
    """Relative difference, percent."""
    return 100 * abs(found - asked) / asked if asked else 100.0 * bool(found)


def allowed(asked: float, percent: float) -> float:
    """Percent that a count may be off."""
    return max(percent, 300 / max(asked, 1) ** 0.5) if asked < FEW else percent


def marked(value: float, most: float) -> str:
    """With an asterisk where it is more than it should be."""
    return f"{value:.2f}{' *' if value > most else ''}"


def counted(real: list[dataset.Snapshot], made: list[list[dataset.Snapshot]]) -> list[list[str]]:
    """A row for each count: the worst of all seeds at any generation and at the end."""
    rows, finals = [], []
    for name in COUNTED:
        worst = end = (0.0, 0.0, 0.0)
        for snapshots in made:
            for at, (one, other) in enumerate(zip(real, snapshots, strict=True)):
                asked, found = float(one["together"][name]), float(other["together"][name])  # type: ignore[literal-required]
                far = off(asked, found)
                # What is furthest beyond what it may be; of these the furthest.
                worst = max(worst, (far / allowed(asked, ANYWHERE), far, asked))
                if at == len(real) - 1:
                    end = max(end, (far / allowed(asked, AT_THE_END), far, asked))
        finals.append(end)
        rows.append([name, marked(worst[1], worst[1] / (worst[0] or 1)), f"{worst[2]:,.0f}",
                     marked(end[1], end[1] / (end[0] or 1)), f"{end[2]:,.0f}"])  # fmt: skip
    large = [far for _, far, asked in finals if asked >= FEW]
    mean = statistics.fmean(large) if large else 0.0
    compress = max(
        off(one["together"]["compress_ratio"], other["together"]["compress_ratio"])
        for snapshots in made
        for one, other in zip(real, snapshots, strict=True)
    )
    rows.append(["counts of 1,000 and more, mean", "", "", marked(mean, ON_AVERAGE), ""])
    rows.append(["compress ratio", marked(compress, RATIO), "", "", ""])
    return rows


def own(unit: int) -> Judge:
    """Loadstone's own reader: fixed blocks."""

    def judge(data: Path, scratch: Path) -> Ratios:
        found = content.examine(data, unit=unit)
        return Ratios(found["fixed"]["ratio"], found["by_piece"]["zstd"])

    return judge


def chunked(average: int) -> Judge:
    """Loadstone's own reader: FastCDC of an average size."""

    def judge(data: Path, scratch: Path) -> Ratios:
        how = f"fastcdc:{average // 4},{average},{average * 8}"
        scanned = dataset.scan(data, scratch / "x.fst", chunking=how, compress="whole")
        found = scanned["snapshots"][0]["alone"]
        return Ratios(found["dedup_ratio"], found["compress_ratio"])

    return judge


def readers(folder: Path) -> dict[str, list[list[Judge]]]:
    """By name, those of each round.

    restic cuts by a polynomial that it draws: both sides have the same ones, others in each round. What
    duperemove finds in large blocks varies from run to run.
    """
    return {
        "blocks of 4 KiB": [[own(4 << 10)]] * ROUNDS,
        "FastCDC, 8 KiB": [[chunked(8 << 10)]] * ROUNDS,
        "FastCDC, 64 KiB": [[chunked(64 << 10)]] * ROUNDS,
        "restic (1 MiB)": [
            [restic(folder / f"restic-{number}-{cut}") for cut in range(CUTS)] for number in range(ROUNDS)
        ],
        "borg, buzhash,10,23,16,4095 (64 KiB)": [[borg("buzhash,10,23,16,4095")]] * ROUNDS,
        "borg, buzhash,19,23,21,4095 (2 MiB, usual)": [[borg("buzhash,19,23,21,4095")]] * ROUNDS,
        # In small blocks it takes minutes.
        "btrfs, duperemove -b 4k": [[on_btrfs("compress-force", 4 << 10)]],
        LARGE: [[on_btrfs("compress-force", 128 << 10)]] * ROUNDS,
    }


def judged(real: Path, series: Sequence[Path], only: str, skip: str) -> list[list[str]]:
    """A row for each program: medians of rounds, each of which has another series that was made, and the
    median of how far the two sides of a round are apart."""
    found: dict[str, list[tuple[Ratios, Ratios]]] = {}
    # Of the real files, by what looked at them.
    known: dict[Judge, Ratios] = {}

    def look(judge: Judge, data: Path) -> Ratios:
        with tempfile.TemporaryDirectory() as scratch:
            return judge(data, Path(scratch))

    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        chosen = {name: rounds for name, rounds in readers(here).items()
                  if only in name and not (skip and skip in name)}  # fmt: skip
        for number, made in enumerate(series):
            dataset.write(made, here / "made", snapshots="all")
            for name, rounds in chosen.items():
                if number >= len(rounds):
                    continue
                for judge in rounds[number]:
                    if judge not in known or name in VARYING:
                        known[judge] = look(judge, real)
                    found.setdefault(name, []).append((known[judge], look(judge, here / "made")))
                    print(number + 1, name, *found[name][-1], file=sys.stderr)
            shutil.rmtree(here / "made")
    return [row(name, pairs) for name, pairs in found.items()]


def row(name: str, pairs: list[tuple[Ratios, Ratios]]) -> list[str]:
    """What a program found of real files and of what was made, and how far these are apart."""
    cells = [name]
    for at in range(2):
        asked, got = ([one[at] or 0.0 for one in side] for side in zip(*pairs, strict=True))
        apart = [100 * (got / asked - 1) for asked, got in zip(asked, got, strict=True)]
        cells += [middle(asked, 3), middle(got, 3), middle(apart, 2, most=RATIO)]
    return cells


def middle(numbers: list[float], digits: int, most: float = math.inf) -> str:
    """The median, and the range of several; with an asterisk where it is more than it should be."""
    median = statistics.median(numbers)
    least, largest = (f"{number:.{digits}f}" for number in (min(numbers), max(numbers)))
    spread = f" ({least} to {largest})" if least != largest else ""
    return f"{median:.{digits}f}{spread}{' *' if abs(median) > most else ''}"


def main() -> None:
    """Fetches, makes, judges and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("/var/tmp/loadstone-series"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--series", default=",".join(SERIES))
    parser.add_argument("--reader", default="", help="only those whose names have this")
    parser.add_argument("--skip", default="", help="not those whose names have this")
    given = parser.parse_args()
    for tool, package in {**TOOLS, "npm": "npm"}.items():
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not installed; apt-get install {package}")
    print(machine())
    for name in given.series.split(","):
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder)
            releases(name, given.data, here / "real")
            snapshots = sorted((here / "real").iterdir())
            real = dataset.scan(snapshots, here / "real.fst", compress="whole")["snapshots"]
            dataset.profile(here / "real.fst", here / "profile")
            made = [
                dataset.create(here / "profile", here / f"{seed}.fst", seed=seed)["snapshots"]
                for seed in range(1, given.seeds + 1)
            ]
            dataset.write(here / "1.fst", here / "made", snapshots="all")
            verified = dataset.verify(here / "made", here / "profile", chunk_sizes=())
            shutil.rmtree(here / "made")
            size = real[-1]["together"]["bytes"] / 1e6
            print(f"\n### {name}: {len(real)} generations, {size:,.0f} MB\n")
            kilobytes = (here / "profile").stat().st_size / 1e3
            print(
                f"A profile of {kilobytes:.0f} kB; `verify` of the first seed: "
                f"{verified['worst_percent']:.2f} % off at most, {verified['mean_percent']:.2f} % on average "
                "at the end.\n"
            )
            print(table(["count", "% off, anywhere", "of", "at the end", "of"], counted(real, made)), "\n")
            head = ["reader", "dedup, real", "made", "% off", "compress, real", "made", "% off"]
            all_made = [here / f"{seed}.fst" for seed in range(1, given.seeds + 1)]
            print(table(head, judged(here / "real", all_made, given.reader, given.skip)), flush=True)


if __name__ == "__main__":
    main()
