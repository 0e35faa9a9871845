"""Jobs of ``filecreate``, ``dirstat`` and the like: programs that call each file or directory once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from loadstone._core import MARK
from loadstone._files import absolute
from loadstone._values import is_null
from loadstone.fio._keys import BY_NAME
from loadstone.fio._load import Load
from loadstone.plan import targets
from loadstone.plan.options import RunOptions
from loadstone.plan.surroundings import steps_of

CALLS: Mapping[str, list[dict[str, Any]]] = {
    "create": [{"name": "create", "act": "create", "index": 0}, {"name": "close", "act": "close"}],
    "stat": [{"name": "stat", "act": "stat"}],
    "remove": [{"name": "remove", "act": "remove", "index": 0}],
    "mkdir": [{"name": "mkdir", "act": "mkdir"}],
    "stat directories": [{"name": "stat", "act": "stat"}],
    "rmdir": [{"name": "rmdir", "act": "rmdir"}],
}
"""What is done to each file, by the backend's name in :data:`loadstone.fio._keys.ENGINES`."""

_NOT_OF_CALLS = (
    *("startdelay", "ramp_time", "thinktime", "wait_for", "exitall", "rate", "rate_iops", "loops"),
    *("steadystate", "latency_target", "flow", "zonemode"),
)


def plan_of_calls(
    loads: Sequence[Load], on: str, options: RunOptions, seed: int, runtime: float | None
) -> dict[str, Any]:
    """The plan of jobs that run together and all call names; raises ``FioError`` where one does not.

    Each of ``numjobs`` has a directory of its own, named by the job and its number, with ``nrfiles`` files of
    ``filesize`` bytes in it.
    """
    sets: list[dict[str, Any]] = []
    workers: list[dict[str, Any]] = []
    for load in loads:
        _refuse_others(load)
        for number in range(load.workers):
            ident = f"{load.job.name}.{number}"
            sets.append(_set(load, ident))
            _refuse_there(load, on, sets[-1]["path"])
            workers.append(_worker(load, ident, list(options.cpus or load.cpus)))
    null = is_null(on)
    nowhere = {"id": "t0", "kind": "null", "size": 1 << 40}
    # Whoever gives up a directory gives up the files that jobs name in it, and calls name none.
    target = nowhere if null else targets.tree(on, ())
    steps: list[dict[str, Any]] = [{"step": "prepare"}]
    if not null:
        steps += steps_of(options.cache, options.memory_limit, "none")
    run = {"step": "run", "duration_ns": round((runtime or 0.0) * 1e9), "until": "all_done"}
    return {
        **({} if options.memory_limit is None else {"memory_limit": options.memory_limit}),
        "version": 1,
        "seed": seed,
        "interval_ns": round((options.interval or 1.0) * 1e9),
        "targets": [target],
        "sets": sets,
        "workers": workers,
        "steps": [*steps, run],
    }


def _refuse_others(load: Load) -> None:
    """Raises where a job has another engine, or keys that mean nothing to calls on names."""
    entries = load.job.entries
    if load.backend not in BY_NAME:
        load.job.refuse("runs with jobs that call files by name; put stonewall between them")
    for key in _NOT_OF_CALLS:
        if key in entries:
            entries[key].refuse("is not for calls on names, each of which comes once")
    if load.files:
        entries["filename"].refuse("names files; calls on names make their own, as many as nrfiles says")
    if load.endless and load.backend not in ("stat", "stat directories"):
        entries["time_based"].refuse("would need the files again; leave it out")
    load.notes.append(
        "files and directories have names of their own, in a directory JOB.NUMBER of each worker"
    )


def _refuse_there(load: Load, on: str, name: str) -> None:
    """Raises where a worker's directory is there and holds what no run of Loadstone made."""
    path = os.path.join(absolute(on), name)
    if is_null(on) or not os.path.isdir(path) or os.path.lexists(os.path.join(path, MARK)):
        return
    if os.listdir(path):
        what = f"makes its files in {path}, which was there before and was not made by Loadstone; move that "
        load.job.refuse(f"{what}away, or give the job another name")


def _set(load: Load, ident: str) -> dict[str, Any]:
    """The files of a worker."""
    size = load.file_size or (load.size[0] // load.many if load.size and not load.size[1] else 0)
    makes = load.backend in ("create", "mkdir")
    directories = load.backend in ("mkdir", "stat directories", "rmdir")
    if not makes and not directories and not size:
        load.job.refuse("has files of no size; write filesize")
    return {
        "id": ident,
        "target": "t0",
        "path": ident.replace("/", "_"),
        "entries": 0 if directories else load.many,
        "leaf_directories": load.many if directories else 0,
        "size": 0 if makes or directories else size,
        "layout": "flat",
        "width": load.many,
        "shape": 0,
        "present": 0.0 if makes else 1.0,
        "in_turn": True,
    }


def _worker(load: Load, ident: str, cpus: list[int]) -> dict[str, Any]:
    """A thread that calls each file of a set, one after the other."""
    calls = [{**call, "set": ident} if call["act"] != "close" else call for call in CALLS[load.backend]]
    ops: list[dict[str, Any]] = [{"name": "files", "act": "group", "times": load.many, "ops": calls}]
    if not load.endless:
        ops.append({"name": "end", "act": "finish_on_count"})
    around = {"nice": load.nice, "ioprio": load.ioprio}
    return {
        **{key: value for key, value in around.items() if value is not None},
        "group": load.name,
        "source": {"kind": "program", "ops": ops},
        "backend": "posix",
        "depth": 1,
        "cpus": cpus,
    }
