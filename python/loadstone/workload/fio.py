"""fio's job files on a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from loadstone import Error
from loadstone._kept import keeping
from loadstone._values import Misused, is_null
from loadstone.content import Content
from loadstone.plan import parts, targets
from loadstone.plan.options import Cache, Path
from loadstone.plan.rehearsal import rehearse
from loadstone.verification import Verify

if TYPE_CHECKING:
    from loadstone.fio import Plans
    from loadstone.workload.execution import OnLive


def plan_fio(
    path: Path,
    on: Path | None,
    *,
    variables: Mapping[str, str] | None = None,
    seed: int | None = None,
    duration: float | None = None,
    allow_destroy: Sequence[Path] = (),
    rebase: bool = False,
    interval: float = 1.0,
    cpus: Sequence[int] = (),
    cache: Cache | None = None,
    memory_limit: int | None = None,
    content: Content | None = None,
    verify: Verify | None = None,
) -> Plans:
    """What one of fio's job files does: plans, one after the other.

    ``on`` is the directory that all files lie in, the one file or device that all jobs use, or ``null:``.
    ``variables`` stand above those of the environment. ``seed``, ``duration`` (seconds) and ``cpus`` stand
    in place of what the jobs say, ``cache`` (``none``, ``drop``, ``remount``) in that of ``invalidate``, and
    ``content`` in that of ``dedupe_percentage`` and the like; ``memory_limit``: bytes the runs get, page
    cache included. ``verify``: what is written is verified, in place of what the jobs say of it; a state that
    is kept goes from one plan to the next. ``rebase`` puts paths that lie elsewhere below ``on``. Nothing is
    made or run. Raises ``Error`` where the jobs cannot be run as they are. See ``docs/fio.md``.
    """
    # Imported late, as it is not needed for other workloads.
    from loadstone import fio

    if on is None:
        raise Error(f"{path}: no target; give --on DIR, --on FILE, --on DEVICE or --on null:")
    if duration is not None and duration <= 0:
        raise Misused(f"--duration {duration:g}: jobs run for more than 0 seconds")
    if is_null(on):
        targets.refuse_on_null({"cache": cache, "verify": verify})
    try:
        text = FilePath(path).read_bytes()
    except OSError as error:
        raise Error(f"{path}: {error.strerror}") from None
    settings = fio.Settings(
        on=str(on),
        seed=seed,
        duration=duration,
        allow_destroy=allow_destroy,
        rebase=rebase,
        interval=interval,
        cpus=cpus,
        cache=cache,
        memory_limit=memory_limit,
        content=content,
    )
    found = fio.lower(fio.parse(text, str(path), variables), settings)
    wishes = _chained(str(path), found.plans, verify)
    own = {"own": parts.own_files([str(path)])}
    plans = [
        parts.with_wishes({**plan, **own}, None, wish) for plan, wish in zip(found.plans, wishes, strict=True)
    ]
    rehearse(plans, [f"{path}: [{', '.join(names)}]" for names in found.names])
    return replace(found, plans=plans)


def _chained(path: str, plans: Sequence[Mapping[str, Any]], verify: Verify | None) -> list[Verify | None]:
    """What each plan is to verify: where a state is kept, one goes on from what the plan before it knew."""
    wishes: list[Verify | None] = [verify] * len(plans)
    if verify is None or not verify.keys() & {"state", "from"}:
        return wishes
    of = [[(target.get("path", ""), target["size"]) for target in plan["targets"]] for plan in plans]
    if any(targets != of[0] for targets in of):
        which = "--verify-state" if "state" in verify else "--verify-from"
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


def run_fio(
    found: Plans, on_live: OnLive | None = None, say: Callable[[str], None] = print
) -> list[dict[str, Any]]:
    """Performs what :func:`plan_fio` found, and returns the summary of each plan.

    The list ends with the first run that did not end of itself. Raises ``Kept`` with the results so far where
    a later one fails.
    """
    from loadstone.bundle.write import summarise
    from loadstone.workload.execution import execute

    found.make_directories()
    results: list[dict[str, Any]] = []
    with keeping(results):
        for plan, names in zip(found.plans, found.names, strict=True):
            if len(found.plans) > 1:
                say(", ".join(names))
            results.append(summarise(plan, execute(plan, on_live)))
            if results[-1]["partial"]:
                break
    return results
