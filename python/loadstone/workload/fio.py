"""fio's job files on a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.errors import Error, OptionError
from loadstone.plan import parts
from loadstone.plan.options import NOTHING, Place, RunOptions
from loadstone.plan.rehearsal import rehearse
from loadstone.plan.surroundings import prioritise
from loadstone.verification import Verify

if TYPE_CHECKING:
    from loadstone.fio import Plans


def plan_fio(path: Place, on: Place | None, options: RunOptions = NOTHING) -> Plans:
    """What one of fio's job files does: plans, one after the other.

    ``on`` is the directory that all files lie in, the one file or device that all jobs use, or ``null:``;
    None: files that are there, which the jobs name by absolute paths and only read.
    ``variables`` stand above those of the environment. ``seed``, ``duration`` and ``cpus`` stand
    in place of what the jobs say, ``cache`` in that of ``invalidate``, and what is asked of written data in
    that of ``dedupe_percentage`` and the like, and of what the jobs verify; a state that is kept goes from
    one plan to the next. Nothing is made or run. Raises ``Error`` where the jobs cannot be run as they are.
    See ``docs/reference/fio.md``.
    """
    # Imported late, as it is not needed for other workloads.
    from loadstone import fio

    if options.duration is not None and options.duration <= 0:
        raise OptionError("duration", f"{options.duration:g}", "jobs run for more than 0 seconds")
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise Error(f"{path}: {error.strerror}") from None
    variables = {name: str(value) for name, value in options.variables.items()}
    found = fio.lower(
        fio.parse(text, str(path), variables), fio.Settings(None if on is None else str(on), options)
    )
    _refuse_unknown(str(path), found, options.asked_verify)
    for plan in found.plans:
        prioritise(str(path), plan["workers"], options)
    wishes = _chained(str(path), found.plans, options.asked_verify)
    own = {"own": parts.own_files([str(path)])}
    plans = [
        parts.with_wishes({**plan, **own}, None, wish) for plan, wish in zip(found.plans, wishes, strict=True)
    ]
    rehearse(plans, [f"{path}: [{', '.join(names)}]" for names in found.names])
    return replace(found, plans=plans)


def _refuse_unknown(path: str, found: Plans, verify: Verify | None) -> None:
    """Raises where jobs verify what those before them wrote, and nothing carries what is known of it."""
    if verify is not None and "state" in verify:
        return
    for plan, names in zip(found.plans, found.names, strict=True):
        only_reads = all(worker["reads_only"] for worker in plan["workers"] if "reads_only" in worker)
        later = all(one.get("made_before") and one["prepare"] == "none" for one in plan["targets"])
        if "verify" in plan and later and only_reads:
            raise Error(
                f"{path}: [{', '.join(names)}]: verifies what jobs before stonewall wrote; give "
                "`verify_state` FILE, which carries what is known of it"
            )


def _chained(path: str, plans: Sequence[Mapping[str, Any]], verify: Verify | None) -> list[Verify | None]:
    """What each plan is to verify: where a state is kept, one goes on from what the plan before it knew."""
    wishes: list[Verify | None] = [verify] * len(plans)
    if verify is None or not verify.keys() & {"state", "from"}:
        return wishes
    of = [[(target.get("path", ""), target["size"]) for target in plan["targets"]] for plan in plans]
    if any(targets != of[0] for targets in of):
        which = "`verify_state`" if "state" in verify else "`verify_from`"
        raise Error(
            f"{which}: {path}: jobs before and after stonewall use different files, and a state is of the "
            "files of one run; verify without it, or split the file"
        )
    for number, plan in enumerate(plans[1:], 1):
        wish: Verify = {**verify}
        wish.pop("from", None)
        # What is filled anew holds nothing of what was known.
        if "state" in verify and all(target["prepare"] != "fill" for target in plan["targets"]):
            wish["from"] = verify["state"]
        wishes[number] = wish
    return wishes
