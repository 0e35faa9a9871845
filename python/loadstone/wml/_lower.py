"""A run of a script lowered to a plan."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadstone._files import absolute
from loadstone.wml import _ast as ast
from loadstone.wml._errors import Remark, shown
from loadstone.wml._machines import Machine, disk, machines, threads
from loadstone.wml._parse import Definition, Script
from loadstone.wml._places import Single, single
from loadstone.wml._positions import Positions
from loadstone.wml._program import FileSet, Programs, aim, emit, possible
from loadstone.wml._scope import Scope
from loadstone.wml._slots import Made, Slots, every, spread
from loadstone.wml._vary import Reader, Variables

_UNTIL = {"timeout": "time", "alldone": "all_done", "firstdone": "first_done"}
_NO_IOPRIO = 8
"""Level of a thread whose I/O priority is left as it is."""
_SPREAD = (
    "flowops without fd= name several file sets in a thread: each set has a descriptor of its own; "
    "in Filebench all of them use the file that the first one opens"
)
_BEYOND = (
    "workingset reaches beyond the end of files: random reads there find nothing and are counted as short, "
    "random writes make the files longer"
)


def _link(root: str, below: str) -> str | None:
    """The first link on the way from ``root`` down to a file or directory of a script."""
    at = root
    for part in below.split("/"):
        at = os.path.join(at, part)
        if os.path.islink(at):
            return at
    return None


_FLAT = 1000
"""How much wider than its entries a directory is that holds them all."""


@dataclass(frozen=True)
class Ground:
    """Where a script runs. ``root`` None: on ``null:``, which performs nothing.

    ``device``: the root is a block device, and all that the script has. ``given_up``: files and devices that
    may be written though they were there before.
    """

    root: str | None
    allow_destroy: bool = False
    rebase: bool = False
    device: bool = False
    given_up: frozenset[str] = frozenset()


@dataclass
class State:
    """What a script has defined so far."""

    scope: Scope
    sets: dict[str, Definition] = field(default_factory=dict)
    processes: dict[str, Definition] = field(default_factory=dict)
    composites: dict[str, Definition] = field(default_factory=dict)
    positions: dict[str, Definition] = field(default_factory=dict)
    hosts: list[Definition] = field(default_factory=list)
    """Hypervisors."""
    mode: str = "timeout"
    rate: Definition | None = None
    kept: set[str] = field(default_factory=set)
    """Sets of which an earlier run has made files."""


@dataclass
class Lowering:
    """Makes one plan. ``dialect``: where semantics clash, what counts. ``layout``: of all file sets."""

    state: State
    ground: Ground
    dialect: str | None
    layout: str = "gamma"
    faithful: bool = False
    """What Filebench does wrong is done so, too."""
    warnings: list[Remark] = field(default_factory=list)

    def plan(
        self,
        duration_ns: int,
        *,
        seed: int,
        interval_ns: int,
        cpus: Sequence[int],
        steps: Sequence[Mapping[str, object]] = (),
        memory_limit: int | None = None,
    ) -> dict[str, Any]:
        """The plan of a run, with ``steps`` between making files and the load."""
        state = self.state
        self.variables = Variables(state.scope)
        sets = self._sets()
        hosted = self._machines(sets)
        positions = Positions(state.positions, state.scope, self.variables, seed)
        old_index = self.dialect == "1.4"
        programs = Programs(
            self.variables, sets, state.composites, old_index, positions, self.warnings, self.faithful
        )
        workers, made = self._workers(programs, sets)
        for machine in hosted:
            for read, ops in threads(machine, programs, state.scope):
                count = read.whole("instances", 1) if isinstance(read.node, ast.Thread) else 1
                if count:
                    workers.append(self._worker(machine.name, read, ops, count, programs, sets))
                    made.append(ops)
        aim(made)
        for worker, ops in zip(workers, made, strict=True):
            worker["source"]["ops"] = emit(ops)
            if cpus:
                worker["cpus"] = list(cpus)
        plan: dict[str, Any] = {
            "version": 1,
            "seed": seed,
            "interval_ns": interval_ns,
            "targets": self._targets(sets),
            "workers": workers,
            "steps": [{"step": "prepare"}, *steps, {"step": "run", "duration_ns": duration_ns}],
        }
        if memory_limit is not None:
            plan["memory_limit"] = memory_limit
        if sets:
            plan["sets"] = [found.plan for found in sets.values()]
        if self.variables.made:
            plan["variables"] = self.variables.made
        if (rate := self._rate()) > 0:
            plan["events_per_s"] = rate
        if state.mode != "timeout":
            plan["steps"][-1]["until"] = _UNTIL[state.mode]
        return plan

    def _targets(self, sets: Mapping[str, FileSet]) -> list[dict[str, Any]]:
        ground = self.ground
        if ground.root is None:
            return [{"id": "t0", "kind": "null", "size": 1 << 40}]
        targets: list[dict[str, Any]] = []
        if any(found.single is None for found in sets.values()) or not (sets or ground.device):
            targets.append(
                {"id": "t0", "kind": "tree", "path": ground.root, "allow_destroy": ground.allow_destroy}
            )
        for found in sets.values():
            if (one := found.single) is not None:
                target = {"id": found.plan["target"], "kind": one.kind, "path": one.path, "size": one.size}
                targets.append({**target, "allow_destroy": one.path in ground.given_up})
        return targets

    def _rate(self) -> float:
        if self.state.rate is None:
            return 0
        script, node = self.state.rate.script, self.state.rate.node
        return Reader(script, node, self.state.scope, self.variables).number("rate")

    # Processes

    def _workers(
        self, programs: Programs, sets: Mapping[str, FileSet]
    ) -> tuple[list[dict[str, Any]], list[list[Made]]]:
        workers: list[dict[str, Any]] = []
        made: list[list[Made]] = []
        for name, definition in self.state.processes.items():
            script, process = definition.script, definition.node
            read = Reader(script, process, self.state.scope, self.variables)
            for thread in process.threads:
                inside = Reader(script, thread, self.state.scope, self.variables)
                count = read.whole("instances", 1) * inside.whole("instances", 1)
                if not count:
                    continue
                ops = programs.ops(script, thread.flowops, self.state.scope)
                worker = self._worker(name, inside, ops, count, programs, sets)
                if nice := self._within(read, "nice", 0, (-20, 19)):
                    worker["nice"] = nice
                if (level := self._within(inside, "ioprio", _NO_IOPRIO, (0, _NO_IOPRIO))) != _NO_IOPRIO:
                    worker["ioprio"] = {"class": "best_effort", "level": level}
                workers.append(worker)
                made.append(ops)
        return workers, made

    def _worker(
        self,
        group: str,
        inside: Reader,
        ops: list[Made],
        count: int,
        programs: Programs,
        sets: Mapping[str, FileSet],
    ) -> dict[str, Any]:
        """A worker whose threads do ``ops``, which are given to it last."""
        called = {found.plan["id"]: name for name, found in sets.items()}
        if (moved := spread(ops)) is not None:
            self._warn(inside.script, moved.node, _SPREAD)
        Slots(lambda ident: called.get(ident, ident)).walk(ops)
        programs.readable(ops)
        possible(ops, sets, self.ground.given_up)
        self._enough(inside.script, ops, count, sets)
        self._inside(ops, sets)
        memory = inside.whole("memsize") if isinstance(inside.node, ast.Thread) else 0
        source = {"kind": "program", "ops": [], "memory": memory}
        backend = "null" if self.ground.root is None else "posix"
        return {"group": group, "source": source, "backend": backend, "depth": count}

    def _machines(self, sets: dict[str, FileSet]) -> list[Machine]:
        """All virtual machines; their disk images become sets."""
        found = machines(self.state.hosts, self.state.scope, self.variables)
        for machine in found:
            if self.ground.device:
                what = f"the disk image of VM {shown(machine.kind)} needs a directory, not a device"
                raise machine.script.error(machine.node, what, help="name a directory with `on`")
            if machine.name in sets:
                raise machine.script.error(machine.node, f"there is already a file set {shown(machine.name)}")
            made = disk(machine, machine.name in self.state.kept)
            for other, one in sets.items():
                if one.single is None and isinstance(one.by.node, ast.DefineFiles):
                    read = Reader(machine.script, machine.node, self.state.scope, self.variables)
                    self._apart(read, machine.name, other, one)
            sets[machine.name] = made
        return found

    def _within(self, read: Reader, name: str, usual: int, limits: tuple[int, int]) -> int:
        value = read.node.get(name)
        if value is None:
            return usual
        given = read.scope.number(read.script, value, name)
        if given != int(given) or not limits[0] <= given <= limits[1]:
            what = f"{name} wants a whole number from {limits[0]} to {limits[1]}, not {given:g}"
            raise read.script.error(value, what)
        return int(given)

    def _enough(self, script: Script, ops: Sequence[Made], count: int, sets: Mapping[str, FileSet]) -> None:
        """Warns where threads may find no file, since each of them needs one of its own."""
        by_id = {found.plan["id"]: found.plan for found in sets.values()}
        for one in every(ops):
            found = by_id.get(one.op.get("set", ""))
            if found and one.act in ("create", "remove") and count > found["entries"]:
                what = (
                    f"{count} threads each take a file of {shown(found['id'])}, "
                    f"which has {found['entries']}; some may find none"
                )
                self._warn(script, one.node, what)

    def _inside(self, ops: Sequence[Made], sets: Mapping[str, FileSet]) -> None:
        """Warns where random transfers leave files as they were made, as far as sizes are known."""
        sizes = {found.plan["id"]: found.plan["size"] for found in sets.values()}
        for one in every(ops):
            size, working = sizes.get(one.op.get("set", "")), one.op.get("working_set", 0)
            if not one.op.get("random") or not isinstance(size, int | float):
                continue
            if isinstance(working, int | float) and working > size:
                self._warn(one.script, one.node, _BEYOND)

    def _warn(self, script: Script, node: ast.Node, what: str) -> None:
        if all(one.what != what for one in self.warnings):
            self.warnings.append(script.warning(node, what))

    # Files

    def _sets(self) -> dict[str, FileSet]:
        sets: dict[str, FileSet] = {}
        for name, definition in self.state.sets.items():
            read = Reader(definition.script, definition.node, self.state.scope, self.variables)
            flags = (read.flag("readonly"), read.flag("writeonly"))
            if (one := self._single(name, read, sets)) is not None:
                whole = {"id": name, "target": f"s{len(sets) + 1}", "entries": 1, "present": 1.0, "shape": 0}
                sets[name] = FileSet({**whole, "size": one.size, "width": 1}, definition, *flags, one)
                continue
            made = self._set(name, read)
            for other, found in sets.items():
                if found.single is None:
                    self._apart(read, made["path"], other, found)
            sets[name] = FileSet(made, definition, *flags)
        return sets

    def _single(self, name: str, read: Reader, sets: Mapping[str, FileSet]) -> Single | None:
        """The device or single file that a set is, if something of its name is there."""
        ground, at = self.ground, read.node.attribute("path") or read.node
        if ground.root is None or ground.rebase:
            return None
        path = absolute(os.path.join(read.text("path") or "", name))
        found = single(ground.root if ground.device else path)
        if found is None:
            return None
        if isinstance(read.node, ast.DefineFiles) and read.node.kind != "file":
            what = f"{shown(found.path)} is a {found.kind}, and file set {shown(name)} is a tree"
            raise read.script.error(at, what, help="define file is for single files and devices")
        if any(other.single is not None and other.single.path == found.path for other in sets.values()):
            help = "name a directory with `on`" if ground.device else "give each a file of its own"
            what = f"{shown(found.path)} is that of another file of this script already"
            raise read.script.error(at, what, help=help)
        if found.kind == "file":
            # A device is named by the user or only read; of files those elsewhere are not looked at either.
            self._path(name, read)
        if not found.size:
            raise read.script.error(at, f"{shown(found.path)} is empty; there is nothing to read or write")
        return found

    def _apart(self, read: Reader, path: str, other: str, found: FileSet) -> None:
        there = found.plan["path"]
        if os.path.commonpath([path, there]) not in (path, there):
            return
        where = "the same place as" if path == there else "the tree of, or around,"
        line = found.by.script.place(found.by.node)[0]
        what = f"{shown(path)} is {where} that of {shown(other)}, which is defined in line {line}"
        raise read.script.error(
            read.node.attribute("path") or read.node, what, help="give each a directory of its own"
        )

    def _set(self, name: str, read: Reader) -> dict[str, Any]:
        one = read.node.kind == "file" if isinstance(read.node, ast.DefineFiles) else False
        made: dict[str, Any] = {"id": name, "target": "t0", "path": self._path(name, read)}
        entries = 1 if one else self._fixed(read, "entries")
        leaves = 0 if one else self._fixed(read, "leafdirs")
        if not entries and not leaves:
            raise read.script.error(read.node, f"file set {shown(name)} has neither entries nor leafdirs")
        made["entries"] = entries
        if leaves:
            made["leaf_directories"] = leaves
        made["size"] = self._size(name, read, one)
        width = 0 if one else self._fixed(read, "dirwidth")
        made["width"], made["shape"] = (1, 0) if one else (width, 1.5)
        if not one and width < 1:
            # As in Filebench: so wide that all of it is in the directory of the set itself.
            made["width"], made["shape"] = _FLAT * (entries + leaves), 0
            self._warn(
                read.script,
                read.node,
                f"file set {shown(name)} has no dirwidth, so all its files lie in one directory",
            )
        elif not one and read.has("dirgamma"):
            made["shape"] = read.whole("dirgamma") / 1000
        if self.layout == "flat" and not one:
            made["layout"] = "flat"
        elif read.has("dirdepthrv") and width:
            made["depth"] = self._depth(read, entries + leaves, made["width"])
        if share := self._present(read):
            made["present"] = share
        # trusttree saves Filebench checks; here an existing tree is looked at once, either way.
        if read.flag("reuse") or read.flag("trusttree") or name in self.state.kept:
            made["reuse"] = True
        if not read.flag("cached", True):
            made["uncached"] = True
        if self.faithful:
            made["in_turn"] = made["zeros"] = True
        return made

    def _path(self, name: str, read: Reader) -> str:
        attribute = read.node.attribute("path") or read.node
        path = os.path.join(read.text("path") or "", name)
        root = self.ground.root
        if root is None or self.ground.rebase:
            below = os.path.normpath("/" + path).lstrip("/")
            inside = os.path.relpath(path, root) if root is not None and os.path.isabs(path) else ".."
            below = inside if inside.split("/")[0] != ".." else below
        else:
            path = absolute(path)
            below = os.path.relpath(path, root)
            if below.split("/")[0] == "..":
                help = f"use $dir in its path, or `rebase` to put it below {root}"
                raise read.script.error(attribute, f"{shown(path)} does not lie in {root}", help=help)
        if below in (".", ""):
            raise read.script.error(attribute, f"{shown(name)} is the directory of the run itself")
        whole = below if root is None else os.path.join(root, below)
        if root is not None and (link := _link(root, below)):
            what = f"{shown(link)} is a link, and {shown(name)} would lie behind it"
            raise read.script.error(attribute, what, help="name the directory itself")
        if root is not None and os.path.exists(whole) and not stat.S_ISDIR(mode := os.stat(whole).st_mode):
            if stat.S_ISREG(mode) and not self.ground.rebase:
                return below
            raise read.script.error(attribute, f"{shown(whole)} is there, and is no directory")
        return below

    def _fixed(self, read: Reader, name: str) -> int:
        """A number that Filebench draws once; the mean is taken here, so that runs are alike."""
        drawn = read.found(name)
        if drawn is None:
            return read.whole(name)
        mean = self.variables.mean(drawn)
        if not math.isfinite(mean):
            raise read.script.error(read.node.attribute(name) or read.node, f"${drawn.name} has no mean")
        self._warn(read.script, read.node, f"{name} is not drawn: the mean of ${drawn.name} is taken")
        return max(0, round(mean))

    def _size(self, name: str, read: Reader, one: bool) -> Any:
        usual = 0 if self.dialect == "1.4" else 1024
        size = read.value("size", usual)
        if isinstance(size, dict):
            return size
        # 1.4 draws sizes unless told otherwise; 1.5 has no such attribute, but who writes it means it.
        usual_gamma = 1500 if self.dialect == "1.4" and not one else 0
        shape = read.whole("filesizegamma", usual_gamma)
        if not shape or not size:
            return size
        return {"variable": self.variables.gamma(f"{name}.size", shape / 1000, size)}

    def _depth(self, read: Reader, entries: int, width: float) -> Any:
        drawn = read.found("dirdepthrv")
        attribute = read.node.attribute("dirdepthrv") or read.node
        if drawn is None:
            raise read.script.error(attribute, "dirdepthrv wants a random variable")
        if drawn.kind == "cvar":
            return {"variable": self.variables.use(drawn)}
        # Filebench, too, puts the depth that follows from width and entries in place of its mean.
        mean = math.log(entries) / math.log(width) if width > 1 and entries > 1 else 1.0
        return {"variable": self.variables.use(drawn, mean=mean)}

    def _present(self, read: Reader) -> float:
        value = read.node.get("prealloc")
        if value is None:
            return 0
        found = read.scope.plain(read.script, value)
        if isinstance(found, bool) or found in ("true", "false"):
            return float(read.flag("prealloc"))
        share = read.number("prealloc")
        if share > 100:
            raise read.script.error(value, f"prealloc must be 0 to 100, not {share:g}")
        return share / 100
