"""Outputs of private inputs are private: whoever may not read an input may not read the output either."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import click

from loadstone._core import deny, trace_files

_LARGEST_PLAN = 1 << 26
"""Bytes beyond which a file that looks like a plan is not read for what it names, and counts as private."""
_PRIVATE = 0o044
_DEEPEST = 3
"""Plans in plans, which no plan means; what is deeper counts as private."""


def keep_private(inputs: Sequence[click.Parameter], ctx: click.Context) -> None:
    """Lets outputs have no more permissions than their inputs. Published models have the usual ones."""
    if ctx.params.get("public") or ctx.info_name == "publish":
        return
    # A scan has all names below, of whatever directory; a report of a dataset is made from one.
    of_dataset = ctx.info_name == "verify" and ctx.parent is not None and ctx.parent.info_name == "dataset"
    denied = 0o066 if ctx.info_name == "scan" or of_dataset else 0
    for one in inputs:
        for read in texts(ctx.params.get(one.name or "")):
            denied |= denied_of(read)
    if denied:
        # Groups and access control lists differ from directory to directory; the owner does not.
        before = os.umask(0o077)
        deny(0o077)

        def usual() -> None:
            os.umask(before)
            deny(0)

        ctx.call_on_close(usual)


def texts(value: Any) -> list[str]:
    """Texts of a parameter, however many it has."""
    if isinstance(value, Mapping):
        return [str(one) for one in value.values()]
    given = value if isinstance(value, list | tuple) else [value]
    return [os.fspath(one) for one in given if isinstance(one, str | os.PathLike)]


def denied_of(read: str, depth: int = 0) -> int:
    """Permissions to read that others do not have for what a text names; 0 where it names nothing.

    That is a file, a directory, the files of a capture, or the file in ``trace:FILE`` and ``dataset:FILE``.
    What a plan names is read with it. What cannot be looked at counts as private.
    """
    denied = 0
    try:
        for file in _files(read):
            denied |= _denied_of_file(file)
            if denied & _PRIVATE != _PRIVATE:
                for named in _named_in_plan(file):
                    denied |= denied_of(named, depth + 1) if depth < _DEEPEST else _PRIVATE
    except FileNotFoundError:
        pass
    except (OSError, ValueError):
        # A text with a zero byte names no file.
        return denied if "\0" in read else _PRIVATE
    return denied


def _files(read: str) -> list[str]:
    """Files that are read with what a text names."""
    if os.path.lexists(read):
        # The folder of a bundle may be open, and what is in it not.
        inner = [os.path.join(read, name) for name in ("summary.json", "bundle.json")]
        return [read, *filter(os.path.exists, inner)]
    kind, _, named = read.partition(":")
    if kind == "dataset" and named:
        # One snapshot of a dataset: FILE@NUMBER.
        return [named if os.path.exists(named) else named.rpartition("@")[0] or named]
    name = named if kind == "trace" and named else read
    return [name] if os.path.lexists(name) else trace_files(name)


def _denied_of_file(file: str) -> int:
    """Permissions to read that others do not have for a file, by its mode and those of the directories above.

    What its group may, the group of the outputs may not where that is another one.
    """
    real = os.path.realpath(file)
    status = os.stat(real)
    allowed = _allowed(status, 2)
    above = os.path.dirname(real)
    while above != os.path.dirname(above):
        allowed &= _allowed(os.stat(above), 0)
        above = os.path.dirname(above)
    return _PRIVATE & ~allowed


def _allowed(status: os.stat_result, bit: int) -> int:
    """Who may read (bit 2) or pass (bit 0) what has this status, as permissions to read."""
    others = status.st_mode >> bit & 0o001
    group = status.st_mode >> bit & 0o010
    if status.st_gid != os.getegid():
        group = others << 3
    return (group | others) << 2


def _named_in_plan(file: str) -> list[str]:
    """Traces, models, datasets and states that a plan names; none of what is no plan, whatever its name."""
    if not os.path.isfile(file):
        return []
    with open(file, "rb") as opened:
        if not opened.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            return []
        if os.path.getsize(file) > _LARGEST_PLAN:
            raise ValueError("too large to be looked at")
        opened.seek(0)
        try:
            plan = json.load(opened)
        except (ValueError, RecursionError):
            # No plan: what the file itself denies counts all the same.
            return []
    if not isinstance(plan, dict):
        return []
    named = plan.get("artefacts")
    found = [one.get("path") for one in named if isinstance(one, dict)] if isinstance(named, list) else []
    verify = plan.get("verify")
    found += [verify.get(name) for name in ("from", "state")] if isinstance(verify, dict) else []
    return [path for path in found if isinstance(path, str)]
