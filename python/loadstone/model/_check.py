"""How closely requests of a model match its trace, before any device sees either.

Every number is taken of the whole trace and of as many requests drawn from the model:

- of each dimension the **Kolmogorov-Smirnov** distance (largest difference of the cumulated shares, requests
  without a number first) and the **Wasserstein** distance (how far the numbers would have to move on average
  for both to be equal, in the dimension's unit, of the requests that have one). Where numbers are names, as
  ops are, the first is the total variation and the second has no meaning. Numbers are counted in buckets of
  1.6 %, not in those of the model.
- **joint total variation**: the share of requests that are in other cells, by the buckets of the model.
- the **autocorrelation** of inter-arrival times and the **index of dispersion** (variance over mean of the
  arrivals in windows of some length; 1 for a Poisson process, more for bursts).
- the **sequential share** and the **footprint**, in blocks of 4 KiB.
- the **miss-ratio curves** of an LRU cache of 4 KiB blocks, a reference for each block of each read and
  write, at 60 linearly and 60 geometrically spaced sizes up to the footprint of the trace; and the misses of
  FIFO, CLOCK and ARC caches of 1/2 to 1/256 of that footprint, where the model tells it.

Source: MDH thesis, sections 3.4 and 3.5; Mattson et al., IBM Systems Journal 9 (1970), and Waldspurger et
al., FAST 2015, for miss ratios.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from loadstone import _core
from loadstone._other import wanted
from loadstone._text import one_line
from loadstone.errors import Error
from loadstone.model._fiolog import gathered
from loadstone.model._model import Model
from loadstone.trace import Options
from loadstone.trace.options import Paths, Progress, options_json, paths_list

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BLOCK = 4096
"""Bytes of a block of the cache."""

POINTS = 60
"""Cache sizes of each kind: linearly and geometrically spaced."""


@dataclass(frozen=True)
class Numbers:
    """How often the numbers of a dimension occur; one entry of the arrays for each bucket, ascending."""

    none: float
    """Requests that have no number."""
    first: NDArray[np.int64]
    """Smallest number of the bucket."""
    last: NDArray[np.int64]
    """Largest number of the bucket."""
    count: NDArray[np.int64] | Floats
    """Requests in it, or shares of them."""

    @property
    def requests(self) -> float:
        """All requests, or the sum of the shares."""
        return float(self.none + self.count.sum())


@dataclass(frozen=True)
class Portrait:
    """What a stream of requests is like, by the dimensions of a model."""

    requests: int
    dimensions: dict[str, Numbers]
    joint: dict[int, int]
    """Requests by packed codes; empty where they need more than 64 bits."""
    correlation: dict[int, float]
    """Autocorrelation of inter-arrival times by lag in requests, -1 to 1."""
    dispersion: dict[int, float]
    """Index of dispersion of arrivals by length of the window in mean inter-arrival times."""
    sequential: float
    """Share of the requests that begin where the one before on their object ended."""
    footprint: int
    """Bytes of different blocks."""
    references: int
    """Blocks read or written, each time counted."""
    rate: float
    """Share of the blocks that was looked at; below 1 the miss ratios are estimates."""
    rates: dict[str, NDArray[np.uint64]]
    """Reads, writes, and the bytes of each, in hundredths of the length of the model's trace."""
    misses: dict[str, dict[int, float]]
    """By policy the share of the references that miss, by size of the cache in bytes; empty where the model
    has no stack distances."""
    _distances: NDArray[np.uint64]
    _weights: Floats

    @staticmethod
    def of(core: dict[str, Any]) -> Portrait:
        """What the core found."""
        numbers = {
            d["name"]: Numbers(d["none"], d["first"], d["last"], d["count"]) for d in core["dimensions"]
        }
        keys, counts = core["joint"]
        return Portrait(
            requests=core["requests"],
            dimensions=numbers,
            joint=dict(zip(keys.tolist(), counts.tolist(), strict=True)),
            correlation=dict(zip(core["lags"], core["correlation"], strict=True)),
            dispersion=dict(zip(core["scales"], core["dispersion"], strict=True)),
            sequential=core["sequential"],
            footprint=core["footprint"] * BLOCK,
            references=core["references"],
            rate=core["rate"],
            rates=core["rates"],
            misses={
                policy: {blocks * BLOCK: ratio for blocks, ratio in ratios}
                for policy, ratios in core["misses"].items()
            },
            _distances=core["distances"],
            _weights=core["weights"],
        )

    def miss_ratio(self, sizes: Any) -> Floats:
        """Share of the references that miss in LRU caches of these sizes (bytes); 1 where there are none."""
        import numpy as np

        blocks = np.asarray(sizes, dtype=np.float64) // BLOCK
        hits = np.concatenate([[0.0], np.cumsum(self._weights)])
        found = hits[np.searchsorted(self._distances.astype(np.float64), blocks, side="left")]
        return np.clip(1.0 - found / self.references, 0.0, 1.0) if self.references else np.ones(len(blocks))


def portrait(
    model: Model,
    trace: Paths | None = None,
    *,
    seed: int = 1,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Portrait:
    """What a trace is like, or what the model draws with a seed, by the dimensions of the model.

    The trace may be fio's logs of single requests, of ``write_lat_log`` with ``log_offset=1``.
    ``options`` say how the trace is read; ``progress(done, total)`` is called with requests. Raises ``Error``
    where one is of files and the other of blocks.
    """
    if trace is None:
        return Portrait.of(_core.portrait_drawn(model._core, seed, progress))
    opened = options_json(**(options or Options()))
    with wanted("trace", *paths_list(trace)), gathered(paths_list(trace)) as paths:
        layer = json.loads(_core.TraceReader(paths, opened).info())["layer"]
        _alike(model, "blocks" if layer == "block" else "files")
        return Portrait.of(_core.portrait_trace(model._core, paths, opened, progress))


def _alike(model: Model, kind: str) -> None:
    """Refuses a trace of files or blocks where the model neither draws nor was fitted to such."""
    drawn = "files" if model.of_files else "blocks"
    fitted = "blocks" if model.header["source"].get("layer", "block") == "block" else "files"
    if kind not in (drawn, fitted):
        raise Error(
            f"the trace has requests of {kind}, the model draws those of {drawn}, which have little in "
            f"common; name a trace of {drawn}"
        )


def check(
    model: Model,
    trace: Paths,
    *,
    seed: int = 1,
    options: Options | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """How closely requests of a model match a trace; :func:`compare` describes the result.

    ``seed`` is that of the draw. Raises ``Error`` where the trace has other kinds of requests than the model
    draws, and ``TraceError`` where it cannot be read.
    """
    real = portrait(model, trace, options=options, progress=progress)
    return compare(model, real, portrait(model, seed=seed, progress=progress))


def compare(model: Model, trace: Portrait, drawn: Portrait) -> dict[str, Any]:
    """How closely one stream matches another, as plain values.

    ``dimensions``: for each ``ks`` (0 to 1), ``wasserstein`` in its ``unit`` and ``of_mean``, the same
    divided by the mean magnitude in the trace (both ``None`` for names). ``joint``: total variation, 0 to 1
    (``None`` where cells cannot be told). ``miss_ratio``: ``mean`` and ``max`` absolute difference and the
    curves at ``sizes`` in bytes. ``policies``: the same of FIFO, CLOCK and
    ARC, by name. ``over_time``: RMS difference of reads, writes and their bytes by hundredths
    of the time, relative to their mean in the trace (``None`` where it has fewer than one request in each).
    ``drift``: of the same the largest share that has come early or late at any hundredth. ``moved``: bytes
    read and written. The rest with one value for the ``trace`` and one for what was ``drawn``.
    """
    both = {"trace": trace, "drawn": drawn}
    names = {d["feature"] for d in model.header["dimensions"] if "category" in str(d["rule"]).lower()}
    rows = []
    # What a user's feature would say is not known without it.
    computed = {name for name, *_ in _core.model_features()}
    for name, real in trace.dimensions.items():
        if name.removeprefix("previous(").removesuffix(")") not in computed:
            continue
        ks, moved, mean = apart(real, drawn.dimensions[name], names=name in names)
        rows.append(
            {
                "dimension": name,
                "unit": unit(name),
                "ks": ks,
                "wasserstein": moved,
                "of_mean": moved / mean if moved is not None and mean else None,
            }
        )
    return {
        "requests": {who: p.requests for who, p in both.items()},
        "dimensions": rows,
        "joint": _joint(trace.joint, drawn.joint),
        "correlation": {who: p.correlation for who, p in both.items()},
        "dispersion": {who: p.dispersion for who, p in both.items()},
        "sequential": {who: p.sequential for who, p in both.items()},
        "footprint": {who: p.footprint for who, p in both.items()},
        "miss_ratio": _curves(trace, drawn),
        "policies": _policies(trace, drawn),
        "over_time": {name: _over_time(real, drawn.rates[name]) for name, real in trace.rates.items()},
        "drift": {name: _drift(real, drawn.rates[name]) for name, real in trace.rates.items()},
        "moved": {who: int(sum(int(p.rates[name].sum()) for name in _BYTES)) for who, p in both.items()},
    }


_BYTES = ("bytes read", "bytes written")


class Aspect(TypedDict):
    """One thing that a load is like."""

    name: str
    ok: bool
    text: str
    """How far it is from the trace."""
    limit: str
    """What it may be off."""


class Judged(TypedDict):
    """What :func:`verdict` answers."""

    faithful: bool
    text: str
    """In one line."""
    aspects: list[Aspect]


MISSES, MOST_MISSES = 0.02, 0.05
"""Differences of LRU miss ratios, on average and at most, within which caches miss the same."""
MOVED = 0.02
"""Share of all bytes that may be missing or too much."""
DRIFT, BYTES_DRIFT = 0.02, 0.05
"""Share of all requests, and of all bytes, that may come early or late at any time."""
ALIKE = 0.05
"""Kolmogorov-Smirnov distance of sizes and gaps, and difference of the correlation of gaps, that is small."""


def verdict(found: Mapping[str, Any]) -> Judged:
    """Whether what :func:`compare` found is the load of the trace, before any device sees either.

    Judged are what caches miss, bytes, sizes, requests and bytes over time, and how gaps follow each other:
    what a store feels. Distances of few requests may be as large as chance makes them.
    """
    requests = max(min(found["requests"].values()), 1)
    # The 5 % point of the two-sample test for so many.
    by_chance = 1.36 * math.sqrt(2 / requests)
    aspects: list[Aspect] = []

    def judge(name: str, ok: bool, text: str, limit: str) -> None:
        aspects.append(Aspect(name=name, ok=bool(ok), text=text, limit=limit))

    misses = found["miss_ratio"]
    if found["moved"]["trace"]:
        ok = misses["mean"] <= MISSES and misses["max"] <= MOST_MISSES
        apart = f"LRU miss ratios differ by {misses['mean']:.3f} on average, {misses['max']:.3f} at most"
        judge("cache misses", ok, apart, f"{MISSES:g}, {MOST_MISSES:g}")
        off = found["moved"]["drawn"] / found["moved"]["trace"] - 1
        judge("bytes", abs(off) <= MOVED, f"{off:+.1%}".replace("-0.0%", "+0.0%"), f"{MOVED:.0%}")
    by_name = {row["dimension"]: row["ks"] for row in found["dimensions"]}
    if "size" in by_name:
        limit = max(ALIKE, by_chance)
        text = f"the distributions differ by {by_name['size']:.1%}"
        judge("sizes", by_name["size"] <= limit, text, _percent(limit))
    drift = found["drift"]
    early = max(drift["reads"], drift["writes"]), max(drift[name] for name in _BYTES)
    limits = max(DRIFT, by_chance), max(BYTES_DRIFT, by_chance)
    judge(
        "rates over time",
        early[0] <= limits[0] and early[1] <= limits[1],
        f"{early[0]:.1%} of the requests and {early[1]:.1%} of the bytes come early or late",
        f"{_percent(limits[0])}, {_percent(limits[1])}",
    )
    lag = min(found["correlation"]["trace"])
    apart_by = abs(found["correlation"]["trace"][lag] - found["correlation"]["drawn"][lag])
    limit = max(ALIKE, by_chance)
    text = f"the correlation of gaps differs by {apart_by:.2f}"
    judge("bursts", apart_by <= limit, text, f"{limit:.2g}")
    wrong = [aspect["name"] for aspect in aspects if not aspect["ok"]]
    names = wrong or [aspect["name"] for aspect in aspects]
    told = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return Judged(faithful=not wrong, text=f"{'not ' if wrong else ''}faithful in {told}", aspects=aspects)


def _percent(limit: float) -> str:
    return f"{100 * limit:.2g}%"


def unit(dimension: str, model: Model | None = None) -> str:
    """Unit of a dimension's numbers; a ``model`` knows those of users' features, too."""
    told = model.header["dimensions"] if model else ()
    own = next((d.get("unit") for d in told if d["feature"] == dimension), None)
    plain = dimension.removeprefix("previous(").removesuffix(")")
    return one_line(own or "") or next(
        (unit for name, unit, *_ in _core.model_features() if name == plain), ""
    )


def apart(a: Numbers, b: Numbers, *, names: bool) -> tuple[float, float | None, float]:
    """Kolmogorov-Smirnov (of names: total variation) and Wasserstein distance, mean magnitude in ``a``."""
    import numpy as np

    total, theirs = a.requests or 1.0, b.requests or 1.0
    grid = np.union1d(a.first, b.first)
    last = np.zeros(len(grid), np.int64)
    shares = np.zeros((2, len(grid)))
    for row, (numbers, all_) in enumerate(((a, total), (b, theirs))):
        at = np.searchsorted(grid, numbers.first)
        shares[row, at] = numbers.count / all_
        last[at] = numbers.last
    none = a.none / total - b.none / theirs
    if names:
        return float(0.5 * (np.abs(shares[0] - shares[1]).sum() + abs(none))), None, 0.0
    ahead = none + np.cumsum(shares[0] - shares[1])
    ks = float(np.abs(np.concatenate([[none], ahead])).max())
    middle = (grid.astype(np.float64) + last) / 2
    weights = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    if not len(grid) or not shares.sum(axis=1).all():
        return ks, None, 0.0
    mean = float((np.abs(middle) * weights[0]).sum())
    # Inside a bucket both are even, so their difference is a straight line; between buckets it stays as it
    # is.
    after = np.cumsum(weights[0] - weights[1])
    before = np.concatenate([[0.0], after[:-1]])
    width = (last - grid).astype(np.float64)
    crosses = before * after < 0
    sum_ = np.abs(before) + np.abs(after)
    inside = np.where(crosses, (before**2 + after**2) / np.maximum(2 * sum_, 1e-300), sum_ / 2)
    between = np.abs(after[:-1]) * np.maximum(grid[1:] - last[:-1], 0)
    return ks, float((inside * width).sum() + between.sum()), mean


def _over_time(real: NDArray[np.uint64], drawn: NDArray[np.uint64]) -> float | None:
    import numpy as np

    a, b = real.astype(np.float64), drawn.astype(np.float64)
    return float(np.sqrt(((a - b) ** 2).mean()) / a.mean()) if a.mean() >= 1 else None


def _drift(real: NDArray[np.uint64], drawn: NDArray[np.uint64]) -> float:
    """Largest difference of the shares that have come by the end of each hundredth of the time."""
    import numpy as np

    a, b = real.astype(np.float64), drawn.astype(np.float64)
    if not a.sum() or not b.sum():
        return float(bool(a.sum()) != bool(b.sum()))
    return float(np.abs(np.cumsum(a / a.sum() - b / b.sum())).max())


def _joint(a: dict[int, int], b: dict[int, int]) -> float | None:
    if not a or not b:
        return None
    total, theirs = sum(a.values()), sum(b.values())
    return 0.5 * sum(abs(a.get(key, 0) / total - b.get(key, 0) / theirs) for key in a.keys() | b.keys())


def _curves(trace: Portrait, drawn: Portrait) -> dict[str, Any]:
    import numpy as np

    blocks = max(trace.footprint // BLOCK, 1)
    linear = np.linspace(blocks / POINTS, blocks, POINTS)
    sizes = np.sort(np.concatenate([linear, np.geomspace(1, blocks, POINTS)]).round()) * BLOCK
    real, made = trace.miss_ratio(sizes), drawn.miss_ratio(sizes)
    off = np.abs(real - made)
    return {
        "mean": float(off.mean()),
        "max": float(off.max()),
        "exact": trace.rate == 1 and drawn.rate == 1,
        "sizes": [int(size) for size in sizes],
        "trace": real.tolist(),
        "drawn": made.tolist(),
    }


def _policies(trace: Portrait, drawn: Portrait) -> dict[str, dict[str, Any]]:
    found = {}
    for policy, real in trace.misses.items():
        made = drawn.misses.get(policy, {})
        sizes = sorted(real.keys() & made.keys())
        off = [abs(real[size] - made[size]) for size in sizes]
        if off:
            found[policy] = {
                "mean": sum(off) / len(off),
                "max": max(off),
                "sizes": sizes,
                "trace": [real[size] for size in sizes],
                "drawn": [made[size] for size in sizes],
            }
    return found
