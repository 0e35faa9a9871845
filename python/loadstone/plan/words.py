"""What is wrong with a plan that was made for a user, in his words and not in those of the plan."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_OPTIONS = {
    "workers.depth": "`depth`",
    "workers.pace.speed": "`pace`",
    "workers.requests": "`requests`",
    "workers.order": "`order`",
    "workers.think": "`think`",
    "workers.backend": "`backend`",
    "workers.cpus": "`cpus`",
    "workers.nice": "`nice`",
    "workers.ioprio": "`ioprio`",
    "workers.ioprio.level": "`ioprio`",
    "workers.latency_target": "`latency_target`",
    "workers.latency_target.share": "`latency_target`",
    "steps.steady": "`until_steady`",
    "steps.steady.limit": "`until_steady`",
    "steps.steady.window_ns": "`until_steady`",
    "steps.steady.sample_ns": "`interval`",
    "workers.source.reads": "`variables` reads",
    "workers.source.size": "`bs`",
    "workers.source.sizes": "`bs`",
    "workers.source.skew": "`skew`",
    "workers.source.arrival": "`arrival`",
    "workers.source.rate": "`rate`",
    "interval_ns": "`interval`",
    "memory_limit": "`memory_limit`",
    "steps": "`cache`",
    "log": "`log`",
    "verify": "`verify`",
    "verify.unit": "`verify_unit`",
    "verify.state": "`verify_state`",
    "verify.from": "`verify_from`",
    "content": "`content`",
    "content.dedupe": "`dedupe`",
    "content.compress": "`compress`",
    "content.unit": "`dedupe_unit`",
}
"""The option that a part of a plan was made from."""


def _is_program(plan: Mapping[str, Any], worker: int) -> bool:
    """Whether a worker is a thread of a script, which says itself how many there are."""
    found: bool = plan["workers"][worker]["source"].get("kind") == "program"
    return found


def in_words(message: str, plan: Mapping[str, Any]) -> str:
    """A message of the plan's check with the user's option, target or file in place of a part of the plan."""
    if number := re.fullmatch(r"the plan cannot be read: (.*) at line 1 column (\d+)", message, re.S):
        # The last name before the place is that of the value.
        names = re.findall(r'"(\w+)": ', json.dumps(plan)[: int(number[2])])
        option = f"`{names[-1].removesuffix('_ns')}`" if names else "the load"
        return f"{option}: {number[1]}"
    match = re.fullmatch(r"plan, ([\w.\[\]]+): (.*)", message, re.S)
    if match is None:
        return message
    place, what = match.groups()
    targets = {one.get("id"): one.get("path") or "null:" for one in plan.get("targets", ())}
    part = re.sub(r"\[\d+\]", "", place)
    about: str | None = _OPTIONS.get(part)
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
    return f"{about}: {what}" if about else f"the load that is asked for: {what}"
