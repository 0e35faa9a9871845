"""Virtual machines (WML-V; MDH thesis, section 5.5.1): each has a disk image that its flowops use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.wml import _ast as ast
from loadstone.wml._errors import listed, shown
from loadstone.wml._parse import Definition, Script
from loadstone.wml._places import RAW
from loadstone.wml._program import ACTS, FileSet, Programs
from loadstone.wml._scope import Scope
from loadstone.wml._slots import Made, every
from loadstone.wml._vary import Reader, Variables

MOST = 10_000
"""Virtual machines of a script: each is a worker and a file of the plan."""

_AGAIN = "two machines of one host need names of their own"


@dataclass(frozen=True)
class Machine:
    """One instance of a virtual machine."""

    name: str
    """``HOST/VM-NUMBER``: its group in the results, its set in the plan and its directory."""
    kind: str
    """``VM``, which its flowops are named after."""
    script: Script
    node: ast.Machine
    size: int
    """Bytes of its disk image."""


def machines(hosts: Sequence[Definition], scope: Scope, variables: Variables) -> list[Machine]:
    """Every instance of all machines of all hosts."""
    found: dict[str, Machine] = {}
    for host in hosts:
        script, hypervisor = host.script, host.node
        home = _named(Reader(script, hypervisor, scope, variables))
        for node in hypervisor.machines:
            read = Reader(script, node, scope, variables)
            kind = _named(read)
            if not (size := read.whole("dsize")):
                at = node.attribute("dsize") or node
                help = "add dsize=16g, the size of its disk image"
                raise script.error(at, f"VM {shown(kind)} needs dsize= above 0", help=help)
            for number in range(1, read.whole("instances", 1) + 1):
                name = f"{home}/{kind}-{number}"
                if name in found:
                    raise script.error(node, f"there is already a VM {shown(name)}", help=_AGAIN)
                if len(found) == MOST:
                    raise script.error(node, f"there are more than {MOST:,} virtual machines")
                found[name] = Machine(name, kind, script, node, size)
    return list(found.values())


def _named(read: Reader) -> str:
    name = read.text("name") or ""
    if "/" in name or name in ("", ".", ".."):
        at = read.node.attribute("name") or read.node
        raise read.script.error(at, f"{shown(name)} is no name of a directory, which a disk image needs")
    return name


def disk(machine: Machine, kept: bool) -> FileSet:
    """Its disk image: a set of one file, made before the run."""
    plan: dict[str, Any] = {"id": machine.name, "target": "t0", "path": machine.name, "entries": 1}
    plan |= {"size": machine.size, "width": 1, "shape": 0, "present": 1.0}
    if kept:
        plan["reuse"] = True
    return FileSet(plan, Definition(machine.script, machine.node))


def threads(machine: Machine, programs: Programs, scope: Scope) -> Iterator[tuple[Reader, list[Made]]]:
    """What its threads do; flowops that stand in no thread are one."""
    alone = [one for one in machine.node.body if isinstance(one, ast.Flowop)]
    for node, flowops in [
        *([(machine.node, alone)] if alone else []),
        *((one, one.flowops) for one in machine.node.body if isinstance(one, ast.Thread)),
    ]:
        made = programs.ops(machine.script, flowops, scope, f"{machine.kind}.")
        _on_disk(machine, made)
        yield Reader(machine.script, node, scope, programs.variables), made


def _on_disk(machine: Machine, made: Sequence[Made]) -> None:
    """Puts flowops that name no file on the machine's disk, past the page cache of its host."""
    words = {act: word for word, act in ACTS.items()}
    slots: dict[tuple[bool, ...], int] = {}
    last = 0
    for one in every(made):
        op, act = one.op, one.act
        if "set" in op or one.node.attribute("fd") is not None:
            continue
        if act in ("sync", "datasync"):
            op["slot"] = last
        elif act in ("read", "write", "read_whole", "write_whole"):
            if one.node.attribute("directio") is None:
                op["direct"] = True
            # Flags are those of the descriptor, so flowops with others need another.
            flags = tuple(bool(op.get(flag)) for flag in ("direct", "sync", "no_readahead"))
            op["set"] = machine.name
            last = op["slot"] = slots.setdefault(flags, len(slots) + 1)
        elif act in words and act not in _NO_FILE:
            what = f"flowop {one.node.type} is not for the disk image of VM {shown(machine.kind)}"
            usable = sorted(words[act] for act in RAW if act not in ("open", "close", "stat", "sync_set"))
            help = f"{listed(usable)} are; others need filesetname="
            raise one.script.error(one.node, what, help=help)


_NO_FILE = frozenset(
    {"hog", "delay", "event_limit", "iops_limit", "ops_limit", "bandwidth_limit", "finish_on_count"}
    | {"finish_on_bytes", "block", "wakeup", "sem_block", "sem_post", "record", "close"}
)
