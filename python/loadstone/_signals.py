"""Signals that end the work: all are as Ctrl-C, and none interrupts the writing of results."""

from __future__ import annotations

import contextlib
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_WARNINGS = (
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGPWR),
    *(signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF),
)
"""What batch systems, timers and limits send; where nobody handles it, it ends the work as well."""
ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, *_WARNINGS)

AGAIN = 2.0
"""Seconds within which further signals are part of the first: timeout(1) sends its signal twice, systemd and
terminals that close send SIGHUP besides, and many who press Ctrl-C press it twice."""

_received: int | None = None
_last: float | None = None


class Ended(KeyboardInterrupt):
    """A signal other than SIGINT that ends the work just so."""


def _is_new(number: int) -> bool:
    """Takes note of a signal; whether it asks for more than one that came just before."""
    global _received, _last
    now = time.monotonic()
    if _last is not None and now - _last < AGAIN:
        return False
    if number == _received == signal.SIGXCPU:
        # The kernel repeats it each second.
        return False
    _last = now
    if number != signal.SIGINT:
        _received = number
    return True


def _end(number: int, frame: FrameType | None) -> None:
    if _is_new(number):
        raise KeyboardInterrupt if number == signal.SIGINT else Ended(number)


LEFT = 2
"""Seconds of CPU time before a hard limit at which the work ends, so that its results can be written."""


def _end_before_the_limit() -> None:
    """Lets the soft limit of CPU time come before the hard one, at which the kernel kills without a word."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard == resource.RLIM_INFINITY:
        return
    before = max(hard - LEFT, 1)
    if before < hard and (soft == resource.RLIM_INFINITY or soft > before):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CPU, (before, hard))


def install() -> None:
    """Lets all of ``ENDING`` end the work as Ctrl-C does, but what is ignored (``nohup``) or handled."""
    if signal.getsignal(signal.SIGXCPU) == signal.SIG_DFL:
        _end_before_the_limit()
    for number in ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


def done() -> None:
    """The work is over: what comes now ends the process, and says nothing."""
    for number in ENDING:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)


def came() -> bool:
    """Whether a signal other than SIGINT came."""
    return _received is not None


def status() -> int:
    """The exit status of interrupted work: 128 and the number of the signal, 130 for Ctrl-C."""
    return 128 + (_received or signal.SIGINT)


@contextlib.contextmanager
def _masked() -> Iterator[None]:
    """No signal comes between the changes of several handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Deferred:
    """What was asked meanwhile: ``pending`` is the first signal that was held back and not yet taken."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.pending: int | None = None
        self.act: Callable[[], object] | None = None
        """Called at once when one is held back."""
        self.since = 0
        """When the pending one came (CLOCK_MONOTONIC, ns)."""
        self._handlers: dict[int, Any] = {}

    def _hold(self, number: int, frame: FrameType | None) -> None:
        if _is_new(number) and self.pending is None:
            self.pending, self.since = number, time.monotonic_ns()
            if self.act is not None:
                self.act()

    def take(self) -> int:
        """Sees to the pending signal; when it came."""
        self.pending = None
        return self.since

    def begin(self) -> None:
        """Holds signals back from now on."""
        if threading.current_thread() is not threading.main_thread():
            return
        with _masked():
            for number in ENDING:
                # What is ignored stays so, and a program's own use of SIGUSR1.
                handler = signal.getsignal(number)
                own = number in _WARNINGS and handler not in (signal.SIG_DFL, _end)
                if handler not in (signal.SIG_IGN, None) and not own:
                    self._handlers[number] = signal.signal(number, self._hold)

    def end(self) -> None:
        """Lets them through again."""
        if self._handlers:
            with _masked():
                for number, handler in self._handlers.items():
                    signal.signal(number, handler)
                self._handlers.clear()

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Signals come through in this block."""
        self.end()
        try:
            yield
        finally:
            self.begin()


@contextlib.contextmanager
def deferred(afresh: bool = False) -> Iterator[Deferred]:
    """Holds signals of ``ENDING`` back; after the block, what is ``pending`` tells of them.

    ``afresh``: for work that begins, of which no signal before was.
    """
    global _last
    if afresh:
        _last = None
    held = Deferred()
    held.begin()
    try:
        yield held
    finally:
        held.end()
