"""How often runs of one kind would be told apart: relabelled runs of evaluations that were kept.

Under the hypothesis that the model is faithful replays and emulations are exchangeable, so the same verdict
is asked of random halves of all runs (a permutation test; Good, Permutation, Parametric and Bootstrap Tests
of Hypotheses). `chance` is the share of relabellings at least as far apart, relative to their own floor, as
the runs were; `beyond` the share that lies beyond 1.25 times it, where a faithful model would fail.
Paced runs are cut into equal parts of the shortest, not of whole windows as evaluate does, so figures may
differ a little from its own; where by more than a tenth, that is said.

    .venv/bin/python benches/faithfulness.py --trace dtrs --keep KEPT ...
    .venv/bin/python benches/chance.py KEPT
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from _common import table

from loadstone.bundle import Bundle
from loadstone.observe.response import Response
from loadstone.stats.distance import pair
from loadstone.study.faithful import FLOOR_FACTOR, compare

RELABELLED = 2000


def responses(bundle: Path, result: dict) -> tuple[list[Response], list[Response]]:
    """Of the replays and of the emulations of an evaluation, by the intervals it was judged by."""
    runs = {kind: [] for kind in ("replay", "model")}
    for folder in sorted(p for p in bundle.iterdir() if p.is_dir()):
        runs[folder.name.split("-")[1]].append(Bundle.read(folder))
    parts = result["intervals"]
    if result["alignment"] == "progress":
        cut = {kind: [run.response(parts, by="progress") for run in group] for kind, group in runs.items()}
        return cut["replay"], cut["model"]
    seconds = min(s for group in result["seconds"].values() for s in group)
    cut = {kind: [run.response(parts, seconds=seconds) for run in group] for kind, group in runs.items()}
    return cut["replay"], cut["model"]


def ratios(runs: np.ndarray, half: int, rng: np.random.Generator) -> tuple[float, np.ndarray]:
    """RMS relative to the floor, as the runs were labelled and as they are relabelled at random."""
    scale = float(runs[:half].mean())
    between = np.array([[pair(a, b, scale)[0] for b in runs] for a in runs])

    def ratio(first: np.ndarray) -> float:
        second = np.setdiff1d(np.arange(len(runs)), first)

        def inside(group: np.ndarray) -> float:
            square = between[np.ix_(group, group)]
            return float(square[np.triu_indices(len(group), 1)].mean())

        return float(between[np.ix_(first, second)].mean()) / max(inside(first), inside(second))

    told = ratio(np.arange(half))
    return told, np.array([ratio(rng.permutation(len(runs))[:half]) for _ in range(RELABELLED)])


def main() -> None:
    """Prints a table of all parameters of all evaluations in a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kept", type=Path)
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    rows = []
    for file in sorted(args.kept.glob("*.json")):
        result = json.loads(file.read_text())
        replays, models = responses(file.with_suffix(".bundle"), result)
        again = {f.parameter: f for f in compare(replays, models)}
        for row in result["distances"]:
            if not row["usable"]:
                continue
            name = row["parameter"]
            runs = np.array([r.values[name] for r in [*replays, *models]], dtype=float)
            runs = runs[:, ~np.isnan(runs).any(axis=0)]
            told, relabelled = ratios(runs, len(replays), rng)
            now = again[name].distance.rms
            if abs(now / row["rms"] - 1) > 0.1:
                print(f"{file.stem} {name}: {now:.3f}, was {row['rms']:.3f}", file=sys.stderr)
            rows.append(
                [
                    file.stem,
                    name,
                    f"{100 * row['rms']:.1f}",
                    f"{100 * row['floor_rms']:.1f}",
                    f"{told:.2f}",
                    f"{100 * np.mean(relabelled >= told):.2f}",
                    f"{100 * np.mean(relabelled > FLOOR_FACTOR):.2f}",
                    row["verdict"],
                ]
            )
    head = ["evaluation", "parameter", "RMS %", "floor %", "ratio", "chance %", "beyond %", "verdict"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
