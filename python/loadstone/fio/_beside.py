"""Jobs that issue no requests: ``cpuio`` takes CPU time, ``exec`` runs a program."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import Any

from loadstone.errors import Error
from loadstone.fio import _values
from loadstone.fio._keys import ACCEPTED
from loadstone.fio._read import Job
from loadstone.plan.actions import Program

OF_CPU = ("cpuload", "cpuchunks", "cpumode", "exit_on_io_done")
OF_PROGRAMS = ("program", "arguments", "grace_time", "std_redirect")

_OF_BOTH = {"name", "ioengine", "runtime", "time_based", "stonewall", "numjobs", *ACCEPTED}
_MEANT = {
    "cpu": {
        *(*OF_CPU, "cpus_allowed", "cpumask", "cpus_allowed_policy", "nice", "startdelay", "wait_for"),
        *("exitall", "exit_what", *_OF_BOTH),
    },
    "program": {*OF_PROGRAMS, *_OF_BOTH},
}
"""Keys that mean something to each; those of a [global] section are for the other jobs."""


def refuse_others(job: Job, backend: str) -> None:
    """Raises where a job has keys in its own section that mean nothing to its engine."""
    for key, entry in job.entries.items():
        own = entry.line > job.line
        if backend in _MEANT:
            if own and key not in _MEANT[backend]:
                entry.refuse("means nothing to a job that issues no requests; leave it out")
        elif own and key in (*OF_CPU, *OF_PROGRAMS):
            entry.refuse(f"needs ioengine={'cpuio' if key in OF_CPU else 'exec'}")


def read_cpu(job: Job, runtime: float | None) -> dict[str, Any]:
    """The source of a worker that takes CPU time."""
    entries = job.entries
    if (entry := entries.get("cpuload")) is None:
        job.refuse("has no cpuload; write the percentage of a CPU that it takes, such as cpuload=50")
    found: dict[str, Any] = {"kind": "cpu", "load": _values.number(entry, least=1, most=100) / 100}
    if entry := entries.get("cpuchunks"):
        found["chunk_ns"] = _values.number(entry, least=1, most=10**9) * 1000
    if (entry := entries.get("cpumode")) and _values.choice(entry, "noop", "qsort") == "qsort":
        found["sorts"] = True
    if (entry := entries.get("exit_on_io_done")) and _values.flag(entry):
        found["with_others"] = True
    return found


def read_program(job: Job, name: str, runtime: float | None, workers: int) -> Program:
    """The program that a job runs."""
    entries = job.entries
    if (entry := entries.get("program")) is None:
        job.refuse("has no program; write program=NAME")
    if workers > 1:
        entries["numjobs"].refuse("runs one program; write a job for each")
    text = entry.value
    if arguments := entries.get("arguments"):
        seconds = f"{int(runtime or 0)}"
        text = f"{text} {arguments.value}".replace("%r", seconds).replace("%n", name)
    grace = entries.get("grace_time")
    keeps = entries.get("std_redirect")
    return Program(
        tuple(word for word in text.split(" ") if word),
        name,
        runtime,
        1.0 if grace is None else float(_values.number(grace, most=10**6)),
        None if keeps is not None and not _values.flag(keeps) else name.replace("/", "_"),
        place=f"{job.file}:{entry.line}",
    )


def look(programs: Sequence[Program]) -> None:
    """Raises where a program cannot be started, or what it prints would take the place of a file."""
    for one in programs:
        if shutil.which(one.words[0]) is None:
            what = f"program={one.words[0]}: there is no such program; install it, or write its path"
            raise Error(f"{one.place}: {what}")
        for path in one.outputs:
            if os.path.lexists(path):
                what = f"{path} is there already, and {one.name} would print to it; move it away"
                raise Error(f"{one.place}: {what}")
