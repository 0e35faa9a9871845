"""Sets of the classic micro-benchmarks: IOzone, Bonnie, vxbench and file commands, by name.

A suite is a list of plans whose timed parts are measurements. One engine runs them, and their results are
bundles like any other.

>>> import loadstone
>>> from loadstone.suites import measured
>>> job = loadstone.job(
...     "iozone", on="null:", options=loadstone.RunOptions(variables={"size": "1m", "record": "64k"})
... )
>>> bundle = loadstone.run(job)
>>> [row["test"] for row in measured(job.suite, [bundle.summary])][:3]
['write', 'rewrite', 'read']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadstone import _core
from loadstone._scratch import scratch
from loadstone._values import is_null
from loadstone.errors import Error, OptionError
from loadstone.plan import parts, targets
from loadstone.plan.options import NOTHING, Place, RunOptions
from loadstone.plan.rehearsal import rehearse
from loadstone.suites import _archives, _bonnie, _commands, _iozone, _sequential
from loadstone.suites._build import Measure, Settings, SuitePlans
from loadstone.suites._results import measured, table
from loadstone.suites._suite import Suite
from loadstone.suites._variables import Variable

if TYPE_CHECKING:
    from loadstone.content import Content

__all__ = [
    "SUITES",
    "Measure",
    "Suite",
    "SuitePlans",
    "Variable",
    "measured",
    "plan_suite",
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


def plan_suite(name: str, on: Place | None, options: RunOptions = NOTHING) -> SuitePlans:
    """What a suite does on a directory, or ``null:``: plans, and where their measurements are.

    ``variables`` are those of ``SUITES[name].variables``, of which ``size``, ``bs``, ``depth`` and ``direct``
    set one each. ``cache``: what becomes of the caches before each timed part, which is then a run of
    its own. Nothing is made or run. Raises ``Error`` where it cannot be run.
    """
    suite = SUITES.get(name)
    if suite is None:
        raise Error(f"{name}: is not a suite; use one of {', '.join(SUITES)}")
    if on is None:
        raise Error(f"{name}: no directory to run in; give `on` DIR or `on` null:")
    said = suite.said(options)
    content, verify = options.asked_content, options.asked_verify
    if is_null(on):
        # Whether the files are opened with O_DIRECT is a variable.
        targets.refuse_on_null(replace(options, direct=False))
    if suite.unpacks and content:
        raise Error(
            f"{name}: writes what its archives hold; leave out `content`, `dedupe` and `compress`, "
            "or give it archives of such files with `variables` archives="
        )
    if suite.unpacks and verify is not None:
        raise Error(f"{name}: of what archives hold nothing is known to verify; leave out `verify`")
    try:
        found = suite.plans(Settings(on, options), said)
    except OptionError as error:
        raise suite.by_option(error, options) from None
    plans = [
        parts.with_wishes(plan, _possible(content, plan, f"{name}, {names[0]}"), verify)
        for plan, names in zip(found.plans, found.names, strict=True)
    ]
    titles = [f"{name}: {', '.join(names)}" for names in found.names]
    if found.first is not None:
        # In place of archives that are made before the first run.
        with scratch("suite") as folder:
            path = str(folder / "one.tar.gz")
            _archives.make_archive(path, 1, options.seed or 0)
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
