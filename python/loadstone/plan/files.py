"""Plans read from files, which are not trusted: what they destroy or write outside must be named."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from loadstone import _core
from loadstone._files import absolute
from loadstone.errors import Error, OptionError, PlanError
from loadstone.plan.kinds import refuse_others
from loadstone.plan.options import NOTHING, Place, RunOptions
from loadstone.plan.over import over
from loadstone.plan.parts import check, own_files


def load_plan(path: Place, on: Place | None = None, options: RunOptions = NOTHING) -> dict[str, Any]:
    """Reads a plan from a JSON file; every ``${name}`` in it stands for one of ``options.variables``.

    The file is not trusted: files are made, and directories used, only where ``on``, ``allow_destroy`` or a
    variable names them or a directory above, a target is given up only where ``allow_destroy`` names it,
    whatever the file says, and a log, the state of a verification, a limit on memory and file systems that
    are mounted anew are refused unless ``log``, ``verify_state``, ``memory_limit`` and ``cache`` name
    them. Other options stand above what the plan says: ``seed``, ``duration``, ``interval``, ``cpus``,
    ``nice``, ``ioprio``, ``direct``, and for a plan of one worker ``depth`` and ``requests``. Raises
    ``Error`` for what is no plan, for what is not named, and for options that mean nothing to it.
    """
    refuse_others("plan", os.fspath(path), options.given())
    variables = {name: str(value) for name, value in options.variables.items()}
    plan = _read_plan(path, variables)
    found = over(_checked(path, plan), str(path), options)
    _refuse_pipes(path, found)
    _refuse_unnamed(path, found, on, [*map(absolute, options.allow_destroy), *variables.values()])
    # What the plan was made from is read by no run of it, and may be gone.
    return _checked(path, {**found, "own": own_files([str(path)])})


def _checked(path: Place, plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan with every default spelled out; raises ``PlanError`` with its file where it cannot be run."""
    try:
        return check(plan)
    except PlanError as error:
        facts = {"place": error.place, "column": error.column, "what": error.what, "line": error.line}
        raise PlanError(f"{path}: {error}", path=os.fspath(path), **facts) from None


def _refuse_pipes(file: Place, plan: Mapping[str, Any]) -> None:
    """Raises ``Error`` where a plan reads what never ends: only a person at the terminal may mean a pipe."""
    for artefact in plan.get("artefacts", ()):
        for path in _core.trace_files(artefact["path"]):
            if not os.path.isfile(path):
                what = "is a pipe, a device or a directory, and a plan reads files only"
                raise Error(f"{file}: {path}: {what}", path=path)


def _refuse_unnamed(file: Place, plan: Mapping[str, Any], on: Place | None, others: Iterable[Place]) -> None:
    """Raises ``Error`` where a plan makes something that lies below nothing the command line names.

    ``others``: what is named besides ``on``, which must name something.
    """
    paths = [target["path"] for target in plan["targets"] if target["kind"] != "null"]
    if on and not any(_is_below(path, on) for path in paths):
        raise OptionError("on", on, "no target of the plan lies there")
    named = [*([on] if on else []), *(path for path in others if os.path.isabs(path))]
    # What is there is only read, or given up by its name.
    made = (
        target["path"]
        for target in plan["targets"]
        if target["kind"] == "tree" or (target["kind"] != "null" and not os.path.lexists(target["path"]))
    )
    for path in made:
        if not any(_is_below(path, one) for one in named):
            what = "is written by the plan, and nothing on the command line names it"
            raise Error(f"{file}: {path}: {what}; add `on` {path}, or a directory above it", path=path)


def _is_below(path: Place, above: Place) -> bool:
    """Whether a path leads to another or to something in it."""
    path, above = os.path.realpath(path), os.path.realpath(above)
    return path == above or path.startswith(os.path.join(above, ""))


def _read_plan(path: Place, variables: Mapping[str, str]) -> Any:
    """A plan as it stands in its file, with variables put in."""
    try:
        with open(_core.open_regular(path), encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"{path}: cannot be read as a plan: {error}") from None
    used: set[str] = set()

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in variables:
            raise Error(f"{path}: needs the variable {name}; give it with `variables` {name}=VALUE")
        used.add(name)
        return json.dumps(variables[name])[1:-1]

    text = re.sub(r"\$\{(\w+)\}", value, text)
    if unused := variables.keys() - used:
        raise OptionError("variables", min(unused), f"{path} has no variable {min(unused)}")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        text = f"{path}, line {error.lineno}: is no JSON: {error.msg}"
        raise PlanError(text, path=os.fspath(path), line=error.lineno, column=error.colno) from None
    except RecursionError:
        raise PlanError(f"{path}: is no plan: it is nested too deeply", path=os.fspath(path)) from None
    except ValueError as error:
        raise PlanError(f"{path}: is no plan: {error}", path=os.fspath(path)) from None
