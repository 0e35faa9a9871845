"""The syntax tree: what a script says, without defaults and without what differs between the dialects.

All nodes are frozen. Every node knows its characters in the script (``at``), which do not count when nodes
are compared. A *value* is what may stand after ``=``; numbers keep how they were written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Literal

from loadstone.wml._errors import NOWHERE, Span
from loadstone.wml._words import canonical


@dataclass(frozen=True, slots=True)
class Node:
    """Anything with a place in a script."""

    at: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# Values


@dataclass(frozen=True, slots=True)
class Integer(Node):
    """A whole number: ``64``, ``8k``, ``16gb``, ``0x40``. ``text`` is how it was written."""

    value: int
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A number with a point or an exponent: ``0.5``, ``1.5m``. ``text`` is how it was written."""

    value: float
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Boolean(Node):
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True, slots=True)
class Word(Node):
    """Text without quotes."""

    text: str


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """``$name``, ``${name}``, ``$name.field`` (1.4), or of the ``environment``: ``$(NAME)`` (1.4).

    ``field`` is one of ``FIELDS``; other points belong to the name, as in ``${stats.iocount}``.
    """

    name: str
    field: str | None = None
    environment: bool = False


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A quoted string: text and variables, as they follow each other. Escapes are undone."""

    parts: tuple[str | Variable, ...]


@dataclass(frozen=True, slots=True)
class Row(Node):
    """A row of a table: percent, least and greatest value."""

    cells: tuple[Integer | Number | Boolean | Word | Variable, ...]


@dataclass(frozen=True, slots=True)
class Table(Node):
    """The value of ``randtable``: ``{{percent,min,max},...}``."""

    rows: tuple[Row, ...]


Value = Integer | Number | Boolean | Word | Text | Variable | Table


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """Operands with operators between them, computed from left to right: all ``+ -``, or all ``* /``.

    Other precedence is another ``Arithmetic`` among the operands.
    """

    operands: tuple[Integer | Number | Variable | Arithmetic, ...]
    operators: tuple[str, ...]


# Attributes


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """``name=value``, or ``name`` alone (``value`` None, which means true). Its name is as written."""

    name: str
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class Local(Node):
    """``$variable=value`` of a composite flowop: declared in its definition, given where it is called."""

    variable: Variable
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class Attributed(Node):
    """Anything with attributes, in the order in which they were written, repeated ones too."""

    attributes: tuple[Attribute, ...] = ()

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of that name or a synonym; of several the last, which is the one that counts."""
        wanted = canonical(name)
        for one in reversed(self.attributes):
            if canonical(one.name) == wanted:
                return one
        return None

    def get(self, name: str) -> Value | None:
        """The value of an attribute: ``true`` where it was written without one, None where it is absent."""
        found = self.attribute(name)
        if found is None:
            return None
        return Boolean(True, at=found.at) if found.value is None else found.value

    @property
    def name(self) -> str | None:
        """Its ``name``; None where it has none, or one with variables."""
        return constant(self.get("name"))


def constant(value: Value | None) -> str | None:
    """The text of a value that holds no variable, as it would be written without quotes; else None."""
    match value:
        case Word(text=text):
            return text
        case Text(parts=parts):
            return None if any(not isinstance(p, str) for p in parts) else "".join(map(str, parts))
        case Integer(value=number, text=text) | Number(value=number, text=text):
            return text or repr(number)
        case Boolean(value=flag):
            return str(flag).lower()
    return None


def pairs(text: str) -> list[tuple[str, str]]:
    """The keys and values of a cvar's ``parameters``: ``key:value;key:value``."""
    found = (entry.partition(":") for entry in text.split(";"))
    return [(key.strip(), value.strip()) for key, _, value in found if key.strip() or value.strip()]


# Commands


@dataclass(frozen=True, slots=True)
class RandomVariable(Attributed):
    """``randvar(type=..., ...)``: what a variable is set to (1.5)."""


@dataclass(frozen=True, slots=True)
class CustomVariable(Attributed):
    """``cvar(type=..., ...)``: what a variable is set to (1.5)."""


@dataclass(frozen=True, slots=True)
class Set(Node):
    """``set $variable = value``."""

    variable: Variable
    value: Value | Arithmetic | RandomVariable | CustomVariable


@dataclass(frozen=True, slots=True)
class Mode(Node):
    """``set mode quit timeout``, ``alldone`` or ``firstdone``; ``set mode nousestats``."""

    word: Literal["timeout", "alldone", "firstdone", "nousestats"]


@dataclass(frozen=True, slots=True)
class DefineFiles(Attributed):
    """``define file`` or ``define fileset``."""

    kind: Literal["file", "fileset"] = "fileset"


@dataclass(frozen=True, slots=True)
class Flowop(Attributed):
    """``flowop TYPE``: one operation of a loop; ``type`` is built in or a composite flowop."""

    type: str = ""
    locals: tuple[Local, ...] = ()


@dataclass(frozen=True, slots=True)
class Thread(Attributed):
    """``thread ... { flowops }``."""

    flowops: tuple[Flowop, ...] = ()


@dataclass(frozen=True, slots=True)
class DefineProcess(Attributed):
    """``define process ... { threads }``."""

    threads: tuple[Thread, ...] = ()


@dataclass(frozen=True, slots=True)
class DefineFlowop(Attributed):
    """``define flowop ... { flowops }``: a composite flowop."""

    locals: tuple[Local, ...] = ()
    flowops: tuple[Flowop, ...] = ()


@dataclass(frozen=True, slots=True)
class DefineRandom(Attributed):
    """``define randvar name=$variable, ...`` (1.4)."""


@dataclass(frozen=True, slots=True)
class DefinePositions(Attributed):
    """``define posset name=..., ...`` (1.4): a set of positions in files."""


@dataclass(frozen=True, slots=True)
class Create(Node):
    """``create files``, ``filesets`` or ``processes`` (the last two 1.4)."""

    what: Literal["files", "filesets", "processes"]


@dataclass(frozen=True, slots=True)
class Shutdown(Node):
    """``shutdown files``, ``filesets`` or ``processes`` (1.4)."""

    what: Literal["files", "filesets", "processes"]


@dataclass(frozen=True, slots=True)
class EventGenerator(Attributed):
    """``eventgen rate=...``."""


@dataclass(frozen=True, slots=True)
class Enable(Attributed):
    """``enable lathist``, ``enable multi master=..., client=...``, ``enable_osprof``, ``disable_osprof``."""

    word: Literal["lathist", "multi", "enable_osprof", "disable_osprof"] = "lathist"


@dataclass(frozen=True, slots=True)
class MultiSync(Attributed):
    """``domultisync value=...``; without a value 1 is meant."""


@dataclass(frozen=True, slots=True)
class Say(Node):
    """``echo``, ``usage`` or ``log`` (the last two 1.4), with a text to print."""

    word: Literal["echo", "usage", "log"]
    text: Text


@dataclass(frozen=True, slots=True)
class System(Node):
    """``system "shell command"``."""

    command: Text


@dataclass(frozen=True, slots=True)
class Pause(Node):
    """``sleep`` or ``warmup`` (1.4), in seconds."""

    word: Literal["sleep", "warmup"]
    seconds: Integer | Number | Variable


@dataclass(frozen=True, slots=True)
class Show(Node):
    """``help``, ``vars`` (both 1.4), ``version``, ``list [fileset|flowop]``."""

    word: Literal["help", "vars", "version", "list"]
    what: Literal["fileset", "flowop"] | None = None


@dataclass(frozen=True, slots=True)
class Load(Node):
    """``load NAME`` (1.4): the commands of ``NAME.f``."""

    file: Value


@dataclass(frozen=True, slots=True)
class Run(Node):
    """``run [seconds]``."""

    seconds: Integer | Number | Variable | None = None


@dataclass(frozen=True, slots=True)
class PeriodicRun(Node):
    """``psrun [period [seconds]]``: a negative period means that counters begin anew after each report."""

    period: Integer | Number | Variable | None = None
    seconds: Integer | Number | Variable | None = None


@dataclass(frozen=True, slots=True)
class Quit(Node):
    """``quit``, or ``exit`` (1.4)."""

    word: Literal["quit", "exit"] = "quit"


@dataclass(frozen=True, slots=True)
class Debug(Node):
    """``debug LEVEL``, 0 to 10."""

    level: Integer | Number


@dataclass(frozen=True, slots=True)
class Foreach(Node):
    """``foreach $variable in value, ... { commands }`` (1.4)."""

    variable: Variable
    values: tuple[Integer | Number | Boolean | Word | Text, ...]
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Stats(Node):
    """``stats`` with its action (1.4); ``argument``: a path, or the command of ``command``."""

    action: Literal["snap", "clear", "directory", "command", "dump", "xmldump", "multidump"]
    argument: Value | None = None


@dataclass(frozen=True, slots=True)
class Hook(Attributed):
    """``fscheck`` or ``fsflush`` (1.4): scripts about the file system."""

    word: Literal["fscheck", "fsflush"] = "fsflush"


@dataclass(frozen=True, slots=True)
class Machine(Attributed):
    """``VM name=..., dsize=..., instances=... { flowops }`` of a hypervisor."""

    body: tuple[Flowop | Thread, ...] = ()


@dataclass(frozen=True, slots=True)
class Hypervisor(Attributed):
    """``HYPERVISOR name=... { machines }``: virtual machines on one host (WML-V)."""

    machines: tuple[Machine, ...] = ()


Command = (
    Set | Mode | DefineFiles | DefineProcess | DefineFlowop | DefineRandom | DefinePositions
    | Create | Shutdown | EventGenerator | Enable | MultiSync
    | Say | System | Pause | Show | Load
    | Run | PeriodicRun | Quit | Debug | Foreach | Stats | Hook | Hypervisor
)  # fmt: skip


_PARTS: dict[type[Node], tuple[str, ...]] = {}


def _parts(kind: type[Node]) -> tuple[str, ...]:
    if kind not in _PARTS:
        _PARTS[kind] = tuple(f.name for f in fields(kind) if f.name != "at")
    return _PARTS[kind]


def walk(*nodes: Node) -> Iterator[Node]:
    """Nodes and all that is in them, each before its parts, in the order of the script."""
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        yield node
        below: list[Node] = []
        for name in _parts(type(node)):
            part = getattr(node, name)
            if isinstance(part, Node):
                below.append(part)
            elif isinstance(part, tuple):
                below += [one for one in part if isinstance(one, Node)]
        stack.extend(reversed(below))
