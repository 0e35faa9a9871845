"""Running a plan without a bundle."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from loadstone import _core
from loadstone._signals import Deferred, deferred
from loadstone.content import of_run, reading, unread
from loadstone.errors import Kept
from loadstone.plan.parts import verify

OnLive = Callable[[Mapping[str, Any]], None]
"""Called about four times a second with what ``Run.live()`` tells."""


def execute(plan: Mapping[str, Any], on_live: OnLive | None = None) -> dict[str, Any]:
    """Runs a plan and returns its outcome: plain dicts of numpy columns.

    ``ops``, ``flight``, ``lateness``, ``summary`` and ``content`` are described in
    ``docs/reference/formats/bundle.md``. A KeyboardInterrupt ends the run; what was measured until then is
    returned and marked partial.
    """
    verify(plan)
    with deferred(afresh=True) as held:
        run = _core.start(json.dumps(plan))
        watch(run, on_live, held)
        outcome = joined(run, plan, on_live, held)
    if held.pending is not None:
        outcome["summary"]["partial"] = True
    return outcome


def watch(run: Any, on_live: OnLive | None, held: Deferred) -> int | None:
    """Waits for the end of a run; the time of an interruption (CLOCK_MONOTONIC, ns), or None.

    Signals are ``held`` back: the first one ends the run, and a later one gives up what was measured, as
    requests may hang. What fails to show it, such as a terminal that is gone, shows nothing more, and the run
    goes on; a warning says so of a callback.
    """
    interrupted: int | None = None
    held.act = run.stop
    if held.pending is not None:
        # It came while the targets were being looked at.
        run.stop()
    while True:
        try:
            over = run.wait(0.25)
            if on_live is not None:
                try:
                    on_live(run.live())
                except OSError:
                    on_live = None
                except Exception as error:
                    what = f"{type(error).__name__}: {error}; the run goes on without being shown"
                    warnings.warn(f"showing the run failed: {what}", RuntimeWarning, stacklevel=2)
                    on_live = None
        except KeyboardInterrupt:
            # A key was pressed that means it.
            over = False
            if interrupted is None:
                interrupted = time.monotonic_ns()
                run.stop()
        if over:
            return held.since if interrupted is None and held.pending is not None else interrupted
        if held.pending is not None:
            if interrupted is not None:
                raise Kept(
                    "interrupted again before the run's last requests came back: what it measured is lost",
                    interrupted=True,
                )
            interrupted = held.take()


def joined(run: Any, plan: Mapping[str, Any], on_live: OnLive | None, held: Deferred) -> dict[str, Any]:
    """The outcome of a run that has ended, with what its targets hold where that was asked for.

    Signals are ``held`` back. One that comes while targets are read ends the reading, and the run counts as
    partial; nothing is lost by it.
    """
    outcome: dict[str, Any] = run.join()
    if outcome["summary"]["partial"] and held.pending is not None:
        # It was that which ended the run.
        held.take()
    try:
        if held.pending is not None:
            raise KeyboardInterrupt
        with held.open():
            content = of_run(plan, outcome, reading(on_live, run.live()))
    except KeyboardInterrupt:
        content = unread(plan, outcome)
    if content:
        outcome["content"] = content
    return outcome
