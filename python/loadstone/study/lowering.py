"""What an evaluation asks of the other packages: facts of the trace, a model, plans."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

Pace = float | Literal["max"]
Role = Literal["replay", "model"]


@dataclass(frozen=True)
class Facts:
    """What must be known of a trace before it is scheduled."""

    requests: int
    """How many there are."""
    span: float
    """Seconds from the first to the last."""


class Lowering(Protocol):
    """How an evaluation gets its plans; tests and studies may bring their own."""

    def facts(self) -> Facts:
        """Of the trace."""

    def fit(self, out: Path) -> None:
        """Fits a model to the trace and writes it."""

    def plan(self, role: Role, model: Path, pace: Pace, seed: int) -> dict[str, Any]:
        """The plan of a replay of the trace or of a run of the model."""
