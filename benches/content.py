"""How fast content is made, on one CPU, beside other sources of random bytes; and what codecs find in it.

    python benches/content_bytes.py [--rounds 5] [--megabytes 512]

The first table is crates/content/examples/speed.rs, pinned to one CPU by taskset, median and range of the
rounds. The second is what an independent reader finds in a file that a run made as asked; of large units
there are few, and what is found depends on what they draw, so there it is the median and range of several
seeds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from _common import ROOT, loadstone, machine, measure, spread, table

ASKED = [(1.0, 1.0), (1.5, 2.0), (2.0, 1.5), (3.0, 1.0), (4.0, 1.0)]
"""Compress and dedupe ratios."""
SEEDS = {"4k": 1, "16k": 1, "128k": 9}
"""Files of each unit."""


def speeds(rounds: int, megabytes: int) -> list[list[object]]:
    """GB/s of each source."""
    build = ["cargo", "build", "--release", "--locked", "-q", "-p", "loadstone-content", "--example", "speed"]
    subprocess.run(build, cwd=ROOT, check=True)
    program = ROOT / "target/release/examples/speed"
    found: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for line in measure(["taskset", "-c", "0", program, str(megabytes)]).out.splitlines():
            one = json.loads(line)
            found.setdefault((one["what"], one["unit"]), []).append(one["GB/s"])
    return [[what, f"{unit >> 10} KiB", spread(values)] for (what, unit), values in found.items()]


def ratios(folder: Path) -> list[list[object]]:
    """What is found of what was asked for, by unit."""
    rows: list[list[object]] = []
    target = folder / "file"
    for unit, seeds in SEEDS.items():
        for compress, dedupe in ASKED:
            asked = ["--compress", str(compress), "--dedupe", str(dedupe), "--dedupe-unit", unit]
            load = ["randwrite", "--bs", unit, "--on", target, "--size", "512m", "--requests", "1000"]
            found: dict[str, list[float]] = {}
            for seed in range(1, seeds + 1):
                out = measure([loadstone(), "run", *load, *asked, "--seed", str(seed), "--json"]).out
                told = json.loads(out)["content"]["found"]
                target.unlink()
                one = {"dedupe": told["dedupe"], "FastCDC": told["examined"]["fastcdc"]["ratio"]}
                for codec in ("lz4", "zstd", "zlib"):
                    one[codec] = told["compress"][codec]
                    one[f"{codec} by piece"] = told["examined"]["by_piece"][codec]
                for name, ratio in one.items():
                    found.setdefault(name, []).append(ratio)
            say = {
                name: spread(ratios, 3) if seeds > 1 else f"{ratios[0]:.3f}" for name, ratios in found.items()
            }
            codecs = ("lz4", "zstd", "zlib", "lz4 by piece", "zstd by piece", "zlib by piece")
            cells = [say["FastCDC"], compress, *(say[name] for name in codecs)]
            rows.append([unit, dedupe, say["dedupe"], *cells])
    return rows


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=512)
    given = parser.parse_args()
    print(machine(), "\n")
    print(table(["source", "unit", "GB/s"], speeds(given.rounds, given.megabytes)), "\n")
    head = ["unit", "dedupe asked", "found", "FastCDC", "compress asked", "lz4", "zstd -1", "zlib -6"]
    with tempfile.TemporaryDirectory() as folder:
        print(table([*head, "lz4, 128 KiB", "zstd -1", "zlib -6"], ratios(Path(folder))))


if __name__ == "__main__":
    main()
