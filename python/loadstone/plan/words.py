"""What is wrong with a plan that was made for a user, in his words and not in those of the plan."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from loadstone.errors import Error, OptionError, PlanError

_OPTIONS = {
    "workers.depth": ("depth", None),
    "workers.pace.speed": ("pace", None),
    "workers.requests": ("requests", None),
    "workers.order": ("order", None),
    "workers.think": ("think", None),
    "workers.backend": ("backend", None),
    "workers.cpus": ("cpus", None),
    "workers.nice": ("nice", None),
    "workers.ioprio": ("ioprio", None),
    "workers.ioprio.level": ("ioprio", None),
    "workers.latency_target": ("latency_target", None),
    "workers.latency_target.share": ("latency_target", None),
    "steps.steady": ("until_steady", None),
    "steps.steady.limit": ("until_steady", None),
    "steps.steady.window_ns": ("until_steady", None),
    "steps.steady.sample_ns": ("interval", None),
    "workers.source.reads": ("variables", "reads"),
    "workers.source.size": ("bs", None),
    "workers.source.sizes": ("bs", None),
    "workers.source.skew": ("skew", None),
    "workers.source.arrival": ("arrival", None),
    "workers.source.rate": ("rate", None),
    "interval_ns": ("interval", None),
    "memory_limit": ("memory_limit", None),
    "steps": ("cache", None),
    "log": ("log", None),
    "verify": ("verify", None),
    "verify.unit": ("verify_unit", None),
    "verify.state": ("verify_state", None),
    "verify.from": ("verify_from", None),
    "content": ("content", None),
    "content.dedupe": ("dedupe", None),
    "content.compress": ("compress", None),
    "content.unit": ("dedupe_unit", None),
}
"""The option, and what of it, that a part of a plan was made from."""


def _is_program(plan: Mapping[str, Any], worker: int) -> bool:
    """Whether a worker is a thread of a script, which says itself how many there are."""
    found: bool = plan["workers"][worker]["source"].get("kind") == "program"
    return found


def in_words(error: PlanError, plan: Mapping[str, Any]) -> Error:
    """What is wrong with a plan by the user's option, target or file in place of a part of the plan."""
    if error.place is None:
        # The last name before the place is that of the value.
        names = re.findall(r'"(\w+)": ', json.dumps(plan)[: error.column])
        if names:
            return OptionError(names[-1].removesuffix("_ns"), None, error.what)
        return Error(f"the load: {error.what}")
    place, what = error.place, error.what
    targets = {one.get("id"): one.get("path") or "null:" for one in plan.get("targets", ())}
    part = re.sub(r"\[\d+\]", "", place)
    about: str | None = None
    if found := re.match(r"targets\[(\d+)\]", place):
        about = plan["targets"][int(found[1])].get("path") or "null:"
    elif (found := re.match(r"workers\[(\d+)\]\.depth$", place)) and _is_program(plan, int(found[1])):
        about = "instances of a thread"
    elif found := re.match(r"sets\[(\d+)\]", place):
        about = f"the files {plan['sets'][int(found[1])]['id']!r}"
    elif found := re.match(r"workers\[(\d+)\]\.map\.objects\[(\d+)\]", place):
        extent = plan["workers"][int(found[1])]["map"]["objects"][int(found[2])]
        about = targets.get(extent["target"])
        # With one object there is nothing to tell it from.
        if len(plan["workers"][int(found[1])]["map"]["objects"]) == 1:
            what = re.sub(r"^object \d+ ", "the load ", what)
    for ident, path in targets.items():
        what = what.replace(f'target "{ident}"', "it" if path == about else str(path))
    if about is None and part in _OPTIONS:
        return OptionError(*_OPTIONS[part], what)
    return Error(f"{about or 'the load that is asked for'}: {what}")
