"""What ``run`` is given, as a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, Unpack

from loadstone import Error, _values
from loadstone._values import Misused
from loadstone.plan.files import load_plan
from loadstone.plan.files import said as told
from loadstone.plan.kinds import kind_of, refuse_others, what_it_is
from loadstone.plan.options import Options, Pace, Path
from loadstone.workload import requests


def load_workload(
    workload: str,
    on: Path | None,
    *,
    pace: Pace | None = None,
    order: Literal["none", "dependency"] | None = None,
    think: float = 1.0,
    bs: int | str = 4096,
    rate: float = 0.0,
    arrival: str = "constant",
    skew: str = "uniform",
    variables: Mapping[str, str] | None = None,
    **options: Unpack[Options],
) -> dict[str, Any]:
    """The plan of what ``run`` is given: a model (``.mdh``), a plan (``.json``) or a name.

    Names are those of :func:`plan_uniform`; their variables are ``bs``, ``reads`` and ``rate``, and theirs
    alone are ``arrival`` and ``skew``. ``order`` and ``think`` are those of :func:`plan_model`, for models
    only. Options of a plan are those of :func:`load_plan`. A file of another name is told by its content.
    Raises ``Error`` for options that mean nothing to the workload.
    """
    kind = kind_of(workload)
    if kind is None:
        if os.path.exists(workload):
            raise Error(f"{workload}: {what_it_is(workload)}")
        if os.path.basename(workload) != workload or "." in workload:
            raise Error(f"{workload}: there is no such file; loadstone run --list names what needs none")
        kind = "name"
    given = dict(variables or {})
    said: dict[str, object] = {"on": on, "pace": pace, "order": order, "think": think, "bs": bs}
    said |= {"rate": rate, "arrival": arrival, "skew": skew, "variables": given, **options}
    # Of a verification some is for plans, which load_plan knows.
    refuse_others(kind, workload, told({k: v for k, v in said.items() if k != "verify"}))
    match kind:
        case "trace":
            raise Error(f"{workload}: {what_it_is(workload)}")
        case "script" | "jobs":
            reader = {"script": "plan_filebench", "jobs": "plan_fio"}[kind]
            raise Error(f"{workload}: may have several runs, so it is no single plan; {reader} reads it")
        case "plan":
            return load_plan(workload, given, on=on, **options)
        case "model":
            pace = pace if pace is not None else "recorded"
            return requests.plan_model(workload, on, pace=pace, order=order, think=think, **options)
    if on is None:
        raise Error("no target; give --on FILE, --on DEVICE or --on null:")
    numbers: dict[str, float] = {}
    for name, text in given.items():
        if name not in ("bs", "reads", "rate"):
            raise Misused(f"-D {name}: {workload} has the variables bs, reads and rate")
        read = {"bs": _values.size, "reads": _values.share, "rate": _values.rate}[name]
        try:
            numbers[name] = read(text)
        except Error as error:
            raise Misused(f"-D {name}={text}: {error}") from None
        if name in told({"bs": bs, "rate": rate}):
            raise Misused(f"--{name} and -D {name}= say the same; give one of them")
    return requests.plan_uniform(
        workload,
        on,
        bs=int(numbers["bs"]) if "bs" in numbers else bs,
        reads=numbers.get("reads"),
        rate=numbers.get("rate", rate),
        arrival=arrival,
        skew=skew,
        **options,
    )
