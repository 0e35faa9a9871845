"""How faithful emulations are to replays, parameter by parameter, and what cannot be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from loadstone.observe.metrics import PARAMETERS, Metric
from loadstone.observe.response import Response
from loadstone.stats.chance import chance
from loadstone.stats.distance import Distance, distance

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
LOUD = 0.5
"""A floor above this is said in the verdict: what is within such noise is hardly tested."""
LIKELY = 0.1
"""A difference that chance alone makes as often as this, or more, is said to be one."""
LEAST_PARAMETERS = 6
"""Parameters that must be usable for an overall verdict; a rate, latency and request size too, the first two
of the device or of the engine, the last only where the load goes to the device itself."""

Verdict = Literal["within target", "within noise", "differs", "unusable"]


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
    """``within target``: RMS and maximum are; ``within noise``: each is within target or at most
    1.25 times its floor; ``differs``: neither; ``unusable``: see ``reason``."""
    reason: str | None
    """Why it cannot be used."""
    note: str | None
    """Which intervals were left out."""
    intervals: int
    """Intervals it was judged by."""
    distance: Distance | None
    """The figures; None where it cannot be used."""
    chance: float | None
    """How often chance alone would set the runs as far apart, 0 to 1; see :mod:`loadstone.stats.chance`."""

    def as_dict(self) -> dict[str, Any]:
        """Flat and plain, as in ``summary.json``."""
        out = {k: v for k, v in asdict(self).items() if k != "distance"}
        out["usable"] = self.verdict != "unusable"
        figures = asdict(self.distance) if self.distance else {}
        for name in ("rms", "max", "floor_rms", "floor_max", "means_rms", "means_max", "scale"):
            out[name] = figures.get(name)
        return out


def judge(d: Distance) -> Verdict:
    """The verdict on a distance."""
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
    return [_finding(metric, replays, emulations) for metric in metrics]


def _finding(metric: Metric, replays: Sequence[Response], emulations: Sequence[Response]) -> Finding:
    name = metric.name

    def stack(runs: Sequence[Response], what: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([getattr(r, what)[name] for r in runs], dtype=np.float64)

    def unusable(reason: str, kept: int = 0) -> Finding:
        return Finding(name, metric.title, metric.unit, "unusable", reason, None, kept, None, None)

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
    d = distance(a, b)
    return Finding(name, metric.title, metric.unit, judge(d), None, note, kept, d, chance(a, b))


def overall(findings: Sequence[Finding]) -> dict[str, Any]:
    """The verdict on all parameters together.

    ``faithful``: true, false, or null where too few parameters are usable: fewer than six, or none
    of the rates, or no latency, or not request size (unless the engine's own view is among them: then the
    load is one of files, which decide what reaches the device). ``text`` says it in words; ``usable``,
    ``passed`` and ``loud`` (within noise, but of more than 50 %) count.
    """
    usable = [f for f in findings if f.verdict != "unusable"]
    failed = [f for f in usable if f.verdict == "differs"]
    names = {f.parameter for f in usable}
    of_files = any(f.parameter == "engine_ops_per_s" for f in findings)
    missing = []
    if len(usable) < LEAST_PARAMETERS:
        missing.append(
            f"only {len(usable)} of {len(findings)} parameters are usable, {LEAST_PARAMETERS} are needed"
        )
    if not names & {"reads_per_s", "writes_per_s", "engine_ops_per_s"}:
        missing.append("neither rate is usable")
    if not names & {"latency_ms", "engine_latency_ms"}:
        missing.append("latency is not usable")
    if "request_size" not in names and not of_files:
        missing.append("request size is not usable")
    out: dict[str, Any] = {"usable": len(usable), "passed": len(usable) - len(failed)}
    if failed:
        worst = ", ".join(f.title for f in failed)
        out |= {"faithful": False, "text": f"the model is not faithful in: {worst}"}
    elif missing:
        out |= {"faithful": None, "text": "no difference was found, but that says little"}
    else:
        out |= {
            "faithful": True,
            "text": f"the model is faithful in all {len(usable)} usable parameters",
        }
    unsure = [(f.title, f.chance) for f in failed if f.chance is not None and f.chance >= LIKELY]
    if unsure:
        out["text"] += (
            f"; chance alone sets runs as far apart in up to {max(c for _, c in unsure):.0%} of cases in: "
            f"{', '.join(title for title, _ in unsure)}; more runs (--repeat) would tell"
        )
    if missing:
        out["text"] += "; " + "; ".join(missing)
    loud = [f for f in usable if f.distance and f.verdict == "within noise" and f.distance.floor_rms > LOUD]
    if loud:
        because = f"passed only because runs of one kind differ by more than {LOUD:.0%}"
        if out["faithful"]:
            out["text"] = f"no difference beyond the noise in all {len(usable)} usable parameters"
        out["text"] += (
            f"; of the others, {len(loud)} {because}"
            if failed
            else f"; {len(loud)} of the parameters {because}"
        )
        out["text"] += ", which hardly tests them: a quieter host, longer runs or a lower pace would"
    out["loud"] = len(loud)
    return out
