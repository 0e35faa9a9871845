"""Formulas in place of histograms: the slices of a factored model, fitted with distributions.

Source: section 3.3 of the MDH thesis, which fits polynomials with the Levenberg-Marquardt algorithm to a
target error; two-phase hyper-exponentials because inter-arrival times are that most often (Wajahat et al.,
2020).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone._continuous import continuous
from loadstone._scratch import scratch
from loadstone.errors import Error
from loadstone.model.families import shares

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from loadstone.model._model import Model

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

# What a cell and a character of a formula cost in a compressed file, bytes: as on dtrs and cloudPhysicsIO.
_CELL, _FORMULA = 1.6, 0.4

# Fewer cells than this are never more than a formula.
_LEAST = 6

_DEGREES = range(1, 7)


@dataclass(frozen=True)
class Slice:
    """The numbered cells of one slice of a link, with the empty buckets between them."""

    link: int
    """Number of the link."""
    place: dict[str, Any]
    """``matrix`` (where it has one) and ``given`` codes, as a formula has them."""
    codes: tuple[int, int]
    """First and last code."""
    first: Ints
    """Smallest number of each bucket, ascending."""
    last: Ints
    """Largest number of each."""
    shares: Floats
    """Share of the slice's requests in each."""
    cells: int
    """How many of them have requests."""


@dataclass(frozen=True)
class Fit:
    """A family with the parameters that suit a slice best."""

    family: str
    """As :mod:`scipy.stats` names it, ``hyperexpon`` or ``polynomial``."""
    parameters: list[float]
    """In the order of ``cdf``, rounded to four digits."""
    error: float
    """Total variation between the histogram and the formula, 0 to 1."""


@dataclass(frozen=True)
class _Family:
    """How a family is fitted: free numbers and what they mean."""

    name: str
    start: Callable[[_Moments], list[float]]
    parameters: Callable[[Floats], list[float]]


@dataclass(frozen=True)
class _Moments:
    mean: float
    sd: float
    log_mean: float
    log_sd: float


def _exp(value: float) -> float:
    import math

    return math.exp(min(max(value, -80.0), 80.0))


def _log(value: float) -> float:
    import math

    return math.log(max(value, 1e-30))


def _logistic(value: float) -> float:
    return 1.0 / (1.0 + _exp(-value))


def _families() -> list[_Family]:
    def shape_of_gamma(m: _Moments) -> float:
        return max((m.mean / m.sd) ** 2, 0.05)

    return [
        _Family("expon", lambda m: [_log(m.mean)], lambda t: [0.0, _exp(t[0])]),
        _Family(
            "gamma",
            lambda m: [_log(shape_of_gamma(m)), _log(m.mean / shape_of_gamma(m))],
            lambda t: [_exp(t[0]), 0.0, _exp(t[1])],
        ),
        _Family(
            "weibull_min",
            lambda m: [_log(1.2 / max(m.log_sd, 0.1)), m.log_mean + 0.5],
            lambda t: [_exp(t[0]), 0.0, _exp(t[1])],
        ),
        _Family(
            "lognorm",
            lambda m: [_log(max(m.log_sd, 0.05)), m.log_mean],
            lambda t: [_exp(t[0]), 0.0, _exp(t[1])],
        ),
        _Family("norm", lambda m: [m.mean / m.sd, _log(m.sd)], lambda t: [t[0] * _exp(t[1]), _exp(t[1])]),
        _Family("uniform", lambda m: [m.mean - 1.7 * m.sd, _log(3.5 * m.sd)], lambda t: [t[0], _exp(t[1])]),
        _Family(
            "triang",
            lambda m: [0.0, m.mean - 2.4 * m.sd, _log(4.9 * m.sd)],
            lambda t: [_logistic(t[0]), t[1], _exp(t[2])],
        ),
        _Family(
            "hyperexpon",
            lambda m: [0.0, m.log_mean - m.log_sd, m.log_mean + m.log_sd],
            lambda t: [_logistic(t[0]), _exp(t[1]), _exp(t[2])],
        ),
    ]


def _scipy(name: str) -> _Family:
    """A continuous distribution of scipy.stats: shapes and scale above 0, a location if below 0, too."""
    import numpy as np

    found = continuous(name)
    if found is None:
        ours = ", ".join([*(family.name for family in _families()), "erlang", "polynomial"])
        raise Error(
            f"{name!r} is no continuous distribution of scipy.stats that is quick to compute, nor one of the "
            f"usual: {ours}"
        )
    shapes: int = found.numargs
    free = not np.isfinite(found.a)

    def start(m: _Moments) -> list[float]:
        return [0.0] * shapes + ([m.mean / m.sd] if free else []) + [_log(m.sd if free else m.mean)]

    def parameters(t: Floats) -> list[float]:
        scale = _exp(t[-1])
        return [_exp(x) for x in t[:shapes]] + [t[shapes] * scale if free else 0.0, scale]

    return _Family(name, start, parameters)


def _rounded(values: Any) -> list[float]:
    return [float(f"{float(value):.4g}") for value in values]


def _error(slice_: Slice, family: str, parameters: Sequence[float]) -> float:
    import numpy as np

    try:
        found = shares(family, parameters, slice_.first, slice_.last)
    except Error:
        # A shape that no model may have.
        return 1.0
    total = float(found.sum())
    if not (np.isfinite(total) and total > 0):
        return 1.0
    return float(np.abs(found / total - slice_.shares).sum() / 2)


def _polynomials(slice_: Slice) -> list[Fit]:
    """Polynomials of each degree over the buckets' places: linear, so one step of least squares is exact."""
    import numpy as np

    place = np.linspace(0.0, 1.0, len(slice_.shares))
    fits = []
    for degree in _DEGREES:
        if degree + 2 < len(place):
            found = _rounded(np.polyfit(place, slice_.shares, degree))
            fits.append(Fit("polynomial", found, _error(slice_, "polynomial", found)))
    return fits


def _fitted(slice_: Slice, family: _Family) -> Fit | None:
    """The family's best parameters by Levenberg-Marquardt; none where there are more of them than buckets."""
    import numpy as np
    from scipy.optimize import least_squares

    middle = (slice_.first.astype(float) + slice_.last.astype(float) + 1) / 2
    weights = slice_.shares
    mean = float(middle @ weights)
    sd = max(float(np.sqrt(((middle - mean) ** 2) @ weights)), 1e-9)
    logs = np.log(np.maximum(middle, 0.5))
    log_mean = float(logs @ weights)
    log_sd = max(float(np.sqrt(((logs - log_mean) ** 2) @ weights)), 0.05)
    begin = family.start(_Moments(mean, sd, log_mean, log_sd))
    if len(begin) >= len(weights):
        return None

    def off(free: Floats) -> Floats:
        found = shares(family.name, family.parameters(free), slice_.first, slice_.last)
        total = found.sum()
        if not (np.isfinite(total) and total > 0):
            return np.ones_like(weights)
        apart: Floats = found / total - weights
        return apart

    done = least_squares(off, np.asarray(begin), method="lm", max_nfev=60 * len(begin))
    parameters = _rounded(family.parameters(done.x))
    return Fit(family.name, parameters, _error(slice_, family.name, parameters))


def _erlang(gamma: Fit, slice_: Slice) -> Fit:
    """The gamma's nearest with a whole shape, of the same mean."""
    shape = max(1.0, round(gamma.parameters[0]))
    found = _rounded([shape, 0.0, gamma.parameters[0] * gamma.parameters[2] / shape])
    return Fit("erlang", found, _error(slice_, "erlang", found))


def fits(slice_: Slice, distributions: Sequence[str] = ()) -> list[Fit]:
    """All families that can be fitted to a slice, the nearest first.

    ``distributions`` names the families; by default all of the thesis and the two-phase hyper-exponential.
    Continuous distributions of scipy.stats that are quick to compute can be named. Raises ``Error`` where a
    distribution is unknown.
    """
    usual = {family.name: family for family in _families()}
    names = list(distributions) or [*usual, "erlang", "polynomial"]
    found: list[Fit] = []
    for name in names:
        if name == "polynomial":
            found += _polynomials(slice_)
            continue
        # Numbers that have both signs have no logarithm.
        if slice_.first[0] < 0 and name in usual and name not in ("norm", "uniform", "triang"):
            continue
        family = usual["gamma"] if name == "erlang" else usual.get(name) or _scipy(name)
        fit = _fitted(slice_, family)
        if fit is not None:
            found.append(_erlang(fit, slice_) if name == "erlang" else fit)
    # One that is wholly off may have no distribution over the buckets at all.
    return sorted((fit for fit in found if fit.error < 1.0), key=lambda fit: fit.error)


def slices(model: Model) -> list[Slice]:
    """The slices of a factored model whose dimension is a number, those with enough cells.

    Exact values and what has no number are left out: they stay cells.
    """
    import numpy as np

    stored = model.stored()
    dimensions = {d["feature"]: d for d in model.header["dimensions"]}
    found = []
    for number, link in enumerate(model.chain):
        rule = dimensions[link["dimension"]]["rule"]
        if rule["kind"] == "category":
            continue
        exact = len(rule["values"]) if rule["kind"] == "exact" else 0
        rows = np.flatnonzero((stored["table"] == number) & (stored[link["dimension"]] > exact))
        keys = np.stack([stored[name][rows] for name in ("matrix", *link["given"])])
        _, of = np.unique(keys, axis=1, return_inverse=True)
        order = np.argsort(of, kind="stable")
        for part in np.split(rows[order], np.flatnonzero(np.diff(of.ravel()[order])) + 1):
            if len(part) < _LEAST:
                continue
            codes, counts = stored[link["dimension"]][part], stored["count"][part]
            ends = int(codes.min()), int(codes.max())
            if ends[1] - ends[0] >= 1 << 12:
                continue
            buckets = model.ranges(link["dimension"], *ends)
            share = dict(zip(codes.tolist(), (counts / counts.sum()).tolist(), strict=True))
            place: dict[str, Any] = {"given": [int(stored[name][part[0]]) for name in link["given"]]}
            if link["by_matrix"]:
                place["matrix"] = int(stored["matrix"][part[0]])
            found.append(
                Slice(
                    link=number,
                    place=place,
                    codes=ends,
                    first=buckets["first"],
                    last=buckets["last"],
                    shares=np.array([share.get(code, 0.0) for code in buckets["code"].tolist()]),
                    cells=len(part),
                )
            )
    return found


def approximated(
    model: Model,
    *,
    error: float,
    distributions: Sequence[str] = (),
    progress: Callable[[int, int], object] | None = None,
) -> Model:
    """The factored model with formulas where they are smaller than the histograms they stand for.

    Distributions whose total variation from the histogram of a slice is at most ``error`` are tried, the
    nearest first, and each that makes the file smaller takes the slice: so a larger error never makes a
    larger file. The smallest file there is of all choices is not looked for. The model comes back as it was
    where no formula makes it smaller. ``distributions``: see :func:`fits`. ``progress(done, total)`` is
    called with slices. Raises ``Error`` where the model is not factored, or a distribution is unknown.
    """
    if not model.chain:
        raise Error("the model is not factored, so its slices are too short for formulas; factor it first")
    found = slices(model)
    fitted = []
    for done, slice_ in enumerate(found, 1):
        fitted.append((slice_, fits(slice_, distributions)))
        if progress is not None:
            progress(done, len(found))
    return chosen(model, fitted, error=error)


def chosen(model: Model, fitted: Sequence[tuple[Slice, Sequence[Fit]]], *, error: float) -> Model:
    """The model with formulas chosen as :func:`approximated` does, from slices whose fits are known.

    What cells and formulas cost once compressed depends on all others, so each is judged by the whole file.
    Source: forward selection, as of variables in regression.
    """
    tried = sorted(
        ((fit.error, number, formula) for number, fit, formula in _candidates(fitted) if fit.error <= error),
        key=lambda candidate: candidate[:2],
    )
    kept: dict[int, tuple[int, dict[str, Any]]] = {}
    with scratch("formulas") as folder:
        path = os.path.join(folder, "model.mdh")

        def measured(made: Model) -> tuple[Model, int]:
            made.save(path, force=True)
            return made, os.path.getsize(path)

        best = measured(model)
        for _, number, formula in tried:
            more = {**kept, number: (fitted[number][0].link, formula)}
            found = measured(model.with_formulas([more[n] for n in sorted(more)]))
            if found[1] < best[1]:
                kept, best = more, found
    return best[0]


def _candidates(
    fitted: Sequence[tuple[Slice, Sequence[Fit]]],
) -> Iterator[tuple[int, Fit, dict[str, Any]]]:
    """Number of the slice, fit and formula of those that may make the file smaller, by estimate.

    A fit that is farther off than another and takes no less room is none of them.
    """
    for number, (slice_, fits_) in enumerate(fitted):
        least = slice_.cells * _CELL
        for fit in fits_:
            formula = {
                **slice_.place,
                "family": fit.family,
                "parameters": fit.parameters,
                "codes": slice_.codes,
                "requests": 0,
            }
            room = len(json.dumps(formula, separators=(",", ":"))) * _FORMULA
            if room < least:
                least = room
                yield number, fit, formula
