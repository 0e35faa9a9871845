"""The runner: one plan, or an ordered list of plans, to bundles."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from loadstone import _core
from loadstone._files import absolute, is_part
from loadstone._signals import Deferred, deferred
from loadstone.bundle import (
    Bundle,
    Event,
    Making,
    Series,
    keep,
    keep_elsewhere,
    table,
    write_bundle,
    write_series,
)
from loadstone.bundle.check import LARGEST
from loadstone.bundle.environment import after, snapshot
from loadstone.bundle.figures import By, divided
from loadstone.bundle.write import summarise
from loadstone.errors import Error, Kept
from loadstone.observe.observer import Observer, ProbeSpec
from loadstone.plan import verify
from loadstone.plan.parts import own_files
from loadstone.plan.rehearsal import rehearse
from loadstone.workload.execution import OnLive, joined, watch
from loadstone.workload.performing import window_figures

if TYPE_CHECKING:
    from loadstone.plan.actions import Window

Whole = TypeVar("Whole", bound=Bundle)

SETTLE = 3.0
"""Longest wait for a device to be let go of, seconds."""


@dataclass(frozen=True)
class ObserveOptions:
    """How a run is observed."""

    interval: float | None = None
    """Seconds between samples, 0.001 at least; by default the plan's interval, a second at most."""
    probes: Sequence[ProbeSpec] = ()
    """User commands."""
    target: str | None = None
    """Path whose block device is sampled; by default the plan's first target that has a path."""


@dataclass(frozen=True)
class NamedRun:
    """One entry of an ordered list of runs."""

    name: str
    """Unique in the list; names the sub-folder too."""
    plan: Mapping[str, Any]
    """What is run."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Anything more that ``bundle.json`` says of it: ``role``, ``repeat``, ``seed``, ..."""
    windows: Sequence[Window] = ()
    """Parts of it whose figures are kept besides."""


def targets_of(plan: Mapping[str, Any]) -> dict[str, str | None]:
    """Ids and absolute paths of a plan's targets; None for ``null``."""
    return {
        str(t.get("id")): None if t.get("kind") == "null" or not t.get("path") else absolute(t["path"])
        for t in plan.get("targets", [])
    }


def run_plan(
    plan: Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    observe: ObserveOptions | None = None,
    on_live: OnLive | None = None,
    force: bool = False,
    windows: Sequence[Window] = (),
    by: By | None = None,
    workload: str | None = None,
) -> Bundle:
    """Runs a plan and writes its bundle to the folder ``out``, whole or not at all.

    ``observe``: how the host is sampled meanwhile, None for the defaults. ``windows``: parts of the run
    whose figures the summary has besides; ``by``: what it is divided by besides ops; ``workload``: what the
    load is called in it. A KeyboardInterrupt ends the run early: what was measured is kept and the bundle is
    marked partial. Raises ``Error`` where ``out`` exists (``force`` replaces a bundle), the plan cannot be
    run, or nothing could be measured. What was measured is never lost: where it cannot be put at ``out`` the
    error is a ``Kept``, which has the summary and says where the bundle is.
    """
    with Making(Path(out), force) as making:
        late = _run_into(making, None, plan, observe or ObserveOptions(), on_live, windows, by, workload)
    found = _read(Bundle.read, making.path)
    if late and not found.partial:
        text = f"interrupted when the run had ended; its results are whole in {found.path}"
        raise Kept(text, found.summary, found.path, interrupted=True)
    return found


def run_series(
    runs: Iterable[NamedRun],
    out: str | os.PathLike[str],
    *,
    kind: str,
    finish: Callable[[list[tuple[NamedRun, Bundle]], Path], Mapping[str, Any]],
    begin: Callable[[Path], None] | None = None,
    observe: ObserveOptions | None = None,
    on_live: OnLive | None = None,
    on_run: Callable[[NamedRun], None] | None = None,
    on_done: Callable[[NamedRun, Bundle], None] | None = None,
    force: bool = False,
    by: By | None = None,
) -> Series:
    """Runs plans one after the other and writes a bundle of their bundles to ``out``.

    ``runs`` may be a generator: it is asked for the next run when the last one has ended. Where it is a list,
    a run that could not be done is an error before the first one begins. ``begin`` is given
    the folder before the first, where it may put more files; ``finish`` the runs that ended of themselves,
    each with its bundle, and the folder, likewise; it returns what ``summary.json`` holds besides. ``by``: as
    of :func:`run_plan`. This is the one primitive of ``evaluate``, ``compare`` and studies.

    A KeyboardInterrupt ends the list: the runs so far are kept, the interrupted one too, and the whole is
    marked partial. So does an error once there is a run to keep: then the summary has it as ``failure``, and
    a ``Kept`` is raised that says where the runs are.
    """
    listed: list[dict[str, Any]] = []
    done: list[tuple[NamedRun, Bundle]] = []
    partial = False
    failure: Exception | None = None
    options = observe or ObserveOptions()
    if isinstance(runs, Sequence):
        for run in runs:
            refuse_within(run.plan, Path(out))
        rehearse([run.plan for run in runs], [run.name for run in runs])
    with Making(Path(out), force) as making:
        making.reserve()
        if begin is not None:
            begin(making.folder)
        try:
            for run in runs:
                if on_run is not None:
                    on_run(run)
                name = f"{len(listed) + 1:02}-{run.name}"
                late = _run_into(making, name, run.plan, options, on_live, run.windows, by)
                listed.append({"name": run.name, "path": name, **run.about})
                bundle = Bundle.read(making.folder / name)
                if bundle.partial:
                    partial = True
                    if reason := bundle.summary.get("failure"):
                        failure = Error(f"{run.name} stopped early: {reason}")
                    break
                done.append((run, bundle))
                if on_done is not None:
                    on_done(run, bundle)
                if late:
                    partial = True
                    break
        except KeyboardInterrupt:
            # Between two runs, or while one was being prepared: what is whole is kept.
            if not listed:
                raise
            partial = True
        except Exception as error:
            if not listed:
                if isinstance(error, Kept) and error.bundle is None:
                    # It is nowhere whole, and there is no run beside it.
                    text = f"{error}; what could be written is left in {making.leave()}"
                    raise Kept(text, error.summary, None, error.interrupted) from None
                raise
            partial, failure = True, error
        with deferred() as held:
            summary = _end(making, kind, listed, partial, failure, lambda: finish(done, making.folder), held)
    return _told(making.path, summary, failure, len(listed))


def _end(
    making: Making,
    kind: str,
    listed: Sequence[Mapping[str, Any]],
    partial: bool,
    failure: Exception | None,
    finish: Callable[[], Mapping[str, Any]],
    held: Deferred,
) -> dict[str, Any]:
    """Finishes a bundle of several runs and places it; returns what is in its summary."""
    more: Mapping[str, Any] = {}
    # Of what is read-only by now nothing can be had back.
    with contextlib.suppress(OSError):
        making.unreserve()
    try:
        with held.open():
            more = finish()
    except KeyboardInterrupt:
        partial = True
    except Exception as error:
        failure = failure or error
        partial = True
    summary = {"partial": partial, "failure": failure and _words(failure), "runs": len(listed), **more}
    after = f"; {_words(failure)}" if failure else ""
    try:
        write_series(making.folder, kind, listed, summary)
        making.place(partial)
    except OSError as error:
        names = [run["path"] for run in listed]
        there = keep_elsewhere(making, names, lambda copy: write_series(copy, kind, listed, summary))
        if there is not None:
            left = f"the runs are in {there}"
        elif os.path.isdir(place := making.leave()):
            left = f"each run is a bundle of its own in {place}"
        elif error.errno in (errno.EIO, errno.ENODEV, errno.ESTALE, errno.ENOTCONN):
            left = f"each run that ended is in {place}, if that can be read again"
        else:
            left = "what lay there is gone"
        raise Kept(
            f"{making.path}: cannot be written: {error.strerror}; {left}{after}", summary, there
        ) from None
    except Kept as error:
        interrupted = error.interrupted and failure is None
        raise Kept(f"{error}{after}", summary, error.bundle, interrupted) from None
    if failure is not None and not isinstance(failure, Kept | Error | OSError | MemoryError):
        # A defect: whoever looks for it wants to know where.
        failure.add_note(f"the runs so far are in {making.path}")
        raise failure
    return summary


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _told(path: Path, summary: Mapping[str, Any], failure: Exception | None, runs: int) -> Series:
    """The series; raises ``Kept`` where it ended in failure."""
    if text := summary["failure"]:
        what = "1 run is" if runs == 1 else f"{runs} runs are"
        raise Kept(f"{text}; {what} kept in {path}", summary, path) from failure
    return _read(Series.read, path)


def _read(read: Callable[[Path], Whole], path: Path) -> Whole:
    """What was written just now; what fails then loses nothing."""
    try:
        return read(path)
    except (Error, OSError, MemoryError) as error:
        text = f"the results are in {path}, and cannot be read now: {str(error) or 'memory ran out'}"
        raise Kept(text, None, path) from error


def _run_into(
    making: Making,
    name: str | None,
    plan: Mapping[str, Any],
    options: ObserveOptions,
    on_live: OnLive | None,
    windows: Sequence[Window] = (),
    by: By | None = None,
    workload: str | None = None,
) -> bool:
    """Runs a plan and keeps its bundle: as that which is made, or as the folder ``name`` in it.

    Returns whether an interrupt came after the run's end.
    """
    plan = divided(plan, by)
    verify(plan)
    refuse_within(plan, making.path)
    targets = targets_of(plan)
    environment = snapshot(targets)
    _settle(targets)
    table.prepare()
    watched = options.target or next((path for path in targets.values() if path), None)
    seconds = options.interval or min(int(plan.get("interval_ns", 10**9)) / 1e9, 1.0)
    # What was measured is not lost by a signal, whenever it comes.
    with deferred(afresh=True) as held:
        with Observer(watched, seconds, options.probes) as observer:
            results = own_files([str(making.path), str(making.hidden)])
            text = json.dumps({**plan, "own": [*plan.get("own", ()), *results]})
            if len(text) > LARGEST:
                what = f"the plan has {len(text) >> 20} MiB, and a bundle keeps {LARGEST >> 20} MiB at most"
                raise Error(f"{what}; use fewer objects: larger zones, or fewer jobs")
            run = _core.start(text)
            observer.attach(run.progress_handle())
            interrupted = watch(run, on_live, held)
        outcome = joined(run, plan, on_live, held)
        environment["after"] = after()
        summary = outcome["summary"]
        start = int(summary["monotonic_start_ns"])
        events = [Event(start, "note", note) for note in summary.get("notes", [])]
        if start > 0:
            events.append(Event(start, "started", "the workers started"))
            events.append(Event(start + int(summary["elapsed_ns"]), "ended", "the last request completed"))
        if interrupted and summary["partial"]:
            events.append(Event(interrupted, "interrupted", "the run was interrupted; it is partial"))
        if summary.get("failure"):
            events.append(Event(start, "failure", str(summary["failure"])))
        figures = window_figures(plan, outcome, windows)

        def write(folder: Path) -> None:
            write_bundle(folder, plan, outcome, environment, observer.result, events, figures, by, workload)

        found = summarise(plan, outcome, by, workload)
        if figures:
            found["windows"] = figures
        keep(making, write, found, name)
    return held.pending is not None


def refuse_within(plan: Mapping[str, Any], out: Path) -> None:
    """Raises where the bundle that is replaced holds what the run is made from."""
    for path in (*(artefact["path"] for artefact in plan.get("artefacts", ())), *plan.get("own", ())):
        if out.is_dir() and is_part(path, out):
            raise Error(f"{out}: holds {path}, which the run is made from; give another name with `out`")


def _settle(targets: Mapping[str, str | None]) -> None:
    """Waits until no earlier run of this process holds a device any more, a few seconds at most.

    The kernel lets go of an io_uring's files some time after the ring was closed; until then the next
    run would find its device in use. Whoever else holds it is reported by the engine.
    """
    deadline = time.monotonic() + SETTLE
    for path in targets.values():
        if path is None or not stat.S_ISBLK(_mode(path)):
            continue
        while time.monotonic() < deadline:
            try:
                os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
                break
            except OSError as error:
                if error.errno != errno.EBUSY:
                    break
                time.sleep(0.02)


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0


__all__ = ["Error", "NamedRun", "ObserveOptions", "OnLive", "run_plan", "run_series", "targets_of"]
