"""Kinds of values that options take; how each is written is said once, in ``loadstone._values``."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from loadstone import _values
from loadstone._other import what_it_is
from loadstone.errors import Error

T = TypeVar("T")


class _Value(click.ParamType[T]):
    """A value that a parser of ``loadstone._values`` reads."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        """``name``: what help calls such values."""
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """What a text says; a default may be a value already."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        try:
            return self._parse(value)
        except Error as error:
            self.fail(str(error), param, ctx)


SIZE = _Value("size", _values.size)
"""Bytes, at least one."""
TARGET_SIZE = _Value("size", _values.target_size)
"""Bytes; or as text multiples of memory (``2x-ram``, ``0.5x-ram``), and several sizes (``64k,1m``)."""
DURATION = _Value("duration", _values.duration)
"""Seconds, more than none."""
TIME = _Value("duration", lambda text: _values.duration(text, zero=True))
"""Seconds since something, or none."""
RATE = _Value("rate", _values.rate)
"""So many per second, more than none."""
FACTOR = _Value("factor", _values.factor)
"""A number above 0."""
THINK = _Value("factor", _values.divisor)
"""What think times are divided by: a number above 0, or ``none``, which is 0."""
CPUS = _Value("cpus", _values.cpus)
"""Numbers of CPUs."""


class Count(click.IntRange):
    """A whole number within bounds."""

    def __init__(self, least: int, most: int | None = None, largest: int = _values.MOST) -> None:
        """Bounds are among them; without ``most``, which help tells of, ``largest`` is one."""
        super().__init__(least, most)
        self._least, self._most = least, largest if most is None else most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        if isinstance(value, str):
            try:
                return _values.count(value, self._least, self._most)
            except Error as error:
                self.fail(str(error), param, ctx)
        return int(value)


SEED = Count(0, largest=_values.MOST_SEED)
"""What draws begin from."""


class Number(click.FloatRange):
    """A finite number within bounds."""

    _read = staticmethod(_values.number)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        try:
            found = self._read(value) if isinstance(value, str) else float(value)
        except Error as error:
            self.fail(str(error), param, ctx)
        try:
            return float(super().convert(found, param, ctx))
        except click.BadParameter:
            self.fail(f"{value!r} is not in the range {self._describe_range()}", param, ctx)


class Share(Number):
    """A share within bounds: ``0.1`` or ``10%``."""

    _read = staticmethod(_values.share)


class Percent(Number):
    """Percent within bounds: ``10`` or ``10%``."""

    _read = staticmethod(_values.percentage)


class Alike(click.Choice[str]):
    """A choice that knows other tools' words for some of its own."""

    def __init__(self, choices: Sequence[str], alike: Mapping[str, str]) -> None:
        """``alike``: what a word of another tool is here."""
        super().__init__(choices)
        self._alike = alike

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word that is meant."""
        return super().convert(self._alike.get(value, value), param, ctx)


class Folder(click.Path):
    """A directory that is there. ``click.Path`` refuses files alone, and takes devices and pipes for one."""

    def __init__(self, **attributes: Any) -> None:
        """Takes what ``click.Path`` takes but what kinds of files are welcome."""
        super().__init__(exists=True, file_okay=False, **attributes)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        found = super().convert(value, param, ctx)
        if not os.path.isdir(found):
            self.fail(f"{os.fspath(value)!r} is no directory", param, ctx)
        return found


class File(click.Path):
    """A file, and not a directory; of a bundle it says which command takes it."""

    def __init__(self, **attributes: Any) -> None:
        """Takes what ``click.Path`` takes but what kinds of files are welcome."""
        super().__init__(dir_okay=False, **attributes)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if os.path.isdir(value) and (what := what_it_is(os.fspath(value))) is not None:
            self.fail(f"{os.fspath(value)}: {what}", param, ctx)
        return super().convert(value, param, ctx)


FILE = File()
"""As text."""


def once(param: str, names: Iterable[str]) -> None:
    """Raises where two of several options are about the same, of which the last would stand silently."""
    for name, times in Counter(names).items():
        if times > 1:
            raise click.UsageError(f"{param}: {name} is given {times} times; give it once")


def pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """``NAME=VALUE`` options as a dict: a callback."""
    try:
        return _values.pairs(values)
    except Error as error:
        raise click.BadParameter(str(error), ctx, param) from None
