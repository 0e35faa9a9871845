"""Jobs: whatever can be run, as plans in order and what is done between them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from loadstone import Error, _core
from loadstone._text import meant
from loadstone.errors import OptionError
from loadstone.plan.actions import Action, RunPlan
from loadstone.plan.files import load_plan
from loadstone.plan.kinds import Kind, kind_of, refuse_others, title, trace_format, what_it_is
from loadstone.plan.options import NOTHING, Place, RunOptions
from loadstone.workload.requests import UNIFORM, plan_model, plan_replay, plan_uniform

if TYPE_CHECKING:
    from loadstone.fio import Plans
    from loadstone.suites import SuitePlans


@dataclass(frozen=True)
class Job:
    """What :func:`loadstone.run` runs: one plan or several, in order."""

    workload: str
    """Name of the workload as the caller gave it; results have it too."""
    kind: Kind
    actions: Sequence[Action]
    """Plans, and what a script does between them."""
    notes: Sequence[str] = ()
    """Messages for the user before the run."""
    warnings: Sequence[str] = ()
    """Warnings about a script or trace, with their place."""
    first: Callable[[], object] | None = None
    """What is done before the first run: directories and archives are made."""
    suite: SuitePlans | None = None
    """Of a suite, where its measurements are (:func:`loadstone.suites.measured`)."""
    options: RunOptions = NOTHING
    """What the caller asked for."""

    @property
    def runs(self) -> list[RunPlan]:
        """The runs in order, each with its plan."""
        return [action for action in self.actions if isinstance(action, RunPlan)]

    @property
    def plans(self) -> list[dict[str, Any]]:
        """The plans in order (``docs/reference/formats/plan.md``)."""
        return [run.plan for run in self.runs]

    def __repr__(self) -> str:
        """``<Job varmail: a benchmark, 1 run on /mnt/tree>``."""
        on = dict.fromkeys(one.get("path") or "null:" for plan in self.plans for one in plan["targets"])
        runs = "1 run" if len(self.runs) == 1 else f"{len(self.runs)} runs"
        return f"<Job {self.workload}: {title(self.kind)}, {runs} on {', '.join(on)}>"


def job(
    workload: Place, on: Place | None = None, options: RunOptions = NOTHING, *, kind: Kind | None = None
) -> Job:
    """Checks a workload and lowers it to plans; makes and runs nothing yet.

    ``workload``: a trace of any known format, a model (``.mdh``), a plan (``.json``), a script of Filebench
    (``.f``, ``.prof``), a job file of fio (``.fio``, ``.job``, ``.ini``), the name of a benchmark or suite
    (``varmail``, ``iozone``), or that of a uniform load (``randread``). Files of other names are told by
    their content. ``on``: a file, a block device, a directory or ``null:``, which performs nothing; None
    where the plan or ``options.maps`` names targets. ``kind``: what it is, where neither its name nor its
    content tells. A job that makes its target can be run once: make it again for the next run. Raises
    ``Error`` where it cannot be run, and ``OptionError`` for an
    option that means nothing to it or whose value cannot be.
    """
    if not isinstance(options, RunOptions):
        raise OptionError(
            "options", None, "must be a loadstone.RunOptions, such as RunOptions(size='1g', duration=30)"
        )
    name = os.fspath(workload)
    kind = kind or known_kind(name)
    refuse_others(kind, name, options.given())
    # What these say together is looked at before the workload is.
    _ = options.asked_content, options.asked_verify
    return replace(_LOWERED[kind](name, on, options), options=options)


def known_kind(workload: str) -> Kind:
    """What a workload is: what bears the name of a benchmark or load is that, all else a file.

    Raises ``Error`` for what is none, with the nearest name that there is.
    """
    from loadstone.personalities import names
    from loadstone.suites import SUITES

    if workload in names():
        return "benchmark"
    if workload in SUITES:
        return "suite"
    if (found := kind_of(workload)) is not None:
        return found
    if os.path.exists(workload):
        if os.path.isfile(workload) and trace_format(workload):
            return "trace"
        raise Error(f"{workload}: {what_it_is(workload)}")
    if workload in UNIFORM or workload.endswith("trimwrite"):
        return "name"
    # A capture of blktrace is named by what its files have in common.
    if _core.trace_files(workload):
        return "trace"
    if "." in workload or "/" in workload:
        raise Error(f"{workload}: there is no such file; loadstone run --list names what needs none")
    known = [*UNIFORM, *SUITES, *names()]
    hint = meant(workload, known, "loadstone run --list names those that there are")
    raise Error(f"{workload}: is not a workload; {hint}")


def _one(kind: Kind, plan: Callable[[str, Place | None, RunOptions], dict[str, Any]]) -> _Lowering:
    """What lowers to a single plan."""
    return lambda name, on, options: Job(name, kind, [RunPlan(plan(name, on, options))])


def _trace(name: str, on: Place | None, options: RunOptions) -> Job:
    from loadstone.trace.parts import left_out

    warning = left_out(name)
    return Job(
        name, "trace", [RunPlan(plan_replay(name, on, options))], warnings=[warning] if warning else []
    )


def _script(name: str, on: Place | None, options: RunOptions) -> Job:
    return _performed(name, "script", name, on, options)


def _benchmark(name: str, on: Place | None, options: RunOptions) -> Job:
    from loadstone.personalities import prepared

    path, variables = prepared(name, on, options)
    return _performed(name, "benchmark", path, on, replace(options, size=None, variables=variables))


def _performed(name: str, kind: Kind, path: str, on: Place | None, options: RunOptions) -> Job:
    from loadstone.workload.filebench import plan_filebench

    found = plan_filebench(path, on, options)
    places = [f"{one.source.name}:{one.line}:{one.column}: {one.what}" for one in found.warnings]
    return Job(name, kind, found.actions, found.notes, places)


def _jobs(name: str, on: Place | None, options: RunOptions) -> Job:
    from loadstone.workload.fio import plan_fio

    found = plan_fio(name, on, options)
    return Job(name, "jobs", _runs(found), found.notes, first=found.make_directories)


def _suite(name: str, on: Place | None, options: RunOptions) -> Job:
    from loadstone.suites import plan_suite

    found = plan_suite(name, on, options)
    return Job(name, "suite", _runs(found), found.notes, first=found.first, suite=found)


def _runs(found: Plans) -> list[Action]:
    return [RunPlan(plan, (), ", ".join(of)) for plan, of in zip(found.plans, found.names, strict=True)]


_Lowering = Callable[[str, Place | None, RunOptions], Job]
_LOWERED: Mapping[Kind, _Lowering] = {
    "trace": _trace,
    "model": _one("model", plan_model),
    "plan": _one("plan", load_plan),
    "script": _script,
    "benchmark": _benchmark,
    "jobs": _jobs,
    "suite": _suite,
    "name": _one("name", plan_uniform),
}
