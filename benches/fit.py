"""Fitting a model from SPC text and Parquet, beside DuckDB reading the same file and grouping it alike.

    .venv/bin/python benches/fit.py [--only speed large] [--copies 120] [--rounds 5]

The file is a real trace repeated with shifted times and, for half of the copies, shifted offsets.
DuckDB (``pip install duckdb``) computes the same six features with window functions and counts the cells
per 20 s window; all may use every core. ``large`` is a hundred million requests, once.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from _common import VERSIONS, Figure, Measured, Missing, Target, loadstone, main, measure, rounds, trace_file

FIGURES = {
    "spc": Figure("fit from SPC text, six features", "MB/s", Target(at_least=500), "DuckDB"),
    "parquet": Figure("fit from Parquet, six features", "M requests/s", Target(at_least=20)),
    "memory": Figure("fit of 100 million requests from SPC text: memory", "MB", Target(at_most=1000)),
}
SHIFT_BLOCKS, SPAN = 1 << 29, 30_000
SIX = ["--only", *(f"--dimension={name}" for name in ("op", "object", "size", "jump", "region", "gap"))]
QUERY = """
SET threads TO {threads};
CREATE TEMP TABLE cells AS
WITH r AS (
  SELECT column0 AS object, column1 * 512 AS off, column2 AS size, column3 AS op, column4 AS t
  FROM read_csv('{file}', header = false, delim = ',', columns = {{'column0': 'INTEGER',
    'column1': 'BIGINT', 'column2': 'BIGINT', 'column3': 'VARCHAR', 'column4': 'DOUBLE'}})
), f AS (
  SELECT floor(t / 20) AS win, object, op, size, off,
    off - lag(off + size) OVER (PARTITION BY object ORDER BY t) AS jump,
    t - lag(t) OVER (ORDER BY t) AS gap
  FROM r
)
SELECT win, object, op,
  floor(2 * log2(size + 1)) AS size_bucket,
  sign(jump) * floor(log2(abs(jump) + 1)) AS jump_bucket,
  floor(off / 5e9) AS region,
  floor(log2(gap * 1e9 + 1)) AS gap_bucket,
  count(*) AS n
FROM f GROUP BY ALL;
SELECT count(*), sum(n) FROM cells;
"""


def build(path: Path, copies: int) -> int:
    """Writes the repeated trace, times jittered by up to a millisecond; how many requests it has."""
    rows = [line.split(",") for line in trace_file("spc/dtrs.spc").read_text().splitlines()]
    parsed = [(unit, int(block), f"{size},{op}", float(when)) for unit, block, size, op, when in rows]
    chance = random.Random(1)
    with path.open("w") as out:
        for copy in range(copies):
            shift, later = SHIFT_BLOCKS * (copy % 2), copy * SPAN
            times = sorted(when + later + chance.random() / 1000 for *_, when in parsed)
            out.writelines(
                f"{unit},{block + shift},{rest},{time:.6f}\n"
                for (unit, block, rest, _), time in zip(parsed, times, strict=True)
            )
    return copies * len(rows)


def speed(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """All in turn, start of the command included."""
    if importlib.util.find_spec("duckdb") is None:
        raise Missing("the peer is not installed: pip install duckdb")
    VERSIONS["duckdb"] = __import__("duckdb").__version__
    spc, parquet, model, query = (folder / name for name in ("a.spc", "a.parquet", "a.mdh", "query.py"))
    requests = build(spc, args.copies)
    sql = QUERY.format(file=spc, threads=os.cpu_count())
    query.write_text(f"import duckdb\nc = duckdb.connect()\nprint(c.execute({sql!r}).fetchall())\n")
    measure(loadstone(), "trace", "convert", spc, "-o", parquet)

    def fit(source: Path, *words: str) -> float:
        # Read into the cache by nobody's time.
        source.read_bytes()
        return measure(loadstone(), "model", "fit", source, "-o", model, "--force", *words).seconds

    def peer() -> float:
        spc.read_bytes()
        return measure(sys.executable, query).seconds

    sides = {
        "DuckDB": peer,
        "spc": lambda: fit(spc, *SIX),
        "default": lambda: fit(spc),
        "parquet": lambda: fit(parquet, *SIX),
    }
    size = spc.stat().st_size / 1e6
    found = rounds(args.rounds, sides)
    theirs = [size / seconds for seconds in found["DuckDB"]]
    yield Measured("spc", [size / seconds for seconds in found["spc"]], theirs)
    yield Measured("parquet", [requests / seconds / 1e6 for seconds in found["parquet"]])


def large(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """A hundred million requests, once."""
    spc = folder / "a.spc"
    build(spc, 788)
    cost = measure(loadstone(), "model", "fit", spc, "-o", folder / "a.mdh")
    print(f"{cost.seconds:.1f} s, CPU {cost.cpu:.1f} s")
    yield Measured("memory", [cost.peak / 1e6])


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--copies", type=int, default=120, help="of the trace [%(default)s]")


if __name__ == "__main__":
    main(__doc__, FIGURES, {"speed": speed, "large": large}, options=options)
