"""Sets of the classic micro-benchmarks: IOzone, Bonnie, vxbench and file commands, by name.

A suite is a list of plans whose timed parts are measurements. One engine runs them, and their results are
bundles like any other.

>>> from loadstone.suites import measured, plan_suite, run_suite
>>> found = plan_suite("iozone", "null:", variables={"size": "1m", "record": "64k"})
>>> summaries = run_suite(found)
>>> [row["test"] for row in measured(found, summaries)][:3]
['write', 'rewrite', 'read']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadstone import Error, _core
from loadstone._kept import keeping
from loadstone._scratch import scratch
from loadstone._values import Misused, is_null
from loadstone.plan import parts, targets
from loadstone.plan.options import Cache, Path
from loadstone.plan.rehearsal import rehearse
from loadstone.suites import _archives, _bonnie, _commands, _iozone, _sequential
from loadstone.suites._build import Measure, Settings, SuitePlans
from loadstone.suites._results import measured, table
from loadstone.suites._suite import Suite
from loadstone.suites._variables import Variable

if TYPE_CHECKING:
    from loadstone.content import Content
    from loadstone.verification import Verify
    from loadstone.workload.execution import OnLive

__all__ = [
    "SUITES",
    "Measure",
    "Suite",
    "SuitePlans",
    "Variable",
    "measured",
    "plan_suite",
    "run_suite",
    "table",
]


_ALL = (
    _iozone.SUITE,
    _bonnie.SUITE,
    _sequential.SUITE,
    _commands.MKFILE,
    _commands.TOUCH_FILES,
    _commands.CP_FANOUT,
    _archives.SUITE,
)

SUITES: Mapping[str, Suite] = {suite.name: suite for suite in _ALL}
"""All of them by name."""


def plan_suite(
    name: str,
    on: Path,
    *,
    variables: Mapping[str, str] | None = None,
    sweep: bool = False,
    seed: int = 0,
    interval: float = 1.0,
    cpus: Sequence[int] = (),
    cache: Cache | None = None,
    memory_limit: int | None = None,
    allow_destroy: Sequence[Path] = (),
    content: Content | None = None,
    verify: Verify | None = None,
) -> SuitePlans:
    """What a suite does on a directory, or ``null:``: plans, and where their measurements are.

    ``variables``: as text, those of ``SUITES[name].variables``. ``sweep``: all sizes the original goes
    through by itself. ``cache``: what becomes of the caches before each timed part, which is then a run of
    its own. ``memory_limit``: bytes each run gets, page cache included. ``content``: what all that is
    written is like. ``verify``: all is verified. Nothing is made or run. Raises ``Error`` where it cannot be
    run.
    """
    suite = SUITES.get(name)
    if suite is None:
        raise Error(f"{name}: is none of the suites {', '.join(SUITES)}")
    said = dict(variables or {})
    if sweep:
        if suite.sweep is None:
            raise Misused(f"--sweep: {name} has none; give it several sizes with -D")
        said = {**suite.sweep, **said}
    if is_null(on):
        targets.refuse_on_null({"cache": cache, "verify": verify})
    settings = Settings(on, seed, interval, cpus, cache, memory_limit, allow_destroy)
    if suite.unpacks and content:
        raise Error(
            f"{name}: writes what its archives hold; leave out --content, --dedupe and --compress, "
            "or give it archives of such files with -D archives="
        )
    if suite.unpacks and verify is not None:
        raise Error(f"{name}: of what archives hold nothing is known to verify; leave out --verify")
    found = suite.plans(settings, said)
    plans = [
        parts.with_wishes(plan, _possible(content, plan, f"{name}, {names[0]}"), verify)
        for plan, names in zip(found.plans, found.names, strict=True)
    ]
    titles = [f"{name}: {', '.join(names)}" for names in found.names]
    if found.first is not None:
        # In place of archives that are made before the first run.
        with scratch("suite") as folder:
            path = str(folder / "one.tar.gz")
            _archives.make_archive(path, 1, seed)
            rehearse([_archives.with_archive(plan, path) for plan in plans], titles)
    elif len(plans) > 1:
        rehearse(plans, titles)
    return replace(found, plans=plans)


def _possible(content: Content | None, plan: Mapping[str, Any], where: str) -> Content | None:
    """The content of a run; none where its files are empty. Raises ``Error`` where they cannot have it."""
    if content is None or not any(one["entries"] * one["size"] for one in plan["sets"]):
        return None
    unit = content.get("unit", 4096)
    blocks = sum(one["entries"] * -(-one["size"] // unit) for one in plan["sets"])
    try:
        _core.expected_dedupe(content.get("dedupe", 1.0), blocks, blocks)
    except Error as error:
        raise Error(f"{where}: {error}") from None
    return content


def run_suite(
    found: SuitePlans, on_live: OnLive | None = None, say: Callable[[str], None] | None = None
) -> list[dict[str, Any]]:
    """Performs what :func:`plan_suite` found, and returns the summary of each run.

    ``say`` is told the name of each run before it begins. The list ends with the first run that did not end
    of itself. Raises ``Kept`` with the results so far where a later one fails.
    """
    from loadstone.bundle.write import summarise
    from loadstone.workload.execution import execute

    results: list[dict[str, Any]] = []
    if found.first is not None:
        found.first()
    with keeping(results):
        for plan, names in zip(found.plans, found.names, strict=True):
            if say is not None:
                say(", ".join(names))
            results.append(summarise(plan, execute(plan, on_live)))
            if results[-1]["partial"]:
                break
    return results
