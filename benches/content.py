"""How fast content is made, on one CPU, and what codecs and a deduplicator find in it.

    .venv/bin/python benches/content.py [--only speed found] [--rounds 5] [--megabytes 512]

Speed is that of crates/content/examples/speed.rs. An independent reader (``loadstone content
examine``) reports what files hold that runs made as asked. In units of 128 KiB a file has 4,096
blocks, and which are alike is drawn, so a file may be 2 % off by chance: nine seeds there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from _common import ROOT, Figure, Measured, Target, call, main, measure, ours

FIGURES = {
    "random": Figure("content of 4 KiB, incompressible, on one CPU", "GB/s", Target(at_least=4)),
    "half": Figure("content of 4 KiB, compressible to a half", "GB/s", Target(at_least=2)),
    "dedupe": Figure("content: dedupe ratio found, off by", "%", Target(at_most=2, of="every")),
    "codecs": Figure("content: lz4, zstd and zlib of a unit, off by", "%", Target(at_most=2, of="every")),
}
SOURCES = {"random": "content, dedupe 1, compress 1", "half": "content, dedupe 1, compress 2"}
ASKED = [(1.0, 1.0), (1.5, 2.0), (2.0, 1.5), (3.0, 1.0), (4.0, 1.0)]
"""Compress and dedupe ratios."""
SEEDS = {"4k": 1, "16k": 1, "128k": 9}


def speed(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """GB/s of each source."""
    build = ["cargo", "build", "--release", "--locked", "-q", "-p", "loadstone-content", "--example", "speed"]
    call(*build, cwd=ROOT)
    program = ROOT / "target/release/examples/speed"
    found: dict[str, list[float]] = {}
    for _ in range(args.rounds):
        for line in measure("taskset", "-c", "0", program, args.megabytes).out.splitlines():
            one = json.loads(line)
            if one["unit"] <= 8 << 10:
                found.setdefault(one["what"], []).append(one["GB/s"])
    print(
        *(f"{what}: {median(values):.2f} GB/s" for what, values in found.items()), sep="\n", file=sys.stderr
    )
    yield from (Measured(name, found[source]) for name, source in SOURCES.items())


def found(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """How far what is found is from what was asked for: the median of the seeds, for each unit and ratio."""
    target = folder / "file"
    dedupe, codecs = [], []
    for unit, seeds in SEEDS.items():
        for compress, twice in ASKED:
            asked = ["--compress", compress, "--dedupe", twice, "--dedupe-unit", unit]
            load = ["randwrite", "--bs", unit, "--on", target, "--size", "512m", "--requests", 1000]
            told = []
            for seed in range(1, seeds + 1):
                told.append(ours("run", *load, *asked, "--seed", seed)["content"]["found"])
                target.unlink()
            dedupe.append(100 * abs(median(one["dedupe"] for one in told) / twice - 1))
            off = {
                of: median(one["compress"][of] for one in told) / compress - 1
                for of in ("lz4", "zstd", "zlib")
            }
            codecs += [100 * abs(value) for value in off.values()]
            print(unit, compress, twice, f"dedupe {dedupe[-1]:.2f} % off", off, file=sys.stderr)
    yield Measured("dedupe", dedupe)
    yield Measured("codecs", codecs)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--megabytes", type=int, default=512, help="made of each [%(default)s]")


if __name__ == "__main__":
    main(__doc__, FIGURES, {"speed": speed, "found": found}, options=options)
