"""What a model's stream does to caches, and how like its trace it is otherwise, before any device sees it.

For each trace one model, that of ``model fit`` unless options are given: the miss-ratio curves of LRU
caches of 4 KiB blocks against the trace's, at 60 linearly and 60 geometrically spaced sizes, beside those of
two trivial models: no re-use at all (everything misses), and the same histograms without anything of
locality. Then every other distance, and the size of the model.

    .venv/bin/python benches/content.py [--trace dtrs ...] [--seeds 3] [--fit="--small"]
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _common import ROOT, TRACES, compressed, fit, loadstone, machine, table

from loadstone import model as models
from loadstone.model import Portrait

FILES = {
    "cloudPhysicsIO": TRACES / "cloudphysics/cloudPhysicsIO.vscsi",
    "dtrs": TRACES / "spc/dtrs.spc",
    "loop0": ROOT / "examples/loop0.parquet",
    "h03126": TRACES / "dataseries/h03126.ds-littleend",
    "websearch": TRACES / "spc/websearch-small.spc",
}
# What a plain histogram has: nothing of earlier requests but the last.
PLAIN = ["observed:reuse", "observed:resume", "observed:run"]


def misses(real: Portrait, made: Portrait | None) -> tuple[float, float]:
    """Mean and largest difference of the curves; of no re-use where nothing was made."""
    blocks = real.footprint // 4096
    sizes = np.concatenate([np.linspace(blocks / 60, blocks, 60), np.geomspace(1, blocks, 60)]).round() * 4096
    other = np.ones(len(sizes)) if made is None else made.miss_ratio(sizes)
    off = np.abs(real.miss_ratio(sizes) - other)
    return float(off.mean()), float(off.max())


def main() -> None:
    """Prints two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trace", action="append", choices=FILES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--fit", default="", help="options of model fit, in one argument")
    args = parser.parse_args()
    curves: list[list[Any]] = []
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in args.trace or FILES:
            stored, path = Path(folder) / f"{name}.parquet", Path(folder) / f"{name}.mdh"
            convert = [loadstone(), "trace", "convert", FILES[name], "-o", stored]
            subprocess.run(convert, check=True, stdout=subprocess.DEVNULL)
            fit(stored, path, args.fit)
            fitted = models.Model.load(path)
            plain = models.fit(stored, dimensions=PLAIN, offset_rule="near")
            real = models.portrait(fitted, stored)
            drawn = [models.portrait(fitted, seed=seed) for seed in range(1, args.seeds + 1)]
            lost = [models.portrait(plain, seed=seed) for seed in range(1, args.seeds + 1)]
            share = compressed(path) / compressed(stored)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
            ours = np.mean([misses(real, made) for made in drawn], axis=0)
            nothing, without = misses(real, None), np.mean([misses(real, made) for made in lost], axis=0)
            best = min(nothing[0], without[0])
            below = f"{100 * (1 - ours[0] / best):.0f} %" if best > 0.05 else "-"
            cells = [f"{x:.3f}" for pair in (ours, nothing, without) for x in pair]
            curves.append([name, *cells, below, f"{100 * share:.2f} %", f"`{digest}`"])
            for row in models.compare(fitted, real, drawn[0])["dimensions"]:
                moved = "-" if row["of_mean"] is None else f"{100 * row['of_mean']:.1f}"
                rows.append([name, row["dimension"], f"{100 * row['ks']:.1f}", moved])
    print(machine())
    heads = ["trace", "mean", "max", "no re-use: mean", "max", "no locality: mean", "max", "below the better"]
    print(table([*heads, "size of the model", "sha256"], curves))
    print(table(["trace", "dimension", "KS %", "Wasserstein, % of the mean"], rows))


if __name__ == "__main__":
    main()
