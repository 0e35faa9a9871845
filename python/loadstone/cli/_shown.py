"""What is shown of the runs of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli._show import show_json
from loadstone.cli._summary import show
from loadstone.errors import Error, Kept

if TYPE_CHECKING:
    from types import TracebackType

    from loadstone.plan.actions import RunPlan
    from loadstone.workload import Job
    from loadstone.workload.repeating import Repeated


class Shown:
    """What is shown of the runs of a job: each as it ends, or one JSON object at the end of all.

    A context manager, to be called with the summary of each run.
    """

    def __init__(self, job: Job, given: Mapping[str, Any]) -> None:
        """Nothing is shown yet."""
        self.job, self.given = job, given
        self.runs: list[Mapping[str, Any]] = []

    def __call__(self, summary: Mapping[str, Any]) -> None:
        """Shows a run."""
        self.runs.append(summary)
        if not self.given["as_json"]:
            show(summary)
        elif len(self.job.runs) == 1:
            show_json(summary)

    def __enter__(self) -> Shown:
        """Nothing is told yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Prints the object of several runs, however the command ends."""
        if not self.given["as_json"] or not self.runs or len(self.job.runs) == 1:
            return
        stopped = self.runs[-1].get("failure")
        failure = stopped or (str(error) if isinstance(error, Error | OSError) else None)
        kept = error.summary or {} if isinstance(error, Kept) else {}
        if isinstance(kept.get("runs"), int):
            # All were done, and only their place is another one.
            partial = bool(kept["partial"])
        else:
            partial = failure is not None or error is not None or bool(self.runs[-1]["partial"])
        told = {"script": self.job.workload, "partial": partial, "failure": failure, "runs": self.runs}
        show_json(told)

    def title(self, run: RunPlan) -> str:
        """What is shown beside a run that goes on."""
        return run.name

    def repeated(self, one: Repeated) -> None:
        """A repeat has ended."""

    def tell(self) -> None:
        """Says what is known by a repeat that has ended."""

    def end(self, failure: Kept | None) -> None:
        """All runs have ended."""
        if self.given["out"] and failure is None and not self.given["as_json"]:
            click.echo(f"bundle: {self.given['out']}")
