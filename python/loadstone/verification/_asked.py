"""What a run is asked to verify."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypedDict

from loadstone import Error

Verify = TypedDict("Verify", {"unit": int, "state": str, "from": str}, total=False)
"""``verify`` of a plan: ``unit``, bytes of what is told apart; ``state``, where what is known is kept;
``from``, what an earlier run kept. See ``docs/formats/plan.md``."""


def of_options(
    verify: bool, unit: int | None, state: Path | str | None, begin: Path | str | None
) -> Verify | None:
    """What ``--verify``, ``--verify-unit``, ``--verify-state`` and ``--verify-from`` ask for, if anything.

    Each of the others implies the first. Raises ``Error`` where the folder of ``state`` is not there.
    """
    if not verify and unit is None and state is None and begin is None:
        return None
    asked: dict[str, Any] = {}
    if unit is not None:
        asked["unit"] = unit
    if state is not None:
        # Of the last seconds of a run, and after a crash, it would be missed most.
        folder = os.path.dirname(os.path.abspath(state))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise Error(f"--verify-state {state}: the folder {folder} is not there, or not writable")
        asked["state"] = os.path.abspath(state)
    if begin is not None:
        asked["from"] = os.path.abspath(begin)
    return asked  # type: ignore[return-value]
