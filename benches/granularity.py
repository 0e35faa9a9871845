"""What the length of a chunk does to a model's error and size: figure 3.8 of the MDH thesis for two traces.

    .venv/bin/python benches/granularity.py

Chunks are windows compared by themselves (--group 0). The error is that of ``model fit --target-error``: the
largest distance of what is drawn from the trace, in ops, sizes, gaps, alignment and runs, and in reads,
writes and bytes over time.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from _common import ROOT, TRACES, compressed, machine, table

from loadstone import model as models
from loadstone import trace
from loadstone.model._target import error_of

FILES = {
    "cloudPhysicsIO": TRACES / "cloudphysics/cloudPhysicsIO.vscsi",
    "loop0": ROOT / "examples/loop0.parquet",
}
PARTS = (10_000, 3000, 1000, 300, 100, 30, 10, 3, 1)
"""Chunks that the length of a trace is divided into."""


def main() -> None:
    """Prints a table for each trace."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", action="append", choices=FILES)
    args = parser.parse_args()
    print(machine())
    for name in args.trace or FILES:
        rows: list[list[Any]] = []
        with tempfile.TemporaryDirectory() as folder:
            stored, path = Path(folder) / "a.parquet", Path(folder) / "a.mdh"
            trace.convert(FILES[name], stored)
            span = trace.describe(stored)["span_ns"] / 1e9
            for parts in PARTS:
                window = span * 1.000001 / parts
                fitted = models.fit(stored, window=window, group=0)
                fitted.save(path, force=True)
                errors = error_of(models.check(fitted, stored))
                worst = max(errors, key=lambda of: errors[of])
                over = [value for of, value in errors.items() if "over time" in of]
                rows.append(
                    [
                        f"{window:.3g} s",
                        f"{fitted.requests / parts:,.0f}",
                        f"{100 * errors[worst]:.1f} % ({worst})",
                        f"{100 * max(over, default=0):.1f} %",
                        f"{100 * compressed(path) / compressed(stored):.2f} %",
                        len(fitted.matrices()),
                    ]
                )
        print(f"\n### {name}\n")
        print(table(["chunk", "requests", "error", "over time", "size of the model", "matrices"], rows))


if __name__ == "__main__":
    main()
