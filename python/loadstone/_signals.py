"""Signals that end the work: all are as Ctrl-C, and none interrupts the writing of results."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_received: int | None = None


class Ended(KeyboardInterrupt):
    """A signal other than SIGINT that ends the work just so."""


def _end(number: int, frame: FrameType | None) -> None:
    global _received
    _received = number
    raise Ended(number)


def install() -> None:
    """Lets SIGTERM and SIGHUP end the work as Ctrl-C does, unless they are ignored (``nohup``) or handled."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)


def came() -> bool:
    """Whether SIGTERM or SIGHUP came."""
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
    """What was asked meanwhile: ``pending`` is the first signal that was held back."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.pending: int | None = None
        self._handlers: dict[int, Any] = {}

    def _hold(self, number: int, frame: FrameType | None) -> None:
        if self.pending is None:
            self.pending = number

    def begin(self) -> None:
        """Holds signals back from now on."""
        if threading.current_thread() is not threading.main_thread():
            return
        with _masked():
            for number in ENDING:
                # What is ignored stays so.
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._handlers[number] = signal.signal(number, self._hold)

    def end(self) -> None:
        """Lets them through again, and the one that came meanwhile."""
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
def deferred() -> Iterator[Deferred]:
    """Holds SIGINT, SIGTERM and SIGHUP back; after the block, what is ``pending`` tells of them."""
    held = Deferred()
    held.begin()
    try:
        yield held
    finally:
        held.end()
        if held.pending not in (None, signal.SIGINT):
            global _received
            _received = held.pending
