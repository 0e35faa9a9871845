"""The options of what runs something: declared once, in the groups that help shows them in.

Their names are those of the fields of ``loadstone.plan.RunOptions``, and of what ``loadstone.run`` and
`loadstone.evaluation.Settings`` take. None has a default here: those are the library's, told in brackets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

from loadstone import Error
from loadstone.cli._command import Of
from loadstone.cli._confirm import YES_HELP
from loadstone.cli._types import (
    CPUS,
    DURATION,
    RATE,
    SEED,
    SIZE,
    TARGET_SIZE,
    THINK,
    TIME,
    Alike,
    Count,
    Number,
    once,
    pairs,
)

if TYPE_CHECKING:
    from loadstone.observe import ProbeSpec
    from loadstone.plan import RunOptions

F = TypeVar("F", bound=Callable[..., Any])

TARGET, LOAD, PACE, CONTENT = "Target", "Load", "Pace", "Content"
VERIFICATION, SURROUNDINGS, RESULTS = "Verification", "Surroundings", "Results"

BACKENDS = Alike(["auto", "sync", "mmap", "io_uring", "null"], {"psync": "sync", "libaio": "io_uring"})


def probes_of(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[ProbeSpec]:
    """``NAME=COMMAND`` options as probes."""
    from loadstone.observe import ProbeSpec

    try:
        found = [ProbeSpec.parse(text) for text in values]
    except Error as error:
        raise click.BadParameter(str(error), ctx, param) from None
    once("--probe", (one.name for one in found))
    return found


_DECLARED: Mapping[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    # Target.
    "on": (TARGET, ("--on",), {
        "metavar": "TARGET",
        "help": "File, block device, directory, or null: (performs nothing).",
    }),
    "size": (TARGET, ("--size",), {
        "type": TARGET_SIZE,
        "help": "Bytes of the target to use, or 2x-ram, in multiples of memory [all; new: what is needed].",
    }),
    "maps": (TARGET, ("--map", "maps"), {
        "metavar": "OBJECT=TARGET",
        "multiple": True,
        "callback": pairs,
        "help": "Target of one object (repeatable).",
    }),
    "offsets": (TARGET, ("--offsets",), {
        "type": click.Choice(["error", "wrap", "scale"]),
        "help": "How to treat requests beyond the target's end [error].",
    }),
    "backend": (TARGET, ("--backend", "--ioengine"), {
        "type": BACKENDS,
        "help": "How requests are performed; auto: io_uring where permitted [auto].",
    }),
    "direct": (TARGET, ("--direct",), {"is_flag": True, "help": "Bypass the page cache (O_DIRECT)."}),
    "sync": (TARGET, ("--sync",), {
        "type": click.Choice(["none", "sync", "dsync", "recorded"]),
        "help": "Open with O_SYNC or O_DSYNC, or write as each recorded write did (RWF_DSYNC) [none].",
    }),
    "fadvise": (TARGET, ("--fadvise",), {
        "type": click.Choice(["normal", "random", "sequential"]),
        "help": "Tell the kernel how the target is read [normal].",
    }),
    "fill": (TARGET, ("--fill/--no-fill",), {
        "default": None,
        "help": "Write the target from end to end first [when new or given up].",
    }),
    "allow_destroy": (TARGET, ("--allow-destroy",), {
        "metavar": "TARGET",
        "multiple": True,
        "help": "Give up what this existing target holds (repeatable). Of job files also a directory: what "
        "they write in it.",
    }),
    "rebase": (TARGET, ("--rebase",), {
        "is_flag": True,
        "help": "Put paths of a script or job file that lie elsewhere below --on.",
    }),
    # Load.
    "variables": (LOAD, ("-D", "variables"), {
        "metavar": "NAME=VALUE",
        "multiple": True,
        "callback": pairs,
        "help": "Variable of the workload (repeatable).",
    }),
    "depth": (LOAD, ("--depth", "--iodepth"), {
        "type": Count(1, 4096),
        "metavar": "N",
        "help": "Most requests in flight [32; open pace: 256].",
    }),
    "requests": (LOAD, ("--requests",), {
        "type": Count(1),
        "metavar": "N",
        "help": "End after this many requests [no limit].",
    }),
    "duration": (LOAD, ("--duration", "--runtime"), {
        "type": DURATION,
        "help": "End after this time, such as 30s [when the workload ends].",
    }),
    "seed": (LOAD, ("--seed",), {"type": SEED, "metavar": "N", "help": "Seed of all random numbers [0]."}),
    "bs": (LOAD, ("--bs",), {
        "metavar": "SIZES",
        "help": "Bytes per request of a named workload: 4k, 4k-64k (multiples of 4k, and 64k), or shares "
        "such as 4k:60,64k:40 [4k].",
    }),
    "skew": (LOAD, ("--skew",), {
        "metavar": "LAW",
        "help": "How random requests are shared out among blocks: zipf:EXPONENT, pareto:SHARE, "
        "hotcold:ACCESSES,SPACE [uniform].",
    }),
    "until_steady": (LOAD, ("--until-steady",), {
        "metavar": "WHAT:LIMIT[,WINDOW]",
        "help": "End the run in a steady state, as of iops:10%,60s: no second of a minute is 10 % off the "
        "minute's mean. WHAT: iops, bw, lat, or with _slope behind [window: 30s].",
    }),
    "latency_target": (LOAD, ("--latency-target",), {
        "metavar": "TIME[:PERCENT[,WINDOW]]",
        "help": "Search the greatest depth up to --depth at which requests are so fast, or that percent of "
        "them; each depth is tried for a window [100,1s].",
    }),
    "sweep": (LOAD, ("--sweep",), {
        "is_flag": True,
        "help": "All sizes that a benchmark such as iozone goes through.",
    }),
    "compat": (LOAD, ("--filebench-compat", "compat"), {
        "type": click.Choice(["1.4", "1.5"]),
        "help": "What a script means where these versions of Filebench differ, with what both do wrong [what "
        "it is written in].",
    }),
    "layout": (LOAD, ("--layout",), {
        "type": click.Choice(["gamma", "flat"]),
        "help": "Trees of a script's file sets: of drawn widths and depths, as Filebench makes them, or one "
        "level of directories of dirwidth files [gamma].",
    }),
    "allow_system": (LOAD, ("--allow-system",), {
        "is_flag": True,
        "help": "Let a script of Filebench run shell commands.",
    }),
    # Pace.
    "pace": (PACE, ("--pace",), {
        "metavar": "PACE",
        "help": "recorded, an acceleration such as x4, or max (as fast as possible) [recorded].",
    }),
    "order": (PACE, ("--order",), {
        "type": click.Choice(["none", "completion", "dependency"]),
        "help": "completion: wait for what had completed before, as in the trace. dependency: wait for the "
        "last completion of the same actor, and then as long as it thought [none; of files: completion].",
    }),
    "independent": (PACE, ("--independent",), {
        "metavar": "PACE",
        "help": "With dependencies, pace of requests that depend on no other: recorded, xN or max "
        "[recorded].",
    }),
    "think": (PACE, ("--think",), {
        "type": THINK,
        "metavar": "xN",
        "help": "With dependencies, divide think times by N; none: no think time [x1].",
    }),
    "within": (PACE, ("--within",), {
        "type": TIME,
        "metavar": "TIME",
        "help": "With dependencies, a request later than this after a completion does not depend on it [1s].",
    }),
    "draw_first": (PACE, ("--draw-first/--draw-meanwhile",), {
        "default": None,
        "help": "Draw a model's requests before the run, so that drawing takes no CPU in it, or during it "
        "[before, unless drawing is four times as fast as they are due].",
    }),
    "rate": (PACE, ("--rate",), {
        "type": RATE,
        "metavar": "RATE",
        "help": "Requests per second (open loop), such as 500 or 20k [as fast as possible].",
    }),
    "arrival": (PACE, ("--arrival",), {
        "metavar": "LAW",
        "help": "How requests are spread at --rate: poisson, gamma:SHAPE, hyper:VARIATION, onoff:ON,OFF in "
        "seconds, or trace:FILE, at its requests' times [constant].",
    }),
    # Content.
    "content": (CONTENT, ("--content",), {
        "metavar": "KIND",
        "help": "What is written: unique: fresh incompressible data in every block; dataset:FILE[@SNAPSHOT]: "
        "the chunks of a series of file trees (.fst) [random data with a stamp].",
    }),
    "dedupe": (CONTENT, ("--dedupe",), {
        "type": Number(1),
        "metavar": "RATIO",
        "help": "Write data that deduplicates to 1/RATIO, such as 2 [1: all blocks differ].",
    }),
    "compress": (CONTENT, ("--compress",), {
        "type": Number(1),
        "metavar": "RATIO",
        "help": "Write data that codecs compress to 1/RATIO, 1.05 to 10 [1: not at all].",
    }),
    "dedupe_unit": (CONTENT, ("--dedupe-unit",), {
        "cls": Of,
        "of": ("--dedupe", "--compress", "--content"),
        "type": SIZE,
        "help": "Bytes of blocks that are alike, and compressible by themselves [4k].",
    }),
    # Verification.
    "verify": (VERIFICATION, ("--verify",), {
        "is_flag": True,
        "help": "Write blocks that contain their place and generation, compare all blocks that are "
        "read, and read the whole target at the end.",
    }),
    "verify_unit": (VERIFICATION, ("--verify-unit",), {
        "type": SIZE,
        "help": "Verification block size: 512 to 4k [4k].",
    }),
    "verify_state": (VERIFICATION, ("--verify-state",), {
        "metavar": "FILE",
        "help": "Keep the state for the verify command here, on another file system than the target.",
    }),
    "verify_from": (VERIFICATION, ("--verify-from",), {
        "metavar": "FILE",
        "help": "Continue from the state of an earlier run; nothing is filled.",
    }),
    # Surroundings.
    "cpus": (SURROUNDINGS, ("--cpus",), {
        "metavar": "LIST",
        "type": CPUS,
        "help": "Pin the load to CPUs, such as 0,2-3 [all].",
    }),
    "cache": (SURROUNDINGS, ("--cache",), {
        "type": click.Choice(["none", "drop", "drop-host", "remount"]),
        "help": "What to do with caches before the load. drop: pages of the target; drop-host: all clean "
        "caches of the host, too (root); remount: the target's file system, which must be one of its own, is "
        "unmounted and mounted again [drop; scripts: none].",
    }),
    "memory_limit": (SURROUNDINGS, ("--memory-limit",), {
        "type": SIZE,
        "help": "Memory the whole run gets, page cache included, by a memory cgroup [no limit].",
    }),
    "nice": (SURROUNDINGS, ("--nice",), {
        "type": Count(-20, 19),
        "metavar": "N",
        "help": "Niceness of the load's threads, -20 to 19 [that of the shell].",
    }),
    "ioprio": (SURROUNDINGS, ("--ioprio",), {
        "metavar": "CLASS",
        "help": "I/O priority of the load's threads: idle, best-effort:LEVEL or realtime:LEVEL, 0 to 7 [by "
        "niceness].",
    }),
    # Results.
    "out": (RESULTS, ("--out",), {"metavar": "BUNDLE", "help": "Keep the results in this new folder."}),
    "force": (RESULTS, ("--force",), {
        "cls": Of,
        "of": ("--out",),
        "is_flag": True,
        "help": "Replace an existing bundle.",
    }),
    "repeat": (RESULTS, ("--repeat",), {
        "metavar": "RULE",
        "help": "Run all of it so many times; or until-sure: until the primary metric is known within 5 % "
        "(95 % interval), 10 to 30 times; auto-pilot: the same; nfs: 5 to 30 times. The first makes a "
        "missing target, the others use it as it is, or fill it again (--fill). See also --cache.",
    }),
    "sure": (RESULTS, ("--sure",), {
        "cls": Of,
        "of": ("--repeat",),
        "metavar": "METRIC",
        "multiple": True,
        "help": "A metric that must be known too, such as service_p99 (repeatable).",
    }),
    "log": (RESULTS, ("--log",), {
        "metavar": "FILE",
        "help": "Log every request as a request table (Parquet).",
    }),
    "interval": (RESULTS, ("--interval",), {"type": DURATION, "help": "Length of recorded intervals [1s]."}),
    "sample": (RESULTS, ("--sample",), {
        "cls": Of,
        "of": ("--out",),
        "type": DURATION,
        "help": "Time between samples of the host's counters [--interval].",
    }),
    "probes": (RESULTS, ("--probe", "probes"), {
        "cls": Of,
        "of": ("--out",),
        "metavar": "NAME=COMMAND",
        "multiple": True,
        "callback": probes_of,
        "help": "A command that prints name=value, run every second beside the load (repeatable).",
    }),
    "by": (RESULTS, ("--by",), {
        "type": click.Choice(["worker", "group", "thread"]),
        "help": "Also show rates and latency of each worker, group of workers, or thread of a worker.",
    }),
    "live": (RESULTS, ("--live",), {
        "is_flag": True,
        "help": "Show rates, latency and every op on the whole terminal during the run; q stops.",
    }),
    "yes": (RESULTS, ("--yes",), {"is_flag": True, "help": YES_HELP}),
    "dry_run": (RESULTS, ("--dry-run",), {
        "is_flag": True,
        "help": "Print the plan and stop; of several runs an object with all `plans`.",
    }),
    "as_json": (RESULTS, ("--json", "as_json"), {
        "is_flag": True,
        "help": "Print one JSON object for machines.",
    }),
}  # fmt: skip
"""By name: the group, how it is written, and what it takes."""


def grouped(group: str, *written: str, **attributes: Any) -> Callable[[F], F]:
    """An option of one command only, in a group."""

    def add(function: F) -> F:
        found = click.option(*written, **attributes)(function)
        _last(found).group = group  # type: ignore[attr-defined]
        return found

    return add


def options(*names: str, **changed: Mapping[str, Any]) -> Callable[[F], F]:
    """Adds these options to a command, in their order here; ``changed``: attributes that differ for it."""

    def add(function: F) -> F:
        for name, (group, written, attributes) in reversed(list(_DECLARED.items())):
            if name in names:
                more = {**attributes, **changed.get(name, {})}
                function = grouped(group, *written, **more)(function)
        return function

    return add


def _last(function: Any) -> click.Parameter:
    """The parameter that was added last."""
    found: click.Parameter = function.__click_params__[-1]
    return found


EVERY = tuple(_DECLARED)


def run_options(given: Mapping[str, Any], **more: Any) -> RunOptions:
    """What a command was given of the options of a run; ``more``: others of these."""
    from loadstone.plan import RunOptions

    names = {one.name for one in fields(RunOptions)}
    said = {name: value for name, value in given.items() if name in names and value is not None}
    return RunOptions(**said, **more)
