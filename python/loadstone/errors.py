"""What Loadstone raises: one base, and a class for each thing that callers may want to tell apart.

``Error``
    ``OptionError``: an option cannot be, or does not go with others; also a ``ValueError``
    ``TraceError``, ``ModelError``, ``DatasetError``, ``PlanError``: a file or plan cannot be used
    ``StudyError``: a study file has faults, or a study's folder cannot be used
    ``RunError``: a run could not start
        ``Kept``: work ended early, after something had been measured

>>> import loadstone
>>> try:
...     loadstone.trace.describe("damaged.csv")
... except loadstone.TraceError as error:
...     print(error.kind, error.path, error.line)
malformed damaged.csv 3

What the operating system refuses to Python code itself stays an ``OSError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Error(Exception):
    """What went wrong, where, and what to do. The text says all of it; attributes are None where unknown."""

    path: str | None = None
    """The file that it is about."""
    line: int | None = None
    """Line of the file, counted from 1."""
    byte: int | None = None
    """Byte of the file, counted from 0."""
    errno: int | None = None
    """Number of the system's answer, as in ``errno``."""

    def __init__(self, text: str = "", **facts: Any) -> None:
        """``facts``: attributes of the class that are known. Raises ``TypeError`` for others."""
        super().__init__(text)
        for name, value in facts.items():
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no attribute {name!r}")
            setattr(self, name, value)


class OptionError(Error, ValueError):
    """An option whose value cannot be, or does not go with others.

    The text names options by their fields, in backquotes, and begins with the one that is wrong.
    """

    option: str | None = None
    """The field that is wrong, as ``RunOptions`` or the function has it."""
    value: str | None = None
    """Its value, where the text shows it."""
    what: str = ""
    """What is wrong and what to do."""

    def __init__(self, option: str | None, value: object, what: str) -> None:
        """``option`` is None where no single one is wrong."""
        given = f"`{option}`" if value is None else f"`{option}` {value}"
        super().__init__(what if option is None else f"{given}: {what}")
        self.option, self.what = option, what
        self.value = None if value is None else str(value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Its three parts, for other processes."""
        return type(self), (self.option, self.value, self.what)


class TraceError(Error):
    """A trace cannot be read or written."""

    kind: str | None = None
    """``io``, ``unrecognised`` (of no known format, or of several), ``unsupported`` (a version or codec of a
    known one), ``malformed``, ``truncated``, ``out_of_order``, ``too_large``, ``empty`` or ``defect``."""


class ModelError(Error):
    """A model cannot be fitted, read or drawn from."""

    kind: str | None = None
    """``requests`` (those of the trace are impossible, too many, or there are none), ``damaged``, ``version``
    (newer than this program) or ``defect``."""


class DatasetError(Error):
    """A series of file trees, or a profile of one, cannot be read or made."""


class PlanError(Error):
    """A plan cannot be run: it is no JSON of that shape, or does not hold together."""

    place: str | None = None
    """Part of the plan, such as ``workers[0].map``; None where the text cannot be read as a plan."""
    column: int | None = None
    """Column of the line, counted from 1."""
    what: str = ""
    """What is wrong and what to do, without the place."""


class StudyError(Error):
    """A study file has faults, or the folder of a study cannot be used."""

    faults: Sequence[str] = ()
    """All faults of a file, each with file and line."""


class RunError(Error):
    """A run cannot start: its target, its memory or the system does not allow it."""


class Kept(RunError):
    """Work that did not end as it should, after something had been measured."""

    summary: Mapping[str, Any] | None = None
    """What was measured."""
    bundle: Path | None = None
    """Where it is kept; None where it is not."""
    interrupted: bool = False
    """Nothing is wrong, but who called wants to stop."""

    def __init__(
        self,
        text: str,
        summary: Mapping[str, Any] | None = None,
        bundle: Path | None = None,
        interrupted: bool = False,
    ) -> None:
        """An error with what was measured."""
        super().__init__(text, summary=summary, bundle=bundle, interrupted=interrupted)
