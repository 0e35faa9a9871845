"""What a suite is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadstone import _values
from loadstone.errors import OptionError
from loadstone.plan.options import RunOptions
from loadstone.plan.surroundings import size_of
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
    """The variable that ``size`` sets."""
    block: str | None = None
    """The variable that ``bs`` sets."""
    depth: str | None = None
    """The variable that ``depth`` sets."""
    unpacks: bool = False
    """What it writes is what archives hold, and not to be asked for or verified."""

    def said(self, options: RunOptions) -> dict[str, str]:
        """Variables as text: those of a sweep, and above them those that options say."""
        if options.sweep and self.sweep is None:
            raise OptionError("sweep", None, f"{self.name} has none; give it several sizes with `variables`")
        found = dict(self.sweep or {}) if options.sweep else {}
        found |= {name: str(value) for name, value in options.variables.items()}
        for option, variable in self._options().items():
            value = getattr(options, option)
            if option == "size" and _is_memory(value):
                value = size_of(options)
            if value is None:
                continue
            if variable is None:
                raise OptionError(
                    option, None, f"{self.name} has no such size; its variables are set with `variables`"
                )
            if variable in options.variables:
                raise OptionError(option, None, f"and `variables` {variable}= say the same; give one of them")
            found[variable] = str(value)
        if options.direct:
            if "direct" not in self.variables:
                raise OptionError("direct", None, f"{self.name} goes through the page cache")
            found["direct"] = "yes"
        return found

    def by_option(self, error: OptionError, options: RunOptions) -> OptionError:
        """What is wrong with a variable, by the option that set it."""
        name, _, value = (error.value or "").partition("=")
        if error.option != "variables" or name in options.variables:
            return error
        option = next((option for option, one in self._options().items() if one == name), None)
        return error if option is None else OptionError(option, value, error.what)

    def _options(self) -> dict[str, str | None]:
        """Options that set a variable."""
        return {"size": self.size, "bs": self.block, "depth": self.depth}

    def plans(self, settings: Settings, said: Mapping[str, str]) -> SuitePlans:
        """Its plans with the variables that the user said."""
        return self.lower(settings, Given(self.name, self.variables, said))


def _is_memory(size: int | str | None) -> bool:
    """Whether a size is a multiple of memory, which a variable cannot be."""
    return isinstance(size, str) and _values.memory_share(size) is not None
