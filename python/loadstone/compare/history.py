"""Results of one load over time, a bundle each: where did they step, and what changed there?"""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from loadstone import Error, _pictures
from loadstone._extras import need
from loadstone._text import one_line
from loadstone.compare import words
from loadstone.compare.arm import Arm
from loadstone.compare.comparison import chosen
from loadstone.compare.differences import differences, refuse
from loadstone.compare.reading import Place, bundles_in, read_arm
from loadstone.stats.history import LEAST, Step, steps
from loadstone.stats.means import mean_of
from loadstone.stats.metric import Metric

FORMAT = "loadstone-history"
"""Of the plain data."""


@dataclass(frozen=True)
class Point:
    """A result of a history."""

    arm: Arm
    started: float
    """When its first run began, seconds since the epoch."""
    values: Mapping[str, float]
    """Means over its runs, by name of the metric."""

    @property
    def time(self) -> str:
        """That time as ISO 8601 in UTC."""
        return datetime.datetime.fromtimestamp(self.started, datetime.UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, repr=False)
class History:
    """Results in the order of time, with the steps of each metric."""

    folder: Path
    metrics: Sequence[Metric]
    """The first is the primary one."""
    points: Sequence[Point]
    steps: Mapping[str, Sequence[Step]]
    """Of each metric, in order; ``index`` counts points."""
    notes: Sequence[str] = field(default=())

    def __repr__(self) -> str:
        """``<History results/: 24 results, 1 step of ops_per_s>``."""
        found = len(self.steps[self.metrics[0].name])
        said = f"{found} step{'s' * (found != 1)} of {self.metrics[0].name}"
        return one_line(f"<History {self.folder}: {len(self.points)} results, {said}>")

    def verdict(self, metric: Metric, step: Step) -> str:
        """``better`` or ``worse`` of a step; ``higher`` or ``lower`` where neither is."""
        higher = step.after > step.before
        if metric.better == "neither":
            return "higher" if higher else "lower"
        return "better" if higher is (metric.better == "higher") else "worse"

    def changed(self, step: Step) -> list[str]:
        """What else is not as it was in the result before the step."""
        before, after = (self.points[at].arm for at in (step.index - 1, step.index))
        return [
            f"{one.name}: {one.values[0]} -> {one.values[1]}"
            for one in differences([before, after])
            if one.within is None and one.name != "target"
        ]

    def text(self) -> str:
        """For a terminal."""
        first, last = self.points[0], self.points[-1]
        lines = [one_line(f"{self.folder}: {len(self.points)} results, {first.time} to {last.time}"), ""]
        for metric in self.metrics:
            found = self.steps[metric.name]
            if not found:
                lines.append(one_line(f"{metric.name}: no step"))
            for step in found:
                by = "" if step.change is None else f" by {words.percent(abs(step.change))}"
                at = self.points[step.index]
                figures = f"{words.value(metric, step.before)} -> {words.value(metric, step.after)}"
                said = f"{metric.name}: {self.verdict(metric, step)}{by} from {at.arm.name} on ({at.time})"
                lines.append(one_line(f"{said}: {figures}, p {step.p:.3g}"))
                lines += [one_line(f"  changed there: {one}") for one in self.changed(step)]
        lines += ["", *(one_line(f"note: {note}") for note in self.notes)] if self.notes else []
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "format": FORMAT,
            "version": 1,
            "points": [
                {
                    "name": one.arm.name,
                    "time": one.time,
                    "runs": len(one.arm.runs),
                    "values": dict(one.values),
                }
                for one in self.points
            ],
            "metrics": [
                {
                    "name": metric.name,
                    "unit": metric.unit,
                    "better": metric.better,
                    "steps": [
                        {
                            "index": step.index,
                            "name": self.points[step.index].arm.name,
                            "time": self.points[step.index].time,
                            "before": step.before,
                            "after": step.after,
                            "change": step.change,
                            "p": step.p,
                            "verdict": self.verdict(metric, step),
                            "changed": self.changed(step),
                        }
                        for step in self.steps[metric.name]
                    ],
                }
                for metric in self.metrics
            ],
            "notes": list(self.notes),
        }

    def csv(self) -> str:
        """A row for each result: ``time``, ``bundle`` and the metrics, as Apache Otava reads it."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["time", "bundle", *(one_line(metric.name) for metric in self.metrics)])
        for one in self.points:
            # A name may not end its column, whatever program reads it.
            name = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in one.arm.name)
            writer.writerow([one.time, name, *(one.values[metric.name] for metric in self.metrics)])
        return out.getvalue()

    def plot(self) -> Any:
        """A matplotlib figure: each metric over the results, with its steps.

        Raises ``Error`` where matplotlib is not installed (the extra ``plot``).
        """
        _pictures.ready()
        from matplotlib.figure import Figure

        made = Figure(figsize=(9, 1.6 * len(self.metrics) + 0.6), layout="constrained")
        rows = made.subplots(len(self.metrics), 1, sharex=True, squeeze=False)
        for axes, metric in zip(rows[:, 0], self.metrics, strict=True):
            values = [one.values[metric.name] for one in self.points]
            axes.plot(range(len(values)), values, ".-", color="#888888", linewidth=0.6)
            edges = [0, *(step.index for step in self.steps[metric.name]), len(values)]
            for begin, end in pairwise(edges):
                axes.hlines(sum(values[begin:end]) / (end - begin), begin - 0.5, end - 0.5, color="#1f5fa8")
            for step in self.steps[metric.name]:
                worse = self.verdict(metric, step) == "worse"
                axes.axvline(step.index - 0.5, color="#b3261e" if worse else "#2a7f3f", linestyle="--")
            unit = f" ({metric.unit})" if metric.unit else ""
            axes.set_title(_pictures.plain(metric.name + unit), loc="left", fontsize=9)
            axes.set_ylim(bottom=0)
        rows[-1, 0].set_xlabel("result, in the order of time")
        return made


def history_of(
    folder: Place,
    metrics: Sequence[str] | None = None,
    *,
    all_metrics: bool = False,
    confidence: float = 0.95,
    accept_differences: bool = False,
) -> History:
    """The history of all bundles in a folder, by the time at which they began.

    ``metrics``, ``all_metrics``: as of :func:`loadstone.compare.compare_bundles`. Loads must be the same,
    unless ``accept_differences``; what changed of the host is told where figures step. A history without a
    step gets one in at most 1 - ``confidence`` of the cases. Raises ``Error`` for too few bundles.
    """
    need("scipy")
    place = Path(folder)
    if not place.is_dir():
        raise Error(f"{place}: is no folder; a history is a folder of bundles")
    arms = [read_arm(one) for one in bundles_in(place)]
    if len(arms) < 2 * LEAST:
        raise Error(f"{place}: holds {len(arms)} results, and a history needs {2 * LEAST} to tell a step")
    if late := next((arm.name for arm in arms if arm.runs[0].started is None), None):
        raise Error(f"{late}: does not tell when it began, so it has no place in a history")
    arms.sort(key=lambda arm: arm.runs[0].started or 0.0)
    if not accept_differences:
        for arm in arms[1:]:
            # Kernels and mounts change in the course of time, which is what a history is for.
            refuse(
                [one for one in differences([arms[0], arm]) if one.name.startswith("load")], [arms[0], arm]
            )
    names, missing = chosen(arms, metrics, all_metrics)
    points = [
        Point(arm, arm.runs[0].started or 0.0, {one.name: _mean(arm, one) for one in names}) for arm in arms
    ]
    found = {one.name: steps([point.values[one.name] for point in points], confidence) for one in names}
    notes = [f"{arm.name}: {note}" for arm in arms for note in arm.notes]
    return History(place, names, points, found, [*notes, *missing])


def _mean(arm: Arm, metric: Metric) -> float:
    values = arm.values(metric.name)
    return mean_of(values, metric.mean if values.min() > 0 else "arithmetic")
