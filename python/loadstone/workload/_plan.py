"""Plans as data: checked, read from files, verified against the files they name."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Unpack

import loadstone
from loadstone import Error, _core, _values
from loadstone._text import is_text, refuse_no_text
from loadstone._values import Misused
from loadstone.content import Content
from loadstone.verification import Verify, check_state
from loadstone.workload._kind import kind_of, refuse_others, what_it_is
from loadstone.workload._options import Options, Pace, Path, refuse_unknown
from loadstone.workload._over import over
from loadstone.workload._words import in_words


def check(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan with every default spelled out; raises ``Error`` where it cannot be run."""
    try:
        text = json.dumps(plan)
    except RecursionError:
        raise Error("the plan is nested too deep") from None
    if "\\udc" in text:
        refuse_no_text(plan, "as a plan's are")
    canonical: dict[str, Any] = json.loads(_core.check_plan(text))
    return canonical


def check_made(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a plan that was made here: the command line tells what is wrong in the user's words.

    These are the ``words`` of the error, whose text names the part of the plan.
    """
    try:
        return check(plan)
    except Error as error:
        words = in_words(str(error), plan)
        told = Misused(str(error)) if words.startswith("-") else error
        told.words = words  # type: ignore[attr-defined]
        raise told from None


def with_wishes(
    plan: Mapping[str, Any], content: Content | None, verify: Verify | None = None
) -> dict[str, Any]:
    """The plan with every default spelled out, and with what is asked of written data, if anything."""
    wishes = with_content(plan, content)
    if verify is not None:
        wishes["verify"] = dict(verify)
        # Of the files of an earlier run nobody knows what they hold.
        if sets := plan.get("sets"):
            wishes["sets"] = [{**one, "reuse": False} for one in sets]
    return check_made({**plan, **wishes})


def artefact(
    path: str, kind: str, ident: str, hashed: int | None = None, reading: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A file the run reads, with its hash; files of more than ``hashed`` bytes are named by path alone.

    ``reading``: how a trace is read, as a plan has it.
    """
    entry: dict[str, Any] = {"id": ident, "kind": kind, "path": path}
    if reading:
        entry["reading"] = dict(reading)
    if os.path.isfile(path) and (hashed is None or os.path.getsize(path) <= hashed):
        with open(path, "rb") as file:
            entry["digest"] = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
    return entry


def with_content(plan: Mapping[str, Any], content: Content | None) -> dict[str, Any]:
    """What of a plan says what is written: its ``content``, and with a dataset all its artefacts."""
    if not content:
        return {}
    if "dataset" not in content:
        return {"content": dict(content)}
    dataset = artefact(os.path.abspath(content["dataset"]), "dataset", "dataset")
    return {
        "content": {**content, "dataset": "dataset"},
        "artefacts": [*plan.get("artefacts", ()), dataset],
    }


def own_files(paths: Iterable[str]) -> list[str]:
    """Files that a load was read from, as a plan has them: no run removes or overwrites them.

    Those of Loadstone itself are left out, and names that are no text, which no plan can have.
    """
    package = os.path.dirname(os.path.abspath(loadstone.__file__)) + os.sep
    absolute = dict.fromkeys(os.path.abspath(path) for path in paths)
    return [path for path in absolute if not path.startswith(package) and is_text(path)]


def schema() -> dict[str, Any]:
    """The shape of a plan as JSON Schema; ``docs/formats/plan.schema.json`` is the same."""
    found: dict[str, Any] = json.loads(_core.plan_schema())
    return found


def load_plan(
    path: Path,
    variables: Mapping[str, str] | None = None,
    *,
    on: Path | None = None,
    **options: Unpack[Options],
) -> dict[str, Any]:
    """Reads a plan from a JSON file; every ``${name}`` in it stands for a variable.

    The file is not trusted: files are made, and directories used, only where ``on``, ``allow_destroy`` or a
    variable names them or a directory above, a target is given up only where ``allow_destroy`` names it,
    whatever the file says, and a log, the state of a verification, a limit on memory and file systems that
    are mounted anew are refused unless ``log``, ``verify["state"]``, ``memory_limit`` and ``cache`` name
    them. Other options stand above what the plan says: ``seed``, ``duration``, ``interval``, ``cpus``,
    ``nice``, ``ioprio``, ``direct``, and for a plan of one worker ``depth`` and ``requests``. Raises
    ``Error`` for what is no plan, for what is not named, and for options that mean nothing to it.
    """
    refuse_unknown(options)
    given = _said(options)
    # Only the state of a verification can be named.
    given.pop("verify", None)
    if (options.get("verify") or {}).keys() - {"state"}:
        given["verify"] = "--verify"
    refuse_others("plan", str(path), given)
    plan = _read_plan(path, variables or {})
    try:
        found = over(check(plan), str(path), options)
        _refuse_pipes(found)
        given_up = options.get("allow_destroy") or ()
        _refuse_unnamed(found, on, [*map(os.path.abspath, given_up), *(variables or {}).values()])
        # What the plan was made from is read by no run of it, and may be gone.
        return check({**found, "own": own_files([str(path)])})
    except Error as error:
        text = str(error)
        if isinstance(error, Misused) or text.startswith(str(path)):
            raise
        raise Error(f"{path}: {text}") from None


def _refuse_pipes(plan: Mapping[str, Any]) -> None:
    """Raises ``Error`` where a plan reads what never ends: only a person at the terminal may mean a pipe."""
    for artefact in plan.get("artefacts", ()):
        for path in _core.trace_files(artefact["path"]):
            if not os.path.isfile(path):
                raise Error(f"{path}: is a pipe, a device or a directory, and a plan reads files only")


def _refuse_unnamed(plan: Mapping[str, Any], on: Path | None, others: Iterable[Path]) -> None:
    """Raises ``Error`` where a plan makes something that lies below nothing the command line names.

    ``others``: what is named besides ``on``, which must name something.
    """
    paths = [target["path"] for target in plan["targets"] if target["kind"] != "null"]
    if on and not any(_is_below(path, on) for path in paths):
        raise Misused(f"--on {on}: no target of the plan lies there")
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
            raise Error(f"{path}: {what}; add --on {path}, or a directory above it")


def _is_below(path: Path, above: Path) -> bool:
    """Whether a path leads to another or to something in it."""
    path, above = os.path.realpath(path), os.path.realpath(above)
    return path == above or path.startswith(os.path.join(above, ""))


_USUAL: Mapping[str, tuple[object, ...]] = {
    "backend": ("auto",),
    "sync": ("none",),
    "offsets": ("error",),
    "fadvise": ("normal",),
    "arrival": ("constant",),
    "skew": ("uniform",),
    "bs": (4096, "4k", "4096"),
    "think": (1.0,),
    "rate": (0.0,),
    "requests": (0,),
}


def _said(options: Mapping[str, object]) -> dict[str, str]:
    """Options that say something, as the command line has them, by their names."""
    written = {"maps": "--map", "variables": "-D"}
    return {
        name: written.get(name, f"--{name.replace('_', '-')}")
        for name, value in options.items()
        if value is not None and value not in (False, (), [], {}) and value not in _USUAL.get(name, ())
    }


def _read_plan(path: Path, variables: Mapping[str, str]) -> Any:
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
            raise Error(f"{path}: needs the variable {name}; give it with -D {name}=VALUE")
        used.add(name)
        return json.dumps(variables[name])[1:-1]

    text = re.sub(r"\$\{(\w+)\}", value, text)
    if unused := variables.keys() - used:
        raise Misused(f"-D {min(unused)}: {path} has no variable {min(unused)}")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Error(f"{path}, line {error.lineno}: is no JSON: {error.msg}") from None
    except RecursionError:
        raise Error(f"{path}: is no plan: it is nested too deeply") from None
    except ValueError as error:
        raise Error(f"{path}: is no plan: {error}") from None


def verify(plan: Mapping[str, Any]) -> None:
    """Raises ``Error`` when a file the plan names by its digest has changed since, or it would replace a file
    that is no state by one."""
    if state := (plan.get("verify") or {}).get("state"):
        check_state(state)
    for artefact in plan.get("artefacts", []):
        digest = artefact.get("digest")
        if not digest:
            continue
        try:
            with open(artefact["path"], "rb") as file:
                now = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise Error(f"{artefact['path']}: {error.strerror}") from None
        if now != digest:
            raise Error(f"{artefact['path']}: is not the file this plan was made for; make the plan again")


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
    from loadstone.workload import _lower

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
    refuse_others(kind, workload, _said({k: v for k, v in said.items() if k != "verify"}))
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
            return _lower.plan_model(workload, on, pace=pace, order=order, think=think, **options)
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
        if name in _said({"bs": bs, "rate": rate}):
            raise Misused(f"--{name} and -D {name}= say the same; give one of them")
    return _lower.plan_uniform(
        workload,
        on,
        bs=int(numbers["bs"]) if "bs" in numbers else bs,
        reads=numbers.get("reads"),
        rate=numbers.get("rate", rate),
        arrival=arrival,
        skew=skew,
        **options,
    )
