"""Jobs that run several times: until enough is known of their metrics, or so often."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone._extras import need
from loadstone._text import meant
from loadstone.bundle import Bundle, Series
from loadstone.bundle.figures import of_run
from loadstone.bundle.metrics import Values, metrics_of
from loadstone.errors import Error, OptionError
from loadstone.plan.actions import Beside, Dump, RunPlan
from loadstone.stats.metric import Metric
from loadstone.stats.repetition import PRESETS, Assessment, Fixed, Repetition, UntilSure
from loadstone.suites import measured
from loadstone.workload.jobs import Job
from loadstone.workload.performing import performing
from loadstone.workload.runner import NamedRun

MOST = 1000
"""Repeats that can be asked for."""


@dataclass(frozen=True)
class Repeated:
    """What is known after a repeat."""

    number: int
    """Repeats that are done."""
    values: Mapping[str, float]
    """Of the last one, by name of the metric."""
    metrics: Mapping[str, Metric]
    """What these are."""
    sure: Sequence[str]
    """Metrics that must be known."""
    assessment: Assessment
    """What is known of them by all repeats."""
    asked: float | None
    """Half-width that is asked of their intervals, as a share of the mean; None for a number of repeats."""

    @property
    def missed(self) -> list[str]:
        """Metrics that are not known as was asked."""
        widths = self.assessment.half_widths
        return [name for name in self.sure if self.asked is not None and not widths[name] < self.asked]


def repetition(asked: Repetition | str | int) -> Repetition:
    """A rule by its name, or so many repeats; raises ``OptionError`` for what is neither."""
    if isinstance(asked, Fixed | UntilSure):
        return asked
    if isinstance(asked, str) and asked in PRESETS:
        return PRESETS[asked]
    number = int(asked) if isinstance(asked, str) and asked.isascii() and asked.isdecimal() else asked
    if isinstance(number, bool) or not isinstance(number, int):
        text = f"is neither a number nor one of: {', '.join(PRESETS)}"
        raise OptionError("repeat", asked, text)
    if not 2 <= number <= MOST:
        raise OptionError("repeat", asked, f"must be 2 to {MOST} repeats")
    return Fixed(number)


def told_of(job: Job, bundles: Sequence[Bundle], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the summary of several runs tells of them."""
    figures = [of_run(f"run{number}", bundle.summary) for number, bundle in enumerate(bundles, 1)]
    found: dict[str, Any] = {"script": job.workload, "figures": figures}
    if job.suite is not None:
        found |= {"suite": job.suite.suite, "measurements": measured(job.suite, results)}
    return found


def about(job: Job, number: int, action: RunPlan) -> dict[str, Any]:
    """What a list of runs says of one; several groups of jobs may have the same names."""
    if not action.name:
        return {}
    return {"role": f"{number} {action.name}" if job.kind == "jobs" else action.name}


class Repeats:
    """The runs of a job that is repeated, one after the other, and what is known of its metrics."""

    def __init__(
        self,
        job: Job,
        rule: Repetition,
        sure: Sequence[str],
        say: Callable[[str], None],
        on_run: Callable[[RunPlan], None] | None,
        on_done: Callable[[Mapping[str, Any]], None] | None,
        on_repeat: Callable[[Repeated], None] | None,
    ) -> None:
        """Arguments are those of ``run``; raises ``OptionError`` for a job that cannot be repeated."""
        need("scipy")
        refuse(job)
        self.job, self.rule, self.asked = job, rule, tuple(dict.fromkeys(sure))
        self.say, self.on_run, self.on_done, self.on_repeat = say, on_run, on_done, on_repeat
        self.summaries: list[Mapping[str, Any]] = []
        self._repeats: list[dict[str, Any]] = []
        self._values: list[Values] = []
        self._metrics: dict[str, Metric] = {}
        self._own: list[Bundle] = []
        self._about: list[dict[str, Any]] = []

    @property
    def sure(self) -> list[str]:
        """Metrics that must be known and are told by each repeat: the primary one, and what was asked for."""
        names = dict.fromkeys([*list(self._metrics)[:1], *self.asked])
        return [name for name in names if all(name in one for one in self._values)]

    def runs(self) -> Generator[NamedRun]:
        """All runs; each is to be told to :meth:`ended` before the next is asked for."""
        made = _to_be_made(self.job)
        if self.job.first is not None:
            self.job.first()
        number = 0
        while not self._enough():
            repeat = len(self._repeats) + 1
            self._own, self._about = [], []
            results: list[Mapping[str, Any]] = []
            with contextlib.closing(performing(self.job.actions, results, self.say)) as actions:
                for at, action in enumerate(actions, 1):
                    number += 1
                    if self.on_run is not None:
                        self.on_run(action)
                    more = about(self.job, at, action)
                    self._about.append({"name": f"run{at}", **more})
                    plan = action.plan if repeat == 1 else _again(action.plan, made, self.job.options.fill)
                    yield NamedRun(f"run{number}", plan, {**more, "repeat": repeat}, action.windows)
                    results.append(self._own[-1].summary)
            self._count(results)

    def ended(self, run: NamedRun, bundle: Bundle) -> None:
        """A run is whole."""
        self._own.append(bundle)
        self.summaries.append(bundle.summary)
        if self.on_done is not None:
            self.on_done(bundle.summary)

    def _count(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Takes note of a whole repeat."""
        told, whole = {}, self._own[0]
        if len(self.job.runs) > 1 or self.job.suite is not None:
            told = told_of(self.job, self._own, results)
            whole = Series(None, "script", self._about, told, self._own)
        metrics, values = metrics_of(whole)
        if not self._repeats:
            self._metrics = metrics
        self._repeats.append(told)
        self._values.append(values)
        for name in (*list(self._metrics)[:1], *self.asked):
            if name not in self._metrics:
                what = f"is no metric of this workload; {meant(name, self._metrics, _listed(self._metrics))}"
                raise OptionError("sure", name, what)
            if name not in values:
                what = f"repeat {len(self._repeats)} has too few requests to tell it; let each take longer"
                raise Error(f"{name}: {what}")
        if self.on_repeat is not None:
            self.on_repeat(self._known())

    def _known(self) -> Repeated:
        """What is known by now; there is a whole repeat."""
        sure, rule = self.sure, self.rule
        assessment = rule.assess({name: [one[name] for one in self._values] for name in sure})
        asked = rule.half_width if isinstance(rule, UntilSure) else None
        return Repeated(len(self._repeats), self._values[-1], self._metrics, sure, assessment, asked)

    def _enough(self) -> bool:
        return bool(self._repeats) and self._known().assessment.enough

    def told(self) -> dict[str, Any]:
        """What the summary tells: the repeats, the rule, and whether it was met."""
        found: dict[str, Any] = {
            "script": self.job.workload,
            "figures": [of_run(f"run{number}", one) for number, one in enumerate(self.summaries, 1)],
            "repeats": self._repeats,
        }
        if not self._repeats:
            return found
        known, rule = self._known(), self.rule
        found["repetition"] = {
            "least": rule.runs if isinstance(rule, Fixed) else rule.least,
            "most": rule.runs if isinstance(rule, Fixed) else rule.most,
            "half_width": known.asked,
            "confidence": 0.95 if isinstance(rule, Fixed) else rule.confidence,
            "met": known.assessment.sure,
            "half_widths": dict(known.assessment.half_widths),
            "missed": known.missed,
        }
        return found


def _listed(metrics: Mapping[str, Metric]) -> str:
    names = list(metrics)
    return f"it has {', '.join(names[:12])}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def refuse(job: Job) -> None:
    """Raises ``OptionError`` for a job of which each repeat would need files of its own."""
    for plan in job.plans:
        kept = plan.get("verify") or {}
        for key, value in (("log", plan.get("log")), *((key, kept.get(key)) for key in ("state", "from"))):
            if value is not None:
                what = f"{job.workload} keeps {value} ({key}), which is of one run; leave one of both out"
                raise OptionError("repeat", None, what)
    for action in job.actions:
        if isinstance(action, Dump | Beside):
            what = f"{job.workload} writes {action.path}, which each repeat would; run it without, or once"
            raise OptionError("repeat", None, what)


def _to_be_made(job: Job) -> set[str]:
    """Files that the first repeat makes."""
    targets = [target for plan in job.plans for target in plan["targets"]]
    return {
        target["path"]
        for target in targets
        if target.get("kind") == "file" and not os.path.lexists(target["path"])
    }


def _again(plan: Mapping[str, Any], made: set[str], fill: bool | None) -> dict[str, Any]:
    """A plan for the next repeat, which uses what the first one made as it is, or fills it where asked to."""
    more = {"made_before": True} if fill else {"made_before": True, "prepare": "none"}
    targets = [{**one, **more} if one.get("path") in made else one for one in plan["targets"]]
    return {**plan, "targets": targets}


__all__ = ["Repeated", "Repeats", "about", "refuse", "repetition", "told_of"]
