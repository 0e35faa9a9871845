"""Models against models: how far two are apart, and which of many are alike.

Distances are taken over all phases together. Of a dimension that both models have: the Kolmogorov-Smirnov
distance of its marginals (total variation where numbers are names) and the Wasserstein distance in its unit,
with the numbers of a bucket even inside it; so models with different bucket rules can be compared. Of the
joint histograms: total variation, where all dimensions have the same rules. One number for two models, as
classes need it, is the mean of the first over the dimensions that both have.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from loadstone.errors import Error
from loadstone.model._check import Numbers, apart, unit
from loadstone.model._model import Model
from loadstone.model.histograms import histogram, numbers_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def _numbers(model: Model, dimension: str) -> Numbers:
    import numpy as np

    marginal = model.marginal(dimension)
    first = np.where(marginal.none, np.iinfo(np.int64).min, marginal.first)
    return numbers_of(first, marginal.last, marginal.counts.astype(np.float64))


def _mean(model: Model, dimension: str) -> float:
    """The mean of a dimension's numbers as they are drawn: even over those of a bucket, on the grain.

    A bucket has none beyond the largest number seen, and none that has a bucket of its own. Where the model
    tells the mean size of a bucket, that is what is drawn.
    """
    marginal = model.marginal(dimension)
    told_means: dict[int, list[float]] = {}
    for _, first, mean, requests in model.header.get("mean_sizes", []) if dimension == "size" else []:
        sums = told_means.setdefault(first, [0, 0])
        sums[0], sums[1] = sums[0] + mean * requests, sums[1] + requests
    told = next(d for d in model.header["dimensions"] if d["feature"] == dimension)
    exact = told["rule"]["values"] if told["rule"]["kind"] == "exact" else []
    moved, requests = 0.0, 0
    columns = (marginal.first, marginal.last, marginal.counts, marginal.none)
    for first, last, count, none in zip(*(column.tolist() for column in columns), strict=True):
        if none:
            continue
        largest, grain = told["largest"], told["grain"]
        last = min(last, largest) if largest is not None and largest >= first else last
        low, high = -(-first // grain) * grain, last // grain * grain
        inside = [v for v in exact if low <= v <= high and v % grain == 0] if first < last else []
        numbers = (high - low) // grain + 1 - len(inside)
        mean = (low + high) / 2
        if inside and numbers > 0:
            mean = (mean * (numbers + len(inside)) - sum(inside)) / numbers
        if first < last and first in told_means:
            known, of = told_means[first]
            # Ops that it tells no mean of are drawn evenly.
            mean = (known + mean * max(count - of, 0)) / max(count, of)
        moved, requests = moved + mean * count, requests + count
    return float(moved / max(requests, 1))


def _names(model: Model) -> set[str]:
    return {d["feature"] for d in model.header["dimensions"] if "category" in str(d["rule"]).lower()}


def shares(model: Model) -> dict[str, float]:
    """What a model is like in a few numbers.

    ``requests``, ``seconds``, ``rate`` (per second), ``read_share``, ``mean_size`` and ``extent`` (bytes),
    ``phases``.
    """
    source, ops = model.header["source"], model.marginal("op")
    by_op = dict(zip(ops.first.tolist(), ops.counts.tolist(), strict=True))
    moved = by_op.get(0, 0) + by_op.get(1, 0)
    return {
        "requests": model.requests,
        "seconds": source["span_ns"] / 1e9,
        "rate": model.requests / max(source["span_ns"] / 1e9, 1e-9),
        "read_share": by_op.get(0, 0) / moved if moved else 0.0,
        "mean_size": _mean(model, "size"),
        "extent": sum(int(o["extent"]) for o in model.header["objects"]),
        "phases": len(model.phases()),
    }


def diff(a: Model, b: Model) -> dict[str, Any]:
    """How two models differ, as plain values.

    ``first`` and ``second``: :func:`shares` of each. ``dimensions``: for each that both have ``ks`` (0 to 1),
    ``wasserstein`` in its ``unit`` and ``of_mean`` (``None`` for names). ``only``: dimensions that one of
    them has. ``joint``: total variation, ``None`` where the rules differ. Raises ``Error`` where the tables
    of a model form a chain.
    """
    both = [name for name in a.dimensions if name in b.dimensions]
    rows = []
    for name in both:
        names = name in _names(a) and name in _names(b)
        ks, moved, mean = apart(_numbers(a, name), _numbers(b, name), names=names)
        of_mean = moved / mean if moved is not None and mean else None
        rows.append(
            {"dimension": name, "unit": unit(name, a), "ks": ks, "wasserstein": moved, "of_mean": of_mean}
        )
    return {
        "first": shares(a),
        "second": shares(b),
        "dimensions": rows,
        "only": sorted(set(a.dimensions) ^ set(b.dimensions)),
        "joint": _joint(a, b),
    }


def _joint(a: Model, b: Model) -> float | None:
    """Total variation of all cells, by what they stand for."""
    if [(d["feature"], d["role"]) for d in a.header["dimensions"]] != [
        (d["feature"], d["role"]) for d in b.header["dimensions"]
    ]:
        return None
    rules = [[d["rule"] for d in m.header["dimensions"]] for m in (a, b)]
    return histogram(a).distance(histogram(b)) if rules[0] == rules[1] else None


def distances(models: Sequence[Model]) -> Floats:
    """The distance of each model to each: a symmetric matrix, 0 (alike) to 1.

    Raises ``Error`` where two have no dimension in common.
    """
    import numpy as np

    numbers = [{name: _numbers(model, name) for name in model.dimensions} for model in models]
    names = [_names(model) for model in models]
    out = np.zeros((len(models), len(models)))
    for i in range(len(models)):
        for j in range(i):
            both = numbers[i].keys() & numbers[j].keys()
            if not both:
                raise Error("two of the models have no dimension in common")
            parts = [
                apart(numbers[i][n], numbers[j][n], names=n in names[i] and n in names[j])[0]
                for n in sorted(both)
            ]
            out[i, j] = out[j, i] = float(np.mean(parts))
    return out


def classes(apart: Floats, count: int | None = None) -> list[int]:
    """The class of each model, numbered from 0 in order of appearance.

    Classes are joined as long as their members are nearest on average (UPGMA); ``count`` classes are left, or
    as many as there were before the joint that was farthest beyond the one before it. ``apart``: shape
    (models, models), as :func:`distances` returns it. Raises ``Error`` where ``count`` is below 1 or above
    the number of models.
    """
    import numpy as np

    groups: list[list[int]] = [[i] for i in range(len(apart))]
    history: list[tuple[float, list[list[int]]]] = [(0.0, [list(g) for g in groups])]
    while len(groups) > 1:
        pairs = [
            (float(apart[np.ix_(a, b)].mean()), i, j)
            for i, a in enumerate(groups)
            for j, b in enumerate(groups)
            if j < i
        ]
        at, i, j = min(pairs)
        groups[j] = groups[j] + groups[i]
        del groups[i]
        history.append((at, [list(g) for g in groups]))
    if count is None:
        steps = [after[0] - before[0] for before, after in itertools.pairwise(history)]
        left = history[int(np.argmax(steps))][1] if steps else history[0][1]
    else:
        if not 1 <= count <= len(apart):
            raise Error(f"{len(apart)} models cannot be put into {count} classes")
        left = history[len(apart) - count][1]
    of = [0] * len(apart)
    for number, group in enumerate(sorted(left, key=min)):
        for member in group:
            of[member] = number
    return of


def nearest(model: Model, known: Mapping[str, Model]) -> list[tuple[str, float]]:
    """Known models by their distance to one, the nearest first.

    Raises ``Error`` where one has no dimension in common with it.
    """
    apart = distances([model, *known.values()])[0, 1:]
    return sorted(zip(known, apart.tolist(), strict=True), key=lambda pair: pair[1])
