"""Real series and generated ones side by side: their counts, and what readers find in both.

    sudo .venv/bin/python benches/dataset_judges.py [--data FOLDER] [--seeds 3] [--series sphinx,botocore]

Successive releases from package registries are the snapshots; no rule of ``dataset create`` was chosen on
them. They are fetched by pip and npm to --data, where they stay. Each series is scanned and profiled, and
each seed makes one series of the profile. A value is the median of the seeds, for one reader of one series.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from _common import Figure, Measured, Target, call, main, need

from loadstone import content, dataset

NEAR = Target(at_most=5)
FIGURES = {
    "counts": Figure("datasets: worst count, of what verify allows", "times", Target(at_most=1, of="every")),
    "fixed": Figure("datasets: dedup by blocks of 4 to 128 KiB, off by", "%", NEAR),
    "FastCDC": Figure("datasets: dedup by FastCDC of 4 to 128 KiB, off by", "%", NEAR),
    "codecs": Figure("datasets: lz4, zstd and zlib, off by", "%", NEAR),
}
COUNTED = ("files", "chunks", "unique", "dup1", "dup2")
FEW, ANYWHERE = 1000, 10.0
"""Classes of fewer chunks may be off by three times the square root of their count, others by 10 %."""
WHEEL = ("--only-binary", ":all:", "--python-version", "3.11", "--platform", "manylinux2014_x86_64")


def pip(package: str, *how: str) -> Callable[[Path, str], None]:
    """Fetches releases of a package from the Python package index."""

    def fetch(folder: Path, version: str) -> None:
        words = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", *how, "-d", folder]
        call(*words, f"{package}=={version}")

    return fetch


def npm(package: str) -> Callable[[Path, str], None]:
    """Fetches releases of a package from npm's registry."""

    def fetch(folder: Path, version: str) -> None:
        need("npm")
        call("npm", "pack", "--silent", f"{package}@{version}", cwd=folder)

    return fetch


SPHINX = ["7.1.0", "7.1.2", "7.2.0", "7.2.2", "7.2.4", "7.2.6", "7.3.0", "7.4.0"]
MATPLOTLIB = ["3.7.2", "3.7.3", "3.8.0", "3.8.1", "3.8.2", "3.8.3", "3.8.4", "3.9.0"]
BOTOCORE = [f"1.34.{patch}" for patch in (0, 20, 40, 60, 80, 100)]
DATE_FNS = [f"3.{minor}.0" for minor in range(7)]
SERIES: dict[str, tuple[str, list[str], Callable[[Path, str], None]]] = {
    "sphinx": ("sphinx-{}-*.whl", SPHINX, pip("sphinx", *WHEEL)),
    "matplotlib": ("matplotlib-{}-*.whl", MATPLOTLIB, pip("matplotlib", *WHEEL)),
    "botocore": ("botocore-{}-*.whl", BOTOCORE, pip("botocore", *WHEEL)),
    "date-fns": ("date-fns-{}.tgz", DATE_FNS, npm("date-fns")),
}


def releases(name: str, data: Path, out: Path) -> list[Path]:
    """Unpacks the releases of a series, and fetches those that are not there."""
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
            call("tar", "-xf", archive, "-C", into, "--strip-components=1", "--no-same-owner")
    return sorted(out.iterdir())


def counts(real: list[dataset.Snapshot], made: list[dataset.Snapshot]) -> float:
    """The worst count of any snapshot, in units of what it may be off."""
    worst = 0.0
    for one, other in zip(real, made, strict=True):
        for name in COUNTED:
            asked, found = (float(each["together"][name]) for each in (one, other))  # type: ignore[literal-required]
            allowed = max(ANYWHERE, 300 / max(asked, 1) ** 0.5) if asked < FEW else ANYWHERE
            worst = max(worst, 100 * abs(found - asked) / max(asked, 1) / allowed)
    return worst


def read(data: Path, folder: Path) -> dict[str, float]:
    """What readers find in a tree, by kind and reader."""
    found: dict[str, float] = {}
    for kib in (4, 8, 16, 32, 64, 128):
        told = content.examine(data, unit=kib << 10)
        found[f"fixed {kib}"] = told["fixed"]["ratio"]
        how = f"fastcdc:{kib << 8},{kib << 10},{kib << 13}"
        scanned = dataset.scan(data, folder / "x.fst", chunking=how, compress="none", force=True)
        found[f"FastCDC {kib}"] = scanned["snapshots"][0]["alone"]["dedup_ratio"]
    return found | {f"codecs {codec}": told["by_piece"][codec] for codec in ("lz4", "zstd", "zlib")}


def judged(name: str, here: Path, args: argparse.Namespace) -> dict[str, list[float]]:
    """Of one series: the worst counts of its seeds, and how far each reader is off at the median of them."""
    snapshots = releases(name, args.data, here / "real")
    real = dataset.scan(snapshots, here / "real.fst", compress="whole")["snapshots"]
    dataset.profile(here / "real.fst", here / "profile")
    asked = read(here / "real", here)
    off: dict[str, list[float]] = {}
    worst = []
    for seed in range(1, args.seeds + 1):
        series, tree = here / f"{seed}.fst", here / f"made-{seed}"
        worst.append(counts(real, dataset.create(here / "profile", series, seed=seed)["snapshots"]))
        dataset.write(series, tree, snapshots="all")
        for reader, ratio in read(tree, here).items():
            off.setdefault(reader, []).append(100 * (ratio / asked[reader] - 1))
        call("rm", "-r", tree)
    middle = {reader: statistics.median(values) for reader, values in off.items()}
    print(
        name, f"counts {max(worst):.2f}", *(f"{of} {value:+.1f} %" for of, value in middle.items()), sep=", "
    )
    kinds: dict[str, list[float]] = {"counts": [max(worst)]}
    for reader, value in middle.items():
        kinds.setdefault(reader.split()[0], []).append(abs(value))
    return kinds


def judge(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """All series, one after the other."""
    found: dict[str, list[float]] = {}
    for name in args.series.split(","):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            for kind, values in judged(name, Path(place), args).items():
                found.setdefault(kind, []).extend(values)
    yield from (Measured(kind, values) for kind, values in found.items())


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, default=Path("/var/tmp/loadstone-series"), help="[%(default)s]")
    parser.add_argument("--seeds", type=int, default=3, help="[%(default)s]")
    parser.add_argument("--series", default=",".join(SERIES), help="[%(default)s]")


if __name__ == "__main__":
    main(__doc__, FIGURES, {"judge": judge}, rounds=1, options=options)
