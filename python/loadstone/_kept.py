"""Errors that come when something has been measured already."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from loadstone.errors import Error, Kept


class LeftBehind(UserWarning):
    """A run that was killed had results, which are kept."""


class FromEnvironment(UserWarning):
    """A job file or script takes a variable of the environment, which results then hold."""


def warn_of_environment(file: str, names: Iterable[str]) -> None:
    """Says that ``file`` takes variables of the environment."""
    if told := ", ".join(sorted(names)):
        text = f"{file}: takes {told} from the environment; plans, results and reports may hold its value"
        warnings.warn(text, FromEnvironment, stacklevel=3)


@contextlib.contextmanager
def keeping(results: Sequence[Mapping[str, Any]]) -> Iterator[None]:
    """An error or interrupt becomes a ``Kept`` with the ``results`` so far as ``runs``, if there are any."""
    try:
        yield
    except Kept:
        raise
    except (Error, OSError, MemoryError) as error:
        if not results:
            raise
        raise Kept(str(error) or type(error).__name__, {"runs": list(results)}) from error
    except KeyboardInterrupt:
        if not results:
            raise
        raise Kept("interrupted", {"runs": list(results)}, interrupted=True) from None
