"""Kinds of workloads: how they are told apart, and which options mean something to each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Literal

from loadstone._other import is_job_file, parquet_footer, what_it_is
from loadstone.errors import OptionError

Kind = Literal["trace", "model", "plan", "script", "jobs", "benchmark", "suite", "name"]
"""Of what is run or replayed; a name is that of a uniform load."""

_TITLES: Mapping[Kind, str] = {
    "trace": "a trace",
    "model": "a model",
    "plan": "a plan",
    "script": "a script of Filebench",
    "jobs": "a job file of fio",
    "benchmark": "a benchmark",
    "suite": "a suite of passes",
    "name": "a load of uniform requests",
}

_ENDINGS: Mapping[str, Kind] = {
    ".mdh": "model",
    ".json": "plan",
    ".f": "script",
    ".prof": "script",
    ".fio": "jobs",
    ".job": "jobs",
    ".ini": "jobs",
}

_CONTENT = frozenset({"content", "dedupe", "compress", "dedupe_unit"})
_VERIFY = frozenset({"verify", "verify_unit", "verify_state", "verify_from"})
_ALWAYS = frozenset({"seed", "duration", "interval", "cpus", "allow_destroy", "cache", "memory_limit"})
_REQUESTS = frozenset({"depth", "direct", "requests", "nice", "ioprio", "log"})
_TARGET = frozenset({"on", "size", "backend", "sync", "fill", "fadvise", "group"})
_PACED = frozenset({"pace", "order", "independent", "think", "maps", "offsets"})
_SHAPED = frozenset({"variables", "bs", "skew", "rate", "arrival"})
_BLOCKS = _ALWAYS | _REQUESTS | _TARGET | _CONTENT | _VERIFY
_CALLS = _ALWAYS | _CONTENT | {"on", "variables", "verify", "verify_unit", "rebase"}
_SCRIPTS = _CALLS | {"compat", "layout"}

TAKES: Mapping[Kind, frozenset[str]] = {
    "trace": _BLOCKS | _PACED | {"within", "reading", "until_steady"},
    "model": _BLOCKS | _PACED | {"draw_first", "until_steady"},
    "plan": _ALWAYS | _REQUESTS | {"on", "variables", "verify_state", "until_steady"},
    "script": _SCRIPTS | {"allow_system", "nice", "ioprio"},
    # A state is of targets that are files, as those of jobs are.
    "jobs": _CALLS | _VERIFY | {"until_steady", "nice", "ioprio", "allow_system"},
    "benchmark": (_SCRIPTS - {"rebase"}) | {"size", "source"},
    "suite": (_CALLS - {"duration", "rebase"}) | {"size", "bs", "depth", "direct", "sweep"},
    "name": _BLOCKS | _SHAPED | {"until_steady", "latency_target"},
}
"""The options that each kind takes; any other is refused."""
EVALUATED = (
    frozenset({"on", "size", "depth", "backend", "direct", "cache", "cpus", "allow_destroy", "reading"})
    | {"pace", "order", "independent", "think", "draw_first", "maps", "offsets", "duration", "interval"}
    | {"seed"}
    | _CONTENT
)
"""Those that an evaluation takes, which replays a trace and runs its model."""
_OF_WORKLOADS = frozenset[str]().union(*TAKES.values())

_IN_A_DIRECTORY = "runs in a directory, and a state is that of files and devices"
_OF_CALLS = "makes system calls one after the other, so there is no back end to choose"
_NO_ORDER = "says nothing of what waits for what; models that loadstone model fit --think makes do"
_OF_TRACES = "has no requests of a trace or model"

_WHY: Mapping[Kind, Mapping[str, str]] = {
    "plan": {
        "verify": "a plan says itself whether it verifies; edit it",
    },
    "model": {
        "variables": "a model has no variables; leave out `variables`",
        "bs": "has sizes of its own; loadstone model scale --size writes a model of others",
        "skew": "has places of its own; leave it out",
        "rate": "has times of its own; `pace` x2 runs it faster, loadstone model scale makes it busier",
        "arrival": "has times of its own; leave it out",
    },
    "name": {
        "pace": "has no times of its own; use `rate` for an open pace",
        **dict.fromkeys(("order", "independent", "think"), _NO_ORDER),
        "maps": "goes to one target, which `on` names",
        "offsets": "never goes beyond its target's end",
    },
    "benchmark": {"rebase": "keeps to its directory", "allow_system": "runs no commands"},
    "suite": {"source": "is no script, so there is none to print"},
    "jobs": {
        "pace": _OF_TRACES,
        "requests": "ends when its jobs say; `duration` ends them at a time",
        "fill": "is a job file of fio; overwrite=1 in a job has its files written first",
        "log": "may be several runs; run one of the plans that loadstone run --dry-run prints",
    },
}
_OF_FILES: Mapping[str, str] = {
    **dict.fromkeys(("pace", "order", "independent", "think", "maps", "offsets"), _OF_TRACES),
    **dict.fromkeys(("verify_state", "verify_from"), _IN_A_DIRECTORY),
    "backend": _OF_CALLS,
    "duration": "ends when all of it is done",
}
"""Why options mean nothing to scripts, benchmarks and suites."""
_ONLY = {
    **dict.fromkeys(("compat", "layout"), "is no script of Filebench"),
    **dict.fromkeys(("allow_system", "rebase"), "is no script of Filebench, nor a job file of fio"),
    "source": "is no benchmark; loadstone run --list names them",
    "sweep": "has no sweep; loadstone run --list names what has",
}


class Unused(OptionError):
    """An option that means nothing to what it was given for."""


def title(kind: Kind) -> str:
    """``a model``, ``a job file of fio``."""
    return _TITLES[kind]


def why(kind: Kind, name: str) -> str:
    """Why an option means nothing to a kind of workload, and where it does or what to do instead."""
    if found := _WHY.get(kind, {}).get(name):
        return found
    if kind in ("script", "benchmark", "suite", "jobs") and name in _OF_FILES:
        return _OF_FILES[name]
    if name in _ONLY:
        return _ONLY[name]
    if kind == "suite":
        return "has no such option; its own are variables, set with `variables`"
    if kind == "plan":
        return "a plan says that itself; edit it"
    *more, last = [_TITLES[other] for other in TAKES if name in TAKES[other] and other != kind]
    takers = f"{', '.join(more)} or {last}" if more else last
    return f"is {_TITLES[kind]}, which has no such option; it is for {takers}"


def refuse_others(kind: Kind, workload: str, given: Iterable[str]) -> None:
    """Raises ``Unused`` for the first option that means nothing to a workload; ``given``: by their names."""
    # What is of few kinds of workloads tells most of what was meant.
    for name in sorted(given, key=lambda one: one not in _ONLY):
        if name in _OF_WORKLOADS and name not in TAKES[kind]:
            reason = why(kind, name)
            raise Unused(name, None, f"{workload}{':' if reason.startswith('a ') else ''} {reason}")


def kind_of(workload: str) -> Kind | None:
    """What a file is, by its content where that tells, else by the ending of its name; None: unknown.

    Names of benchmarks, suites and uniform loads are not looked at.
    """
    ending = _ENDINGS.get(os.path.splitext(workload)[1])
    if not os.path.isfile(workload) or ending in ("script", "jobs"):
        return ending
    try:
        with open(workload, "rb") as file:
            head = file.read(4096)
            if head[:4] == b"PAR1":
                return "model" if b"loadstone.model" in parquet_footer(file.fileno()) else "trace"
    except OSError:
        return ending
    if ending is not None:
        return ending
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"{" and b'"version"' in text:
        return "plan"
    if is_job_file(text):
        return "jobs"
    return None


def no_workload(path: str) -> str:
    """What a file is that cannot be run, and what to do with it."""
    if (what := what_it_is(path)) is not None:
        return what
    if not os.path.isfile(path):
        return "is no file; name a model, a plan, a script, a job file or a benchmark (loadstone run --list)"
    what = "is neither a model, a plan, a script of Filebench (.f, .prof) nor a job file of fio (.fio)"
    return f"{what}, and no trace of a format that its content shows"
