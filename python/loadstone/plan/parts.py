"""Plans as data: checked, read from files, verified against the files they name."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from loadstone import _core
from loadstone._files import absolute
from loadstone._text import is_text, refuse_no_text
from loadstone.content import Content
from loadstone.errors import Error, PlanError
from loadstone.plan.words import in_words
from loadstone.verification import Verify, check_state


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
    """The same for a plan that was made here: what is wrong is told by the option that it was made from."""
    try:
        return check(plan)
    except PlanError as error:
        raise in_words(error, plan) from None


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
    dataset = artefact(absolute(content["dataset"]), "dataset", "dataset")
    return {
        "content": {**content, "dataset": "dataset"},
        "artefacts": [*plan.get("artefacts", ()), dataset],
    }


def own_files(paths: Iterable[str]) -> list[str]:
    """Files that a load was read from, as a plan has them: no run removes or overwrites them.

    Those of Loadstone itself are left out, and names that are no text, which no plan can have.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    found = dict.fromkeys(absolute(path) for path in paths)
    return [path for path in found if not path.startswith(package) and is_text(path)]


def schema() -> dict[str, Any]:
    """The shape of a plan as JSON Schema; ``docs/reference/formats/plan.schema.json`` is the same."""
    found: dict[str, Any] = json.loads(_core.plan_schema())
    return found


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
