"""What a user may say of a suite: ``-D NAME=VALUE``, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from loadstone import _values
from loadstone.errors import Error, OptionError

T = TypeVar("T")


@dataclass(frozen=True)
class Variable:
    """One of them."""

    default: str
    meaning: str


class Given:
    """The variables of a run of a suite: what the user said, above the defaults."""

    def __init__(self, suite: str, known: Mapping[str, Variable], said: Mapping[str, str]) -> None:
        """Raises ``Error`` for names that the suite does not have."""
        self.suite, self.said = suite, said
        self._text = {name: one.default for name, one in known.items()} | dict(said)
        if unknown := sorted(set(said) - set(known)):
            raise OptionError(
                "variables", ", ".join(unknown), f"{suite} has no such variable; it has {', '.join(known)}"
            )

    def text(self, name: str) -> str:
        """As it was written."""
        return self._text[name]

    def fail(self, name: str, what: str) -> Error:
        """An error about a value."""
        return OptionError("variables", f"{name}={self._text[name]}", what)

    def flag(self, name: str) -> bool:
        """Yes or no."""
        found = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
        text = self._text[name].lower()
        if text not in found:
            raise self.fail(name, "write yes or no")
        return found[text]

    def size(self, name: str) -> int:
        """Bytes, at least one."""
        try:
            return _values.size(self._text[name])
        except Error as error:
            raise self.fail(name, str(error)) from None

    def number(self, name: str, least: int = 1) -> int:
        """A whole number."""
        try:
            return _values.count(self._text[name], least)
        except Error as error:
            raise self.fail(name, f"wants a whole number of {least} or more: {error}") from None

    def sizes(self, name: str) -> list[int]:
        """Bytes: ``64k``, several with commas, or ``64k-1m``, each double the one before."""
        return self._several(name, _values.size, "4k, 4k,64k or 4k-1m")

    def numbers(self, name: str) -> list[int]:
        """Whole numbers, likewise."""
        return self._several(name, lambda text: _values.count(text, 1), "1, 1,8 or 1-32")

    def among(self, name: str, known: Iterable[str]) -> list[str]:
        """Some of the names ``known``, in their order; ``all``: all of them."""
        known = list(known)
        asked = [part.strip() for part in self._text[name].split(",") if part.strip()]
        if asked == ["all"]:
            return known
        if wrong := [part for part in asked if part not in known]:
            raise self.fail(name, f"{wrong[0]!r} must be one of: {', '.join(known)}")
        if not asked:
            raise self.fail(name, f"name some of {', '.join(known)}, or all")
        return [one for one in known if one in asked]

    def _several(self, name: str, read: Callable[[str], int], how: str) -> list[int]:
        found: list[int] = []
        for part in self._text[name].split(","):
            first, dash, last = (text.strip() for text in part.partition("-"))
            try:
                low, high = read(first), read(last if dash else first)
            except Error as error:
                raise self.fail(name, f"{error}; several are written {how}") from None
            if low > high:
                raise self.fail(name, f"{part!r} goes down; write {last}-{first}")
            while low <= high:
                found.append(low)
                low *= 2
        return sorted(set(found))
