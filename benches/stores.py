"""What stores that deduplicate and compress find in content: borg, restic, and btrfs with duperemove.

    sudo .venv/bin/python benches/stores.py [--megabytes 256]

Files that runs have filled and written to, with a dedupe ratio of 2 and compressible to a half, are stored by
each. Content-defined chunks hold several units, and are alike only where all of these are; the figure is
that of the stores that cut where the units are.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from _common import Figure, Measured, Target, call, main, mounted, need, ours

FIGURES = {
    "dedupe": Figure(
        "content in borg and btrfs, by units: dedupe ratio, off by", "%", Target(at_most=5, of="every")
    ),
}
TOOLS = ("borg", "restic", "duperemove", "mkfs.btrfs", "compsize")
EXTENT = 128 << 10
"""Bytes that btrfs compresses at once."""


class Ratios(NamedTuple):
    """What a store made of data."""

    dedupe: float | None
    """None where it does not deduplicate."""
    compress: float


Judge = Callable[[Path, Path], Ratios]
"""Stores data, with a directory to do so in."""


def borg(chunker: str) -> Judge:
    """A repository of borg's with such ``--chunker-params``."""

    def judge(data: Path, scratch: Path) -> Ratios:
        around = os.environ | {
            "BORG_BASE_DIR": str(scratch),
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
        }
        call("borg", "init", "-e", "none", scratch / "repository", env=around)
        how = ["--json", "--compression", "zstd,1", "--chunker-params", chunker]
        told = json.loads(call("borg", "create", *how, f"{scratch}/repository::it", data, env=around))
        found = told["cache"]["stats"]
        return Ratios(found["total_size"] / found["unique_size"], found["total_size"] / found["total_csize"])

    return judge


def restic(like: Path | None = None) -> Judge:
    """A repository of restic's of version 2, which compresses, and cuts as the one at ``like`` does: each has
    a polynomial of its own."""

    def judge(data: Path, scratch: Path) -> Ratios:
        around = os.environ | {"RESTIC_PASSWORD": "none", "RESTIC_FROM_PASSWORD": "none"}
        begin = ["restic", "init", "--repository-version", "2"]
        how: list[str | Path] = []
        if like is not None:
            if not like.exists():
                call(*begin, "--repo", like, env=around)
            how = ["--from-repo", like, "--copy-chunker-params"]
        at = ["restic", "--cache-dir", scratch / "cache", "--repo", scratch / "repository"]
        call(*begin, "--repo", scratch / "repository", *how, env=around)
        told = json.loads(call(*at, "--json", "backup", data, env=around).splitlines()[-1])
        raw = json.loads(call(*at, "--json", "stats", "--mode", "raw-data", env=around))
        ratios = (told["total_bytes_processed"] / told["data_added"], told["data_added"] / raw["total_size"])
        return Ratios(*ratios)

    return judge


@contextmanager
def btrfs(scratch: Path, options: str) -> Iterator[Path]:
    """A btrfs of its own."""
    image = scratch / "image"
    with image.open("wb") as file:
        file.truncate(8 << 30)
    call("mkfs.btrfs", "-q", image)
    with mounted(scratch / "mounted", "-o", f"loop,{options}", image) as at:
        yield at


def on_btrfs(option: str, hashed: int | None) -> Judge:
    """btrfs, and duperemove over blocks of so many bytes."""

    def judge(data: Path, scratch: Path) -> Ratios:
        with btrfs(scratch, f"{option}=zstd:1") as at:
            call("cp", "-r", "--reflink=never", data, at / "it")
            if hashed is not None:
                call("sync")
                how = ["-dr", "-b", str(hashed), "--dedupe-options=partial,same", "--hashfile"]
                call("duperemove", *how, scratch / "hashes", at / "it")
            call("btrfs", "filesystem", "sync", at)
            whole = next(line for line in call("compsize", "-b", at / "it").splitlines() if "TOTAL" in line)
            disk, plain, referenced = (int(word) for word in whole.split()[2:5])
        return Ratios(referenced / plain if hashed is not None else None, plain / disk)

    return judge


def stores(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Writes and stores."""
    need(*TOOLS, root=True)
    off, path = [], folder / "file"
    for unit in (4 << 10, 128 << 10, 1 << 20):
        aligned = {"borg, fixed": borg(f"fixed,{unit}")}
        if unit >= EXTENT:
            # What is alike within an extent is not freed as long as any of it is used.
            aligned["btrfs, duperemove"] = on_btrfs("compress-force", EXTENT)
        others = {"borg, 64 KiB": borg("buzhash,10,23,16,4095"), "restic": restic()}
        load = ["randwrite", "--bs", unit, "--size", f"{args.megabytes}m", "--requests", 500]
        asked = ["--dedupe", 2, "--compress", 2, "--dedupe-unit", unit]
        own = ours("run", *load, "--on", path, *asked)["content"]["found"]["dedupe"]
        for name, judge in {**aligned, **others}.items():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                found = judge(path, Path(scratch))
            if name in aligned:
                # Which units are alike is drawn: of what our own reader finds.
                off.append(100 * abs((found.dedupe or 0) / own - 1))
            print(unit, name, found, f"{own:.3f} by our own reader", file=sys.stderr)
        path.unlink()
    yield Measured("dedupe", off)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--megabytes", type=int, default=256, help="of a file [%(default)s]")


if __name__ == "__main__":
    main(__doc__, FIGURES, {"stores": stores}, rounds=1, options=options)
