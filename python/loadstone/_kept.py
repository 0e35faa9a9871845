"""Errors that come when something has been measured already."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone._core import Error


class LeftBehind(UserWarning):
    """A run that was killed had results, which are kept."""


class FromEnvironment(UserWarning):
    """A job file or script takes a variable of the environment, which results then hold."""


def warn_of_environment(file: str, names: Iterable[str]) -> None:
    """Says that ``file`` takes variables of the environment."""
    if told := ", ".join(sorted(names)):
        text = f"{file}: takes {told} from the environment; plans, results and reports may hold its value"
        warnings.warn(text, FromEnvironment, stacklevel=3)


class Kept(Error):
    """Work that did not end as it should, after something had been measured."""

    def __init__(
        self,
        text: str,
        summary: Mapping[str, Any] | None = None,
        path: Path | None = None,
        interrupted: bool = False,
    ) -> None:
        """``summary``: what was measured; ``path``: the bundle with it, None where there is none.

        ``interrupted``: nothing is wrong, but who called wants to stop.
        """
        super().__init__(text)
        self.summary, self.path, self.interrupted = summary, path, interrupted


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
