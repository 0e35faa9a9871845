"""Scripts and profiles of Filebench on a directory."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone._files import absolute
from loadstone._values import is_null
from loadstone.errors import Error, OptionError
from loadstone.plan import parts, targets
from loadstone.plan.actions import RunPlan
from loadstone.plan.kinds import Unused
from loadstone.plan.options import NOTHING, Place, RunOptions
from loadstone.plan.rehearsal import rehearse
from loadstone.plan.surroundings import prioritise

if TYPE_CHECKING:
    from loadstone.wml import Interpretation


def plan_filebench(path: Place, on: Place | None, options: RunOptions = NOTHING) -> Interpretation:
    """What a script (``.f``) or profile (``.prof``) of Filebench does: actions, of which runs are plans.

    ``on`` is a directory, a block device or ``null:``, and what ``$dir`` stands for. ``variables`` stand
    above those of the script, ``duration`` above what its runs say. The caches are left alone once files are
    made, as in Filebench, unless ``cache`` or ``memory_limit`` say otherwise. Where what is written is
    verified, files of earlier runs are not used again. Nothing is made or run. Raises ``Error`` where the
    script cannot be run. See ``docs/reference/filebench.md``.
    """
    if on is not None and is_null(on):
        targets.refuse_on_null(options)
    found = lower_filebench(path, on, options)
    actions = [
        replace(action, plan=parts.with_wishes(action.plan, options.asked_content, options.asked_verify))
        if isinstance(action, RunPlan)
        else action
        for action in found.actions
    ]
    plans = [action.plan for action in actions if isinstance(action, RunPlan)]
    if len(plans) > 1:
        rehearse(plans, [f"{path}: run {number}" for number in range(1, len(plans) + 1)])
    return replace(found, actions=actions)


def lower_filebench(path: Place, on: Place | None, options: RunOptions = NOTHING) -> Interpretation:
    """The same before the engine has looked at the plans, and without what is asked of written data."""
    # Imported late: the grammar's library is not needed for other workloads.
    from loadstone import wml

    if on is None:
        raise Error(f"{path}: no directory to run in; give `on` DIR or `on` null:")
    if options.duration is not None and options.duration <= 0:
        raise OptionError("duration", f"{options.duration:g}", "a script runs for more than 0 seconds")
    where = os.fspath(on)
    settings = wml.Settings(where, options)
    if not is_null(where) and not _is_device(where):
        targets.tree(on, [where] if settings.allow_destroy else [])
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise Error(f"{path}: {error.strerror}") from None
    if str(path).endswith(".prof"):
        found = wml.interpret_profile(wml.parse_profile(text, str(path)), settings)
    else:
        found = wml.interpret(wml.parse(text, str(path)), settings)
    known = {target.get("path") for plan in found.plans for target in plan["targets"]}
    for one in settings.given_up - known - ({absolute(where)} if not is_null(where) else set()):
        raise Unused("allow_destroy", one, "is no target of this run")
    for plan in found.plans:
        prioritise(str(path), plan["workers"], options)
        plan["own"] = parts.own_files(found.files)
    return found


def _is_device(path: str) -> bool:
    return os.path.exists(path) and stat.S_ISBLK(os.stat(path).st_mode)
