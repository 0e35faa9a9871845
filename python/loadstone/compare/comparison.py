"""Comparisons: arms side by side, what differs between them, and a verdict for each metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from loadstone import Error
from loadstone._extras import need
from loadstone._text import meant
from loadstone.compare import texts
from loadstone.compare.arm import Arm
from loadstone.compare.conditions import failing
from loadstone.compare.differences import Difference, differences, refuse
from loadstone.compare.floor import floors, halves
from loadstone.compare.reading import Place, read_arm, read_arms, renamed
from loadstone.compare.verdicts import Finding, judge, pair
from loadstone.errors import OptionError
from loadstone.stats.metric import Metric

RATES = ("per_s", "bytes_per_s")
"""What is compared of a suite's measurements unless all is asked for."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """Arms beside the first of them, which is the base."""

    arms: Sequence[Arm]
    differences: Sequence[Difference]
    """What differs between them besides their figures."""
    verdicts: Sequence[Finding]
    """For each arm but the base and each metric; those of the primary metric first."""
    margin: float
    """Within which arms are the same, as a share."""
    confidence: float
    """Of intervals and tests."""
    notes: Sequence[str] = field(default=())
    """What should be known besides."""

    @property
    def primary(self) -> list[Finding]:
        """Findings of the primary metric, one for each arm but the base."""
        return [one for one in self.verdicts if one.primary]

    def failing(self, conditions: Sequence[str]) -> list[tuple[str, Finding]]:
        """Which of these conditions hold, such as ``worse by 5%``, each with the finding.

        ``[METRIC] WORD [by SHARE]``: the word is ``worse``, ``better``, ``different``, ``undecided`` or
        ``not same``. Without a metric it is about the primary one, with ``any`` about each. ``by`` asks that
        the ratio is as far from 1, besides.
        Raises ``OptionError`` for what is no condition, or about no metric that is compared.
        """
        return failing(conditions, self.verdicts)

    def __repr__(self) -> str:
        """``<Comparison xfs against ext4: ops_per_s is better, ...>``."""
        return f"<Comparison {'; '.join(texts.sentences(self))}>"

    def text(self, colour: bool = False) -> str:
        """All of it for a terminal; ``colour``: of verdicts that say a difference is real."""
        return texts.text(self, colour)

    def markdown(self) -> str:
        """All of it as Markdown, as a pull request shows it."""
        return texts.markdown(self)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return texts.plain(self)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return texts.html(self)

    def plot(self) -> Any:
        """A matplotlib figure: ratios with their intervals, and the primary metric of every run.

        Raises ``Error`` where matplotlib is not installed (the extra ``plot``).
        """
        from loadstone.compare.pictures import forest

        return forest(self)

    def report(self, out: Place, *, force: bool = False) -> None:
        """Writes one HTML page that loads nothing; an existing file is kept unless ``force``."""
        from loadstone.compare.page import write

        write(self, out, force)


def compare(
    arms: Sequence[Arm],
    margin: float = 0.05,
    metrics: Sequence[str] | None = None,
    *,
    all_metrics: bool = False,
    confidence: float = 0.95,
    accept_differences: bool = False,
    floor: Sequence[Arm] = (),
) -> Comparison:
    """Compares arms with the first one; see :func:`compare_bundles` for the arguments.

    Raises ``Error`` for less than two arms, arms that differ in what forbids a comparison, and arms that have
    no metric in common.
    """
    need("scipy")
    if len(arms) < 2:
        raise OptionError(
            None, None, "name at least two arms: the first is what the others are compared with"
        )
    if not 0 < margin < 1:
        raise OptionError("margin", margin, "must lie between 0 and 1, such as 0.05 for 5 %")
    if not 0.5 <= confidence < 1:
        raise OptionError("confidence", confidence, "must be at least 0.5 and below 1, such as 0.95")
    if any(not arm.runs for arm in arms):
        raise Error(f"{next(arm.name for arm in arms if not arm.runs)}: has no run to compare")
    found = differences(arms)
    if not accept_differences:
        refuse(found, arms)
    wanted, missing = chosen(arms, metrics, all_metrics)
    pairs = [pair(arms[0], arm, metric) for metric in wanted for arm in arms[1:]]
    known = floors(floor) if floor else {}
    findings = judge(pairs, wanted[0].name, margin, confidence, known)
    return Comparison(arms, found, findings, margin, confidence, [*_notes(arms, findings), *missing])


def compare_bundles(
    paths: Sequence[Place],
    margin: float = 0.05,
    metrics: Sequence[str] | None = None,
    *,
    all_metrics: bool = False,
    confidence: float = 0.95,
    accept_differences: bool = False,
    floor: Sequence[Place] = (),
) -> Comparison:
    """Compares bundles, bundles of repeats, or folders of bundles, with the first one.

    A path may be ``NAME=PATH``. ``margin``: within which arms are the same, as a share. ``metrics``: the
    first is the primary one, and no others are compared; by default rates, latencies and CPU of whole
    runs, or the rates of a suite's measurements. ``all_metrics``: those of each op and step, too.
    ``accept_differences``: compares arms of other kernels or loads. ``floor``: one or two bundles of repeats
    of one thing; what differs by less than they do is undecided.
    """
    return compare(
        read_arms(paths),
        margin,
        metrics,
        all_metrics=all_metrics,
        confidence=confidence,
        accept_differences=accept_differences,
        floor=[read_arm(one) for one in _few(floor)],
    )


def compare_itself(
    path: Place, margin: float = 0.05, metrics: Sequence[str] | None = None, *, seed: int = 1, **more: Any
) -> Comparison:
    """Compares two halves of one arm's runs, split at random by ``seed``, and tells the floor of each metric.

    ``more``: ``all_metrics`` and ``confidence`` of :func:`compare`. Raises ``Error`` for less than four runs.
    """
    arm = read_arm(path)
    first, second = (
        renamed(arm, f"{arm.name}, {word} half", [arm.runs[at] for at in half])
        for word, half in zip(("one", "other"), halves(arm, seed), strict=True)
    )
    return compare([first, second], margin, metrics, floor=[arm], accept_differences=True, **more)


def _few(floor: Sequence[Place]) -> Sequence[Place]:
    if len(floor) > 2:
        raise OptionError(
            "floor", None, f"{len(floor)} bundles are given; one or two of the same thing make a floor"
        )
    return floor


def chosen(arms: Sequence[Arm], metrics: Sequence[str] | None, every: bool) -> tuple[list[Metric], list[str]]:
    """Metrics that are compared, the primary one first; and what is said of those that cannot be."""
    known: dict[str, Metric] = {}
    for arm in arms:
        for name, metric in arm.metrics.items():
            if known.setdefault(name, metric) != metric:
                one, other = known[name], metric
                what = (
                    f"is {one.unit}, {one.better} is better, and in {arm.name} {other.unit}, {other.better}"
                )
                raise Error(f"{name}: {what}; arms must tell it alike")
    # A percentile is told by runs with enough requests, which are the fast ones: those alone say nothing.
    lacking = {name: [arm.name for arm in arms if len(arm.values(name)) < len(arm.runs)] for name in known}
    common = [metric for name, metric in known.items() if not lacking[name]]
    if not common:
        raise Error(
            f"{', '.join(arm.name for arm in arms)}: have no metric in common, so they cannot be compared"
        )
    if metrics:
        for name in metrics:
            if name not in known:
                hint = meant(name, known, f"there are {', '.join(list(known)[:12])}")
                raise OptionError("metrics", name, f"is no metric of these arms; {hint}")
            if lacking[name]:
                raise OptionError(
                    "metrics",
                    name,
                    f"is not told by all runs of {', '.join(lacking[name])}: too few requests?",
                )
        return [known[name] for name in dict.fromkeys(metrics)], []
    names = [one.name for one in common] if every else _usual([one.name for one in common])
    absent = [name for name in (known if every else _usual(list(known))) if lacking[name]]
    notes = [
        f"{name} is not told by all runs of {', '.join(lacking[name])} and is left out" for name in absent[:5]
    ]
    if len(absent) > 5:
        notes.append(f"{len(absent) - 5} more metrics are not told by all runs and are left out")
    return [known[name] for name in names], notes


def _usual(names: Sequence[str]) -> list[str]:
    """Metrics of whole runs; where there are none, the rates of measurements."""
    whole = [name for name in names if "." not in name]
    return whole or [name for name in names if name.rpartition(".")[2] in RATES] or list(names)


def _notes(arms: Sequence[Arm], findings: Sequence[Finding]) -> list[str]:
    notes = [f"{arm.name}: {note}" for arm in arms for note in arm.notes]
    if any(min(one.runs) < 2 for one in findings):
        few = [arm.name for arm in arms if len(arm.runs) < 2]
        notes.append(
            f"one run of {' and of '.join(few) or 'an arm'} cannot show how much of a difference is chance, "
            "so there is no verdict; repeat each: loadstone run --repeat until-sure"
        )
    elif any(min(one.runs) < 10 for one in findings):
        notes.append("intervals of less than ten runs are too narrow where values are skewed")
    if _one_after_the_other(arms):
        notes.append(
            "all runs of one arm came before those of another, so a slow change of the host looks like a "
            "difference; alternate them if it matters"
        )
    if any("response_mean" in arm.metrics for arm in arms):
        notes.append("the pace was open, where rates are those of the load: look at the response")
    return notes


def _one_after_the_other(arms: Sequence[Arm]) -> bool:
    spans = []
    for arm in arms:
        times = [run.started for run in arm.runs if run.started is not None]
        if len(times) < 2:
            return False
        spans.append((min(times), max(times)))
    spans.sort()
    return all(before[1] < after[0] for before, after in pairwise(spans))
