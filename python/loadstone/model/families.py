"""Families of distributions, evaluated over buckets: what formulas in a model are made of.

Source: section 3.3 of the MDH thesis; scipy.stats for names and parameters, which are those of its ``cdf``:
shapes, location, scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from loadstone._continuous import continuous
from loadstone.errors import Error

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]


def _hyperexponential(x: Floats, share: float, first: float, second: float) -> Floats:
    """Two phases: exponential of mean ``first`` with probability ``share``, else of mean ``second``."""
    import numpy as np

    return share * -np.expm1(-x / first) + (1 - share) * -np.expm1(-x / second)


STEEPEST = 1e6
"""Largest shape: of larger ones a bucket takes milliseconds, and a file may have a thousand formulas."""


def _named(family: str, parameters: Sequence[float]) -> Callable[..., Floats]:
    """The distribution function of a continuous distribution of scipy.stats."""
    found = continuous(family)
    if found is None:
        raise Error(f"scipy.stats has no continuous distribution {family!r} that is quick to compute")
    for shape in parameters[: found.numargs]:
        if abs(shape) > STEEPEST:
            raise Error(
                f"{family}: the shape {shape:g} is beyond {STEEPEST:g}, which takes too long to compute"
            )
    cdf: Callable[..., Floats] = found.cdf
    return cdf


def _common() -> dict[str, Callable[..., Floats]]:
    """Distribution functions of the usual families; scipy.stats has them too, but takes a second to load."""
    import numpy as np
    from scipy import special

    def above(x: Floats, loc: float, scale: float) -> Floats:
        return np.maximum((x - loc) / scale, 0.0)

    def triangular(x: Floats, c: float, loc: float, scale: float) -> Floats:
        z = np.clip((x - loc) / scale, 0.0, 1.0)
        rising = z**2 / c if c > 0 else np.zeros_like(z)
        falling = 1 - (1 - z) ** 2 / (1 - c) if c < 1 else np.ones_like(z)
        return np.where(z < c, rising, falling)

    def lognormal(x: Floats, s: float, loc: float, scale: float) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(special.ndtr(np.log(above(x, loc, scale)) / s))

    return {
        "expon": lambda x, loc, scale: -np.expm1(-above(x, loc, scale)),
        "erlang": lambda x, a, loc, scale: special.gammainc(a, above(x, loc, scale)),
        "gamma": lambda x, a, loc, scale: special.gammainc(a, above(x, loc, scale)),
        "lognorm": lognormal,
        "norm": lambda x, loc, scale: special.ndtr((x - loc) / scale),
        "triang": triangular,
        "uniform": lambda x, loc, scale: np.clip((x - loc) / scale, 0.0, 1.0),
        "weibull_min": lambda x, c, loc, scale: -np.expm1(-(above(x, loc, scale) ** c)),
        "hyperexpon": lambda x, *p: np.where(x > 0, _hyperexponential(np.maximum(x, 0), *p), 0.0),
    }


_usual: dict[str, Callable[..., Floats]] = {}


def shares(family: str, parameters: Sequence[float], first: Ints, last: Ints) -> Floats:
    """How likely each bucket is, in any unit: probabilities, or the height of a polynomial.

    Buckets hold the whole numbers from ``first`` to ``last`` and ascend. ``polynomial`` takes coefficients,
    the highest power first, of the bucket's place from 0 (the first) to 1 (the last); below 0 it is 0. Raises
    ``Error`` where the family is unknown, or does not take these parameters.
    """
    import numpy as np

    if family == "polynomial":
        place = np.linspace(0.0, 1.0, len(first))
        return _float(np.maximum(np.polyval(_float(parameters), place), 0.0))
    if not _usual:
        _usual.update(_common())
    cdf = _usual.get(family) or _named(family, parameters)
    try:
        with np.errstate(all="ignore"):
            # Edges are shared by neighbours nearly always, but not beside buckets that are left out.
            below, above = cdf(_float(first), *parameters), cdf(_float(last) + 1.0, *parameters)
    except TypeError as error:
        raise Error(f"{family} does not take {len(parameters)} parameters: {error}") from error
    return _float(np.maximum(_float(above) - _float(below), 0.0))


def _float(values: Any) -> Floats:
    import numpy as np

    found: Floats = np.asarray(values, dtype=float)
    return found
