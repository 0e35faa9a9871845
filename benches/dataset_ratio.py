"""Datasets: what it costs to measure how far chunks compress, and how far off a sample is.

Each tree is scanned on one thread with every chunk measured, with a sample, and with none, in turns; the
figure is bytes per second of CPU time, the best of five, everything in the page cache. What a sample says
of each chunk, and of all together, is compared with the whole, for several keys, as the key decides what is
drawn.

    .venv/bin/python benches/dataset_ratio.py /usr/lib/python3 /usr/share/doc
"""

from __future__ import annotations

import argparse
import struct
import tempfile
import time
from pathlib import Path

import numpy as np
from _common import machine, table

from loadstone import dataset

ROUNDS = 5
KEYS = 5
# 32 steps of a ratio are a doubling (docs/reference/formats/fstree.md).
STEPS = 32


def chunks(path: Path) -> np.ndarray:
    """Sizes and ratios of a series' chunks, packed."""
    with path.open("rb") as file:
        file.seek(16)
        while True:
            tag, _, length = struct.unpack("<4sIQ8x", file.read(24))
            if tag == b"csiz":
                return np.frombuffer(file.read(length), "<u4")
            file.seek(length, 1)


def ratio(packed: np.ndarray) -> float:
    """How many times smaller all chunks become together."""
    sizes = (packed & 0xFFFFFF).astype(float)
    return float(sizes.sum() / (sizes / 2 ** (((packed >> 24) - 1.0) / STEPS)).sum())


def main() -> None:
    """Prints two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trees", nargs="+", type=Path)
    speeds, errors = [], []
    for tree in parser.parse_args().trees:
        with tempfile.TemporaryDirectory() as folder:
            series, key = Path(folder) / "x.fst", Path(folder) / "key"
            spent: dict[str, list[float]] = {"none": [], "sample": [], "whole": []}
            size = dataset.scan(tree, series, compress="none")["scanned"][0]["bytes"]
            for _ in range(ROUNDS):
                for how, times in spent.items():
                    begun = time.process_time()
                    dataset.scan(tree, series, threads=1, compress=how, force=True)
                    times.append(time.process_time() - begun)
            figures = [f"{size / min(times) / 1e9:.2f}" for times in spent.values()]
            speeds.append([str(tree), f"{size / 1e6:,.0f}", *figures])

            totals, means, high = [], [], []
            for number in range(KEYS):
                key.write_bytes(bytes([number]) * 32)
                packed = {}
                for how in ("whole", "sample"):
                    dataset.scan(tree, series, compress=how, key=key, force=True)
                    packed[how] = chunks(series)
                totals.append(100 * (ratio(packed["sample"]) / ratio(packed["whole"]) - 1))
                steps = np.abs((packed["sample"] >> 24).astype(int) - (packed["whole"] >> 24).astype(int))
                off = 100 * (2 ** (steps / STEPS) - 1)
                means.append(off.mean())
                high.append(np.percentile(off, 95))
            worst = max(totals, key=abs)
            errors.append(
                [
                    str(tree),
                    f"{len(packed['whole']):,}",
                    f"{ratio(packed['whole']):.3f}",
                    f"{np.mean(totals):+.2f} %",
                    f"{worst:+.2f} %",
                    f"{np.mean(means):.1f} %",
                    f"{np.mean(high):.0f} %",
                ]
            )
    print(machine())
    print(table(["tree", "MB", "none, GB/s", "sample", "whole"], speeds))
    heads = ["tree", "chunks", "ratio", "total off", f"worst of {KEYS}", "a chunk", "95 % of chunks"]
    print(table(heads, errors))


if __name__ == "__main__":
    main()
