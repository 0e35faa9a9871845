"""What a model's stream does to caches, and its size, before any device sees it.

    .venv/bin/python benches/models.py [--only default small] [--seeds 3]

For each block trace of ``../shared/traces`` and the demo one model, that of ``model fit`` and that of
``--small``: miss ratios of LRU, FIFO, CLOCK and ARC caches against the trace's (``model check``), and the
size against the trace's Parquet, both after ``zstd -19``. Each trace is one value: the mean of its seeds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from _common import Figure, Measured, Target, call, compressed, loadstone, main, need, ours, trace_file

MEAN, MOST = Target(at_most=0.02, of="every"), Target(at_most=0.05, of="every")
FIGURES = {
    "default lru mean": Figure("default models: LRU miss ratios, mean difference", "", MEAN),
    "default lru max": Figure("default models: LRU miss ratios, largest difference", "", MOST),
    "default others mean": Figure("default models: FIFO, CLOCK and ARC, mean difference", "", MEAN),
    "default others max": Figure("default models: FIFO, CLOCK and ARC, largest difference", "", MOST),
    "default size": Figure(
        "default models: size of the trace's Parquet", "%", Target(at_most=10, of="every")
    ),
    "small lru mean": Figure("small models: LRU miss ratios, mean difference", "", MEAN),
    "small lru max": Figure("small models: LRU miss ratios, largest difference", "", MOST),
    "small size": Figure("small models: size of the trace's Parquet", "%", Target(at_most=1.5, of="every")),
}
FILES = [
    # The first three have over 100,000 requests; sizes are of these.
    "spc/dtrs.spc",
    "cloudphysics/cloudPhysicsIO.vscsi",
    "examples/loop0.parquet",
    "spc/websearch-small.spc",
    "dataseries/h03126.ds-littleend",
    "diskmon/mayun.txt",
    "diskmon/p2pdownload.trace",
    "diskmon/sys1.txt",
    "disksim/systemdisk1.ascii",
    "msr/msr-cambridge1-sample.csv",
    "systor17/systor17-traces-sample.csv",
    "systor17/systor17-additional-sample.csv",
    "tencent/cloud_storage-sample.csv",
    "fio-iolog/fio_v3.log",
]
LARGE = 3
READ = {
    "systemdisk1.ascii": ["--format", "disksim"],
    "p2pdownload.trace": ["--max-damaged", "2"],
    "cloud_storage-sample.csv": ["--format", "tencent"],
}


def fitted(folder: Path, name: str, seeds: int, *words: str) -> dict[str, float]:
    """How far what the model of a trace draws is from it, mean of the seeds, and its size."""
    stored, model = folder / f"{Path(name).name}.parquet", folder / "a.mdh"
    if not stored.exists():
        how = READ.get(Path(name).name, [])
        call(loadstone(), "trace", "convert", trace_file(name), "-o", stored, *how)
    call(loadstone(), "model", "fit", stored, "-o", model, "--force", *words)
    found: dict[str, list[float]] = {}
    for seed in range(1, seeds + 1):
        checked = ours("model", "check", model, stored, "--seed", seed)
        others = list(checked["policies"].values())
        for kind, of in (("mean", statistics.fmean), ("max", max)):
            found.setdefault(f"lru {kind}", []).append(checked["miss_ratio"][kind])
            if others:
                found.setdefault(f"others {kind}", []).append(of(one[kind] for one in others))
    one = {key: statistics.fmean(values) for key, values in found.items()}
    one["size"] = 100 * compressed(model) / compressed(stored)
    print(name, *words, *(f"{key} {value:.3f}" for key, value in one.items()), file=sys.stderr)
    return one


def kind(name: str, *words: str) -> object:
    """The part that fits such models."""

    def part(folder: Path, args: argparse.Namespace) -> Iterator[Measured]:
        need("zstd")
        found = [fitted(folder, file, args.seeds, *words) for file in FILES]
        for key in (key for key in FIGURES if key.startswith(f"{name} ")):
            of = found[:LARGE] if key.endswith("size") else found
            what = key.removeprefix(f"{name} ")
            # Other caches than LRU need a model that tells how many blocks its trace has.
            yield Measured(key, [one[what] for one in of if what in one])

    return part


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=3)


if __name__ == "__main__":
    parts = {"default": kind("default"), "small": kind("small", "--small")}
    main(__doc__, FIGURES, parts, rounds=1, options=options)  # type: ignore[arg-type]
