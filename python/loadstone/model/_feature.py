"""Features of your own: one function over numpy arrays.

>>> import numpy as np
>>> from loadstone import model
>>> @model.feature(unit="byte")
... def page_rest(requests):
...     "Bytes that a request lacks to whole pages of 4 KiB."
...     return np.where(requests.size < 0, model.NONE, -requests.size % 4096)
>>> fitted = model.fit("disk.spc", dimensions=["user.page_rest"])

The function gets some thousand requests at a time, in the order of the stream, as :class:`Requests`, and
returns one whole number for each, or :data:`NONE`. A second parameter, if it has one, is a dict that is empty
at the start of a stream and kept until its end. Such features are observed: described and compared, in every
phase, not drawn.

They are found in a file (:func:`load_features`, ``--plugin``), or in installed packages by the entry point
group ``loadstone.features``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone import _core, _entries
from loadstone.errors import Error

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

NONE = -(2**63)
"""Stands for a number that a request does not have, in columns and in what a feature returns."""

PREFIX = "user."
"""How the names of such features begin in a model."""


@dataclass(frozen=True)
class Requests:
    """Requests that follow each other, one array for each column."""

    time: Ints
    """Nanoseconds from the start of the trace."""
    op: npt.NDArray[np.uint8]
    """Codes of :data:`loadstone.trace.OPS`."""
    object: npt.NDArray[np.uint32]
    """Ids of what was touched."""
    offset: Ints
    """First byte touched, or :data:`NONE`."""
    size: Ints
    """Bytes touched, or :data:`NONE`."""
    latency: Ints
    """Nanoseconds, or :data:`NONE`: drawn requests have none."""
    flags: npt.NDArray[np.uint32]
    """Bits of :data:`loadstone.trace.FLAGS`."""
    actor: npt.NDArray[np.uint32]
    """Ids of who asked."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self.time)


@dataclass(frozen=True)
class Feature:
    """A function as a feature."""

    name: str
    """Without :data:`PREFIX`."""
    unit: str
    signed: bool
    rule: str
    """How its numbers are put into buckets where that is not asked for."""
    function: Callable[..., Any]

    def start(self) -> Callable[..., Ints]:
        """What computes its numbers in one stream, from the columns.

        The function that is returned raises ``Error`` where the user's function fails, or returns anything
        but one whole number from -2^63 to 2^63 - 1 for each request.
        """
        import inspect

        import numpy as np

        stateful = len(inspect.signature(self.function).parameters) > 1
        state: tuple[Any, ...] = ({},) if stateful else ()

        before = 0

        def compute(*columns: npt.NDArray[Any]) -> Ints:
            nonlocal before
            requests = Requests(*columns)
            first, before = before, before + len(requests)
            try:
                found = np.asarray(self.function(requests, *state))
            # SystemExit, too: the program would end without a word.
            except (Exception, SystemExit) as error:
                raise Error(f"the feature {self.name} failed: {type(error).__name__}: {error}") from error
            if found.shape != (len(requests),):
                raise Error(
                    f"the feature {self.name} returned an array of shape {found.shape} for {len(requests)} "
                    "requests; it must return one number for each"
                )
            if found.dtype.kind == "f":
                if not np.isfinite(found).all():
                    raise Error(
                        f"the feature {self.name} returned NaN or infinity; where a request has no number, "
                        "return loadstone.model.NONE in an array of whole numbers"
                    )
                found = np.rint(found)
            elif found.dtype.kind not in "biu":
                raise Error(f"the feature {self.name} returned {found.dtype}; it must return whole numbers")
            if found.dtype.kind in "fu" and (outside := (found >= 2.0**63) | (found < -(2.0**63))).any():
                at = int(outside.argmax())
                raise Error(
                    f"the feature {self.name} returned {found[at]:g} for request {first + at + 1:,} of the "
                    "stream; numbers must be from -2^63 to 2^63 - 1"
                )
            whole: Ints = np.ascontiguousarray(found, dtype=np.int64)
            if not self.signed and ((whole < 0) & (whole != NONE)).any():
                raise Error(
                    f"the feature {self.name} returned a negative number; say @feature(signed=True) if it may"
                )
            return whole

        return compute


def feature(
    *, unit: str = "", signed: bool = False, rule: str = "log2:1", name: str | None = None
) -> Callable[[Callable[..., Any]], Feature]:
    """Makes a function a feature and makes it known, as ``user.NAME``.

    ``unit`` is that of its numbers (``byte`` and ``ns`` are written as people read them), ``signed`` says
    that they may be negative, ``rule`` is their bucket rule where none is asked for (``log2:SUB``,
    ``linear:WIDTH``, ``exact+log2:SUB``, ``category``). The name is the function's unless given. Raises
    ``Error`` where the unit, the rule or the name cannot be used.
    """

    def decorate(function: Callable[..., Any]) -> Feature:
        made = Feature(name or function.__name__, unit, signed, rule, function)
        _core.model_register_feature(PREFIX + made.name, unit, signed, rule, made.start)
        return made

    return decorate


def load_features(path: str) -> list[str]:
    """Runs a Python file and answers the names of the features it defines, as dimensions are named.

    Raises ``Error`` where the file cannot be read, fails when run, or defines no feature or one twice.
    """
    import runpy

    try:
        found = runpy.run_path(path)
    except OSError as error:
        raise Error(f"{path}: {error.strerror}") from error
    except Error:
        raise
    except (Exception, SystemExit) as error:
        raise Error(f"{path}: {type(error).__name__}: {error}; it is run to get its features") from error
    # One feature may have two names in the file.
    made = {id(item): PREFIX + item.name for item in found.values() if isinstance(item, Feature)}
    names = list(made.values())
    if not names:
        raise Error(f"{path}: defines no feature; decorate a function with @loadstone.model.feature()")
    if twice := [name for name in names if names.count(name) > 1]:
        raise Error(f"{path}: defines {twice[0]} twice; give one of them another name")
    return names


def find_features(dimensions: Iterable[str]) -> None:
    """Loads those installed features that dimensions name and nobody made known yet."""
    known = {name for name, *_ in _core.model_features()}
    for dimension in dimensions:
        plain = dimension.partition("=")[0].rpartition(":")[2].removeprefix("previous(").removesuffix(")")
        if plain.startswith(PREFIX) and plain not in known:
            _entries.load("loadstone.features", plain.removeprefix(PREFIX))
