"""What an evaluation asks of the other packages: facts of the trace, a model, plans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from loadstone.plan.options import RunOptions

Pace = float | Literal["max"]
Role = Literal["replay", "model"]


@dataclass(frozen=True)
class Facts:
    """What must be known of a trace before it is scheduled."""

    requests: int
    """How many there are."""
    span: float
    """Seconds from the first to the last."""

    @property
    def rate(self) -> float:
        """Requests a second, as recorded."""
        return self.requests / self.span if self.span > 0 else float("inf")


class Lowering(Protocol):
    """How an evaluation gets its plans; tests and studies may bring their own."""

    def facts(self) -> Facts:
        """Of the trace."""

    def fit(self, out: Path) -> None:
        """Fits a model to the trace and writes it."""

    def window(self, model: Path) -> float:
        """Seconds of the longest windows of the model: inside of one it keeps no order."""

    def plan(self, role: Role, model: Path, pace: Pace, seed: int) -> dict[str, Any]:
        """The plan of a replay of the trace or of a run of the model."""

    def content(self, model: Path, seed: int) -> dict[str, Any] | None:
        """How closely requests of the model match the trace (:func:`loadstone.model.compare`), or None."""


class TraceLowering:
    """Plans of a trace and its model on a target, as ``replay`` and ``run`` make them."""

    def __init__(
        self,
        trace: Path,
        on: str | None,
        options: RunOptions,
    ) -> None:
        """All options but pace and seed go to replay and model alike."""
        self.trace, self.on, self.options = trace, on, options

    def facts(self) -> Facts:
        """Of the trace; read from its summary where it has one, else by one pass."""
        from loadstone.plan.facts import look, reading_of

        found = look("trace", str(self.trace), reading_of(self.options.reading))
        return Facts(int(found["requests"]), int(found["span_ns"]) / 1e9)

    def fit(self, out: Path) -> None:
        """Fits with the defaults of ``model fit``, and with think times where the order needs them."""
        from loadstone.model import fit

        think = self.options.order == "dependency"
        fit(self.trace, think=think, trace=self.options.reading).save(out)

    def window(self, model: Path) -> float:
        """From the model's header."""
        from loadstone.model import Model

        return Model.load(model).window

    def plan(self, role: Role, model: Path, pace: Pace, seed: int) -> dict[str, Any]:
        """Both kinds get the same target, options and pace."""
        from loadstone.workload import plan_model, plan_replay

        named = "independent" if self.options.order == "dependency" else "pace"
        # The length of the runs and their intervals are put in by the schedule.
        own = {"pace": None, "independent": None, named: pace, "seed": seed}
        options = replace(self.options, duration=None, interval=None, **own)  # type: ignore[arg-type]
        if role == "replay":
            return plan_replay(self.trace, self.on, options)
        return plan_model(model, self.on, options)

    def content(self, model: Path, seed: int) -> dict[str, Any] | None:
        """By one more pass over the trace and one over as many drawn requests."""
        from loadstone.model import Model, check

        return check(Model.load(model), self.trace, seed=seed, options=self.options.reading)
