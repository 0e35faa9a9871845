"""How much personalities hold, and how they are made to hold as much as is asked for."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from loadstone._files import absolute
from loadstone._units import size as shown
from loadstone._values import is_null
from loadstone.errors import Error
from loadstone.personalities._head import Personality
from loadstone.plan.options import Place, RunOptions
from loadstone.plan.surroundings import size_of

_NEAR = 0.01
_NET = {"create": 1, "link": 1, "symlink": 1, "remove": -1}


def held(personality: Personality, variables: Mapping[str, str] | None = None) -> float:
    """Bytes of all files that are there when a run begins, on average where sizes are drawn.

    ``variables``: those that stand above the script's own.
    """
    plan = _plan(personality, variables or {})
    laws = {one["id"]: one["law"] for one in plan.get("variables", ())}
    return math.fsum(
        one.get("entries", 0) * one.get("present", 0) * _mean(one.get("size", 0), laws)
        for one in plan.get("sets", ())
    )


def sized(personality: Personality, size: int, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables with which all files together hold ``size`` bytes at the start, to within one file.

    ``variables``: others that are set besides; they are among those returned. Raises ``Error`` where the
    files hold no data, where ``variables`` say how large it is already, and where ``size`` is less than the
    least it can hold.
    """
    given, name, scale = dict(variables or {}), personality.name, personality.scale
    if scale is None:
        raise Error(f"`size`: files of {name} hold no data; its variables (-D) say how many there are")
    if scale in given:
        raise Error(f"`size` and `variables` {scale} both say how large {name} is; leave one of them out")
    # What is held grows in proportion to the variable, beside files that stay as they are.
    once, twice = (held(personality, {**given, scale: str(n)}) for n in (1 << 20, 1 << 21))
    each = (twice - once) / (1 << 20)
    fixed = once - each * (1 << 20)
    wanted = round((size - fixed) / each) if each > 0 else 0
    if wanted < 1:
        least_held = f"{name} holds {shown(fixed + each)} at least, with ${scale}=1"
        raise Error(f"`size`: {shown(size)} are too few: {least_held}")
    found = {**given, scale: str(wanted)}
    now = held(personality, found)
    if abs(now - size) > max(_NEAR * size, each):
        what = f"asked for {shown(size)}, {name} would hold {shown(now)}"
        raise Error(f"`size`: {what}; set ${scale} with `variables` instead")
    return found


def check_names(personality: Personality, variables: Mapping[str, str]) -> None:
    """Raises ``Error`` where threads would find too few files, or too few free names, to begin with.

    A run would stop early. Personalities that end by themselves are meant to use up what there is.
    """
    plan = _plan(personality, variables)
    if plan["steps"][-1].get("until", "time") != "time":
        return
    for one in plan["sets"]:
        present = one.get("entries", 0) * one.get("present", 0)
        free = one.get("entries", 0) - present
        for have, what, sign in ((free, "free names", 1), (present, "files", -1)):
            needed = sum(
                worker["depth"] * _most(worker["source"]["ops"], one["id"], sign)
                for worker in plan["workers"]
            )
            if needed > have:
                short = f"all threads together need {needed:,.0f} {what} of {one['id']} at once"
                start = f"there are about {have:,.0f} at the start"
                help = "ask for more files or fewer threads"
                raise Error(f"{personality.name}: {short}, and {start}; {help}")


def check_times(personality: Personality, variables: Mapping[str, str]) -> None:
    """Raises ``Error`` where variables make an op be done no times at all: files smaller than a request."""
    for worker in _plan(personality, variables)["workers"]:
        for op in _ops(worker["source"]["ops"]):
            times = op.get("times", 1)
            if isinstance(times, int | float) and times < 0.5:
                why = f"the op {op['name']} would never be done, {times:g} times a loop"
                raise Error(
                    f"{personality.name}: {why}; ask for larger files or smaller requests with `variables`"
                )


def _ops(ops: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Every op once, those within others after them."""
    for op in ops:
        yield op
        yield from _ops(op.get("ops", ()))


def _most(ops: Sequence[Mapping[str, Any]], ident: str, sign: int) -> float:
    """Most files that a thread has made beyond those it removed (``sign`` 1), or the reverse, in a loop."""
    most = now = 0.0
    for op in _flat(ops):
        if op.get("set") == ident:
            now += sign * _NET.get(op["act"], 0)
            most = max(most, now)
    return most


def _flat(ops: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for op in ops:
        times = op.get("times", 1)
        # How often is drawn: once stands for it.
        for _ in range(int(times) if isinstance(times, int | float) else 1):
            if op["act"] == "group":
                yield from _flat(op["ops"])
            else:
                yield op


def check_room(personality: Personality, on: str | os.PathLike[str], variables: Mapping[str, str]) -> None:
    """Raises ``Error`` where a directory has less room than the files need, before anything is made.

    Nothing is said where files of an earlier run are there: their room comes free, or they are kept.
    """
    where = absolute(on)
    plan = _plan(personality, variables)
    if any(os.path.exists(os.path.join(where, one["id"])) for one in plan["sets"]):
        return
    there = os.path.dirname(where) if not os.path.exists(where) else where
    # What is no directory is refused with its own words.
    if not os.path.isdir(there):
        return
    status = os.statvfs(there)
    free, needed = status.f_bavail * status.f_frsize, held(personality, variables)
    if needed > free:
        what = f"files of {personality.name} would hold {shown(needed)}, and {shown(free)} are free there"
        raise Error(f"{there}: {what}; ask for less with `size`")
    # What ends by itself makes every file there is a name for. Without a table of inodes there are 0 of 0.
    made = set()
    if plan["steps"][-1].get("until", "time") != "time":
        ops = [op for worker in plan["workers"] for op in _ops(worker["source"]["ops"])]
        made = {op.get("set") for op in ops if op["act"] in ("create", "symlink")}
    inodes = sum(
        one.get("entries", 0) * (1 if one["id"] in made else one.get("present", 0)) for one in plan["sets"]
    )
    if status.f_files and inodes > status.f_favail:
        what = f"{personality.name} needs {inodes:,.0f} inodes, and {status.f_favail:,} are free there"
        raise Error(f"{there}: {what}; ask for fewer files with `variables`")


def prepared(name: str, on: Place | None, options: RunOptions) -> tuple[str, dict[str, str]]:
    """The script of a personality, and its variables with which it is as large as was asked for.

    Raises ``Error`` where it could not run with them, or in that place.
    """
    from loadstone.personalities._find import find

    if on is None:
        raise Error(f"{name}: no directory to run in; give `on` DIR or `on` null:")
    found, size = find(name), size_of(options)
    given = {key: str(value) for key, value in options.variables.items()}
    if size is not None:
        given = sized(found, size, given)
    check_names(found, given)
    check_times(found, given)
    if not is_null(on):
        check_room(found, on, given)
    return str(found.path), given


def _plan(personality: Personality, variables: Mapping[str, str]) -> Mapping[str, Any]:
    # Imported late: the grammar's library is not needed to list what there is.
    from loadstone import wml

    script = wml.parse(personality.path.read_bytes(), str(personality.path))
    return wml.interpret(script, wml.Settings("null:", RunOptions(variables=variables))).plans[0]


def _mean(value: Any, laws: Mapping[str, Mapping[str, Any]]) -> float:
    """The mean of a value of a plan; of one that is drawn, of its law."""
    if not isinstance(value, Mapping):
        return float(value)
    from loadstone.wml import average

    return average(dict(laws[value["variable"]]))
