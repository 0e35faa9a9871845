"""What stores that deduplicate and compress find in content: borg, restic, and btrfs with duperemove.

    sudo .venv/bin/python benches/content_stores.py [--megabytes 256] [--dedupe 2] [--compress 2]

Files and a tree that runs have filled and written to are stored by each; the first row of each is what
Loadstone's own reader finds. Needs root, borgbackup, restic, duperemove,
btrfs-progs and btrfs-compsize. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from _common import loadstone, machine, table

TOOLS = {
    "borg": "borgbackup",
    "restic": "restic",
    "duperemove": "duperemove",
    "mkfs.btrfs": "btrfs-progs",
    "compsize": "btrfs-compsize",
}
EXTENT = 128 << 10
"""Bytes that btrfs compresses at once."""


class Ratios(NamedTuple):
    """What a store made of data."""

    dedupe: float | None
    """None where it does not deduplicate."""
    compress: float


Judge = Callable[[Path, Path], Ratios]
"""Stores data, with a directory to do so in."""


def output(*command: str | Path, **environment: str) -> str:
    """What a command prints; a failure ends the benchmark."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def borg(chunker: str) -> Judge:
    """A repository of borg's with such ``--chunker-params``."""

    def judge(data: Path, scratch: Path) -> Ratios:
        around = {"BORG_BASE_DIR": str(scratch), "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}
        output("borg", "init", "-e", "none", scratch / "repository", **around)
        how = ["--json", "--compression", "zstd,1", "--chunker-params", chunker]
        told = json.loads(output("borg", "create", *how, f"{scratch}/repository::it", data, **around))
        found = told["cache"]["stats"]
        return Ratios(found["total_size"] / found["unique_size"], found["total_size"] / found["total_csize"])

    return judge


def restic(like: Path | None = None) -> Judge:
    """A repository of restic's of version 2, which compresses, and cuts as the one at ``like`` does: each has
    a polynomial of its own. The first that is told to makes that one."""

    def judge(data: Path, scratch: Path) -> Ratios:
        around = {"RESTIC_PASSWORD": "none", "RESTIC_FROM_PASSWORD": "none"}
        begin = ["restic", "init", "--repository-version", "2"]
        how: list[str | Path] = []
        if like is not None:
            if not like.exists():
                output(*begin, "--repo", like, **around)
            how = ["--from-repo", like, "--copy-chunker-params"]
        at = ["restic", "--cache-dir", scratch / "cache", "--repo", scratch / "repository"]
        output(*begin, "--repo", scratch / "repository", *how, **around)
        told = json.loads(output(*at, "--json", "backup", data, **around).splitlines()[-1])
        raw = json.loads(output(*at, "--json", "stats", "--mode", "raw-data", **around))
        ratios = (told["total_bytes_processed"] / told["data_added"], told["data_added"] / raw["total_size"])
        return Ratios(*ratios)

    return judge


@contextmanager
def btrfs(scratch: Path, options: str) -> Iterator[Path]:
    """A btrfs of its own."""
    image, at = scratch / "image", scratch / "mounted"
    at.mkdir()
    with image.open("wb") as file:
        file.truncate(8 << 30)
    output("mkfs.btrfs", "-q", image)
    output("mount", "-o", f"loop,{options}", image, at)
    try:
        yield at
    finally:
        output("umount", at)


def on_btrfs(option: str, hashed: int | None) -> Judge:
    """btrfs, and duperemove over blocks of so many bytes."""

    def judge(data: Path, scratch: Path) -> Ratios:
        with btrfs(scratch, f"{option}=zstd:1") as at:
            output("cp", "-r", "--reflink=never", data, at / "it")
            if hashed is not None:
                output("sync")
                how = ["-dr", "-b", str(hashed), "--dedupe-options=partial,same", "--hashfile"]
                output("duperemove", *how, scratch / "hashes", at / "it")
            output("btrfs", "filesystem", "sync", at)
            whole = next(line for line in output("compsize", "-b", at / "it").splitlines() if "TOTAL" in line)
            disk, plain, referenced = (int(word) for word in whole.split()[2:5])
        return Ratios(referenced / plain if hashed is not None else None, plain / disk)

    return judge


def judges(unit: int) -> dict[str, Judge]:
    """The stores, by what they are called in the table."""
    hashed = min(unit, EXTENT)
    return {
        f"borg, fixed,{unit}": borg(f"fixed,{unit}"),
        "borg, buzhash,10,23,16,4095 (64 KiB)": borg("buzhash,10,23,16,4095"),
        "borg, buzhash,19,23,21,4095 (2 MiB, usual)": borg("buzhash,19,23,21,4095"),
        "restic (1 MiB)": restic(),
        f"btrfs compress-force, duperemove -b {hashed >> 10}k": on_btrfs("compress-force", hashed),
        "btrfs compress": on_btrfs("compress", None),
    }


def written(folder: Path, megabytes: int, asked: list[str]) -> Iterator[tuple[str, int, Path, Ratios]]:
    """Data as runs have written it: what it is, its unit, where it is, and what the reader found."""
    for unit in (4 << 10, 128 << 10, 1 << 20):
        load = ["randwrite", "--bs", f"{unit >> 10}k", "--size", f"{megabytes}m", "--requests", "500"]
        yield from one(f"file, {unit >> 10} KiB", unit, folder / "file", load, asked)
    load = ["micro-write-whole", "-D", "filesize=64k", "--size", f"{megabytes}m", "--duration", "2s"]
    yield from one("tree of files of 64 KiB, 16 KiB", 16 << 10, folder / "tree", load, asked)


def one(
    name: str, unit: int, path: Path, load: list[str], asked: list[str]
) -> Iterator[tuple[str, int, Path, Ratios]]:
    """Data of one load, which is gone when it was judged."""
    words = [*load, "--on", path, *asked, "--dedupe-unit", str(unit), "--json"]
    found = json.loads(output(loadstone(), "run", *words))["content"]["found"]
    yield name, unit, path, Ratios(found["dedupe"], found["compress"]["zstd"])
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def main() -> None:
    """Writes, stores and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--dedupe", type=float, default=2.0)
    parser.add_argument("--compress", type=float, default=2.0)
    given = parser.parse_args()
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not installed; apt-get install {package}")
    asked = ["--dedupe", str(given.dedupe), "--compress", str(given.compress)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, unit, path, own in written(Path(folder), given.megabytes, asked):
            rows.append([name, "Loadstone's reader, zstd -1", f"{own.dedupe:.3f}", f"{own.compress:.3f}"])
            for store, judge in judges(unit).items():
                with tempfile.TemporaryDirectory(dir=folder) as scratch:
                    found = judge(path, Path(scratch))
                dedupe = "-" if found.dedupe is None else f"{found.dedupe:.3f}"
                rows.append([name, store, dedupe, f"{found.compress:.3f}"])
                print(*rows[-1], sep=", ", file=sys.stderr)
    print(machine(), f"\nasked: dedupe {given.dedupe:g}, compress {given.compress:g}\n")
    print(table(["data, unit", "store", "dedupe found", "compress found"], rows))


if __name__ == "__main__":
    main()
