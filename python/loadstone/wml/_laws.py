"""Laws of plans (docs/reference/formats/plan.md) from what random and custom variables say of themselves."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from loadstone import _entries
from loadstone._continuous import continuous
from loadstone._text import meant
from loadstone.errors import Error
from loadstone.wml._errors import NOWHERE, Refused, listed, shown
from loadstone.wml._literals import literal
from loadstone.wml._words import CVARS, LISTS

Law = dict[str, Any]

POINTS = 4097
"""Values that stand for a distribution which the engine does not know."""

GROUP = "loadstone.variables"
"""Entry points of distributions of other packages: objects with ``quantiles(n, **parameters)``."""

_DEFAULTS: Mapping[str, Mapping[str, float]] = {
    "erlang": {"shape": 1, "rate": 1},
    "exponential": {"mean": 1},
    "gamma": {"mean": 4096, "gamma": 1.5},
    "lognormal": {"shape": 1, "scale": 1},
    "normal": {"mean": 0, "sigma": 1},
    "triangular": {"lower": 0, "upper": 1, "mode": 0.5},
    "uniform": {"lower": 0, "upper": 1},
    "weibull": {"shape": 1, "scale": 1},
    "polynomial": {"lower": 0, "upper": 1},
    "pareto": {"scale": 1, "shape": 1},
    "zipf": {"exponent": 1},
    "hotcold": {"lower": 0, "hot": 0.2, "share": 0.8},
}


class Fault(Exception):
    """What is wrong with a distribution, until its place in the script is known."""

    def __init__(self, what: str, help: str = "") -> None:
        """A message and what to do about it."""
        super().__init__(what)
        self.what, self.help = what, help


def constant(value: float) -> Law:
    """Always the same value."""
    return {"kind": "uniform", "low": value, "high": value}


def gamma(shape: float, mean: float, least: float = 0.0) -> Law:
    """Filebench's gamma distribution: shape 0 means that all values are the mean."""
    if mean < least:
        raise Fault(f"the mean {mean:g} is below min {least:g}")
    if shape == 0 or mean == least:
        return constant(mean)
    law: Law = {"kind": "gamma", "shape": shape, "scale": (mean - least) / shape}
    return law if least == 0 else {**law, "shift": least}


def random_variable(
    kind: str, least: float, mean: float | None, shape: float, rows: Sequence[Sequence[float]] | None
) -> Law:
    """What ``randvar`` draws from. ``shape``: as it is, not in thousandths."""
    if kind == "gamma":
        return gamma(shape, shape if mean is None else mean, least)
    if kind == "uniform":
        if mean is None:
            raise Fault("type uniform needs mean=", "values lie between min and 2*mean-min")
        if mean < least:
            raise Fault(f"the mean {mean:g} is below min {least:g}")
        return {"kind": "uniform", "low": least, "high": 2 * mean - least}
    if rows is None:
        raise Fault("type tabular needs randtable=", "add randtable={{percent,min,max},...}")
    law = table(rows)
    if mean is None:
        return law
    if mean < least:
        raise Fault(f"the mean {mean:g} is below min {least:g}")
    if (now := average(law)) <= 0:
        raise Fault("the mean of a table of zeros cannot be changed")
    return scaled(law, (mean - least) / now, least)


def table(rows: Sequence[Sequence[float]]) -> Law:
    """Rows of a share, a least and a greatest value."""
    if abs(sum(row[0] for row in rows) - 100) > 1e-6:
        raise Fault(f"the percentages of a table must total 100; these are {sum(r[0] for r in rows):g}")
    if any(low > high for _, low, high in rows):
        raise Fault("the least value of a row is above its greatest")
    return {"kind": "table", "rows": [{"share": s, "low": a, "high": b} for s, a, b in rows]}


def finite(law: Law) -> bool:
    """Whether all numbers of a law are finite."""
    rows = [value for row in law.get("rows", ()) for value in row.values()]
    plain = [value for value in law.values() if isinstance(value, int | float)]
    return all(map(math.isfinite, (*plain, *rows, *law.get("values", ()))))


def average(law: Law) -> float:
    """The mean of a law; infinite where it has none, or one that is no number of this machine."""
    try:
        return _average(law)
    except OverflowError:
        return math.inf


def _average(law: Law) -> float:
    match law["kind"]:
        case "uniform":
            return float(law["low"] + law["high"]) / 2
        case "exponential" | "normal":
            return float(law["mean"])
        case "gamma":
            return float(law["shape"] * law["scale"] + law.get("shift", 0))
        case "lognormal":
            return math.exp(law["mu"] + law["sigma"] ** 2 / 2)
        case "triangular":
            return float(law["low"] + law["high"] + law["mode"]) / 3
        case "weibull":
            return float(law["scale"]) * math.gamma(1 + 1 / law["shape"])
        case "pareto":
            shape = law["shape"]
            return float(law["scale"]) * shape / (shape - 1) if shape > 1 else math.inf
        case "table":
            total = sum(row["share"] for row in law["rows"])
            return float(sum(row["share"] * (row["low"] + row["high"]) / 2 for row in law["rows"]) / total)
        case "quantiles":
            values = law["values"]
            return float(sum(values) - (values[0] + values[-1]) / 2) / (len(values) - 1)
        case "sequence":
            return float(sum(law["values"]) / len(law["values"]))
    weights = [(i + 1) ** -law["exponent"] for i in range(min(law["count"], 1 << 20))]
    return float(sum(i * weight for i, weight in enumerate(weights)) / sum(weights))


_SCALES = {
    "uniform": ("low", "high"),
    "exponential": ("mean",),
    "gamma": ("scale", "shift"),
    "normal": ("mean", "sigma"),
    "triangular": ("low", "high", "mode"),
    "weibull": ("scale",),
    "pareto": ("scale",),
}


def scaled(law: Law, factor: float, shift: float = 0.0) -> Law:
    """The law of the same values times ``factor``; of tables, plus ``shift`` too."""
    kind = law["kind"]
    if kind == "table":
        rows = [
            {**row, "low": row["low"] * factor + shift, "high": row["high"] * factor + shift}
            for row in law["rows"]
        ]
        return {"kind": kind, "rows": rows}
    if kind in ("quantiles", "sequence"):
        return {"kind": kind, "values": [value * factor for value in law["values"]]}
    if kind == "lognormal":
        return {**law, "mu": law["mu"] + math.log(factor)}
    if kind == "zipf":
        raise Fault("values of type zipf cannot be multiplied")
    return {key: value * factor if key in _SCALES[kind] else value for key, value in law.items()}


# Custom variables


def custom_variable(name: str, given: Sequence[tuple[str, str]]) -> Law:
    """What ``cvar`` draws from: a type and its parameters as the script has them."""
    name = name.removeprefix("cvar-")
    numbers: dict[str, Any] = {}
    for key, text in given:
        if name in CVARS and key not in CVARS[name]:
            has = f"its parameters are {listed(CVARS[name])}"
            raise Fault(f"{name} has no parameter {shown(key)}", meant(key, CVARS[name], has))
        numbers[key] = _list(key, text) if key in LISTS else number(key, text)
    if name not in CVARS:
        return _elsewhere(name, numbers)
    for key in CVARS[name]:
        default = _DEFAULTS.get(name, {}).get(key)
        if key not in numbers and default is None:
            raise Fault(f"{name} needs the parameter {key}", f'write parameters="{key}:..."')
        numbers.setdefault(key, default)
    return _checked(name, _LAWS[name](**numbers))


def is_custom(name: str) -> bool:
    """Whether there is a type of custom variables of that name."""
    return (
        name.removeprefix("cvar-") in CVARS or _continuous(name) is not None or name in _entries.named(GROUP)
    )


def number(key: str, text: str) -> float:
    """The value of a parameter."""
    try:
        value = literal(text, NOWHERE)
    except (Refused, IndexError):
        value = None
    found = getattr(value, "value", None)
    if isinstance(found, bool) or not isinstance(found, int | float):
        said = shown(text) or "nothing"
        raise Fault(f"parameter {key} wants a number, not {said}", "write key:value;key:value")
    return found


def _list(key: str, text: str) -> list[float]:
    return [number(key, one) for one in re.split(r"[,\s]+", text.strip())]


def _checked(name: str, law: Law) -> Law:
    """Refuses what the engine would, in the words of the script."""
    for key in ("shape", "sigma", "scale", "mean", "rate"):
        if key in law and not (law[key] > 0) and not (key == "mean" and law["kind"] == "normal"):
            raise Fault(f"a parameter of {name} is 0 or less where it must be above 0")
    if "low" in law and not law["low"] <= law.get("mode", law["low"]) <= law["high"]:
        raise Fault(f"lower, mode and upper of {name} are not in this order")
    return law


def _erlang(shape: float, rate: float) -> Law:
    if rate <= 0:
        raise Fault("parameter rate must be above 0")
    return {"kind": "gamma", "shape": shape, "scale": 1 / rate}


def _tabular(rows: list[float]) -> Law:
    if len(rows) % 3:
        raise Fault(f"rows has {len(rows)} numbers, and a row has 3", "rows are percent min max, ...")
    return table([rows[i : i + 3] for i in range(0, len(rows), 3)])


def _polynomial(coefficients: list[float], lower: float, upper: float) -> Law:
    """A density that is a polynomial: its integral inverted by tables much finer than the values."""
    import numpy as np

    if not lower < upper:
        raise Fault("upper must be above lower")
    x = np.linspace(lower, upper, 16 * (POINTS - 1) + 1)
    density = np.polynomial.polynomial.polyval(x, coefficients)
    if (density < -1e-9 * max(abs(density))).any():
        raise Fault("the polynomial is negative between lower and upper, and cannot be a density")
    whole = np.polynomial.polynomial.polyint(coefficients)
    share = np.maximum.accumulate(np.polynomial.polynomial.polyval(x, whole))
    share -= share[0]
    if share[-1] <= 0:
        raise Fault("the polynomial is 0 between lower and upper, and cannot be a density")
    values = np.interp(np.linspace(0, 1, POINTS), share / share[-1], x)
    return {"kind": "quantiles", "values": values.tolist()}


def _hotcold(lower: float, upper: float, hot: float, share: float) -> Law:
    if not (0 < hot < 1 and 0 <= share <= 1 and lower < upper):
        raise Fault("hot must lie between 0 and 1, share from 0 to 1, and lower below upper")
    middle = lower + hot * (upper - lower)
    return table([(100 * share, lower, middle), (100 - 100 * share, middle, upper)])


def _zipf(count: float, exponent: float) -> Law:
    if count < 1 or count != int(count) or exponent < 0:
        raise Fault("count must be a whole number above 0, and exponent 0 or more")
    return {"kind": "zipf", "count": int(count), "exponent": exponent}


# Filebench's lognormal is exp(normal(scale, shape)): shape is sigma, scale is mu.
_LAWS: Mapping[str, Callable[..., Law]] = {
    "erlang": _erlang,
    "exponential": lambda mean: {"kind": "exponential", "mean": mean},
    "gamma": lambda mean, gamma: {"kind": "gamma", "shape": gamma, "scale": mean / gamma if gamma else 0},
    "lognormal": lambda shape, scale: {"kind": "lognormal", "mu": scale, "sigma": shape},
    "normal": lambda mean, sigma: {"kind": "normal", "mean": mean, "sigma": sigma},
    "triangular": lambda lower, upper, mode: {
        "kind": "triangular",
        "low": lower,
        "high": upper,
        "mode": mode,
    },
    "uniform": lambda lower, upper: {"kind": "uniform", "low": lower, "high": upper},
    "weibull": lambda shape, scale: {"kind": "weibull", "shape": shape, "scale": scale},
    "tabular": _tabular,
    "empirical": _tabular,
    "polynomial": _polynomial,
    "zipf": _zipf,
    "pareto": lambda scale, shape: {"kind": "pareto", "scale": scale, "shape": shape},
    "hotcold": _hotcold,
    "sequence": lambda values: {"kind": "sequence", "values": values},
}


def _continuous(name: str) -> Any:
    """The distribution of scipy of that name."""
    return continuous(name.removeprefix("scipy."))


@cache
def _installed(name: str) -> Any:
    try:
        return _entries.load(GROUP, name)
    except Error as error:
        raise Fault(str(error)) from None


def _elsewhere(name: str, parameters: dict[str, Any]) -> Law:
    """Values of a distribution that others know, at equally spaced probabilities."""
    if (installed := _installed(name)) is not None:
        try:
            values = [float(value) for value in installed.quantiles(POINTS, **parameters)]
        except Exception as error:
            raise Fault(f"{name} fails with these parameters: {error}") from None
    elif (family := _continuous(name)) is not None:
        values = _quantiles(name, family, parameters)
    else:
        raise Fault(f"{shown(name)} is no type", meant(name, CVARS, f"there are {listed(CVARS)}"))
    if len(values) < 2 or not all(map(math.isfinite, values)) or values != sorted(values):
        raise Fault(f"the quantiles of {name} are not two or more finite numbers in ascending order")
    return {"kind": "quantiles", "values": values}


def _quantiles(name: str, family: Any, parameters: dict[str, Any]) -> list[float]:
    import numpy as np

    wanted = family.shapes.replace(",", " ").split() if family.shapes else []
    for key in parameters:
        if key not in (*wanted, "loc", "scale"):
            has = f"its parameters are {listed([*wanted, 'loc', 'scale'])}"
            raise Fault(f"{name} has no parameter {shown(key)}", has)
    if missing := [key for key in wanted if key not in parameters]:
        raise Fault(f"{name} needs the parameter {missing[0]}", f'write parameters="{missing[0]}:..."')
    at = np.linspace(0, 1, POINTS)
    # The ends may be infinite; half a step before them they are not.
    at[0], at[-1] = 0.5 / POINTS, 1 - 0.5 / POINTS
    found = np.asarray(family(**parameters).ppf(at), dtype=float)
    if not np.isfinite(found).all():
        raise Fault(f"{name} has no such distribution: a parameter is out of its range")
    return [float(value) for value in found]
