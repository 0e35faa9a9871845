"""Plans from files: what is said on the command line stands above them, and what they may not do unasked.

A file may come from anybody, so what it does outside of its targets, or destroys in them, happens only where
the user names it, too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any

from loadstone._files import absolute
from loadstone.errors import Error
from loadstone.plan.kinds import Unused
from loadstone.plan.options import RunOptions
from loadstone.plan.steering import steady_of
from loadstone.plan.surroundings import priorities_over, steps_of, taken_from_others


def over(plan: Mapping[str, Any], path: str, options: RunOptions) -> dict[str, Any]:
    """A plan with every default spelled out, and with what options say in place of what it said itself.

    ``path``: that of its file. Raises ``Error`` for what it does that is not named, and for options that mean
    nothing to it.
    """
    found = {**plan, "targets": _given_up(plan, path, options)}
    _outside(found, path, options)
    workers = [{**worker} for worker in plan["workers"]]
    if options.seed is not None:
        found["seed"] = options.seed
    if options.interval is not None:
        found["interval_ns"] = round(options.interval * 1e9)
    if options.log is not None:
        found["log"] = absolute(options.log)
    if options.memory_limit is not None:
        found["memory_limit"] = options.memory_limit
    if options.direct:
        for target in found["targets"]:
            if target["kind"] not in ("file", "device"):
                raise Unused(
                    "direct", None, f"{path}: its target {target['id']} is neither a file nor a device"
                )
            target["direct"] = True
    for worker in workers:
        if options.cpus:
            worker["cpus"] = list(options.cpus)
        worker |= priorities_over(worker, options)
    for name in ("depth", "requests"):
        if getattr(options, name) is None:
            continue
        if len(workers) > 1 or workers[0]["source"]["kind"] == "program":
            raise Unused(
                name, None, f"{path}: each of its workers says that itself, for its threads; edit it"
            )
        workers[0][name] = getattr(options, name)
    return {**found, "workers": workers, "steps": _steps(plan, path, options)}


def _given_up(plan: Mapping[str, Any], path: str, options: RunOptions) -> list[dict[str, Any]]:
    """The targets, of which those are given up that the user named."""
    named = {absolute(one) for one in options.allow_destroy}
    # What is compared is what is used.
    targets = [{**one, "path": one["path"] and absolute(one["path"])} for one in plan["targets"]]
    real = [absolute(one["path"]) for one in targets if one["kind"] != "null"]
    for unknown in named.difference(real):
        raise Unused("allow_destroy", unknown, f"is no target of {path}; it has {', '.join(real) or 'none'}")
    for one in targets:
        one["allow_destroy"] = one["kind"] != "null" and absolute(one["path"]) in named
        # A stranger cannot know what this process made.
        one["made_before"] = False
    return targets


def _outside(plan: dict[str, Any], path: str, options: RunOptions) -> None:
    """What a plan writes, or does to the host, outside of its targets must be named."""
    if plan.get("log") is not None and options.log is None:
        raise Error(f"{path}: logs every request to {plan['log']}; name the file, too: `log` {plan['log']}")
    wish = dict(plan.get("verify") or {})
    asked = (options.asked_verify or {}).get("state")
    if asked is not None:
        if not wish:
            raise Unused("verify_state", None, f"{path}: the plan verifies nothing; edit it")
        plan["verify"] = {**wish, "state": asked}
    elif wish.get("state") is not None:
        what = f"keeps what is known of its targets in {wish['state']}"
        raise Error(f"{path}: {what}; name the file, too: `verify_state` {wish['state']}")
    limit = plan.get("memory_limit")
    if limit is not None and options.memory_limit is None:
        what = "moves this process into a memory cgroup of its own"
        raise Error(f"{path}: {what}; name the limit, too: `memory_limit` {limit}")
    for worker in plan["workers"]:
        if taken := taken_from_others(worker, options):
            raise Error(f"{path}: {taken}")
    for step in plan["steps"] if options.cache is None else ():
        if step["step"] == "remount":
            what = "unmounts and mounts the file systems of its targets"
            raise Error(f"{path}: {what}; say so, too: `cache` remount")
        if step.get("host"):
            raise Error(f"{path}: drops all caches of this host; say so, too: `cache` drop-host")
    for artefact in plan.get("artefacts", ()):
        place = (artefact.get("reading") or {}).get("temp_dir")
        if place is not None and absolute(place) != absolute(tempfile.gettempdir()):
            what = f"sorts {artefact['path']} in {place}"
            raise Error(f"{path}: {what}; name the directory, too: set TMPDIR={place}")


def _steps(plan: Mapping[str, Any], path: str, options: RunOptions) -> list[dict[str, Any]]:
    """The steps, with another time, and other steps for the caches, where these are asked for."""
    steps = [{**one} for one in plan["steps"]]
    if (duration := options.duration) is not None:
        for one in steps:
            if one["step"] == "run":
                one["duration_ns"] = round(duration * 1e9)
    if options.until_steady is not None:
        interval = options.interval or plan["interval_ns"] / 1e9
        for one in steps:
            if one["step"] == "run":
                one["steady"] = steady_of(options.until_steady, interval)
    cache = options.cache
    if cache is None:
        return steps
    steps = [one for one in steps if one["step"] not in ("drop_caches", "remount")]
    at = next(i for i, one in enumerate(steps) if one["step"] == "run")
    return [*steps[:at], *steps_of(cache, options.memory_limit, "none"), *steps[at:]]
