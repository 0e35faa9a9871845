"""What a run is asked to verify."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from typing import Any, TypedDict

from loadstone._files import absolute
from loadstone.errors import Error

Verify = TypedDict("Verify", {"unit": int, "state": str, "from": str}, total=False)
"""``verify`` of a plan: ``unit``, bytes of what is told apart; ``state``, where what is known is kept;
``from``, what an earlier run kept. See ``docs/reference/formats/plan.md``."""


MAGIC = b"LSVERIFY"
"""How a state begins (``docs/reference/formats/verify-state.md``)."""


def check_state(state: str | os.PathLike[str]) -> None:
    """Raises ``Error`` where something is there that is no state: only a state is replaced by one."""
    path = os.fspath(state)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Error(f"`verify_state` {state}: cannot be looked at: {error.strerror}") from None
    begin = b""
    if stat.S_ISREG(found.st_mode):
        with open(path, "rb") as file:
            begin = file.read(len(MAGIC))
    if begin != MAGIC:
        raise Error(
            f"`verify_state` {state}: is there and no state of a verification, so it is not replaced; "
            "name another file"
        )


def lost_with(plan: Mapping[str, Any]) -> str | None:
    """Which target's file system has the state too, which would be lost with it; None: none has."""
    state = (plan.get("verify") or {}).get("state")
    if not state:
        return None
    for target in plan["targets"]:
        path = target.get("path") or ""
        place = path if os.path.exists(path) else os.path.dirname(path)
        with contextlib.suppress(OSError):
            if target["kind"] == "file" and os.stat(place).st_dev == os.stat(os.path.dirname(state)).st_dev:
                return str(path)
    return None


def of_options(
    verify: bool,
    unit: int | None,
    state: str | os.PathLike[str] | None,
    begin: str | os.PathLike[str] | None,
) -> Verify | None:
    """What ``--verify``, ``--verify-unit``, ``--verify-state`` and ``--verify-from`` ask for, if anything.

    Each of the others implies the first. Raises ``Error`` where the folder of ``state`` is not there, or
    ``state`` is and is none.
    """
    if not verify and unit is None and state is None and begin is None:
        return None
    asked: dict[str, Any] = {}
    if unit is not None:
        asked["unit"] = unit
    if state is not None:
        # Of the last seconds of a run, and after a crash, it would be missed most.
        folder = os.path.dirname(absolute(state))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise Error(f"`verify_state` {state}: the folder {folder} is not there, or not writable")
        check_state(state)
        asked["state"] = absolute(state)
    if begin is not None:
        asked["from"] = absolute(begin)
    return asked  # type: ignore[return-value]
