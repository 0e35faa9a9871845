"""One run of a workload on a system that is mounted: by Loadstone's engine, or by commands."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from loadstone.bundle.metrics import metrics_of
from loadstone.errors import Error
from loadstone.plan import RunOptions
from loadstone.stats.metric import Metric
from loadstone.study import outputs
from loadstone.study.file.kinds import Command
from loadstone.study.file.places import filled
from loadstone.study.file.spec import Cell, Every
from loadstone.study.host import commands
from loadstone.study.outputs import Figures
from loadstone.study.readers import READERS
from loadstone.workload import job, run

_LARGEST = 64 << 20
"""Bytes of a command's output that are read."""
_TIMES = {name: Metric(name, "s", "lower") for name in ("elapsed", "user", "system")}

OnLive = Callable[[Mapping[str, Any]], None]


def measure(
    cell: Cell, places: Mapping[str, Any], mount: Path, out: Path, mark: str, live: OnLive | None
) -> Figures:
    """Runs a load once; its results go to ``out``. Raises ``Error`` where it is not well.

    A KeyboardInterrupt ends it, and is raised when nothing of it runs any more.
    """
    load = cell.workload
    found = (
        _own(cell, places, mount, out, live)
        if load.run is not None
        else _commands(cell, places, mount, out, mark)
    )
    for name in load.metrics or cell.figures:
        if name not in found:
            told = ", ".join(list(found)[:12])
            raise Error(f"the metric {name} is missing; the run tells {told}")
        if not math.isfinite(found[name][1]):
            raise Error(f"the metric {name} is {found[name][1]}, which is no finite number")
    return {name: one for name, one in found.items() if math.isfinite(one[1])}


def rehearse(cell: Cell, folder: Path) -> None:
    """Raises ``Error`` where a load of Loadstone's own cannot be lowered for a target in ``folder``."""
    load = cell.workload
    if load.run is not None:
        here = dict.fromkeys(("mount", "out"), str(folder))
        places = {**here, "disk": "", "cell": cell.name, "block": 1, "seed": 1}
        options = RunOptions(**filled(load.options, places, ()))
        job(load.run, on=str(filled(load.target, places, ())), options=options)


def _own(cell: Cell, places: Mapping[str, Any], mount: Path, out: Path, live: OnLive | None) -> Figures:
    """A load of Loadstone's own."""
    load = cell.workload
    target = str(filled(load.target, places, ()))
    given = dict(filled(load.options, places, ()))
    given.setdefault("seed", places["seed"])
    # What an earlier run left on a system that is kept was made by the study.
    if os.path.exists(target) and target != str(mount) and Path(target).is_relative_to(mount):
        given["allow_destroy"] = (*given.get("allow_destroy", ()), target)
    bundle = run(job(str(load.run), on=target, options=RunOptions(**given)), out / "bundle", progress=live)
    summary = bundle.summary
    if failure := summary.get("failure"):
        raise Error(f"{load.run}: {failure}")
    if bundle.partial:
        raise KeyboardInterrupt
    parts = [summary, *summary.get("figures", ())]
    if failed := sum(int(one.get("errors") or 0) + int(one.get("short") or 0) for one in parts):
        raise Error(f"{load.run}: {failed:,} requests failed or were short")
    metrics, values = metrics_of(bundle)
    return {name: (metrics[name], value) for name, value in values.items()}


def _commands(cell: Cell, places: Mapping[str, Any], mount: Path, out: Path, mark: str) -> Figures:
    load = cell.workload
    assert load.command is not None
    each = [filled(load.command, {**places, "copy": number}, ()) for number in range(load.copies)]
    beside = [filled(one, {**places, "copy": 0}, ()) for one in load.beside]
    ended = commands.perform_together(each, beside, mark, mount, load.time_limit, out)
    found = []
    for number, one in enumerate(ended):
        figures: Figures = {}
        if load.reader is not None or cell.figures:
            text = _output(cell, {**places, "copy": number}, out, "" if len(ended) == 1 else f"{number}.")
            figures = outputs.read(text, load.reader, cell.figures)
        figures |= {name: (metric, getattr(one, name)) for name, metric in _TIMES.items()}
        found.append(figures)
    return outputs.together(found)


def _output(cell: Cell, places: Mapping[str, Any], out: Path, before: str) -> str:
    """What a command printed or wrote."""
    load = cell.workload
    usual = READERS[load.reader].output if load.reader is not None else "stdout"
    name = str(filled(load.output or usual, places, ()))
    path = out / f"{before}{name}" if name in ("stdout", "stderr") else out / name
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise Error(f"{name}: the output cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise Error(f"{name}: the output is larger than 64 MiB, and is not read")
    return data.decode(errors="replace")


@contextlib.contextmanager
def again_and_again(
    every: Sequence[Every], places: Mapping[str, Any], mark: str, cwd: Path, note: Callable[[str], None]
) -> Iterator[None]:
    """Commands that run every so many seconds while the block goes on; ``note`` is told of what failed."""
    stop = threading.Event()
    threads = [
        threading.Thread(
            target=_repeat, args=(filled(one.command, places, ()), one.seconds, mark, cwd, stop, note)
        )
        for one in every
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _repeat(
    command: Command, seconds: float, mark: str, cwd: Path, stop: threading.Event, note: Callable[[str], None]
) -> None:
    begun, times = time.monotonic(), 0
    while not stop.wait(max(begun + (times + 1) * seconds - time.monotonic(), 0)):
        times += 1
        try:
            with commands.Program(command, mark, cwd, None) as one:
                one.release()
                while not one.is_over():
                    if stop.wait(0.01):
                        return
                one.wait(time.monotonic())
        except Error as error:
            note(str(error))
