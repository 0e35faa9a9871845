"""Whether a run has reached a steady state, by two detectors, and from when on.

Figures of a run are taken at even intervals, one series for each stream (reads and writes apart).
One detector is the window rule in the style of SNIA's Performance Test Specification: some
intervals that hardly differ and hardly rise or fall. The other finds changes of the mean (PELT) and
asks whether the levels between them differ by more than a margin. Both are told; the second
decides. A run that is not steady is an answer, and nothing of it is dropped silently.

Sources: R. Killick, P. Fearnhead and I. Eckley, Journal of the American Statistical Association
107, 2012 (PELT); S. Chakar et al., Bernoulli 23, 2017 (autocorrelation that steps do not disturb);
E. Barrett et al., Virtual Machine Warmup Blows Hot and Cold, OOPSLA 2017 (classes).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from loadstone.errors import OptionError
from loadstone.stats.metric import Better
from loadstone.stats.samples import Floats, sample
from loadstone.stats.series import autocorrelation

WINDOW = 5
"""Intervals of the window rule."""
EXCURSION = 0.20
"""By how much values of the window may differ, as a share of their mean."""
SLOPE = 0.10
"""By how much the window's straight line may rise or fall over it, as a share of the mean."""
MARGIN = 0.05
"""Levels that differ by less, as a share of the last one, are the same in practice."""
PENALTY = 4.0
"""Times the logarithm of the number of intervals, times the noise: what a further change must
explain. By simulation of 30 to 300 intervals 1 % of series without a change get one, and 9 % at an
autocorrelation of 0.8; :func:`classify` overlooks those that chance explains.
"""
LEAST = 3
"""Intervals between two changes, at least."""
LASTS = 1 / 3
"""Share of the run that its last level must take to count as reached."""
EXCUSED = 0.1
"""Share of the run that short excursions between two equal levels may take."""
UNSURE = 3.0
"""Standard errors by which levels and slopes may differ by chance."""
CYCLE = 0.5
"""Autocorrelation after a whole period from which a run is cyclic."""

MOST = 20_000
"""Intervals up to which changes are searched: the cost goes with the square of their number."""

State = Literal["steady", "warm-up then steady", "slowdown", "cyclic", "not steady"]


@dataclass(frozen=True)
class Window:
    """What the window rule says."""

    start: int | None
    """First interval of the first window that passes; None where no window does."""
    last: bool
    """Whether the last window passes, too."""
    excursion: float
    """Of the last window: largest minus smallest value, as a share of its mean."""
    slope: float
    """Of the last window: rise or fall of its straight line over it, as a share of its mean."""


@dataclass(frozen=True)
class Segment:
    """Intervals between two changes."""

    start: int
    """First interval."""
    end: int
    """Interval behind the last."""
    mean: float
    """In the unit of the values."""


@dataclass(frozen=True)
class Steadiness:
    """How a run went, as both detectors see it."""

    state: State
    start: int | None
    """First interval of the steady part; None where there is none."""
    reason: str
    """Why, in words."""
    window: Window
    """The window rule; it may disagree."""
    segments: tuple[Segment, ...]
    """Between the changes that PELT found; never empty."""
    period: int | None
    """Intervals of a cycle, where the run is cyclic."""


def window_rule(
    values: ArrayLike, window: int = WINDOW, excursion: float = EXCURSION, slope: float = SLOPE
) -> Window:
    """The window rule over a series of even intervals, shape ``(n,)`` with n at least ``window``.

    A window passes where its values lie within ``excursion`` of its mean, and its straight line
    rises or falls by at most ``slope`` of the mean. A window whose mean is 0 passes only where all
    its values are 0.
    """
    if window < 3:
        raise OptionError("window", window, "must be at least 3 intervals")
    found = sample(values, least=window)
    views = np.lib.stride_tricks.sliding_window_view(found, window)
    means = np.abs(views.mean(axis=1))
    place = np.arange(window) - (window - 1) / 2
    rises = np.abs(views @ place) / (place @ place) * (window - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        spans = np.where(np.ptp(views, axis=1) > 0, np.ptp(views, axis=1) / means, 0.0)
        tilts = np.where(np.ptp(views, axis=1) > 0, rises / means, 0.0)
    passed = (spans <= excursion) & (tilts <= slope)
    first = int(np.argmax(passed)) if passed.any() else None
    return Window(first, bool(passed[-1]), float(spans[-1]), float(tilts[-1]))


@dataclass(frozen=True)
class Noise:
    """How a series varies around its levels."""

    deviation: float
    """Standard deviation, in the unit of the values."""
    autocorrelation: float
    """Of neighbours, 0 to 0.95."""

    @property
    def variance(self) -> float:
        """Of the mean of many values, times their number: what autocorrelation makes of the
        variance.
        """
        return self.deviation**2 * (1 + self.autocorrelation) / (1 - self.autocorrelation)

    def apart(self, one: Segment, other: Segment) -> float:
        """By how much the means of two levels differ by chance alone, at most, once in some hundred
        cases.
        """
        parts = 1 / (one.end - one.start) + 1 / (other.end - other.start)
        return UNSURE * math.sqrt(self.variance * parts)


def noise(values: ArrayLike) -> Noise:
    """Spread and autocorrelation of a series around its levels, which steps do not disturb.

    Both come from differences between neighbours, and between every other value, without the
    largest tenth: a step is one difference of many. At least four values.
    """
    found = sample(values, least=4)
    near, far = (_square(found[lag:] - found[:-lag]) for lag in (1, 2))
    if near == 0:
        return Noise(0.0, 0.0)
    rho = min(max(far / near - 1, 0.0), 0.95)
    return Noise(math.sqrt(near / (2 * (1 - rho))), rho)


def change_points(values: ArrayLike, penalty: float = PENALTY, least: int = LEAST) -> tuple[int, ...]:
    """The intervals at which the mean changes, ascending, without 0: the first of each later level.

    PELT with squared deviations. A change must explain ``penalty`` times log(n) times the variance
    of the noise, more where neighbours are alike: autocorrelated noise wanders, and would be cut
    into many levels. Levels have at least ``least`` intervals. Fewer than four values, and values
    that are all alike, change nowhere.
    """
    found = sample(values)
    if not penalty > 0:
        raise OptionError("penalty", penalty, "must be above zero")
    if least < 1:
        raise OptionError("least", least, "must be at least 1")
    if len(found) > MOST:
        raise OptionError("values", None, f"are {len(found)}, more than {MOST}; take longer intervals")
    if len(found) < max(2 * least, 4) or np.ptp(found) == 0:
        return ()
    return _pelt(*_scaled(found, penalty), least)


def _scaled(found: Floats, penalty: float = PENALTY) -> tuple[Floats, float]:
    """The values between -1 and 1, and the price of a change."""
    scaled = (found - np.median(found)) / np.ptp(found)
    # Steps without any noise still are steps.
    return scaled, penalty * math.log(len(found)) * max(noise(scaled).variance, 1e-12)


def classify(
    values: ArrayLike,
    better: Better = "higher",
    margin: float = MARGIN,
    lasts: float = LASTS,
    window: int = WINDOW,
) -> Steadiness:
    """How a run went, from figures at even intervals, shape ``(n,)`` with n at least ``2 *
    window``.

    ``better`` is that of the metric: a run whose last level is worse than one before is a slowdown,
    any other with an earlier level a warm-up. ``margin`` is what levels may differ by, as a share
    of the last, and ``lasts`` the share of the run that the last level must take.
    """
    found = sample(values, least=2 * window)
    if not 0 < margin < 1:
        raise OptionError("margin", margin, "must lie between 0 and 1")
    if not 0 < lasts <= 1:
        raise OptionError("lasts", lasts, "must be above 0 and at most 1")
    rule = window_rule(found, window)
    cuts = (0, *change_points(found), len(found))
    segments = tuple(Segment(a, b, float(found[a:b].mean())) for a, b in itertools.pairwise(cuts))

    def told(state: State, start: int | None, reason: str, period: int | None = None) -> Steadiness:
        return Steadiness(state, start, reason, rule, segments, period)

    around = Noise(0.0, 0.0) if np.ptp(found) == 0 else noise(found)
    period = _period(found, margin)
    if period is not None:
        return told("cyclic", None, f"it repeats itself every {period} intervals", period)
    tilt, chance = _tilt(found, around)
    if abs(tilt) > max(SLOPE, chance) and _straight(found, segments):
        return told("not steady", None, f"it moves by {100 * tilt:.0f} % of its mean, all along")
    last = segments[-1]
    room = margin * abs(last.mean)
    same = [abs(one.mean - last.mean) <= max(room, around.apart(one, last)) for one in segments]
    excused = _excursions(segments, same)
    at = len(segments)
    while at > 0 and (same[at - 1] or at - 1 in excused):
        at -= 1
    start = segments[at].start if at < len(segments) else len(found)
    apart = "".join(f"; apart for a while at interval {segments[one].start}" for one in excused if one >= at)
    if len(found) - start < max(lasts * len(found), window):
        return told("not steady", None, f"its last level lasts only {len(found) - start} intervals")
    tilt, chance = _tilt(found[start:], around)
    if abs(tilt) > max(SLOPE, chance):
        return told("not steady", None, f"from interval {start} on it still moves by {100 * tilt:.0f} %")
    if start == 0:
        return told("steady", 0, f"its levels differ by less than {100 * margin:g} %, or by chance{apart}")
    sign = {"higher": 1, "lower": -1, "neither": 0}[better]
    if any(sign * (one.mean - last.mean) > room for one in segments[:at]):
        return told(
            "slowdown", start, f"an earlier level was better than that from interval {start} on{apart}"
        )
    return told("warm-up then steady", start, f"from interval {start} on it keeps one level{apart}")


def _excursions(segments: tuple[Segment, ...], same: list[bool]) -> set[int]:
    """Indices of segments that are short, differ, and lie between two that are the same."""
    whole = segments[-1].end
    found = {at for at in range(1, len(segments) - 1) if not same[at] and same[at - 1] and same[at + 1]}
    spent = sum(segments[at].end - segments[at].start for at in found)
    return found if spent <= EXCUSED * whole else set()


def _square(differences: Floats) -> float:
    """Mean square of normal differences, from all but the largest tenth."""
    off = np.sort(differences**2)
    return float(off[: int(0.9 * len(off))].mean()) / 0.62297


def _tilt(values: Floats, around: Noise) -> tuple[float, float]:
    """Rise of the straight line from begin to end, and what of it may be chance, as shares of the
    mean.
    """
    place = np.arange(len(values)) - (len(values) - 1) / 2
    rise = float(values @ place / (place @ place)) * (len(values) - 1)
    chance = UNSURE * math.sqrt(around.variance / float(place @ place)) * (len(values) - 1)
    mean = abs(float(values.mean()))
    if mean == 0:
        return (math.copysign(math.inf, rise) if abs(rise) > chance else 0.0), 0.0
    return rise / mean, chance / mean


def _straight(found: Floats, segments: tuple[Segment, ...]) -> bool:
    """Whether a straight line explains more than the levels do, each change and the slope at one
    price.
    """
    if np.ptp(found) == 0:
        return False
    scaled, price = _scaled(found)
    place = np.arange(len(found)) - (len(found) - 1) / 2
    off = scaled - scaled.mean()
    line = float(off @ off) - float(off @ place) ** 2 / float(place @ place) + price
    parts = (scaled[one.start : one.end] for one in segments)
    levels = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    return line < levels + price * (len(segments) - 1)


def _period(values: Floats, margin: float) -> int | None:
    """Intervals after which a series repeats itself at least three times; None where it does
    not.
    """
    lags = len(values) // 3
    rho = autocorrelation(values, 2 * lags)
    turned = np.flatnonzero(rho[: lags + 1] < 0)
    if not turned.size:
        return None
    beyond = int(turned[0])
    at = beyond + int(np.argmax(rho[beyond : lags + 1]))
    # The estimate sinks with the lag, as fewer values overlap.
    once, twice = (rho[lag] * len(values) / (len(values) - lag) for lag in (at, 2 * at))
    if min(once, twice) < CYCLE:
        return None
    swing = math.sqrt(2 * min(once, 1.0)) * float(values.std())
    return at if swing > margin * abs(float(values.mean())) else None


def _pelt(values: Floats, price: float, least: int) -> tuple[int, ...]:
    """Cuts with the least squared deviations plus ``price`` for each."""
    n = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    best = np.full(n + 1, math.inf)
    best[0] = -price
    came = np.zeros(n + 1, dtype=np.int64)
    starts, leave = np.array([0]), np.array([n + 1])
    for end in range(least, n + 1):
        if end >= 2 * least:
            starts, leave = np.append(starts, end - least), np.append(leave, n + 1)
        lengths = end - starts
        costs = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / lengths
        whole = best[starts] + np.maximum(costs, 0.0) + price
        at = int(np.argmin(whole))
        best[end], came[end] = whole[at], starts[at]
        # What cannot win any more goes once this end can be a start.
        leave = np.where(whole - price > best[end], np.minimum(leave, end + least), leave)
        starts, leave = starts[leave > end], leave[leave > end]
    cuts, end = [], n
    while came[end] > 0:
        end = int(came[end])
        cuts.append(end)
    return tuple(reversed(cuts))
