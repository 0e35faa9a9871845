"""Fitting a model from SPC text, beside DuckDB reading the same file and grouping it likewise.

The file is a real trace repeated with shifted times and, for half of the copies, shifted offsets.
DuckDB (a peer, not a dependency: ``pip install duckdb``) computes the same six features with window
functions and counts the cells per 20 s window; both may use every core.

    .venv/bin/python benches/fit.py [--copies 40] [--rounds 5]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from _common import TRACES, loadstone, machine, measure, spread, table

SHIFT_BLOCKS = 1 << 29
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


def build(path: Path, copies: int) -> None:
    """Writes the repeated trace."""
    rows = [line.split(",") for line in (TRACES / "spc/dtrs.spc").read_text().splitlines()]
    span = 30_000
    with path.open("w") as out:
        for copy in range(copies):
            shift = SHIFT_BLOCKS if copy % 2 else 0
            for unit, block, size, op, when in rows:
                whole, _, part = when.partition(".")
                out.write(f"{unit},{int(block) + shift},{size},{op},{int(whole) + copy * span}.{part}\n")


def main() -> None:
    """Measures both in turn and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copies", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        spc, model, query = (Path(folder) / name for name in ("big.spc", "big.mdh", "query.py"))
        build(spc, args.copies)
        megabytes = spc.stat().st_size / 1e6
        sql = QUERY.format(file=spc, threads=os.cpu_count())
        query.write_text(f"import duckdb\nc = duckdb.connect()\nprint(c.execute({sql!r}).fetchall())\n")
        ours = [loadstone(), "model", "fit", spc, "-o", model, "--force"]
        python = loadstone().parent / "python"
        fits, peers = [], []
        measure(ours)
        for _ in range(args.rounds):
            fits.append(measure(ours))
            peers.append(measure([python, query]))
        version = subprocess.run(
            [python, "-c", "import duckdb; print(duckdb.__version__)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    print(
        f"{machine()}\n\nSPC text, {megabytes:.0f} MB, {args.copies} copies of dtrs, {args.rounds} rounds\n"
    )
    print(
        table(
            ["", "seconds", "MB/s", "CPU s", "peak MB"],
            [
                [
                    name,
                    spread([c.seconds for c in costs]),
                    spread([megabytes / c.seconds for c in costs], 0),
                    spread([c.cpu for c in costs]),
                    f"{max(c.peak for c in costs) / 1e6:.0f}",
                ]
                for name, costs in (
                    ("`loadstone model fit big.spc`", fits),
                    (f"DuckDB {version}, group by", peers),
                )
            ],
        )
    )
    ratio = [p.seconds / f.seconds for f, p in zip(fits, peers, strict=True)]
    print(f"\nDuckDB takes {spread(ratio)} times as long")


if __name__ == "__main__":
    main()
