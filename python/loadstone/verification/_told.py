"""What a verification found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from loadstone._units import size


class Damage(TypedDict):
    """A damaged block."""

    wrong: str
    """``torn``, ``stale``, ``lost``, ``misplaced``, ``foreign``, ``unwritten`` or ``corrupt``."""
    file: int
    """Number of the target, from 0."""
    at: int
    """First byte."""
    size: int
    """Bytes that were looked at."""
    low: int
    """Oldest generation that it may hold."""
    high: int
    """Newest."""
    found: list[int]
    """Generations that it holds, at most eight."""
    belongs: tuple[int, int] | None
    """Target and byte to which it belongs."""
    differs: tuple[int, int]
    """First byte that differs from the newest generation, and how many do."""
    times: int
    """How often it was found so."""
    text: str
    """All that in words."""


class Unsynced(TypedDict):
    """Blocks whose last write was not stable when the power went, by what they hold."""

    newest: int
    """The last write."""
    older: int
    """One before it."""
    mixed: int
    """A mixture."""


class Verified(TypedDict, total=False):
    """What was found."""

    unit: int
    """Bytes of a block."""
    checked: int
    """Blocks that were compared, as often as they were read."""
    raced: int
    """Of these, those that could hold several generations, as writes went on or had failed."""
    unknown: int
    """Blocks of which nothing was known."""
    wrong: dict[str, int]
    """Findings by kind, as often as they were seen."""
    damages: list[Damage]
    """Damaged blocks, a thousand at most."""
    unread: str | None
    """Why not all was read from end to end; None: it was."""
    unreadable: int
    """Blocks that could not be read then."""
    unkept: str | None
    """Why the state was not kept where it should have been."""
    running: bool
    """Of :func:`loadstone.verification.verify_targets`: the state was kept while its run went on."""
    missing: int
    """Of the same: bytes by which targets are too short."""
    unsynced: Unsynced
    """Of the same after a crash."""


def of_outcome(outcome: Mapping[str, Any]) -> Verified | None:
    """What a run found, where it was to verify."""
    told = outcome["summary"].get("verified")
    return None if told is None else json.loads(told)


def is_damaged(verified: Verified | None) -> bool:
    """Whether anything was wrong."""
    return bool(verified and verified["wrong"])


def together(found: Sequence[Verified]) -> Verified:
    """What several runs found, as one."""
    wrong: dict[str, int] = {}
    for one in found:
        for kind, count in one["wrong"].items():
            wrong[kind] = wrong.get(kind, 0) + count
    return {
        "unit": found[0]["unit"],
        "checked": sum(one["checked"] for one in found),
        "raced": sum(one["raced"] for one in found),
        "unknown": sum(one["unknown"] for one in found),
        "wrong": wrong,
        "damages": [damage for one in found for damage in one["damages"]],
        "unread": next((one["unread"] for one in found if one["unread"]), None),
        "unreadable": sum(one.get("unreadable", 0) for one in found),
        "unkept": next((one["unkept"] for one in found if one["unkept"]), None),
    }


def lines(verified: Verified, most: int = 10) -> list[str]:
    """Findings in words, with at most ``most`` damages."""
    parts = [f"{verified['checked']:,} blocks compared"]
    if verified["raced"]:
        parts.append(f"{verified['raced']:,} of them while they could hold several generations")
    if verified["unknown"]:
        parts.append(f"{verified['unknown']:,} unknown")
    if unreadable := verified.get("unreadable"):
        parts.append(f"{unreadable:,} unreadable")
    if verified["wrong"]:
        wrong = ", ".join(f"{count:,} {kind}" for kind, count in verified["wrong"].items())
        told = [f"verified: {wrong}; {', '.join(parts)}"]
    elif not verified["checked"]:
        told = [f"verified: nothing; {', '.join(parts)}"]
    else:
        told = [f"verified: all as it should be; {', '.join(parts)}"]
    # While a run goes on the last write of a block is not known.
    if (unsynced := verified.get("unsynced")) and not verified.get("running"):
        told.append(
            f"of blocks whose last write was not stable {unsynced['newest']:,} hold it, "
            f"{unsynced['older']:,} an older one, {unsynced['mixed']:,} a mixture"
        )
    if reason := verified.get("unread"):
        told.append(f"not all was read from end to end: {reason}")
    if reason := verified.get("unkept"):
        told.append(f"the state is not where it was to be kept: {reason}")
    if missing := verified.get("missing"):
        told.append(f"{size(missing)} of what was written lie beyond the end of their target")
    told += [damage["text"] for damage in verified["damages"][:most]]
    if verified["damages"] and (more := sum(verified["wrong"].values()) - most) > 0:
        told.append(f"and {more:,} more damaged blocks")
    return told
