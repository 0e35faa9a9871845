"""The words of the language: commands, what may be defined, flowops, and the attributes of each.

The grammar knows none of the attributes and flowops: this table judges them, and documentation and completion
are made from it. ``dialect`` is None for what both have and ``"loadstone"`` for what only this reader has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Dialect = Literal["1.4", "1.5", "V", "loadstone"]

Kind = Literal[
    "text", "whole", "number", "flag", "percent", "choice", "random", "variable", "table", "pairs", "stages"
]
"""What an attribute's value is.

``whole`` a whole number; ``flag`` true or false, or 1 and 0; ``percent`` a flag or a share; ``random`` the
name of a random variable; ``variable`` the name of a new one; ``pairs`` key:value;key:value; ``stages``
TIME: name=value; TIME: name=value.
"""

WANTS: Mapping[Kind, str] = {
    "text": "text",
    "whole": "a whole number",
    "number": "a number",
    "flag": "true or false",
    "percent": "true, false or a percentage",
    "choice": "a word",
    "random": "a random variable",
    "variable": "a variable",
    "table": "a table {{percent,min,max},...}",
    "pairs": "key:value;key:value",
    "stages": "a string of times and parameters",
}


NUMBERS = "numbers are written 64, 8k, 1.5m, 16gb or 0x40"


@dataclass(frozen=True, slots=True)
class AttributeWord:
    """An attribute: its kind, and where only some values make sense, which."""

    name: str
    kind: Kind
    about: str
    dialect: Dialect | None = None
    least: float | None = 0
    most: float | None = None
    choices: tuple[str, ...] = ()
    refers: Literal["fileset", "flowop", "posset"] | None = None
    draws: bool = False
    """A random variable may stand there and is drawn from at every use."""


@dataclass(frozen=True, slots=True)
class TypeWord:
    """Something with attributes. ``subject`` is its name in messages."""

    subject: str
    about: str
    attributes: Mapping[str, AttributeWord]
    required: tuple[str, ...] = ()
    open: bool = False
    """Other attributes are passed over with a warning."""


@dataclass(frozen=True, slots=True)
class FlowopWord:
    """A flowop: its class in reports, and the attributes that it heeds; others are passed over."""

    name: str
    group: Literal["io", "aio", "sync", "other"]
    about: str
    heeds: frozenset[str]
    required: tuple[str, ...] = ("name",)
    dialect: Dialect | None = None
    synonyms: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class CommandWord:
    """A command. ``note`` is said once where a script has it."""

    name: str
    about: str
    dialect: Dialect | None = None
    note: str = ""


SYNONYMS: Mapping[str, str] = {"filename": "filesetname", "filesize": "size"}


def canonical(name: str) -> str:
    """The attribute that a name is a synonym of."""
    return SYNONYMS.get(name, name)


def _table(*words: AttributeWord) -> dict[str, AttributeWord]:
    return {word.name: word for word in words}


_A = AttributeWord

_FILE = _table(
    _A("name", "text", "its name"),
    _A("path", "text", "the directory it is made in"),
    _A("size", "whole", "bytes of a file", draws=True),
    _A("prealloc", "percent", "made before the run: all of it, or each file by that chance", most=100),
    _A("paralloc", "flag", "made by several threads"),
    _A("reuse", "flag", "an existing tree is kept and brought to size"),
    _A("trusttree", "flag", "an existing tree is taken as it is"),
    _A("readonly", "flag", "never written"),
    _A("writeonly", "flag", "never read"),
    _A("cached", "flag", "false: dropped from the page cache after it is made", "1.4"),
    _A("filesizegamma", "whole", "shape of the sizes' gamma distribution, in thousandths", "1.4"),
)

_FLOWOP = _table(
    _A("name", "text", "its name in reports"),
    _A("filesetname", "text", "the file or file set", refers="fileset"),
    _A("fd", "whole", "slot of the open file"),
    _A("srcfd", "whole", "slot of the open file that is copied from"),
    _A("iosize", "whole", "bytes of a request", draws=True),
    _A("workingset", "whole", "bytes of the file that are used; 0: all"),
    _A("random", "flag", "at random multiples of iosize"),
    _A("dsync", "flag", "opened with O_SYNC"),
    _A("directio", "flag", "opened with O_DIRECT"),
    _A("opennext", "flag", "slots and files in turn"),
    _A("indexed", "whole", "number of the file", draws=True),
    _A("noreadahead", "flag", "the file is advised as random"),
    _A("target", "text", "name of another flowop", refers="flowop"),
    _A("value", "number", "a number, as the flowop says", draws=True),
    _A("iters", "whole", "how often it is done in a row", draws=True),
    _A("blocking", "flag", "waits at the high-water mark"),
    _A("highwater", "whole", "how many posts may be outstanding"),
    _A("possetname", "text", "the set of positions it draws from", "1.4", refers="posset"),
)

CVARS: Mapping[str, tuple[str, ...]] = {
    "erlang": ("shape", "rate"),
    "exponential": ("mean",),
    "gamma": ("mean", "gamma"),
    "lognormal": ("shape", "scale"),
    "normal": ("mean", "sigma"),
    "triangular": ("lower", "upper", "mode"),
    "uniform": ("lower", "upper"),
    "weibull": ("shape", "scale"),
    "tabular": ("rows",),
    "empirical": ("rows",),
    "polynomial": ("coefficients", "lower", "upper"),
    "zipf": ("count", "exponent"),
    "pareto": ("scale", "shape"),
    "hotcold": ("lower", "upper", "hot", "share"),
    "sequence": ("values",),
}
"""Custom variables and their parameters. Their types may be written with ``cvar-`` before them. Those from
``tabular`` on are not in Filebench. Distributions of scipy and of other packages are types too."""

LISTS = frozenset({"rows", "values", "coefficients"})
"""Parameters of custom variables that are several numbers, with commas or spaces between them."""

_RANDVAR = _table(
    _A("type", "choice", "its distribution", choices=("uniform", "gamma", "tabular")),
    _A("min", "number", "the least value"),
    _A("mean", "number", "the mean"),
    _A("gamma", "number", "shape of the gamma distribution, in thousandths"),
    _A("round", "number", "values are multiples of it"),
    _A("seed", "whole", "of its stream"),
    _A("randsrc", "choice", "where randomness comes from", choices=("rand48", "urandom")),
    _A("randtable", "table", "of type tabular"),
    _A("later", "stages", "parameters that change while the load runs", "loadstone"),
)

TYPES: Mapping[str, TypeWord] = {
    "file": TypeWord("define file", "one file", _FILE, ("name", "path")),
    "fileset": TypeWord(
        "define fileset",
        "a tree of files",
        _FILE
        | _table(
            _A("entries", "whole", "number of files", draws=True),
            _A("dirwidth", "whole", "mean number of entries in a directory", draws=True),
            _A("dirdepthrv", "random", "depth of the tree"),
            _A("dirgamma", "whole", "shape of depth and width, in thousandths; 0: all alike"),
            _A("leafdirs", "whole", "number of empty directories", draws=True),
        ),
        ("name", "path"),
    ),
    "process": TypeWord(
        "define process",
        "processes that run threads",
        _table(
            _A("name", "text", "its name"),
            _A("instances", "whole", "how many there are"),
            _A("nice", "whole", "their priority", least=-20, most=19),
        ),
        ("name",),
    ),
    "thread": TypeWord(
        "thread",
        "threads that loop over flowops",
        _table(
            _A("name", "text", "its name"),
            _A("instances", "whole", "how many there are"),
            _A("memsize", "whole", "bytes of its buffer"),
            _A("ioprio", "whole", "level of its best-effort I/O priority; 8: as it is", most=8),
            _A("useism", "flag", "its buffer is in shared memory"),
            _A("procname", "text", "has no effect", "1.4"),
        ),
        ("name",),
    ),
    "flowop": TypeWord(
        "define flowop",
        "a composite flowop",
        _table(
            _A("name", "text", "its name, a type for flowops"),
            _A("iters", "whole", "how often it is done in a row", draws=True),
        ),
        ("name",),
    ),
    "randvar": TypeWord("randvar", "a random variable", _RANDVAR),
    "define randvar": TypeWord(
        "define randvar",
        "a random variable (1.4)",
        _table(_A("name", "variable", "the variable")) | _RANDVAR,
        ("name",),
    ),
    "cvar": TypeWord(
        "cvar",
        "a variable of a library of distributions",
        _table(
            _A("type", "choice", "its distribution", choices=tuple(CVARS)),
            _A("parameters", "pairs", "those of its distribution"),
            _A("min", "number", "smaller values become it", least=None),
            _A("max", "number", "larger values become it", least=None),
            _A("round", "number", "values are multiples of it"),
            _A("later", "stages", "parameters that change while the load runs", "loadstone"),
        ),
        ("type",),
    ),
    "posset": TypeWord(
        "define posset",
        "a set of positions in a file (1.4)",
        _table(
            _A("name", "text", "its name"),
            _A("type", "choice", "how positions are drawn", choices=("rnd",)),
            _A("entries", "whole", "number of positions"),
            _A("seed", "whole", "of its stream"),
            _A("max", "whole", "positions are below it"),
        ),
        ("name", "max"),
    ),
    "eventgen": TypeWord(
        "eventgen",
        "a generator of events",
        _table(_A("rate", "number", "events per second; 0: no limit")),
        ("rate",),
    ),
    "multi": TypeWord(
        "enable multi",
        "many clients at once",
        _table(_A("master", "text", "host to report to"), _A("client", "text", "name of this host")),
        ("master", "client"),
    ),
    "domultisync": TypeWord(
        "domultisync", "waits for other clients", _table(_A("value", "whole", "number of the meeting"))
    ),
    "fscheck": TypeWord(
        "fscheck",
        "checks the file system",
        _table(_A("path", "text", "where it is"), _A("fstype", "text", "its type")),
    ),
    "fsflush": TypeWord(
        "fsflush", "flushes the file system", _table(_A("fstype", "text", "the file system's type"))
    ),
    "hypervisor": TypeWord(
        "HYPERVISOR",
        "a host of virtual machines",
        _table(_A("name", "text", "its name")),
        ("name",),
        open=True,
    ),
    "vm": TypeWord(
        "VM",
        "virtual machines",
        _table(
            _A("name", "text", "its name"),
            _A("dsize", "whole", "bytes of its disk image"),
            _A("instances", "whole", "how many there are"),
        ),
        ("name",),
        open=True,
    ),
}

_NAMED = frozenset({"name", "iters"})
_OPEN = frozenset({"filesetname", "fd", "opennext", "indexed", "directio", "dsync", "noreadahead"})
_IO = _OPEN | {"iosize", "workingset"}
_PATH = frozenset({"filesetname", "fd", "opennext", "indexed"})


def _flowop(
    name: str,
    group: Literal["io", "aio", "sync", "other"],
    about: str,
    heeds: frozenset[str] | set[str] = frozenset(),
    *,
    required: tuple[str, ...] = (),
    dialect: Dialect | None = None,
    synonyms: tuple[str, ...] = (),
) -> FlowopWord:
    return FlowopWord(name, group, about, _NAMED | heeds, ("name", *required), dialect, synonyms)


def _added(name: str, about: str, heeds: frozenset[str], *synonyms: str) -> FlowopWord:
    return _flowop(name, "io", about, heeds, dialect="loadstone", synonyms=synonyms)


FLOWOPS: Mapping[str, FlowopWord] = {
    word.name: word
    for word in (
        _flowop("read", "io", "reads iosize bytes", _IO | {"random", "possetname"}),
        _flowop("write", "io", "writes iosize bytes", _IO | {"random", "possetname"}),
        _flowop("readwholefile", "io", "reads a file from begin to end", _IO),
        _flowop("writewholefile", "io", "writes a file from begin to end", _IO | {"srcfd"}),
        _flowop("appendfile", "io", "writes iosize bytes at the end", _IO),
        _flowop("appendfilerand", "io", "writes up to iosize bytes at the end", _IO),
        _flowop("openfile", "io", "opens an existing file", _OPEN),
        _flowop("createfile", "io", "makes and opens a file", _OPEN),
        _flowop("closefile", "io", "closes a slot", _PATH),
        _flowop("deletefile", "io", "removes a file", _PATH),
        _flowop("statfile", "io", "asks for a file's attributes", _PATH),
        _flowop("fsync", "io", "flushes a file", _PATH | {"dsync"}),
        _flowop("fsyncset", "io", "flushes all open files of a file set", _PATH),
        _flowop("makedir", "io", "makes a leaf directory", _PATH),
        _flowop("removedir", "io", "removes a leaf directory", _PATH),
        _flowop("listdir", "io", "reads a directory", _PATH),
        _flowop("aiowrite", "aio", "begins an asynchronous write", _IO | {"random"}),
        _flowop("aiowait", "aio", "waits for asynchronous writes", _PATH),
        _flowop("hog", "other", "uses the CPU: value stores to memory", {"value"}),
        _flowop("delay", "other", "sleeps value seconds", {"value"}),
        _flowop("eventlimit", "other", "waits for an event of the generator", {"value"}),
        _flowop("iopslimit", "other", "reads and writes at the generator's rate", {"value", "target"}),
        _flowop(
            "opslimit",
            "other",
            "operations of any kind, itself included, at the generator's rate",
            {"value", "target"},
        ),
        _flowop("bwlimit", "other", "MiB per second at the generator's rate", {"value", "target"}),
        _flowop(
            "finishoncount",
            "other",
            "ends the thread after value operations of any kind, itself and waits included",
            {"value", "target"},
        ),
        _flowop("finishonbytes", "other", "ends the thread after value bytes", {"value", "target"}),
        _flowop("block", "sync", "waits until it is woken"),
        _flowop("wakeup", "sync", "wakes a block", {"target"}, required=("target",)),
        _flowop("semblock", "sync", "takes value posts", {"value", "highwater"}),
        _flowop(
            "sempost",
            "sync",
            "posts value to a semblock",
            {"value", "target", "blocking", "highwater"},
            required=("target",),
        ),
        _flowop("print", "other", "prints value", {"value"}),
        _flowop("testrandvar", "other", "prints mean and deviation of value", {"value"}),
        _added("rename", "gives a file of the file set the name of one that does not exist", _PATH),
        _added("link", "makes a hard link to a file", _PATH),
        _added("symlink", "makes a symbolic link to a file", _PATH),
        _added("readlink", "reads a symbolic link", _PATH),
        _added("truncate", "sets the size of a file to value", _PATH | {"value"}),
        _added(
            "access", "asks for permission value (4 read, 2 write, 1 execute) of a file", _PATH | {"value"}
        ),
        _added("fallocate", "reserves iosize bytes of a file", _IO | {"random"}),
        _added(
            "setxattr", "sets extended attribute number value, of iosize bytes", _PATH | {"iosize", "value"}
        ),
        _added("getxattr", "reads extended attribute number value", _PATH | {"iosize", "value"}),
        _added(
            "copyfilerange",
            "copies iosize bytes within the kernel",
            _IO | {"srcfd", "random"},
            "copy_file_range",
        ),
        _added("readdirplus", "reads a directory and the attributes of all in it", _PATH),
        _added("mmapread", "reads iosize bytes of a mapped file", _IO | {"random"}),
        _added("mmapwrite", "writes iosize bytes of a mapped file", _IO | {"random"}),
        _added("fdatasync", "flushes a file's data", _PATH),
    )
}

_BY_NAME: dict[str, FlowopWord] = {
    name: word for word in FLOWOPS.values() for name in (word.name, *word.synonyms)
}


def flowop_word(name: str) -> FlowopWord | None:
    """The built-in flowop of that name or synonym."""
    return _BY_NAME.get(name)


def flowop_type(name: str) -> TypeWord:
    """The attributes of a flowop, whichever; what it heeds of them is said by its word."""
    return TypeWord(f"flowop {name}", "", _FLOWOP)


FIELDS = ("type", "seed", "mean", "gamma", "min", "round", "randsrc")
"""Fields of random variables, as in ``set $size.mean = 4k`` (1.4)."""

_HOOK = "calls a script of Filebench's installation; it has no effect"
_PROFILES = "is about profiles of a patched kernel; it has no effect"
_CLIENTS = "is about several clients with one master; there is one client here"
_FORMAT = "writes the results as JSON, not in Filebench's own format"

COMMANDS: Mapping[str, CommandWord] = {
    word.name: word
    for word in (
        CommandWord("set", "gives a variable a value, or the run a mode"),
        CommandWord("define", "defines files, processes, composite flowops, random variables"),
        CommandWord("create", "makes files, or starts processes"),
        CommandWord("shutdown", "ends processes, forgets files", "1.4"),
        CommandWord("eventgen", "starts the generator of events"),
        CommandWord("enable", "lathist: histograms of latencies; multi: many clients"),
        CommandWord(
            "enable_osprof",
            "begins profiling",
            "1.4",
            _PROFILES,
        ),
        CommandWord(
            "disable_osprof",
            "ends profiling",
            "1.4",
            _PROFILES,
        ),
        CommandWord("domultisync", "waits for other clients", None, _CLIENTS),
        CommandWord("echo", "prints a text"),
        CommandWord("usage", "prints a text that says how to use the script", "1.4", "only prints its text"),
        CommandWord("log", "prints a text", "1.4", "only prints its text"),
        CommandWord("system", "runs a shell command"),
        CommandWord("sleep", "waits some seconds"),
        CommandWord("warmup", "waits some seconds before measuring", "1.4"),
        CommandWord("help", "prints a help text", "1.4", "is for an interactive shell; it only prints"),
        CommandWord("vars", "prints variables", "1.4", "is for an interactive shell; it only prints"),
        CommandWord("version", "prints the version"),
        CommandWord("list", "prints what is defined"),
        CommandWord("load", "performs the commands of another script", "1.4"),
        CommandWord("run", "runs for some seconds"),
        CommandWord("psrun", "runs and reports periodically", "1.5"),
        CommandWord("quit", "ends the script"),
        CommandWord("exit", "ends the script", "1.4"),
        CommandWord("debug", "how much is logged, 0 to 10"),
        CommandWord("foreach", "performs commands for each of several values", "1.4"),
        CommandWord("stats", "windows of measurement and their files", "1.4"),
        CommandWord("fscheck", "checks the file system", "1.4", _HOOK),
        CommandWord("fsflush", "flushes the file system", "1.4", _HOOK),
        CommandWord("hypervisor", "virtual machines that do flowops", "V"),
    )
}

NOTES: Mapping[str, str] = {
    **{word.name: f"{word.name} {word.note}" for word in COMMANDS.values() if word.note},
    **{f"stats {action}": f"stats {action} {_FORMAT}" for action in ("dump", "xmldump", "multidump")},
    "enable multi": f"enable multi {_CLIENTS}",
    "nousestats": "nousestats is about CPU figures that Filebench 1.5 no longer has; it has no effect",
    "useism": "useism asks for SysV shared memory, which is not used here",
    "procname": "procname has no effect, as in Filebench",
}
"""What is accepted with one warning, and what the warning says."""

SYSTEM_VARIABLES = ("rate", "date", "scriptname", "hostname")
"""Variables that Filebench 1.4 sets itself, beside those of ``stats.``."""
