"""Plans as data: checked, read from files, verified against the files they name."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Literal, Unpack

from loadstone import Error, _core
from loadstone._sizes import parse_size
from loadstone.content import Content
from loadstone.verification import Verify, check_state
from loadstone.workload._options import Options, Pace, Path
from loadstone.workload._words import in_words


def check(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan with every default spelled out; raises ``Error`` where it cannot be run."""
    text = json.dumps(plan)
    if "\\udc" in text:
        refuse_no_text(plan)
    canonical: dict[str, Any] = json.loads(_core.check_plan(text))
    return canonical


def check_made(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a plan that was made here: ``Error`` speaks of what it was made from."""
    try:
        return check(plan)
    except Error as error:
        raise Error(in_words(str(error), plan)) from None


def refuse_no_text(value: Any) -> None:
    """Raises ``Error`` at a name that is no text, as names of files may be; JSON has no such strings."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            name = os.fsencode(value).decode(errors="backslashreplace")
            raise Error(f"{name}: this name is no text in UTF-8, as a plan's are; use another name") from None
    elif isinstance(value, Mapping):
        for one in value.values():
            refuse_no_text(one)
    elif isinstance(value, list | tuple):
        for one in value:
            refuse_no_text(one)


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


def schema() -> dict[str, Any]:
    """The shape of a plan as JSON Schema; ``docs/formats/plan.schema.json`` is the same."""
    found: dict[str, Any] = json.loads(_core.plan_schema())
    return found


def load_plan(path: Path, variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Reads a plan from a JSON file; every ``${name}`` in it stands for a variable."""
    try:
        text = FilePath(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"{path}: cannot be read as a plan: {error}") from None
    given = dict(variables or {})
    used: set[str] = set()

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in given:
            raise Error(f"{path}: needs the variable {name}; give it with -D {name}=VALUE")
        used.add(name)
        return json.dumps(given[name])[1:-1]

    text = re.sub(r"\$\{(\w+)\}", value, text)
    if unused := given.keys() - used:
        raise Error(f"{path}: has no variable {sorted(unused)[0]}")
    try:
        plan = json.loads(text)
    except json.JSONDecodeError as error:
        raise Error(f"{path}, line {error.lineno}: is no JSON: {error.msg}") from None
    try:
        return check(plan)
    except Error as error:
        raise Error(f"{path}: {error}") from None


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
    alone are ``arrival`` and ``skew``. ``order`` and
    ``think`` are those of :func:`plan_model`, for models only.
    """
    from loadstone.workload import _lower

    given = dict(variables or {})
    if workload.endswith((".f", ".prof")):
        raise Error(f"{workload}: may have several runs, so it is no single plan; plan_filebench reads it")
    if arrival != "constant" and workload.endswith((".json", ".mdh")):
        raise Error(f"--arrival {arrival}: {workload} has times of its own; leave it out")
    if skew != "uniform" and workload.endswith((".json", ".mdh")):
        raise Error(f"--skew {skew}: {workload} has places of its own; leave it out")
    if order == "dependency" and not workload.endswith(".mdh"):
        raise Error(f"--order dependency: {workload} says nothing of what waits for what; models (.mdh) do")
    if workload.endswith(".json"):
        if on is not None:
            raise Error(
                f"{workload}: a plan names its targets itself; leave out --on, or use -D for a variable"
            )
        around = {**options, "fadvise": options.get("fadvise", "normal").replace("normal", "")}
        for name in ("cache", "memory_limit", "nice", "ioprio", "fadvise", "content", "verify"):
            if around.get(name) not in (None, ""):
                raise Error(f"--{name.replace('_', '-')}: {workload}: a plan says that itself; edit it")
        return load_plan(workload, given)
    if workload.endswith(".mdh"):
        if given:
            raise Error(f"{workload}: a model has no variables; leave out -D {next(iter(given))}")
        pace = pace if pace is not None else "recorded"
        return _lower.plan_model(workload, on, pace=pace, order=order, think=think, **options)
    if on is None:
        raise Error("no target; give --on FILE, --on DEVICE or --on null:")
    if pace not in (None, "max"):
        raise Error(f"--pace {pace}: {workload} has no times of its own; use --rate for an open pace")
    numbers: dict[str, float] = {}
    for name, text in given.items():
        if name not in ("bs", "reads", "rate"):
            raise Error(f"-D {name}: {workload} has the variables bs, reads and rate")
        size = parse_size(text) if name == "bs" else None
        try:
            numbers[name] = float(text) if size is None else size
        except ValueError:
            raise Error(f"-D {name}={text}: is no number") from None
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
