"""Starting and stopping an observation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone import _core
from loadstone.errors import Error


@dataclass(frozen=True)
class ProbeSpec:
    """A user command that prints ``name=value`` lines, run by ``sh -c`` every ``interval`` seconds.

    A command that does not end is read as it prints. A slow or failing one is told in the events
    and delays nothing; at the end it is killed with its process group.
    """

    name: str
    command: str
    interval: float = 1.0

    @classmethod
    def parse(cls, text: str) -> ProbeSpec:
        """From ``NAME=COMMAND``."""
        name, equals, command = text.partition("=")
        if not equals or not name.strip() or not command.strip():
            raise Error(f"probe {text!r}: write it as NAME=COMMAND, such as power='cat /run/watts'")
        return cls(name.strip(), command.strip())


@dataclass
class Observation:
    """What an observation saw."""

    columns: dict[str, NDArray[np.int64]]
    """``time`` (CLOCK_MONOTONIC, ns) and one raw column per counter; ``-2**63`` where unreadable.
    """
    readings: list[tuple[int, str, float]] = field(default_factory=list)
    """What the probes printed: time, ``probe.name``, value."""
    events: list[tuple[int, str, str]] = field(default_factory=list)
    """Time, kind, text of everything that should be known."""
    missed: int = 0
    """Samples that were due and not taken."""
    ticks_per_s: int = 100
    """Of the ``cpu_*`` columns."""
    interval: float = 1.0
    """Seconds between samples."""
    device: dict[str, Any] | None = None
    """The block device whose counters are in the ``disk_*`` columns."""


def device_of(path: str | os.PathLike[str]) -> tuple[dict[str, Any] | None, str | None]:
    """The block device behind a path, or the reason why there is none.

    The device is a dict of ``name``, ``major``, ``minor``, ``below`` (what it rests on),
    ``iostats``, ``sysfs`` and ``warnings``.
    """
    try:
        return _core.resolve_device(os.fspath(path)), None
    except Error as error:
        return None, str(error)


class Observer:
    """Samples the host from :meth:`start` to :meth:`stop`; also a context manager.

    ``target`` is the path under load, whose block device is sampled; without one, or where no
    device lies behind it (told as an event), the ``disk_*`` columns stay empty. ``interval`` is in
    seconds, 0.001 at least.
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | None = None,
        interval: float = 1.0,
        probes: Sequence[ProbeSpec] = (),
    ) -> None:
        """Nothing is opened yet."""
        self.interval = interval
        self.probes = tuple(probes)
        self.device, self._reason = device_of(target) if target is not None else (None, "there is no target")
        self._target = os.fspath(target) if self.device is not None and target is not None else None
        self._running: Any = None
        self.result: Observation | None = None

    def start(self) -> None:
        """Takes the first sample and goes on in a thread of its own."""
        probes = [(p.name, p.command, int(p.interval * 1e9)) for p in self.probes]
        self._running = _core.observe(self._target, int(self.interval * 1e9), probes)

    def attach(self, progress: Any) -> None:
        """Samples a run's progress handle too, as the column ``progress``."""
        self._running.attach(progress)

    def stop(self) -> Observation:
        """Takes the last sample and returns all of them."""
        if self._running is None:
            raise Error("the observation was not started")
        if self.result is None:
            seen = self._running.stop()
            events = list(seen["events"])
            if self._reason is not None:
                start = int(seen["columns"]["time"][0])
                events.insert(0, (start, "warning", f"no block counters: {self._reason}"))
            self.result = Observation(
                seen["columns"],
                list(seen["readings"]),
                events,
                seen["missed"],
                seen["ticks_per_s"],
                self.interval,
                self.device,
            )
        return self.result

    def __enter__(self) -> Observer:
        """Starts."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stops; the samples are in :attr:`result`."""
        self.stop()
