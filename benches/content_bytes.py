"""How fast content is made, on one CPU, beside other sources of random bytes; and what codecs find in it.

    python benches/content_bytes.py [--rounds 5] [--megabytes 512]

The first table is crates/content/examples/speed.rs, pinned to one CPU by taskset, median and range of the
rounds. The second is what an independent reader finds in a file that a run made as asked.
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
    for unit in ("4k", "16k", "128k"):
        for compress, dedupe in ASKED:
            target = folder / "file"
            asked = ["--compress", str(compress), "--dedupe", str(dedupe), "--dedupe-unit", unit]
            load = ["randwrite", "--bs", unit, "--on", target, "--size", "512m", "--requests", "1000"]
            told = json.loads(measure([loadstone(), "run", *load, *asked, "--json"]).out)["content"]["found"]
            rows.append(
                [
                    unit,
                    dedupe,
                    f"{told['dedupe']:.3f}",
                    f"{told['examined']['fastcdc']['ratio']:.3f}",
                    compress,
                    *(f"{told['compress'][codec]:.3f}" for codec in ("lz4", "zstd", "zlib")),
                    *(f"{told['examined']['by_piece'][codec]:.3f}" for codec in ("lz4", "zstd", "zlib")),
                ]
            )
            target.unlink()
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
