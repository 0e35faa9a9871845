"""Descriptors of a thread, followed from flowop to flowop: what is open where, as far as it can be known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadstone.wml import _ast as ast
from loadstone.wml._errors import shown
from loadstone.wml._parse import Script

# They open an existing file where their slot is empty.
TRANSFERS = frozenset(
    {"read", "write", "read_whole", "write_whole", "append", "append_random", "fallocate", "copy_range"}
    | {"aio_write", "mmap_read", "mmap_write"}
)
# They take the file of their slot, else one of their set.
PATHS = frozenset(
    {"remove", "stat", "access", "truncate", "setxattr", "getxattr", "rename", "link", "symlink", "readlink"}
)
_FINISH = frozenset({"finish_on_count", "finish_on_bytes"})
_FLUSHES = frozenset({"sync", "datasync"})

SLOTS = 4096
"""Descriptors of a thread."""


@dataclass
class Made:
    """An op, and the flowop that it was made of."""

    op: dict[str, Any]
    script: Script
    node: ast.Flowop
    prefix: str = ""
    inner: list[Made] = field(default_factory=list)

    @property
    def act(self) -> str:
        """What it does."""
        return str(self.op["act"])


def every(ops: Sequence[Made]) -> list[Made]:
    """Ops and those of groups, each before its parts."""
    found: list[Made] = []
    stack = list(reversed(ops))
    while stack:
        one = stack.pop()
        found.append(one)
        stack += reversed(one.inner)
    return found


def spread(ops: Sequence[Made]) -> Made | None:
    """Where ops of slot 0 name several sets, gives each set but the first a slot of its own.

    Returns the first op that got one. Nothing is done where the script itself opens or closes slot 0, or has
    ops that leave open which set they mean: what is in that slot is then its own business.
    """
    thread = every(ops)
    plain = [made for made in thread if not made.op.get("slot")]
    if any(made.op.get("next") or made.op.get("other_slot") == 0 for made in thread):
        return None
    if any(made.act in ("open", "create", "close") for made in plain):
        return None
    users = [made for made in plain if made.act in TRANSFERS | _FLUSHES]
    if any("set" not in made.op for made in users):
        return None
    named = dict.fromkeys(made.op["set"] for made in users if made.act in TRANSFERS)
    free = 1 + max((made.op.get(key, 0) for made in thread for key in ("slot", "other_slot")), default=0)
    if len(named) < 2 or free + len(named) - 1 > SLOTS:
        return None
    slots = dict(zip(named, (0, *range(free, SLOTS)), strict=False))
    moved = [made for made in users if slots.get(made.op["set"], 0)]
    for made in moved:
        made.op["slot"] = slots[made.op["set"]]
    return moved[0]


class Slots:
    """What is open in a thread; gives ops the set of the file that their slot has."""

    def __init__(self, called: Callable[[str], str]) -> None:
        """``called``: the name of a set in the script, from its id."""
        self.open: dict[int, str] = {}
        self.before: dict[int, str] = {}
        self.unsure: set[int] = set()
        self.last: str | None = None
        self.loose = False
        self._called = called

    def walk(self, ops: Sequence[Made]) -> None:
        """Follows a thread twice, as what stays open at its end matters to its begin."""
        self._ops(ops)
        # A thread that ends by itself may never come to begin anew.
        if not any(made.act in _FINISH for made in every(ops)):
            self._ops(ops)

    def _ops(self, ops: Sequence[Made], again: bool = True) -> None:
        for made in ops:
            # What is repeated within a repetition shows nothing new, and would double with each level.
            for repeats in (True, False) if again and made.op.get("times", 1) != 1 else (again,):
                if made.act == "group":
                    self._ops(made.inner, repeats)
                else:
                    self._op(made)

    def _op(self, made: Made) -> None:
        op, act = made.op, made.act
        slot = op.get("slot", 0)
        if op.get("next") and not slot:
            self.loose = True
        if self.loose and act in (*TRANSFERS, *PATHS, "open", "create"):
            # Which slot it is is known only when it runs.
            op.setdefault("set", self.open.get(slot, self.last))
            if op["set"] is None:
                raise self._nameless(made, slot)
            self.last = op["set"]
            return
        is_open = slot in self.open
        if act in ("open", "create"):
            if "set" not in op:
                raise made.script.error(made.node, f"{self._what(made)} needs filesetname=")
            if is_open and slot not in self.unsure:
                what = f"{self._what(made)} opens slot {slot}, which is still open at this point"
                raise made.script.error(made.node, what, help="close it before, or give another fd=")
            self._now(slot, op["set"])
        elif act == "close" or act in _FLUSHES:
            if not is_open and not self.loose:
                what = f"{self._what(made)} is for slot {slot}, which nothing has opened at this point"
                raise made.script.error(made.node, what, help="open it before, or give another fd=")
            if act == "close":
                self.open.pop(slot, None)
                self.unsure.discard(slot)
        elif act in TRANSFERS:
            self._transfer(made, slot)
        elif act in PATHS:
            if "set" not in op:
                # Filebench's own scripts close a slot and then delete its file.
                if slot not in self.before:
                    raise self._nameless(made, slot)
                op["set"] = self.before[slot]
            if act == "remove" and is_open and slot:
                self.unsure.add(slot)
        elif act in ("sync_set", "mkdir", "rmdir", "readdir", "readdirplus") and "set" not in op:
            raise made.script.error(made.node, f"{self._what(made)} needs filesetname=")

    def _transfer(self, made: Made, slot: int) -> None:
        op = made.op
        held = self.open.get(slot)
        if held is None:
            if "set" not in op:
                raise self._nameless(made, slot)
            self._now(slot, op["set"])
        elif op.setdefault("set", held) != held and slot not in self.unsure:
            what = (
                f"{self._what(made)} names {shown(self._called(op['set']))}, but slot {slot} has a file of "
                f"{shown(self._called(held))} open"
            )
            raise made.script.error(made.node, what, help="give each its own fd=")
        other = op.get("other_slot")
        if made.act == "copy_range" and other not in self.open and not self.loose:
            what = f"{self._what(made)} copies from slot {other}, which nothing has opened at this point"
            raise made.script.error(made.node, what, help="open it before, or give another srcfd=")

    def _now(self, slot: int, held: str) -> None:
        self.open[slot] = self.before[slot] = self.last = held
        self.unsure.discard(slot)

    def _nameless(self, made: Made, slot: int) -> Exception:
        what = f"{self._what(made)} names no file set, and slot {slot} is not open at this point"
        return made.script.error(made.node, what, help="add filesetname=, or open the slot before")

    def _what(self, made: Made) -> str:
        return f"flowop {made.node.type} {shown(made.op['name'])}"
