"""What distributions in place of histograms do to a model's size and error: figure 3.9 of the MDH thesis.

    .venv/bin/python benches/approximation.py

Factored models of two traces, as usual and with fine buckets; the size is that of the file after zstd -19,
relative to the one without formulas. The error is that of ``model fit --target-error``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from _common import ROOT, TRACES, compressed, machine, table

from loadstone import model as models
from loadstone import trace
from loadstone.model._formula import chosen
from loadstone.model._target import error_of

FILES = {
    "cloudPhysicsIO": TRACES / "cloudphysics/cloudPhysicsIO.vscsi",
    "loop0": ROOT / "examples/loop0.parquet",
}
BUCKETS = {"usual": [], "fine": ["gap=log2:16", "size=linear:512"]}
ERRORS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


def main() -> None:
    """Prints a table for each trace and kind of buckets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", action="append", choices=FILES)
    parser.add_argument("--polynomial", action="store_true", help="only polynomials, as the thesis")
    args = parser.parse_args()
    families = ["polynomial"] if args.polynomial else []
    print(machine())
    for name in args.trace or FILES:
        for buckets, dimensions in BUCKETS.items():
            rows: list[list[Any]] = []
            with tempfile.TemporaryDirectory() as folder:
                stored, path = Path(folder) / "a.parquet", Path(folder) / "a.mdh"
                trace.convert(FILES[name], stored)
                plain = models.fit(stored, dimensions=dimensions, cell_bits=models.CELL_BITS)
                fitted = [(slice_, models.fits(slice_, families)) for slice_ in models.slices(plain)]
                whole = 0
                for error in ERRORS:
                    model = chosen(plain, fitted, error=error)
                    model.save(path, force=True)
                    size = compressed(path)
                    whole = whole or size
                    errors = error_of(models.check(model, stored))
                    worst = max(errors, key=lambda of: errors[of])
                    gap = errors.get("gap", 0.0)
                    rows.append(
                        [
                            f"{100 * error:.0f} %",
                            sum(len(link["formulas"]) for link in model.chain),
                            f"{model.stored_cells:,}",
                            f"{100 * size / whole:.1f} %",
                            f"{100 * errors[worst]:.1f} % ({worst})",
                            f"{100 * gap:.1f} %",
                        ]
                    )
            print(f"\n### {name}, {buckets} buckets\n")
            print(table(["target error", "formulas", "cells", "size", "error", "gap"], rows))


if __name__ == "__main__":
    main()
