"""What a study is: the keys of its file (``docs/reference/formats/study.md``), as frozen dataclasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loadstone.errors import Error
from loadstone.stats.repetition import PRESETS, Fixed, Repetition, UntilSure
from loadstone.study.file import kinds
from loadstone.study.file.kinds import Command, key
from loadstone.study.readers import READERS

RESETS = ("none", "drop-caches", "remount", "mkfs", "image", "folder")
"""What can be done before each run."""


@dataclass(frozen=True, kw_only=True)
class System:
    """What a load runs on."""

    make: str | None = key(
        kinds.pattern(r"[a-z0-9_]{1,20}", "a type of file system such as ext4"),
        "Type of file system; the program is mkfs.TYPE.",
        None,
    )
    options: Sequence[str] = key(kinds.WORDS, "Options of mkfs.", ())
    mount: str = key(kinds.TEXT, "Mount options.", "")
    size: int = key(kinds.SIZE, "Bytes of the image.", 1 << 30)
    device: str = key(kinds.TEXT, "Block device to use instead of an image; empty: an image.", "")
    directory: str = key(kinds.TEXT, "Directory to use instead of `make`; runs get a new folder in it.", "")
    reset: str = key(kinds.choice(*RESETS), "What is done before each run.", "")
    direct_io: bool = key(kinds.FLAG, "Whether the loop device bypasses the host's page cache.", True)
    queue: Mapping[str, Any] = key(kinds.TABLE, "Settings below /sys/block/DEVICE/queue.", {})

    @property
    def kind(self) -> str:
        """``image``, ``device`` or ``directory``."""
        return "directory" if self.directory else "device" if self.device else "image"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure that is read out of a command's output."""

    regex: str | None = key(kinds.TEXT, "Regular expression whose first group is the figure.", None)
    json: str | None = key(kinds.TEXT, "Path in JSON, such as jobs[0].read.iops.", None)
    unit: str = key(kinds.TEXT, "Unit of the figure.", "")
    better: str = key(kinds.choice("higher", "lower", "neither"), "Which way is better.")


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What runs on a system."""

    on: Sequence[str] = key(kinds.NAMES, "Systems that it runs on; all by default.", ())
    run: str | None = key(kinds.TEXT, "Whatever `loadstone run` or `loadstone replay` takes.", None)
    target: str = key(kinds.TEXT, "Target of `run`.", "{mount}/load")
    options: Mapping[str, Any] = key(kinds.TABLE, "Options of the run, as of loadstone.RunOptions.", {})
    command: Command | None = key(kinds.COMMAND, "A text for sh, or a program and its arguments.", None)
    copies: int = key(kinds.count(1, 4096), "How many of the command are released together.", 1)
    beside: Sequence[Command] = key(kinds.COMMANDS, "Commands that run meanwhile and are not measured.", ())
    prepare: Sequence[Command] = key(kinds.COMMANDS, "Commands before the run, not measured.", ())
    time_limit: float = key(kinds.DURATION, "Longest time of a command.", 3600.0)
    reader: str | None = key(kinds.choice(*READERS), "How to read the output of the command.", None)
    output: str = key(kinds.TEXT, "stdout, stderr, or a file that the command writes.", "")
    figures: Mapping[str, Any] = key(kinds.table_of(Figure), "Figures of your own.", {})
    metrics: Sequence[str] = key(kinds.NAMES, "Metrics that must be sure; the first is the primary one.", ())


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """How often runs repeat."""

    preset: str = key(kinds.choice(*PRESETS), "Name of a rule.", "until-sure")
    runs: int | None = key(kinds.count(1, 10_000), "A fixed number of runs of each cell.", None)
    least: int | None = key(kinds.count(2, 10_000), "Runs before the rule is asked.", None)
    most: int | None = key(kinds.count(2, 10_000), "The cap.", None)
    half_width: float | None = key(kinds.share(10), "Half of the interval, as a share of the mean.", None)
    confidence: float | None = key(kinds.share(1), "Of the interval.", None)

    def rule(self) -> Repetition:
        """The rule; raises ``Error`` for keys that contradict each other."""
        given = {
            name: value
            for name in ("least", "most", "half_width", "confidence")
            if (value := getattr(self, name)) is not None
        }
        if self.runs is not None:
            if given:
                raise Error(f"runs: is a fixed number, so leave out {', '.join(given)}")
            return Fixed(self.runs)
        preset = PRESETS[self.preset]
        assert isinstance(preset, UntilSure)
        if self.most is not None and self.least is None:
            given["least"] = min(preset.least, self.most)
        rule = replace(preset, **given)
        if rule.least > rule.most:
            raise Error(f"least: {rule.least} is above most, which is {rule.most}")
        return rule


@dataclass(frozen=True, kw_only=True)
class Every:
    """A command that runs again and again while a run goes on."""

    command: Command = key(kinds.COMMAND, "A text for sh, or a program and its arguments.")
    seconds: float = key(kinds.DURATION, "Time between the begin of two.")


POINTS = ("study", "system", "cell", "run")
"""What hooks run before and after."""


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """Commands at named points."""

    before_study: Sequence[Command] = key(kinds.COMMANDS, "Before the first run.", ())
    after_study: Sequence[Command] = key(kinds.COMMANDS, "After the last run.", ())
    before_system: Sequence[Command] = key(kinds.COMMANDS, "When a system is mounted.", ())
    after_system: Sequence[Command] = key(kinds.COMMANDS, "Before it is unmounted.", ())
    before_cell: Sequence[Command] = key(kinds.COMMANDS, "Before the first run of a cell.", ())
    after_cell: Sequence[Command] = key(kinds.COMMANDS, "After the last run of a cell.", ())
    before_run: Sequence[Command] = key(kinds.COMMANDS, "Before each run.", ())
    after_run: Sequence[Command] = key(kinds.COMMANDS, "After each run.", ())
    every: Sequence[Any] = key(kinds.list_of(Every), "Commands again and again while a run goes on.", ())


@dataclass(frozen=True, kw_only=True)
class Host:
    """Changes to the host that are taken back."""

    stop: Sequence[str] = key(kinds.NAMES, "Services to stop, and to start again.", ())
    swap: str = key(kinds.choice("off", "as-is"), "off: no swap during the study.", "as-is")
    sysctl: Mapping[str, Any] = key(kinds.TABLE, "Kernel parameters, which are restored.", {})


@dataclass(frozen=True, kw_only=True)
class File:
    """The keys of a study file; systems and workloads as they stand there."""

    name: str = key(kinds.pattern(kinds.NAME, "letters, digits, dashes and dots"), "Name of the study.")
    description: str = key(kinds.TEXT, "What it asks.", "")
    seed: int = key(kinds.SEED, "The orders of blocks follow from it.", 0)
    order: str = key(kinds.choice("blocks", "scripted"), "How runs are ordered.", "blocks")
    failures: int = key(kinds.count(1, 1000), "Failed runs in a row after which a cell is given up.", 2)
    settle: float = key(kinds.DURATION, "Time to wait before each run.", 0.0)
    notify: Command | None = key(kinds.COMMAND, "Command that runs when the study ends.", None)
    repeat: Mapping[str, Any] = key(kinds.one_of(Repeat), "How often runs repeat.", {})
    variables: Mapping[str, Any] = key(kinds.TABLE, "Texts and numbers for placeholders.", {})
    factors: Mapping[str, Any] = key(kinds.TABLE, "Factors and their levels.", {})
    systems: Mapping[str, Any] = key(kinds.table_of(System), "What loads run on.")
    workloads: Mapping[str, Any] = key(kinds.table_of(Workload), "What runs.")
    hooks: Mapping[str, Any] = key(kinds.one_of(Hooks), "Commands at named points.", {})
    host: Mapping[str, Any] = key(kinds.one_of(Host), "Changes to the host, taken back afterwards.", {})


@dataclass(frozen=True)
class Cell:
    """One system with one workload at one combination of levels."""

    name: str
    """Unique in the study; names its folder too."""
    system_name: str
    workload_name: str
    system: System
    workload: Workload
    levels: Mapping[str, str]
    """Level of each factor that it uses."""
    figures: Mapping[str, Figure]
    """The workload's own figures."""


@dataclass(frozen=True)
class Study:
    """A study file, read and expanded."""

    file: File
    raw: Mapping[str, Any]
    """The merged file, as ``study.json`` keeps it."""
    base: str
    """Folder that relative paths start from."""
    rule: Repetition
    hooks: Hooks
    every: Sequence[Every]
    host: Host
    cells: Sequence[Cell]


def schema() -> dict[str, Any]:
    """The JSON Schema of study files."""
    found = kinds.schema_of(File)
    include = {"description": "Another study file, which this one overrides.", "type": "string"}
    found["properties"] = {"include": include, **found["properties"]}
    # What a file includes may have them.
    found.pop("required")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Loadstone study file, version 1",
        **found,
    }
