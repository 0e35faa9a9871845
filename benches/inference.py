"""Statistics in simulation: what intervals cover, how often equal arms are called different.

    .venv/bin/python benches/inference.py [--rounds 5] [--trials 2000]

A round has seeds of its own, and so many trials of each kind. The peer of the figure of drift are
the same runs, made one arm after the other.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from _common import Figure, Measured, Target, main

from loadstone.stats.intervals import ratio, t_interval
from loadstone.stats.ranks import mann_whitney
from loadstone.stats.series import batch_means

FIGURES = {
    "t": Figure("t intervals of 10, 20 and 30 runs at 95 %: covered", "%", Target(93, 97, "every")),
    "batches": Figure(
        "batch means of 300 values, autocorrelation up to 0.8: covered", "%", Target(at_least=92, of="every")
    ),
    "refused": Figure(
        "batch means of 300 values, autocorrelation 0.9: refused", "%", Target(at_least=80, of="every")
    ),
    "drift": Figure(
        "arms that are alike under drift, runs in random blocks: called different by ranks",
        "%",
        Target(at_most=5),
        "runs in sequence",
    ),
    "paired": Figure(
        "the same in blocks, ratio paired by block at 95 %: covered", "%", Target(93, 97, "every")
    ),
}
SKEW = math.sqrt(math.log(1.01))
"""Of lognormal values that vary by 10 %."""


def share(found: list[bool]) -> float:
    return 100 * float(np.mean(found))


def t(_: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Normal and lognormal runs."""
    covered = []
    for turn in range(args.rounds):
        rng = np.random.default_rng((1, turn))
        for runs in (10, 20, 30):
            normal = rng.standard_normal((args.trials, runs)) + 10
            covered.append(share([t_interval(one).holds(10) for one in normal]))
            skewed, true = rng.lognormal(0, SKEW, (args.trials, runs)), math.exp(SKEW**2 / 2)
            covered.append(share([t_interval(one).holds(true) for one in skewed]))
    yield Measured("t", covered)


def wandering(rng: np.random.Generator, rho: float, size: int) -> np.ndarray:
    """Series of 300 values of the first order, one a row."""
    out = rng.standard_normal((size, 300))
    out[:, 1:] *= math.sqrt(1 - rho**2)
    for at in range(1, 300):
        out[:, at] += rho * out[:, at - 1]
    return out


def batches(_: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Intervals of series whose neighbours are alike."""
    covered, refused = [], []
    for turn in range(args.rounds):
        rng = np.random.default_rng((2, turn))
        for rho in (0.0, 0.3, 0.6, 0.8, 0.9):
            found = [batch_means(one).interval for one in wandering(rng, rho, args.trials)]
            if rho < 0.9:
                covered.append(share([one.holds(0) for one in found if one is not None]))
            else:
                refused.append(share([one is None for one in found]))
    yield Measured("batches", covered)
    yield Measured("refused", refused)


def drift(_: Path, args: argparse.Namespace) -> Iterator[Measured]:
    """Ten runs of each of two equal arms, while the host drifts by 1.5 times the noise."""
    at = np.linspace(0, 0.45, 20)
    blocks = (list(range(10)),) * 2
    ours, peer, covered = [], [], []
    for turn in range(args.rounds):
        rng = np.random.default_rng((3, turn))
        runs = 10 + at + 0.3 * rng.standard_normal((args.trials, 20))
        peer.append(share([mann_whitney(one[:10], one[10:]).p < 0.05 for one in runs]))
        pairs = rng.permuted(runs.reshape(args.trials, 10, 2), axis=2)
        ours.append(share([mann_whitney(one[:, 0], one[:, 1]).p < 0.05 for one in pairs]))
        covered.append(share([ratio(one[:, 0], one[:, 1], blocks).holds(1) for one in pairs]))
    yield Measured("drift", ours, peer)
    yield Measured("paired", covered)


if __name__ == "__main__":
    main(
        __doc__,
        FIGURES,
        {"t": t, "batches": batches, "drift": drift},
        options=lambda parser: parser.add_argument(
            "--trials", type=int, default=2000, help="of each kind in a round [%(default)s]"
        ),
    )
