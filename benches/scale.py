"""A hundred million requests: memory and speed of fitting, from SPC text and from our Parquet.

    .venv/bin/python benches/scale.py [--copies 788] [--rounds 1]

dtrs again and again, each copy later, half of them with shifted offsets, all times jittered by up to a
millisecond.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from pathlib import Path

from _common import TRACES, loadstone, machine, measure, spread, table

SHIFT_BLOCKS = 20_000_000
SPAN = 30_000


def build(path: Path, copies: int) -> int:
    """Writes the repeated trace; how many requests it has."""
    rows = [line.split(",") for line in (TRACES / "spc/dtrs.spc").read_text().splitlines()]
    parsed = [(unit, int(block), f"{size},{op}", float(when)) for unit, block, size, op, when in rows]
    chance = random.Random(1)
    with path.open("w") as out:
        for copy in range(copies):
            shift, later = SHIFT_BLOCKS * (copy % 2), copy * SPAN
            times = sorted(when + later + chance.random() / 1000 for *_, when in parsed)
            lines = (
                f"{unit},{block + shift},{rest},{time:.6f}\n"
                for (unit, block, rest, _), time in zip(parsed, times, strict=True)
            )
            out.writelines(lines)
    return copies * len(rows)


def main() -> None:
    """Measures both and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copies", type=int, default=788)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        spc, parquet, model = (Path(folder) / name for name in ("big.spc", "big.parquet", "big.mdh"))
        requests = build(spc, args.copies)
        jobs = {
            "`model fit big.spc`": ([loadstone(), "model", "fit", spc, "-o", model, "--force"], spc),
            "`trace convert big.spc`": (
                [loadstone(), "trace", "convert", spc, "-o", parquet, "--force"],
                spc,
            ),
            "`model fit big.parquet`": (
                [loadstone(), "model", "fit", parquet, "-o", model, "--force"],
                parquet,
            ),
        }
        rows = []
        for name, (command, source) in jobs.items():
            costs = [measure(command) for _ in range(args.rounds)]
            megabytes = source.stat().st_size / 1e6
            rows.append(
                [
                    name,
                    f"{megabytes:,.0f}",
                    spread([c.seconds for c in costs], 1),
                    spread([megabytes / c.seconds for c in costs], 0),
                    spread([requests / c.seconds / 1e6 for c in costs], 1),
                    spread([c.cpu for c in costs], 1),
                    f"{max(c.peak for c in costs) / 1e6:.0f}",
                ]
            )
        cells = f"model: {model.stat().st_size:,} bytes"
    print(
        f"{machine()}\n\n{requests:,} requests, {args.copies} copies of dtrs, {args.rounds} rounds; {cells}\n"
    )
    print(table(["", "input, MB", "seconds", "MB/s", "million requests/s", "CPU s", "peak MB"], rows))


if __name__ == "__main__":
    main()
