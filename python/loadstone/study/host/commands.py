"""Commands of a study: started, released together, timed, ended at their limit, and marked as the study's."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from loadstone._text import one_line
from loadstone.errors import Error
from loadstone.study.file.kinds import Command

MARK = "LOADSTONE_STUDY"
"""Variable of the environment with the random id of the study: whatever has it was started by that study."""
_GRACE = 5.0
"""Seconds that a command has to end after SIGTERM."""
_POLL = 0.01
_SHOWN = 400
"""Letters of standard error that an error tells."""


class Failed(Error):
    """A command failed, or was ended at its time limit."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    elapsed: float
    """Seconds from its release."""
    user: float
    """Seconds of CPU, of all that it waited for."""
    system: float


def words(command: Command) -> list[str]:
    """A command as a program and its arguments."""
    return ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)


def shown(command: Command) -> str:
    """A command as it is shown."""
    import shlex

    return one_line(command if isinstance(command, str) else shlex.join(command))


_OF_SHELLS = re.compile(
    r"alias|break|case|cd|command|continue|echo|eval|exec|exit|export|false|for|function|if|printf|pwd|read|"
    r"readonly|return|set|shift|source|test|time|times|trap|true|type|ulimit|umask|unset|until|wait|while"
)
"""Words that are no programs."""


def program(command: Command) -> str:
    """The program that a command begins with, as far as that can be told; empty where it cannot."""
    if not isinstance(command, str):
        return command[0]
    words = (word for word in command.split() if "=" not in word)
    word = next(words, "")
    return word if re.fullmatch(r"[A-Za-z][\w.+-]*", word) and not _OF_SHELLS.fullmatch(word) else ""


def tied(words: Sequence[str]) -> list[str]:
    """The same, dying with whoever starts it, be that by SIGKILL (PR_SET_PDEATHSIG)."""
    with_ = shutil.which("setpriv")
    return [with_, "--pdeathsig", "KILL", "--", *words] if with_ else list(words)


def _new(path: Path) -> BinaryIO:
    """A file to write to that only its owner may read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb")


class Program:
    """A command that waits for its release; a context manager, after which nothing of it runs."""

    def __init__(
        self,
        command: Command,
        mark: str,
        cwd: Path,
        out: Path | None,
        where: str = "",
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Starts it, up to the command itself. ``out``: where its output goes, in ``stdout`` ..."""
        self.command = command
        self._mark = mark
        self._files = contextlib.ExitStack()
        self._streams = [
            self._files.enter_context(_new(out / f"{where}{name}" if out else Path(os.devnull)))
            for name in ("stdout", "stderr")
        ]
        self.error = out / f"{where}stderr" if out else None
        gate, self._gate = os.pipe()
        try:
            # The shell waits at the gate and then becomes the command, so all begin at the same time. Where
            # this process dies before, it reads the end of the pipe.
            script = 'read _ || exit; exec "$@" < /dev/null'
            self._process = subprocess.Popen(
                tied(["/bin/sh", "-c", script, "sh", *words(command)]),
                cwd=cwd,
                env={**os.environ, **more, MARK: mark},
                stdin=gate,
                stdout=self._streams[0],
                stderr=self._streams[1],
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._gate)
            self._close()
            raise Failed(f"{shown(command)}: cannot be started: {error.strerror}") from None
        finally:
            os.close(gate)

    def release(self) -> None:
        """Lets it begin."""
        self._begun = time.monotonic()
        os.write(self._gate, b"\n")
        os.close(self._gate)
        self._gate = -1

    def wait(self, until: float) -> Ended:
        """Waits for its end; ``until``: on the monotonic clock. Raises ``Failed`` where it is not well."""
        # A descriptor tells of the end at once; looking now and then would round times up.
        with open(os.pidfd_open(self._process.pid), "rb") as process:
            while not (ended := self.is_over()):
                if time.monotonic() >= until:
                    self.stop()
                    raise Failed(f"{shown(self.command)}: did not end within its time limit, and was ended")
                select.select([process], [], [], min(max(until - time.monotonic(), 0), 3600))
        used = self._reap()
        if self._process.returncode:
            raise Failed(f"{shown(self.command)}: {_how(self._process.returncode)}{self._told()}")
        return Ended(ended - self._begun, used.ru_utime, used.ru_stime)

    def is_over(self) -> float:
        """When it was seen to have ended; 0.0: it goes on. It stays a zombie, so its number stays its own."""
        over = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return time.monotonic() if over is not None else 0.0

    def _reap(self) -> resource.struct_rusage:
        """Ends what is left of its group, and takes its status."""
        _signal(self._process.pid, signal.SIGKILL)
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return used

    def _told(self) -> str:
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.flush()
        try:
            text = self.error.read_text(errors="replace").strip() if self.error else ""
        except OSError:
            text = ""
        return f": {one_line(text[-_SHOWN:])}" if text else ""

    def stop(self) -> None:
        """Ends it and all of its group."""
        if self._gate >= 0:
            # It never began.
            _signal(self._process.pid, signal.SIGKILL)
            os.close(self._gate)
            self._gate = -1
        if self._process.returncode is None:
            _signal(self._process.pid, signal.SIGTERM)
            deadline = time.monotonic() + _GRACE
            while not self.is_over() and time.monotonic() < deadline:
                time.sleep(_POLL)
            self._reap()

    def _close(self) -> None:
        self._files.close()

    def __enter__(self) -> Program:
        """Waits at its gate."""
        return self

    def __exit__(self, *about: object) -> None:
        """Ends it where it did not end."""
        self.stop()
        self._close()


def _how(status: int) -> str:
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-status).name}"
    if status == 127:
        return "ended with status 127: a program is not installed or not found"
    return f"ended with status {status}"


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def perform(
    command: Command,
    mark: str,
    cwd: Path,
    limit: float,
    out: Path | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Ended:
    """Runs one command to its end; ``more``: variables of its environment. Raises ``Failed``."""
    with Program(command, mark, cwd, out, "", more) as one:
        one.release()
        return one.wait(time.monotonic() + limit)


def perform_together(
    commands: Sequence[Command], beside: Sequence[Command], mark: str, cwd: Path, limit: float, out: Path
) -> list[Ended]:
    """Releases commands together, and those beside them; the latter end with the last of the former.

    Outputs are ``stdout`` and ``stderr`` in ``out``, of several ``0.stdout``, ... Raises ``Failed`` where
    one of them is not well.
    """
    with contextlib.ExitStack() as stack:
        names = [""] if len(commands) == 1 else [f"{number}." for number in range(len(commands))]
        mine = [
            stack.enter_context(Program(one, mark, cwd, out, name))
            for one, name in zip(commands, names, strict=True)
        ]
        others = [
            stack.enter_context(Program(one, mark, cwd, out, f"beside{number}."))
            for number, one in enumerate(beside)
        ]
        for one in (*others, *mine):
            one.release()
        until = time.monotonic() + limit
        return [one.wait(until) for one in mine]


def left(mark: str) -> Iterator[int]:
    """Processes that carry a mark."""
    wanted = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    yield int(name)


def end_left(mark: str) -> int:
    """Ends whatever carries the mark of a study that was killed; returns how many there were."""
    ended = set()
    for _ in range(100):
        found = list(left(mark))
        for number in found:
            ended.add(number)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        if not found:
            break
        time.sleep(0.02)
    return len(ended)
