"""What is shown of a job that is repeated: a line for each repeat, and at the end what is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from loadstone._text import visible
from loadstone.cli._perform import Shown
from loadstone.cli._show import counted, show_json
from loadstone.cli._summary import stopped_early
from loadstone.compare.words import percent, value
from loadstone.errors import Kept

if TYPE_CHECKING:
    from types import TracebackType

    from loadstone.plan.actions import RunPlan
    from loadstone.workload import Job
    from loadstone.workload.repeating import Repeated


class ShownRepeats(Shown):
    """What is shown of repeats."""

    def __init__(self, job: Job, given: Mapping[str, Any]) -> None:
        """Raises for a rule that there is not, and for a job that cannot be repeated."""
        from loadstone.workload.repeating import refuse, repetition

        super().__init__(job, given)
        repetition(given["repeat"])
        refuse(job)
        self.last: Repeated | None = None
        self._told = False

    def __call__(self, summary: Mapping[str, Any]) -> None:
        """A run is a part of its repeat."""
        self.runs.append(summary)

    def title(self, run: RunPlan) -> str:
        """Which repeat goes on, of how many."""
        done = 0 if self.last is None else self.last.number
        of = "" if self.last is None else f" of about {max(self.last.assessment.expected, done + 1)}"
        return f"repeat {done + 1}{of}{f', {run.name}' if run.name else ''}"

    def repeated(self, one: Repeated) -> None:
        """Takes note of what is known by now."""
        self.last, self._told = one, False

    def tell(self) -> None:
        """Says it, once."""
        if self.last is not None and not self._told:
            self._told = True
            click.echo(line(self.last), err=self.given["as_json"])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Everything was shown before."""

    def end(self, failure: Kept | None) -> None:
        """Says what is known, or that it is not."""
        partial = failure is not None or bool(self.runs and self.runs[-1]["partial"])
        last = self.last
        self.tell()
        if self.given["as_json"]:
            found = None if last is None else told(last)
            words = str(failure) if failure is not None else None
            show_json(
                {
                    "script": self.job.workload,
                    "partial": partial,
                    "failure": words,
                    "repetition": found,
                    "runs": self.runs,
                }
            )
        elif self.runs and (reason := stopped_early(self.runs[-1])):
            click.echo(f"stopped early: {reason}")
        if last is not None and not partial and (missed := missing(last)):
            what = (
                f"after {counted(last.number, 'repeat')} {', '.join(missed)}; {last.asked:.0%} was asked for"
            )
            click.echo(f"warning: not sure: {what}; run it longer, or on a quiet host", err=True)
        super().end(failure)


def line(one: Repeated) -> str:
    """``repeat 4 of about 10: ops_per_s 81,234 ops/s, known within 4.1 %``."""
    of = f" of about {one.assessment.expected}" if one.assessment.expected > one.number else ""
    parts = []
    for name in one.sure:
        width = one.assessment.half_widths[name]
        known = f", known within {percent(width)}" if math.isfinite(width) else ""
        parts.append(f"{visible(name, lines=False)} {value(one.metrics[name], one.values[name])}{known}")
    return f"repeat {one.number}{of}: {'; '.join(parts)}"


def missing(one: Repeated) -> list[str]:
    """Metrics that are not known as was asked, and how well they are."""
    widths = one.assessment.half_widths
    return [
        f"{visible(name, lines=False)} is known within {percent(widths[name])} only"
        if math.isfinite(widths[name])
        else f"{visible(name, lines=False)} cannot be known"
        for name in one.missed
    ]


def told(one: Repeated) -> dict[str, Any]:
    """What machines are told."""
    return {
        "repeats": one.number,
        "met": one.assessment.sure,
        "half_width": one.asked,
        "half_widths": dict(one.assessment.half_widths),
        "missed": one.missed,
    }
