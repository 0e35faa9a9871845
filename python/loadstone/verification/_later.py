"""Targets that an earlier run wrote."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from loadstone import _core
from loadstone._files import absolute
from loadstone._other import wanted
from loadstone.errors import Error
from loadstone.verification._told import Verified


def verify_targets(
    state: Path | str,
    targets: Sequence[Path | str] = (),
    *,
    after_crash: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Verified:
    """Reads targets from end to end and compares every block with what a run's state says it may hold.

    ``state``: what ``--verify-state`` kept. ``targets`` take the place of those of the run, in their order,
    for instance where a device has another name now. ``after_crash``: power was lost, or the file system was
    not unmounted as it should be; then what had been made stable must be there, and of the rest anything that
    was written. ``progress`` is called with bytes done and bytes in all.

    Raises ``Error`` where the state or a target cannot be read, or where a target holds nothing of it.
    """
    paths = [absolute(target) for target in targets]
    for path in paths:
        if os.path.isdir(path):
            raise Error(f"{path}: is a directory; name the file or device that the run wrote to")
    with wanted("state", state):
        found: Verified = json.loads(_core.verify_targets(os.fspath(state), paths, after_crash, progress))
    return found
