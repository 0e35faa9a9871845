"""What a suite is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadstone.suites._build import Settings, SuitePlans
from loadstone.suites._variables import Given, Variable


@dataclass(frozen=True)
class Suite:
    """A set of micro-benchmarks."""

    name: str
    title: str
    about: str
    """What it does and how its numbers are to be read."""
    source: str
    """Where its numbers come from."""
    variables: Mapping[str, Variable]
    lower: Callable[[Settings, Given], SuitePlans]
    sweep: Mapping[str, str] | None = None
    """Variables of a sweep, if there is one."""
    size: str | None = None
    """The variable that ``--size`` sets."""
    block: str | None = None
    """The variable that ``--bs`` sets."""
    depth: str | None = None
    """The variable that ``--depth`` sets."""
    unpacks: bool = False
    """What it writes is what archives hold, and not to be asked for or verified."""

    def plans(self, settings: Settings, said: Mapping[str, str]) -> SuitePlans:
        """Its plans with the variables that the user said."""
        return self.lower(settings, Given(self.name, self.variables, said))
