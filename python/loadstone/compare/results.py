"""What a comparison has found, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from loadstone.compare.arm import Arm
from loadstone.compare.differences import Difference
from loadstone.compare.verdicts import Finding


@dataclass(frozen=True, repr=False)
class Results:
    """What was found of arms beside the first of them, which is the base."""

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
