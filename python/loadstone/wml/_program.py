"""Flowops lowered to the ops of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadstone._text import meant
from loadstone.wml import _ast as ast
from loadstone.wml._errors import Remark, listed, shown
from loadstone.wml._parse import Definition, Script
from loadstone.wml._places import RAW, Single
from loadstone.wml._positions import Positions
from loadstone.wml._scope import Scope
from loadstone.wml._slots import SLOTS, Made, every
from loadstone.wml._vary import Reader, Variables
from loadstone.wml._words import FlowopWord, flowop_word

ACTS: Mapping[str, str] = {
    "read": "read",
    "write": "write",
    "readwholefile": "read_whole",
    "writewholefile": "write_whole",
    "appendfile": "append",
    "appendfilerand": "append_random",
    "aiowrite": "aio_write",
    "aiowait": "aio_wait",
    "mmapread": "mmap_read",
    "mmapwrite": "mmap_write",
    "openfile": "open",
    "createfile": "create",
    "closefile": "close",
    "deletefile": "remove",
    "statfile": "stat",
    "fsync": "sync",
    "fdatasync": "datasync",
    "fsyncset": "sync_set",
    "makedir": "mkdir",
    "removedir": "rmdir",
    "listdir": "readdir",
    "readdirplus": "readdirplus",
    "rename": "rename",
    "link": "link",
    "symlink": "symlink",
    "readlink": "readlink",
    "truncate": "truncate",
    "access": "access",
    "fallocate": "fallocate",
    "setxattr": "setxattr",
    "getxattr": "getxattr",
    "copyfilerange": "copy_range",
    "hog": "hog",
    "delay": "delay",
    "eventlimit": "event_limit",
    "iopslimit": "iops_limit",
    "opslimit": "ops_limit",
    "bwlimit": "bandwidth_limit",
    "finishoncount": "finish_on_count",
    "finishonbytes": "finish_on_bytes",
    "block": "block",
    "wakeup": "wakeup",
    "semblock": "sem_block",
    "sempost": "sem_post",
    "print": "record",
    "testrandvar": "record",
}
_SIZED = frozenset(
    {"read", "write", "appendfile", "appendfilerand", "fallocate", "copyfilerange"}
    | {"aiowrite", "mmapread", "mmapwrite"}
)
_WRITES = frozenset(
    {"write", "write_whole", "append", "append_random", "truncate", "fallocate", "copy_range"}
    | {"aio_write", "mmap_write"}
)
_READS = frozenset({"read", "read_whole", "mmap_read"})
_PLAIN_VALUES = frozenset({"finishoncount", "finishonbytes"})


NESTED = 64
"""How deep composite flowops may call each other."""

MOST = 100_000
"""Flowops of all threads together, those within composite ones counted at each call."""


@dataclass(frozen=True)
class FileSet:
    """A set of files as a plan has it, and where it was defined."""

    plan: dict[str, Any]
    by: Definition
    readonly: bool = False
    writeonly: bool = False
    single: Single | None = None
    """The file or device that it is, if it is no tree."""


@dataclass
class Programs:
    """Makes programs of one plan. ``sets``: by the names that the script gives them."""

    variables: Variables
    sets: Mapping[str, FileSet]
    composites: Mapping[str, Definition]
    old_index: bool
    positions: Positions
    warnings: list[Remark] = field(default_factory=list)
    faithful: bool = False
    """What Filebench does wrong is done so, too."""
    count: int = 0

    def ops(
        self, script: Script, flowops: Sequence[ast.Flowop], scope: Scope, prefix: str = ""
    ) -> list[Made]:
        """The ops of a loop."""
        return [self._flowop(script, flowop, scope, prefix) for flowop in flowops]

    def warn(self, script: Script, node: ast.Node, what: str) -> None:
        """Warns once of each kind of thing."""
        if all(one.what != what for one in self.warnings):
            self.warnings.append(script.warning(node, what))

    def _flowop(self, script: Script, flowop: ast.Flowop, scope: Scope, prefix: str) -> Made:
        read = Reader(script, flowop, scope, self.variables)
        self.count += 1
        if self.count > MOST:
            raise script.error(flowop, f"composite flowops make more than {MOST:,} flowops of this script")
        if flowop.type in self.composites:
            return self._group(script, flowop, read, prefix)
        word = flowop_word(flowop.type)
        if word is None:
            near = meant(flowop.type, self.composites)
            raise script.error(flowop, f"there is no flowop {shown(flowop.type)}", help=near)
        if word.name == "aiowrite" and not read.flag("random"):
            raise script.error(flowop, "aiowrite needs random: others are not known to Filebench either")
        return Made(self._op(word, read, prefix), script, flowop, prefix)

    def _op(self, word: FlowopWord, read: Reader, prefix: str) -> dict[str, Any]:
        op: dict[str, Any] = {"name": f"{prefix}{read.text('name')}", "act": ACTS[word.name]}
        heeds = word.heeds
        if "filesetname" in heeds and read.has("filesetname"):
            op["set"] = self._set(word, read, ACTS[word.name]).plan["id"]
        if slot := self._slot(read, "fd") if "fd" in heeds else 0:
            op["slot"] = slot
        if "srcfd" in heeds and (word.name == "copyfilerange" or read.whole("srcfd")):
            op["other_slot"] = self._slot(read, "srcfd")
        size = read.value("value" if word.name == "truncate" else "iosize")
        if word.name in _SIZED and size == 0:
            at = read.node.attribute("iosize") or read.node
            raise read.script.error(at, f"flowop {word.name} needs iosize= above 0", help="add iosize=8k")
        if word.name == "truncate" or "iosize" in heeds:
            op["size"] = size
        for name, part in (("workingset", "working_set"), ("value", "value")):
            if name in heeds and (name, word.name) != ("value", "truncate"):
                op[part] = read.value(name)
        if word.name in _PLAIN_VALUES and isinstance(op["value"], dict):
            raise read.script.error(read.node, f"value of {word.name} cannot be drawn")
        for name, part in (
            ("random", "random"),
            ("dsync", "sync"),
            ("directio", "direct"),
            ("noreadahead", "no_readahead"),
            ("opennext", "next"),
            ("blocking", "blocking"),
        ):
            if name in heeds and word.name != "fsync":
                op[part] = read.flag(name)
        if "possetname" in heeds and read.has("possetname"):
            op["position"] = self._position(read, op)
            op.pop("random", None)
        if "indexed" in heeds and read.has("indexed"):
            op["index"] = self._index(read, op)
        if "highwater" in heeds:
            op["high_water"] = read.whole("highwater", 1)
        if word.name == "aiowait":
            op["blocking"] = not self.faithful
        if self.faithful:
            op.update(faults(op))
        op["times"] = read.value("iters", 1)
        if "target" in heeds and (target := read.text("target")) is not None:
            op["target"] = target
        usual = {"size": 0, "working_set": 0, "value": 0, "times": 1}
        return {k: v for k, v in op.items() if v is not False and (k not in usual or v != usual[k])}

    def _slot(self, read: Reader, name: str) -> int:
        slot = read.whole(name)
        if slot >= SLOTS:
            at = read.node.attribute(name) or read.node
            raise read.script.error(at, f"{name} must be below {SLOTS}, not {slot}")
        return slot

    def _set(self, word: FlowopWord, read: Reader, act: str) -> FileSet:
        name = read.text("filesetname") or ""
        at = read.node.attribute("filesetname")
        assert at is not None
        if name not in self.sets:
            what = f"there is no file or file set {shown(name)}"
            raise read.script.error(at, what, help=meant(name, self.sets))
        return self.sets[name]

    def _position(self, read: Reader, op: Mapping[str, Any]) -> dict[str, str]:
        name = read.text("possetname") or ""
        at = read.node.attribute("possetname")
        assert at is not None
        if name not in self.positions.names:
            what = f"there is no position set {shown(name)}"
            raise read.script.error(at, what, help=meant(name, self.positions.names))
        ident, last = self.positions.use(name)
        size = next((one.plan["size"] for one in self.sets.values() if one.plan["id"] == op.get("set")), None)
        needed = last + (op["size"] if isinstance(op["size"], int | float) else 0)
        if op["act"] == "read" and isinstance(size, int | float) and needed > size:
            what = f"files of {shown(op['set'])} have {size} bytes, and {shown(name)} goes to byte {needed}"
            self.warn(read.script, at, f"{what}: reads beyond the end count as short")
        return {"variable": ident}

    def readable(self, made: Sequence[Made]) -> None:
        """Refuses what readonly and writeonly exclude, once all ops know their sets."""
        by_id = {found.plan["id"]: found for found in self.sets.values()}
        for one in every(made):
            found = by_id.get(one.op.get("set", ""))
            if found is None:
                continue
            for excluded, acts, word in (
                (found.readonly, _WRITES, "readonly"),
                (found.writeonly, _READS, "writeonly"),
            ):
                if excluded and one.act in acts:
                    does = "writes to" if word == "readonly" else "reads from"
                    what = f"flowop {one.node.type} {does} {shown(found.plan['id'])}, which is {word}"
                    raise one.script.error(one.node, what)

    def _index(self, read: Reader, op: Mapping[str, Any]) -> Any:
        if not self.old_index:
            return read.value("indexed")
        # In 1.4 it is in halves of the set.
        entries = next((s.plan["entries"] for s in self.sets.values() if s.plan["id"] == op.get("set")), None)
        if entries is None:
            raise read.script.error(read.node, "indexed needs filesetname=")
        drawn = read.found("indexed")
        if drawn is None:
            return read.number("indexed") * entries / 2
        return {"variable": self.variables.use(drawn, factor=entries / 2)} if entries else 0

    def _group(self, script: Script, flowop: ast.Flowop, read: Reader, prefix: str) -> Made:
        definition = self.composites[flowop.type]
        if read.scope.depth >= NESTED:
            raise script.error(flowop, f"composite flowops are nested more than {NESTED} deep")
        composite: ast.DefineFlowop = definition.node
        inside = Scope(read.scope)
        for local in composite.locals:
            if local.value is not None:
                inside.names[local.variable.name] = inside.value(definition.script, local.value)
        for local in flowop.locals:
            inside.names[local.variable.name] = (
                True if local.value is None else read.scope.value(script, local.value)
            )
        name = f"{prefix}{read.text('name')}"
        inner = self.ops(definition.script, composite.flowops, inside, f"{name}.")
        times = read if read.has("iters") else Reader(definition.script, composite, inside, self.variables)
        op: dict[str, Any] = {"name": name, "act": "group"}
        if (repeated := times.value("iters", 1)) != 1:
            op["times"] = repeated
        return Made(op, script, flowop, prefix, inner)


def possible(made: Sequence[Made], sets: Mapping[str, FileSet], given_up: frozenset[str]) -> None:
    """Refuses what cannot be done with single files and devices, and writes to those that nobody gave up."""
    there = {found.plan["id"]: found.single for found in sets.values()}
    words = {act: word for word, act in ACTS.items()}
    for one in every(made):
        place = there.get(one.op.get("set", ""))
        if place is None:
            continue
        if one.act not in RAW:
            what = f"flowop {one.node.type} cannot be done with {shown(place.path)}, which is a {place.kind}"
            help = f"{listed(sorted(words[act] for act in RAW))} can"
            raise one.script.error(one.node, what, help=help)
        if one.act in ("write", "write_whole") and place.path not in given_up:
            what = f"flowop {one.node.type} would overwrite {shown(place.path)}, which was there before"
            help = f"pass `allow_destroy` {place.path} to give up what it holds"
            raise one.script.error(one.node, what, help=help)


def faults(op: Mapping[str, Any]) -> dict[str, bool]:
    """What Filebench does otherwise than an op would, as flags of it (docs/reference/filebench.md)."""
    found = {}
    if op.get("random") and op["act"] in ("read", "write"):
        found["skip_last"] = True
    if op["act"] == "write_whole":
        found["whole_pieces"] = True
    if op["act"] in ("write", "write_whole", "append", "append_random"):
        found["zeros"] = True
    return found


def aim(programs: Sequence[Sequence[Made]]) -> None:
    """Replaces targets as scripts say them by names of ops. Raises where there is no such op."""
    ops = [made for program in programs for made in every(program)]
    names = {made.op["name"]: made for made in reversed(ops)}
    for made in ops:
        target = made.op.get("target")
        if target is None:
            continue
        attribute = made.node.attribute("target") or made.node
        name = made.op["target"] = _found(target, made, names, attribute)
        wanted = {"wakeup": "block", "sem_post": "sem_block"}.get(made.act)
        if wanted is not None and names[name].act != wanted:
            what = f"{made.node.type} is for a {wanted.replace('_', '')}, and {shown(target)} is none"
            raise made.script.error(attribute, what)


def _found(target: str, made: Made, names: Mapping[str, Made], at: ast.Node) -> str:
    prefix = made.prefix
    while prefix:
        # Within a composite flowop its own ops are meant first, then those around it.
        if prefix + target in names:
            return prefix + target
        prefix = prefix[: prefix.rfind(".", 0, -1) + 1]
    if target in names:
        return target
    inner = [name for name in names if name.endswith(f".{target}")]
    if len(inner) == 1:
        return inner[0]
    if inner:
        what = f"{shown(target)} may be {' or '.join(sorted(inner)[:3])}"
        raise made.script.error(at, what, help="write one of these")
    what = f"no thread that runs has a flowop {shown(target)}"
    raise made.script.error(at, what, help=meant(target, names))


def emit(ops: Sequence[Made]) -> list[dict[str, Any]]:
    """Ops as a plan has them."""
    return [{**made.op, "ops": emit(made.inner)} if made.act == "group" else dict(made.op) for made in ops]
