"""Scripts and profiles of Filebench on a directory."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal

from loadstone import Error
from loadstone._core import make_below, open_below
from loadstone._json import readable
from loadstone._kept import keeping
from loadstone._values import Misused, is_null
from loadstone.content import Content
from loadstone.plan import parts, targets
from loadstone.plan.kinds import Unused
from loadstone.plan.options import Cache, Path
from loadstone.plan.rehearsal import rehearse
from loadstone.plan.surroundings import steps_of
from loadstone.verification import Verify

if TYPE_CHECKING:
    from loadstone.bundle.figures import By
    from loadstone.wml import Action, Figure, Interpretation, RunPlan, Window
    from loadstone.workload.execution import OnLive

Compat = Literal["1.4", "1.5"]
"""Whose semantics count where those of Filebench's versions clash."""


def plan_filebench(
    path: Path,
    on: Path | None,
    *,
    variables: Mapping[str, str] | None = None,
    seed: int = 0,
    duration: float | None = None,
    allow_destroy: Sequence[Path] = (),
    allow_system: bool = False,
    rebase: bool = False,
    compat: Compat | None = None,
    interval: float = 1.0,
    cpus: Sequence[int] = (),
    cache: Cache | None = None,
    memory_limit: int | None = None,
    layout: Literal["gamma", "flat"] = "gamma",
    content: Content | None = None,
    verify: Verify | None = None,
) -> Interpretation:
    """What a script (``.f``) or profile (``.prof``) of Filebench does: actions, of which runs are plans.

    ``on`` is a directory, a block device or ``null:``, and what ``$dir`` stands for. ``variables`` stand
    above those of the script. ``duration``: seconds of every run, whatever the script says. ``rebase`` puts
    paths that lie elsewhere below ``on``. ``allow_destroy``: directories, files and devices that may be
    overwritten. ``compat``: 1.4 or 1.5 where these clash, with the faults of both; by default what the script
    is written in, without. ``cache``: what becomes of the caches once files are made; as in Filebench
    nothing, unless ``memory_limit`` (bytes the run gets, page cache included) needs ``drop``. ``layout``:
    ``flat`` puts the files of each set into directories of ``dirwidth`` entries, all at one level.
    ``content``: what everything written is like. ``verify``: it is verified, and files of earlier runs are
    not used again. Nothing is made or run. Raises ``Error`` where the script cannot be run. See
    ``docs/filebench.md``.
    """
    if on is not None and is_null(on):
        targets.refuse_on_null({"cache": cache, "verify": verify})
    found = lower_filebench(
        path,
        on,
        variables=variables,
        seed=seed,
        duration=duration,
        allow_destroy=allow_destroy,
        allow_system=allow_system,
        rebase=rebase,
        compat=compat,
        interval=interval,
        cpus=cpus,
        cache=cache,
        memory_limit=memory_limit,
        layout=layout,
    )
    from loadstone.wml import RunPlan

    actions = [
        replace(action, plan=parts.with_wishes(action.plan, content, verify))
        if isinstance(action, RunPlan)
        else action
        for action in found.actions
    ]
    plans = [action.plan for action in actions if isinstance(action, RunPlan)]
    if len(plans) > 1:
        rehearse(plans, [f"{path}: run {number}" for number in range(1, len(plans) + 1)])
    return replace(found, actions=actions)


def lower_filebench(
    path: Path,
    on: Path | None,
    *,
    variables: Mapping[str, str] | None = None,
    seed: int = 0,
    duration: float | None = None,
    allow_destroy: Sequence[Path] = (),
    allow_system: bool = False,
    rebase: bool = False,
    compat: Compat | None = None,
    interval: float = 1.0,
    cpus: Sequence[int] = (),
    cache: Cache | None = None,
    memory_limit: int | None = None,
    layout: Literal["gamma", "flat"] = "gamma",
) -> Interpretation:
    """The same before the engine has looked at the plans."""
    # Imported late: the grammar's library is not needed for other workloads.
    from loadstone import wml

    if on is None:
        raise Error(f"{path}: no directory to run in; give --on DIR or --on null:")
    if duration is not None and duration <= 0:
        raise Misused(f"--duration {duration:g}: a script runs for more than 0 seconds")
    where = str(on)
    given_up = frozenset(os.path.abspath(path) for path in allow_destroy)
    allowed = os.path.abspath(where) in given_up
    if not is_null(where) and not _is_device(where):
        targets.tree(on, {"allow_destroy": [where] if allowed else []})
    settings = wml.Settings(
        on=where,
        variables=variables or {},
        seed=seed,
        duration=duration,
        compat=compat,
        allow_destroy=allowed,
        given_up=given_up,
        allow_system=allow_system,
        rebase=rebase,
        interval=interval,
        cpus=cpus,
        steps=steps_of(cache, memory_limit, "none"),
        memory_limit=memory_limit,
        layout=layout,
    )
    try:
        text = FilePath(path).read_bytes()
    except OSError as error:
        raise Error(f"{path}: {error.strerror}") from None
    if str(path).endswith(".prof"):
        found = wml.interpret_profile(wml.parse_profile(text, str(path)), settings)
    else:
        found = wml.interpret(wml.parse(text, str(path)), settings)
    known = {target.get("path") for plan in found.plans for target in plan["targets"]}
    for one in given_up - known - ({os.path.abspath(where)} if not is_null(where) else set()):
        raise Unused(f"--allow-destroy {one}: is no target of this run")
    for plan in found.plans:
        plan["own"] = parts.own_files(found.files)
    return found


def _is_device(path: str) -> bool:
    return os.path.exists(path) and stat.S_ISBLK(os.stat(path).st_mode)


def performing(
    actions: Sequence[Action], results: Sequence[Mapping[str, Any]], say: Callable[[str], None] = print
) -> Generator[RunPlan]:
    """Does actions in order and yields those that are runs, which the caller carries out.

    ``results``: what came of the runs so far; the caller adds to it. Shell commands must succeed. Those
    beside a run end with it.
    """
    from loadstone.wml import Beside, Dump, Print, RunPlan, Shell, Wait

    besides: list[_Command] = []
    for action in actions:
        match action:
            case Beside(command=command, path=path, base=base):
                besides.append(_Command(command, path, base))
            case Print(text=text):
                say(text if isinstance(text, str) else "".join(_told(part, results) for part in text))
            case Shell(command=command):
                if status := _shell(command):
                    raise Error(f"{command}: ended with status {status}")
            case Wait(seconds=seconds):
                time.sleep(seconds)
            case Dump(path=path, base=base):
                _dump(path, results, base)
            case RunPlan():
                try:
                    for one in besides:
                        one.start()
                    yield action
                finally:
                    for one in besides:
                        one.end(say)
                    besides.clear()


class _Command:
    """A shell command beside a run; what it prints goes to a file that must not be there yet."""

    def __init__(self, command: str, path: str, base: str | None = None) -> None:
        self.command, self.path, self.base = command, path, base
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with os.fdopen(_new(self.path, self.base, "what a command prints"), "wb") as out:
            self._process = subprocess.Popen(
                self.command, shell=True, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )

    def end(self, say: Callable[[str], None]) -> None:
        """Ends it with all it has started; one that ended before in failure is told."""
        if self._process is None:
            return
        if status := self._process.poll():
            say(f"{self.command}: ended with status {status}; see {self.path}")
        _end(self._process)


def _shell(command: str) -> int:
    """Does a command and returns its status; what ends this ends it with all it has started."""
    process = subprocess.Popen(command, shell=True, start_new_session=True)
    try:
        return process.wait()
    except BaseException:
        _end(process)
        raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a session, after two seconds by force."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(2)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def perform(
    actions: Sequence[Action],
    run: Callable[[RunPlan], Mapping[str, Any]],
    say: Callable[[str], None] = print,
) -> list[Mapping[str, Any]]:
    """Does actions in order and returns what ``run`` made of each plan. Shell commands must succeed.

    The list ends with the first run that did not end of itself. Raises ``Kept`` with the results so far where
    a later action fails.
    """
    results: list[Mapping[str, Any]] = []
    with keeping(results), contextlib.closing(performing(actions, results, say)) as runs:
        for action in runs:
            results.append(run(action))
            if results[-1].get("partial"):
                break
    return results


def _told(part: str | Figure, results: Sequence[Mapping[str, Any]]) -> str:
    """A part of a text: figures are those of the last window of the last run, or of all of it."""
    if isinstance(part, str):
        return part
    if not results:
        return part.written
    run = results[-1]
    whole = {**run, **{f"{op}s": run["ops"].get(op, {}).get("count", 0) for op in ("read", "write")}}
    of = run["windows"][-1] if run.get("windows") else whole
    seconds = (of["to_ns"] - of["from_ns"] if "to_ns" in of else run["elapsed_ns"]) / 1e9
    user, system = run["cpu"]["user_ns"] / 1e3, run["cpu"]["system_ns"] / 1e3
    requests = max(run["requests"], 1)
    match part.name:
        case "iocount":
            value = of["requests"]
        case "iorate":
            value = of["ops_per_s"]
        case "ioreadrate":
            value = of["reads"] / seconds
        case "iowriterate":
            value = of["writes"] / seconds
        case "iobandwidth":
            return f"{of['bytes_per_s'] / (1 << 20):.1f}"
        case "iolatency":
            return f"{of['service_ns'].get('mean', 0) / 1e3:.1f}"
        case "iocpu":
            return f"{(user + system) / requests:.1f}"
        case "iocpusys":
            return f"{system / requests:.1f}"
        case "oheadcpu":
            return f"{user / requests:.1f}"
        case _:
            value = system
    return f"{value:.0f}"


def _new(path: str, base: str | None, what: str) -> int:
    """Opens a file that is not there yet, below ``base`` without following links; ``what`` goes to it."""
    base = base or os.path.dirname(path) or "."
    name = os.fsencode(os.path.relpath(path, base))
    try:
        os.makedirs(base, exist_ok=True)
        if folder := os.path.dirname(name):
            make_below(base, folder)
        return open_below(base, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise Error(f"{path}: is there already; the script would write {what} to it") from None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise Error(f"{path}: cannot be made: {error.strerror}") from None
        raise Error(
            f"{path}: lies behind a link or a file; {what} would lie elsewhere than in {base}"
        ) from None


def _dump(path: str, results: Sequence[Mapping[str, Any]], base: str | None = None) -> None:
    """Writes the last result. A script does not get to replace files."""
    if not results:
        raise Error(f"{path}: there are no results to write yet; nothing has run")
    text = readable(results[-1])
    with os.fdopen(_new(path, base, "results"), "w", encoding="utf-8") as file:
        file.write(text + "\n")


def window_figures(
    plan: Mapping[str, Any], outcome: Mapping[str, Any], windows: Sequence[Window]
) -> list[dict[str, Any]]:
    """What was done in parts of a run: of all intervals that begin in them."""
    import numpy as np

    from loadstone.bundle.codes import OTHER, READ, WRITE
    from loadstone.bundle.figures import merged

    ops = outcome["ops"]
    begin = np.asarray(ops["interval"]).astype(np.int64) * int(plan["interval_ns"])
    good = np.asarray(ops["errno"]) == 0
    codes, counts = np.asarray(ops["op"]), np.asarray(ops["count"])
    found = []
    for one in windows:
        mine = (begin >= one.from_ns) & (begin < one.to_ns) & (codes != OTHER)
        seconds = (one.to_ns - one.from_ns) / 1e9
        count = int(counts[mine].sum())
        size = int(np.asarray(ops["bytes"])[mine].sum())
        found.append(
            {
                "name": one.name,
                "from_ns": one.from_ns,
                "to_ns": one.to_ns,
                "requests": count,
                "reads": int(counts[mine & (codes == READ)].sum()),
                "writes": int(counts[mine & (codes == WRITE)].sum()),
                "bytes": size,
                "errors": int(counts[mine & ~good].sum()),
                "ops_per_s": count / seconds,
                "bytes_per_s": size / seconds,
                "service_ns": merged(ops, "service", mine & good).summary(),
            }
        )
    return found


def run_filebench(
    found: Interpretation,
    on_live: OnLive | None = None,
    say: Callable[[str], None] = print,
    by: By | None = None,
) -> list[Mapping[str, Any]]:
    """Performs what :func:`plan_filebench` found, and returns the summary of each run.

    A run with windows of measurement has their figures under ``windows``. ``by``: what a summary is divided
    by besides steps.
    """
    from loadstone.bundle.figures import divided
    from loadstone.bundle.write import summarise
    from loadstone.workload.execution import execute

    def run(action: RunPlan) -> dict[str, Any]:
        outcome = execute(divided(action.plan, by), on_live)
        summary = summarise(action.plan, outcome, by)
        if action.windows:
            summary["windows"] = window_figures(action.plan, outcome, action.windows)
        return summary

    return perform(found.actions, run, say)
