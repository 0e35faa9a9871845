"""What a script comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loadstone.plan.actions import Action, RunPlan
from loadstone.wml._errors import Remark


@dataclass(frozen=True)
class Interpretation:
    """What is to be done, and what the user should know before."""

    actions: list[Action] = field(default_factory=list)
    warnings: list[Remark] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """Paths of the scripts that were read."""

    @property
    def plans(self) -> list[dict[str, Any]]:
        """The plans of the runs, in order."""
        return [action.plan for action in self.actions if isinstance(action, RunPlan)]
