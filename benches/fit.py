"""Fitting a model from SPC text, beside DuckDB reading the same file and grouping it likewise.

The file is a real trace repeated with shifted times and, for half of the copies, shifted offsets.
DuckDB (a peer, not a dependency: ``pip install duckdb``) computes the same six features with window
functions and counts the cells per 20 s window; all may use every core. Loadstone fits its usual
eleven dimensions, and the six alone; with ``--parquet`` also from its own Parquet.

    .venv/bin/python benches/fit.py [--copies 40] [--rounds 5] [--parquet]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _common import TRACES, Cost, loadstone, machine, measure, spread, table

DTRS = TRACES / "spc/dtrs.spc"
REQUESTS = 127_043
SHIFT_BLOCKS = 1 << 29
SIX = [
    "--only",
    *(f"--dimension={name}" for name in ("op", "object", "size", "jump", "region", "gap")),
]
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
    rows = [line.split(",") for line in DTRS.read_text().splitlines()]
    span = 30_000
    with path.open("w") as out:
        for copy in range(copies):
            shift = SHIFT_BLOCKS if copy % 2 else 0
            for unit, block, size, op, when in rows:
                whole, _, part = when.partition(".")
                out.write(f"{unit},{int(block) + shift},{size},{op},{int(whole) + copy * span}.{part}\n")


def duckdb_version(python: Path) -> str:
    """Of the peer."""
    command = [python, "-c", "import duckdb; print(duckdb.__version__)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the peer is not there; install it: {python} -m pip install duckdb")
    return done.stdout.strip()


def main() -> None:
    """Measures all in turn and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copies", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parquet", action="store_true", help="fit from Loadstone's Parquet, too")
    args = parser.parse_args()
    python = loadstone().parent / "python"
    version = duckdb_version(python)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        spc, model, query = (Path(folder) / name for name in ("big.spc", "big.mdh", "query.py"))
        build(spc, args.copies)
        sql = QUERY.format(file=spc, threads=os.cpu_count())
        query.write_text(f"import duckdb\nc = duckdb.connect()\nprint(c.execute({sql!r}).fetchall())\n")
        sources = [spc]
        if args.parquet:
            sources.append(spc.with_suffix(".parquet"))
            measure([loadstone(), "trace", "convert", spc, "-o", sources[-1]])
        commands: dict[str, tuple[Path, list[str | Path]]] = {}
        for source in sources:
            fit = [loadstone(), "model", "fit", source, "-o", model, "--force"]
            commands[f"`loadstone model fit {source.name}`"] = source, fit
            commands[f"the same, six dimensions ({source.suffix[1:]})"] = source, [*fit, *SIX]
        peer = f"DuckDB {version}, group by"
        commands[peer] = spc, [python, query]
        size = {source: source.stat().st_size / 1e6 for source in sources}
        requests = args.copies * REQUESTS / 1e6
        costs: dict[str, list[Cost]] = {name: [] for name in commands}
        for turn in range(args.rounds + 1):
            for name, (_, command) in commands.items():
                cost = measure(command)
                # The first turn fills the caches.
                if turn:
                    costs[name].append(cost)
    print(
        f"{machine()}\n\nSPC text, {size[spc]:.0f} MB, {args.copies} copies of dtrs, {args.rounds} rounds\n"
    )
    rows = []
    for name, (source, _) in commands.items():
        seconds = [cost.seconds for cost in costs[name]]
        rows.append(
            [
                name,
                spread(seconds),
                spread([size[source] / s for s in seconds], 0),
                spread([requests / s for s in seconds], 1),
                spread([cost.cpu for cost in costs[name]]),
                f"{max(cost.peak for cost in costs[name]) / 1e6:.0f}",
            ]
        )
    print(table(["", "seconds", "MB/s", "million requests/s", "CPU s", "peak MB"], rows))
    for name in [name for name in commands if name != peer]:
        ratio = [p.seconds / f.seconds for f, p in zip(costs[name], costs[peer], strict=True)]
        print(f"\nDuckDB takes {spread(ratio)} times as long as {name}")


if __name__ == "__main__":
    main()
