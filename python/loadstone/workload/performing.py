"""What lies between the runs of a script: texts, shell commands, waiting, results that it writes."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from loadstone._core import make_below, open_below
from loadstone._files import absolute, make_folders
from loadstone._json import readable
from loadstone.errors import Error
from loadstone.plan.actions import (
    Action,
    Beside,
    Dump,
    Figure,
    Print,
    Program,
    RunPlan,
    Shell,
    Wait,
    Window,
)

_LOOK = 0.05
"""Seconds between two looks whether a program has ended."""
_PDEATHSIG = 1
"""``PR_SET_PDEATHSIG`` of prctl(2)."""


def performing(
    actions: Sequence[Action], results: Sequence[Mapping[str, Any]], say: Callable[[str], None] = print
) -> Generator[RunPlan]:
    """Does actions in order and yields those that are runs, which the caller carries out.

    ``results``: what came of the runs so far; the caller adds to it. Shell commands must succeed. Those
    beside a run end with it; a program ends at its time, or by itself.
    """
    besides: list[_Command | _Program] = []
    for action in actions:
        match action:
            case Beside(command=command, path=path, base=base):
                besides.append(_Command(command, path, base))
            case Program(alone=True):
                _finished([_Program(action)], say)
            case Program():
                besides.append(_Program(action))
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
                    _finished([one for one in besides if isinstance(one, _Program)], say)
                finally:
                    for one in besides:
                        one.end(say)
                    besides.clear()


def _finished(programs: Sequence[_Program], say: Callable[[str], None]) -> None:
    """Starts programs that have not begun, and waits until all have ended."""
    try:
        for one in programs:
            one.start()
        for one in programs:
            one.wait()
    finally:
        for one in programs:
            one.end(say)


class _Command:
    """A shell command beside a run; what it prints goes to a file that must not be there yet."""

    def __init__(self, command: str, path: str, base: str | None = None) -> None:
        self.command, self.path, self.base = command, path, base
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with os.fdopen(_new(self.path, self.base, "what a command prints"), "wb") as out:
            self._process = _started(self.command, stdout=out, stderr=subprocess.STDOUT)

    def end(self, say: Callable[[str], None]) -> None:
        """Ends it with all it has started; one that ended before in failure is told."""
        if self._process is None:
            return
        if status := self._process.poll():
            say(f"{self.command}: ended with status {status}; see {self.path}")
        _end(self._process)


class _Program:
    """A program of a job file, with the thread that ends it at its time."""

    def __init__(self, of: Program) -> None:
        self.of = of
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: threading.Thread | None = None
        self._over = threading.Event()
        self._told = False

    def start(self) -> None:
        """Starts it, unless it has been; it ends with this thread, also where that is killed."""
        if self._process is not None:
            return
        of = self.of
        with contextlib.ExitStack() as open_:
            # Standard output may be the results of the command.
            out: list[Any] = [2, 2]
            for number, path in enumerate(of.outputs):
                fd = _new(absolute(path), absolute(of.base), "what a program prints")
                out[number] = open_.enter_context(os.fdopen(fd, "wb"))
            try:
                self._process = _started(list(of.words), stdout=out[0], stderr=out[1])
            except OSError as error:
                raise Error(f"{of.place}: {of.words[0]}: cannot be started: {error.strerror}") from None
        self._watch = threading.Thread(target=self._look, args=(self._process,), name=f"exec {of.name}")
        self._watch.start()

    def wait(self) -> None:
        """Waits until it has ended, by itself or at its time."""
        if self._watch is not None:
            self._watch.join()

    def end(self, say: Callable[[str], None]) -> None:
        """Ends it at once, if it goes on; one that has failed by itself is told."""
        if self._process is None or self._told:
            return
        self._told = True
        status = self._process.poll()
        self._over.set()
        self.wait()
        if status and not self._late:
            say(f"{self.of.name}: {self.of.words[0]} ended with status {status}")

    _late = False

    def _look(self, process: subprocess.Popen[bytes]) -> None:
        of = self.of
        due = None if of.seconds is None else time.monotonic() + of.seconds
        while process.poll() is None:
            self._late = due is not None and time.monotonic() >= due
            if self._late or self._over.is_set():
                _end(process, of.grace)
                return
            self._over.wait(_LOOK if due is None else max(0.0, min(_LOOK, due - time.monotonic())))


def _shell(command: str) -> int:
    """Does a command and returns its status; what ends this ends it with all it has started."""
    process = _started(command)
    try:
        return process.wait()
    except BaseException:
        _end(process)
        raise


def _started(command: str | list[str], **streams: Any) -> subprocess.Popen[bytes]:
    """A shell command, or the words of a program, in a session of its own, which ends with this process, also
    where that is killed."""
    prctl = ctypes.CDLL(None).prctl
    return subprocess.Popen(
        command,
        shell=isinstance(command, str),
        start_new_session=True,
        preexec_fn=lambda: prctl(_PDEATHSIG, signal.SIGKILL),
        **streams,
    )


def _end(process: subprocess.Popen[bytes], grace: float = 2) -> None:
    """Ends a session, after some seconds by force."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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
        make_folders(base)
        if folder := os.path.dirname(name):
            make_below(base, folder)
        return open_below(base, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
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
                "ops_per_s": int(counts[mine & good].sum()) / seconds,
                "bytes_per_s": size / seconds,
                "service_ns": merged(ops, "service", mine & good).summary(),
            }
        )
    return found
