"""Where a load changes: boundaries of phases, found in the sequence of fine matrices.

The sequence is cut so that the sum of the cost of the pieces, plus a penalty for each cut, is least. The cost
of a piece is its negative log-likelihood when all requests in it are drawn from one histogram, summed over
the dimensions: the entropy of its marginals times its requests. Source: PELT, Killick, Fearnhead and Eckley,
"Optimal detection of changepoints with a linear computational cost" (JASA 107, 2012); the penalty is that of
BIC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.errors import Error
from loadstone.model._model import Model, fit
from loadstone.trace import Options
from loadstone.trace.options import Paths, Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STEPS = 1024
"""Pieces of about equally many requests at most between which a change is looked for."""

CODES = 48
"""Buckets of a dimension that are told apart; rarer ones count together."""

LEAST = 2
"""Steps of a piece at least: one that a change lies in is like neither side."""

FINE: dict[str, Any] = {"merge": "none", "group": 256, "max_matrices": 1 << 14}
"""How a model is fitted in which changes are to be found: every group of requests with a matrix of its
own."""


def change_points(model: Model, *, penalty: float = 1.0) -> list[float]:
    """Times (seconds from the start) at which a model's load changes, ascending; the start is none.

    The model should be as fine as :data:`FINE` makes it. A ``penalty`` above 1 finds fewer changes. Raises
    ``Error`` where the penalty is not above 0.
    """
    if not penalty > 0:
        raise Error(f"a penalty of {penalty:g} would find a change everywhere; it must be above 0")
    counts, starts, dimensions = _pieces(model)
    cuts = pelt(counts, dimensions, penalty, LEAST)
    return [float(starts[cut]) for cut in cuts]


def _pieces(model: Model) -> tuple[Floats, Floats, int]:
    """Requests by piece of time and bucket (all dimensions side by side), starts (s), dimensions."""
    import numpy as np

    phases = [phase for phase in model.phases() if phase["requests"]]
    done = np.cumsum([phase["requests"] for phase in phases])
    piece = np.minimum((done - 1) * STEPS // done[-1], STEPS - 1) if len(phases) > STEPS else None
    of_phase = np.arange(len(phases)) if piece is None else np.unique(piece, return_inverse=True)[1]
    matrices = np.array([phase["matrix"] for phase in phases])
    share = np.array([phase["requests"] for phase in phases], dtype=np.float64)
    share /= np.bincount(matrices, weights=share, minlength=int(matrices.max()) + 1)[matrices]
    columns = model.columns()
    blocks = []
    wanted = [d["feature"] for d in model.header["dimensions"] if d["role"] == "sets"]
    drawn = columns["table"] == 0
    for name in wanted:
        if name in ("align", "object"):
            # Runs keep an alignment for long, which varies far more than chance; objects come one by one.
            continue
        codes, at = np.unique(columns[name][drawn], return_inverse=True)
        counts = columns["count"][drawn].astype(np.float64)
        kept = np.argsort(-np.bincount(at, weights=counts))[:CODES]
        slot = np.full(len(codes), min(len(codes), CODES))
        slot[kept] = np.arange(len(kept))
        table = np.zeros((len(model.matrices()), int(slot.max()) + 1))
        np.add.at(table, (columns["matrix"][drawn], slot[at]), counts)
        pieces = np.zeros((int(of_phase[-1]) + 1, table.shape[1]))
        # A matrix that several phases share is theirs by their requests.
        np.add.at(pieces, of_phase, table[matrices] * share[:, None])
        blocks.append(pieces)
    first = np.concatenate([[True], np.diff(of_phase) > 0])
    starts = np.array([phase["start"] for phase in phases])[first]
    return np.concatenate(blocks, axis=1), starts, len(blocks)


def pelt(counts: Floats, dimensions: int, penalty: float = 1.0, least: int = 1) -> list[int]:
    """Positions of the rows at which a sequence of histograms changes, ascending, without the first.

    ``counts``: a row for each step; its columns are the buckets of all dimensions side by side. A piece has
    at least
    ``least`` rows.
    """
    import numpy as np

    steps = len(counts)
    sums = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    requests = sums.sum(axis=1) / dimensions

    def cost(starts: NDArray[np.intp], end: int) -> Floats:
        inside = sums[end] - sums[starts]
        total = requests[end] - requests[starts]
        logs = np.log(np.maximum(inside, 1e-300))
        likelihood = (inside * logs).sum(axis=1) - dimensions * total * np.log(np.maximum(total, 1e-300))
        found: Floats = -likelihood
        return found

    # Each piece has a share for every bucket that is used, less one for each dimension.
    free = max(1, int((sums[-1] > 0).sum()) - dimensions)
    price = penalty * 0.5 * (free + 1) * np.log(max(float(requests[-1]), 2.0))
    best = np.full(steps + 1, np.inf)
    best[0] = -price
    last = np.zeros(steps + 1, np.intp)
    candidates = np.array([0], np.intp)
    # When a candidate is not looked at any more.
    until = np.full(steps + 1, steps + 1)
    for end in range(min(least, steps), steps + 1):
        candidates = candidates[until[candidates] > end]
        long_enough = candidates[end - candidates >= min(least, steps)]
        costs = best[long_enough] + cost(long_enough, end)
        cheapest = int(np.argmin(costs))
        best[end] = costs[cheapest] + price
        last[end] = long_enough[cheapest]
        # What is dearer than the best without its penalty is so from every place on where a piece may begin
        # now.
        dear = long_enough[costs > best[end]]
        until[dear] = np.minimum(until[dear], end + least)
        candidates = np.append(candidates, end)
    cuts = []
    at = int(last[steps])
    while at > 0:
        cuts.append(at)
        at = int(last[at])
    return cuts[::-1]


def find_boundaries(
    paths: Paths,
    *,
    penalty: float = 1.0,
    window: float | None = None,
    dimensions: tuple[str, ...] = (),
    trace: Options | None = None,
    progress: Progress | None = None,
) -> list[float]:
    """Times (s) at which the load of a trace changes: :func:`change_points` of a fine model of it.

    The other parameters are those of :func:`fit`, and so are its errors; raises ``Error``, too, where the
    penalty is not above 0.
    """
    # Stack distances grow with the footprint, which is no change of the load.
    named = any("reuse_distance" in dimension for dimension in dimensions)
    without = () if named else ("reuse_distance",)
    fine = fit(
        paths, window=window, dimensions=dimensions, without=without, trace=trace, progress=progress, **FINE
    )
    return change_points(fine, penalty=penalty)
