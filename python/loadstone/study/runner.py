"""The runner: one plan, or an ordered list of plans, to bundles."""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import Error, _core
from loadstone.bundle import Bundle, Event, Series, aside, check_free, write_bundle, write_series
from loadstone.bundle.environment import after, snapshot
from loadstone.bundle.figures import By, divided
from loadstone.content import of_run, reading
from loadstone.observe.observer import Observer, ProbeSpec
from loadstone.workload import verify
from loadstone.workload._filebench import window_figures

if TYPE_CHECKING:
    from loadstone.wml import Window

SETTLE = 3.0
"""Longest wait for a device to be let go of, seconds."""

OnLive = Callable[[Mapping[str, Any]], None]
"""Called about four times a second with what ``Run.live()`` tells."""


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
        str(t.get("id")): None if t.get("kind") == "null" or not t.get("path") else os.path.abspath(t["path"])
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
    run, or nothing could be measured.
    """
    path = Path(out)
    with aside(path, force) as folder:
        _run_into(folder, plan, observe or ObserveOptions(), on_live, windows, by, workload)
    return Bundle.read(path)


def run_series(
    runs: Iterable[NamedRun],
    out: str | os.PathLike[str],
    *,
    kind: str,
    finish: Callable[[list[tuple[NamedRun, Bundle]], Path], Mapping[str, Any]],
    observe: ObserveOptions | None = None,
    on_live: OnLive | None = None,
    on_run: Callable[[NamedRun], None] | None = None,
    on_done: Callable[[NamedRun, Bundle], None] | None = None,
    force: bool = False,
    by: By | None = None,
) -> Series:
    """Runs plans one after the other and writes a bundle of their bundles to ``out``.

    ``runs`` may be a generator: it is asked for the next run when the last one has ended. ``finish`` is
    given the runs that ended of themselves, each with its bundle, and the folder, where it may put
    more files; it returns what ``summary.json`` holds besides. ``by``: as of :func:`run_plan`. A
    KeyboardInterrupt ends the list: the runs so far are kept, the interrupted one too, and the whole is
    marked partial. This is the one primitive of ``evaluate``, ``compare`` and studies.
    """
    path = Path(out)
    check_free(path, force)
    with aside(path, force) as folder:
        listed: list[dict[str, Any]] = []
        done: list[tuple[NamedRun, Bundle]] = []
        partial = False
        try:
            for run in runs:
                if on_run is not None:
                    on_run(run)
                name = f"{len(listed) + 1:02}-{run.name}"
                (folder / name).mkdir()
                _run_into(folder / name, run.plan, observe or ObserveOptions(), on_live, run.windows, by)
                listed.append({"name": run.name, "path": name, **run.about})
                bundle = Bundle.read(folder / name)
                if bundle.partial:
                    partial = True
                    break
                done.append((run, bundle))
                if on_done is not None:
                    on_done(run, bundle)
        except KeyboardInterrupt:
            # Between two runs, or while one was being prepared: what is whole is kept.
            if not listed:
                raise
            partial = True
        write_series(folder, kind, listed, {"partial": partial, "runs": len(listed), **finish(done, folder)})
    return Series.read(path)


def _run_into(
    folder: Path,
    plan: Mapping[str, Any],
    options: ObserveOptions,
    on_live: OnLive | None,
    windows: Sequence[Window] = (),
    by: By | None = None,
    workload: str | None = None,
) -> None:
    plan = divided(plan, by)
    verify(plan)
    targets = targets_of(plan)
    environment = snapshot(targets)
    _settle(targets)
    watched = options.target or next((path for path in targets.values() if path), None)
    seconds = options.interval or min(int(plan.get("interval_ns", 10**9)) / 1e9, 1.0)
    with Observer(watched, seconds, options.probes) as observer:
        run = _core.start(json.dumps(plan))
        observer.attach(run.progress_handle())
        interrupted = _watch(run, on_live)
        outcome = run.join()
    if content := of_run(plan, outcome, reading(on_live, run.live())):
        outcome["content"] = content
    environment["after"] = after()
    summary = outcome["summary"]
    start = int(summary["monotonic_start_ns"])
    events = [Event(start, "note", note) for note in summary.get("notes", [])]
    if start > 0:
        events.append(Event(start, "started", "the workers started"))
        events.append(Event(start + int(summary["elapsed_ns"]), "ended", "the last request completed"))
    if interrupted:
        events.append(Event(interrupted, "interrupted", "the run was interrupted; it is partial"))
    if summary.get("failure"):
        events.append(Event(start, "failure", str(summary["failure"])))
    figures = window_figures(plan, outcome, windows)
    write_bundle(folder, plan, outcome, environment, observer.result, events, figures, by, workload)


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


def _watch(run: Any, on_live: OnLive | None) -> int | None:
    """Waits for the end of a run; the time of an interruption, or None.

    A second interrupt gives up what was measured.
    """
    interrupted: int | None = None
    while True:
        try:
            over = run.wait(0.25)
            if on_live is not None:
                on_live(run.live())
            if over:
                return interrupted
        except KeyboardInterrupt:
            if interrupted is not None:
                raise
            interrupted = time.monotonic_ns()
            run.stop()


__all__ = ["Error", "NamedRun", "ObserveOptions", "OnLive", "run_plan", "run_series", "targets_of"]
