"""Running a plan without a bundle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from loadstone import _core
from loadstone.content import of_run, reading
from loadstone.workload._plan import verify

OnLive = Callable[[Mapping[str, Any]], None]
"""Called about four times a second with what ``Run.live()`` tells."""


def execute(plan: Mapping[str, Any], on_live: OnLive | None = None) -> dict[str, Any]:
    """Runs a plan and returns its outcome: plain dicts of numpy columns.

    ``ops``, ``flight``, ``lateness``, ``summary`` and ``content`` are described in
    ``docs/formats/bundle.md``. A KeyboardInterrupt ends the run; what was measured until then is returned and
    marked partial.
    """
    verify(plan)
    run = _core.start(json.dumps(plan))
    stopped = False
    while True:
        try:
            over = run.wait(0.25)
            if on_live is not None:
                on_live(run.live())
            if over:
                break
        except KeyboardInterrupt:
            if stopped:
                raise
            stopped = True
            run.stop()
    outcome: dict[str, Any] = run.join()
    if content := of_run(plan, outcome, reading(on_live, run.live())):
        outcome["content"] = content
    return outcome
