"""How faithful runs of a model are to replays, parameter by parameter, and what is not decided.

Each parameter is judged twice. Over the whole run: the ratio of the model's mean to the replays', with its
interval, must lie within 5 % (:mod:`loadstone.stats.equivalence`). Over time: the distance between the curves
stands beside the same distance between runs of one kind (:mod:`loadstone.stats.distance`), and counts where
chance alone seldom sets runs so far apart (:func:`loadstone.stats.distance.chance`). A parameter is faithful
where the whole run is the same and nothing speaks against it over time, not faithful where either differs,
and undecided where more runs could tell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from loadstone.observe.metrics import PARAMETERS, Metric
from loadstone.observe.response import Response
from loadstone.stats.distance import Distance, chance, distance
from loadstone.stats.equivalence import LEAST_TO_DIFFER, MOST_RUNS, Answer, Ratio, ratio, runs_to_decide

RMS_TARGET = 0.10
"""A parameter is within target when its RMS distance is at most this ..."""
MAX_TARGET = 0.15
"""... and its maximum distance at most this."""
FLOOR_FACTOR = 1.25
"""Otherwise it is within noise when neither is more than this times the floor."""
LEAST_INTERVALS = 10
"""Intervals that must remain for a parameter to be used."""
LEAST_MOVE = 0.01
"""Memory is used where the load moves it by at least this share of its mean."""
UNLIKELY = 0.01
"""A difference over time that chance makes more often than this is not decided: it takes five runs of each
kind to say so, and several parameters are asked."""
MARGIN = 0.05
"""The whole run is the same where the ratio of model to replays lies within this."""
SHOWN = 3
"""Parameters that a verdict names; the table has all."""
LEAST_PARAMETERS = 6
"""Parameters that must be usable for an overall verdict; a rate, latency and request size too, the first two
of the device or of the engine, the last only where the load goes to the device itself."""

OverTime = Literal["within target", "within noise", "differs"]
Verdict = Literal["faithful", "not faithful", "undecided", "unusable"]


@dataclass(frozen=True)
class Finding:
    """What was found of one response parameter."""

    parameter: str
    """Name in the metric table."""
    title: str
    """For people."""
    unit: str
    """Of ``scale``."""
    verdict: Verdict
    """``faithful``, ``not faithful``, ``undecided``, or ``unusable``: see ``reason``."""
    reason: str | None
    """Why it cannot be used, or what is not decided."""
    note: str | None
    """Which intervals were left out."""
    intervals: int
    """Intervals it was judged by."""
    distance: Distance | None = None
    """The figures over time; None where it cannot be used."""
    chance: float | None = None
    """How often chance alone would set the runs as far apart, 0 to 1."""
    ratio: Ratio | None = None
    """Of the model's mean over the whole run to the replays'; None where one is zero."""
    over_time: OverTime | None = None
    """``within target``: RMS and maximum are; ``within noise``: each is within target or at most 1.25 times
    its floor; ``differs``: neither."""
    runs: int | None = None
    """Runs of each kind that would decide what is not decided; None where ``MOST_RUNS`` would not."""

    def as_dict(self) -> dict[str, Any]:
        """Flat and plain, as in ``summary.json``."""
        out = {k: v for k, v in asdict(self).items() if k not in ("distance", "ratio")}
        out["usable"] = self.verdict != "unusable"
        figures = asdict(self.distance) if self.distance else {}
        for name in ("rms", "max", "floor_rms", "floor_max", "means_rms", "means_max", "scale"):
            out[name] = figures.get(name)
        out["ratio"] = self.ratio and self.ratio.value
        # Infinite where a kind has a single run, which JSON has no number for.
        ends = (self.ratio.low, self.ratio.high) if self.ratio else (None, None)
        out["ratio_low"], out["ratio_high"] = (end if end and math.isfinite(end) else None for end in ends)
        return out


def judge(d: Distance) -> OverTime:
    """What a distance over time says."""
    rms, most = d.rms <= RMS_TARGET, d.max <= MAX_TARGET
    if rms and most:
        return "within target"
    rms = rms or d.rms <= FLOOR_FACTOR * d.floor_rms
    most = most or d.max <= FLOOR_FACTOR * d.floor_max
    return "within noise" if rms and most else "differs"


def compare(
    replays: Sequence[Response],
    emulations: Sequence[Response],
    metrics: Sequence[Metric] = PARAMETERS,
) -> list[Finding]:
    """Judges every parameter from the responses of at least two replays and two emulations.

    All responses have the same number of intervals, aligned. A parameter whose counters are absent,
    that is zero throughout, or of which too little was counted is ``unusable`` and takes no part in
    anything; so is memory where the load does not move it. Intervals with an unknown value, or for
    a ratio with too few events in any run, are left out of that parameter and counted in its note.
    Counting uses the larger of the two kinds, so that a load that only one of them makes is a
    difference, not a gap.
    """
    return [_finding(metric, replays, emulations, len(metrics)) for metric in metrics]


def _finding(
    metric: Metric, replays: Sequence[Response], emulations: Sequence[Response], tests: int
) -> Finding:
    name = metric.name

    def stack(runs: Sequence[Response], what: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([getattr(r, what)[name] for r in runs], dtype=np.float64)

    def unusable(reason: str, kept: int = 0) -> Finding:
        return Finding(name, metric.title, metric.unit, "unusable", reason, None, kept)

    a, b = stack(replays, "values"), stack(emulations, "values")
    counts = [stack(replays, "counts"), stack(emulations, "counts")]
    both = np.concatenate(counts)
    if np.isnan(both).all():
        return unusable("its counters cannot be read on this host")
    if not np.nan_to_num(both).any():
        return unusable(f"zero throughout: no {metric.counted} were counted")
    typical = max(float(np.nanmean(c)) if not np.isnan(c).all() else 0.0 for c in counts)
    if typical < metric.enough:
        return unusable(f"{typical:.3g} {metric.counted} per interval, fewer than {metric.enough:g}")
    keep = ~(np.isnan(a).any(axis=0) | np.isnan(b).any(axis=0))
    if metric.aggregation == "ratio":
        keep &= (np.nan_to_num(both) >= metric.enough).all(axis=0)
    kept, total = int(keep.sum()), len(keep)
    if kept < min(LEAST_INTERVALS, total):
        few = f"only {kept} of {total} intervals have {metric.enough:g} {metric.counted} in every run"
        return unusable(few, kept)
    a, b = a[:, keep], b[:, keep]
    if name == "memory":
        move = max(float(np.ptp(x.mean(axis=0)) / x.mean()) for x in (a, b))
        if move < LEAST_MOVE:
            return unusable(f"the load does not move it: it varied by {move:.2%}", kept)
    note = None
    if kept < total:
        few = f"fewer than {metric.enough:g} {metric.counted} in one of the runs"
        why = few if metric.aggregation == "ratio" else "a counter was reset or could not be read"
        note = f"{total - kept} of {total} intervals left out: {why}"
    whole = [_whole(metric, runs, keep) for runs in (replays, emulations)]
    d, by_chance = distance(a, b), chance(a, b)
    return _decided(metric, note, kept, d, by_chance, whole, tests)


def _whole(metric: Metric, runs: Sequence[Response], keep: NDArray[np.bool_]) -> list[float]:
    """The mean of a parameter over each whole run: ratios by their counts, all else by time."""
    found = []
    for run in runs:
        values = np.asarray(run.values[metric.name], dtype=np.float64)[keep]
        weights = np.asarray(run.counts[metric.name], dtype=np.float64)[keep]
        if metric.aggregation != "ratio":
            weights = np.diff(run.edges)[keep]
        found.append(float(np.average(values, weights=weights)) if weights.sum() > 0 else 0.0)
    return found


def _decided(
    metric: Metric,
    note: str | None,
    kept: int,
    d: Distance,
    by_chance: float,
    whole: Sequence[Sequence[float]],
    tests: int,
) -> Finding:
    """The verdict on a parameter, by its whole runs and by its curves over time."""
    over_time, runs = judge(d), min(map(len, whole))
    found = ratio(whole[0], whole[1], tests)
    answer = found.answer(MARGIN, runs) if found else _of_zeros(whole, runs)
    apart = over_time == "differs" and by_chance < UNLIKELY
    verdict: Verdict = "faithful"
    reason, more = None, None
    if answer == "different" or apart:
        verdict = "not faithful"
    elif answer == "open" or over_time == "differs":
        verdict = "undecided"
        needed = [runs_to_decide(whole[0], whole[1], MARGIN, tests) if answer == "open" else 0]
        if over_time == "differs":
            needed.append(_runs_for_chance(runs))
        more = None if None in needed else max(max(one or 0 for one in needed), runs + 1)
        more = None if more is not None and more > MOST_RUNS else more
        reason = (
            f"about {more} runs of each kind would decide"
            if more is not None
            else f"{MOST_RUNS} runs of each kind would not decide"
        )
        if found is None:
            reason = "it is zero in some runs and not in others, so there is no ratio"
    return Finding(
        metric.name,
        metric.title,
        metric.unit,
        verdict,
        reason,
        note,
        kept,
        d,
        by_chance,
        found,
        over_time,
        more,
    )


def _of_zeros(whole: Sequence[Sequence[float]], runs: int) -> Answer:
    """The same where nothing can be divided by: a load that one kind alone makes is another load."""
    if not any(map(any, whole)):
        return "same"
    alone = any(max(one) <= 0 < min(other) for one, other in (whole, whole[::-1]))
    return "different" if alone and runs >= LEAST_TO_DIFFER else "open"


def _runs_for_chance(runs: int) -> int:
    """Runs of each kind of which chance can say less than one in a hundred: of five there are 126 pairs."""
    least = next(n for n in itertools.count(2) if 2 / math.comb(2 * n, n) < UNLIKELY)
    return max(least, runs + 1)


def overall(findings: Sequence[Finding], *, busy: bool = False) -> dict[str, Any]:
    """The verdict on all parameters together.

    ``faithful``: true, false, or null where that is not decided, or where too few parameters are usable:
    fewer than six, or none of the rates, or no latency, or not request size (unless the engine's own view is
    among them: then the load is one of files, which decide what reaches the device). ``text`` says it in
    words; ``usable``, ``passed`` and ``undecided`` count; ``runs_to_decide`` of each kind would decide, as
    far as is known. ``busy``: others used the host meanwhile, which is why much may be undecided.
    """
    usable = [f for f in findings if f.verdict != "unusable"]
    failed = [f for f in usable if f.verdict == "not faithful"]
    unsure = [f for f in usable if f.verdict == "undecided"]
    passed = len(usable) - len(failed) - len(unsure)
    missing = _missing(findings, usable)
    out: dict[str, Any] = {"usable": len(usable), "passed": passed, "undecided": len(unsure)}
    runs = [f.runs for f in unsure]
    out["runs_to_decide"] = None if None in runs or not runs else max(run for run in runs if run)
    told = [f"not faithful in {_names(failed)}"] if failed else []
    if passed:
        told.append(f"faithful in {passed} of {len(usable)} parameters")
    if unsure:
        why = " while others used the host" if busy else _more_runs(unsure)
        told.append(f"{len(unsure)} undecided{why}")
    if missing and not failed:
        told.append(f"too little could be measured for a verdict: {', '.join(missing)}")
    out["faithful"] = False if failed else None if unsure or missing else True
    out["text"] = "; ".join(told)
    return out


def _names(findings: Sequence[Finding]) -> str:
    """Up to three by name."""
    told = ", ".join(f.title for f in findings[:SHOWN])
    return told if len(findings) <= SHOWN else f"{told} and {len(findings) - SHOWN} more"


def _more_runs(unsure: Sequence[Finding]) -> str:
    """How many runs would decide how many of them."""
    runs = [f.runs for f in unsure if f.runs is not None]
    if not runs:
        return f" ({MOST_RUNS} runs of each kind would not decide)"
    which = "" if len(runs) == len(unsure) else f" {len(runs)} of them"
    return f" (about {max(runs)} runs of each kind would decide{which}: `until_decided`)"


def _missing(findings: Sequence[Finding], usable: Sequence[Finding]) -> list[str]:
    """What an overall verdict lacks."""
    names = {f.parameter for f in usable}
    of_files = any(f.parameter == "engine_ops_per_s" for f in findings)
    missing = []
    if len(usable) < LEAST_PARAMETERS:
        missing.append(f"{len(usable)} parameters of {LEAST_PARAMETERS}")
    if not names & {"reads_per_s", "writes_per_s", "engine_ops_per_s"}:
        missing.append("no rate")
    if not names & {"latency_ms", "engine_latency_ms"}:
        missing.append("no latency")
    if "request_size" not in names and not of_files:
        missing.append("no request size")
    return missing
