"""What every lowering takes besides its source and target."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from loadstone import _core, _values
from loadstone.errors import Error, OptionError
from loadstone.plan.offsets import skew_of
from loadstone.plan.steering import latency_target_of, steady_of

if TYPE_CHECKING:
    from loadstone.content import Content
    from loadstone.trace import Options as Reading
    from loadstone.verification import Verify
else:
    # Reading, content and verification are imported where they are used: RunOptions itself needs none.
    Reading = dict

Pace = float | str
"""``"recorded"``, an acceleration (2.0 or ``"x2"``), or ``"max"``: as fast as possible."""

Cache = Literal["none", "drop", "drop-host", "remount"]
"""How to treat caches before a load."""
Backend = Literal["auto", "sync", "mmap", "io_uring", "files", "null"]
"""How requests are performed."""
Compat = Literal["1.4", "1.5"]
"""Versions of Filebench."""
Offsets = Literal["error", "wrap", "scale"]
"""How to treat requests beyond the end of a target."""
Sync = Literal["none", "sync", "dsync", "recorded"]
"""How writes are made stable."""
Advice = Literal["normal", "random", "sequential"]
"""Advice to the kernel on how targets are read."""
Layout = Literal["gamma", "flat"]
"""Trees of file sets."""
Order = Literal["none", "completion", "dependency"]
"""What requests wait for besides their time."""


Place = str | os.PathLike[str]

_TEXTS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("duration", "interval", "within"), _values.duration),
    **dict.fromkeys(("memory_limit", "dedupe_unit", "verify_unit"), _values.size),
    **dict.fromkeys(("depth", "requests"), _values.count),
    **dict.fromkeys(("dedupe", "compress"), _values.number),
    "size": _values.target_size,
    "rate": _values.rate,
    "seed": _values.seed,
    "think": _values.divisor,
    "nice": lambda text: _values.count(text, -20, 19),
    "cpus": _values.cpus,
}
"""Fields that may be texts as on the command line, and how these are read."""
_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("duration", "within", "rate", "think"), (0, float("inf"))),
    **dict.fromkeys(("requests", "seed"), (0, _values.MOST_SEED)),
    **dict.fromkeys(("size", "memory_limit", "dedupe_unit", "verify_unit"), (1, _values.MOST)),
    **dict.fromkeys(("dedupe", "compress"), (1, float("inf"))),
    "interval": (0.001, float("inf")),
    "depth": (1, _values.MOST),
    "nice": (-20, 19),
}
"""Least and greatest numbers."""
_WHOLE = ("size", "depth", "requests", "seed", "memory_limit", "dedupe_unit", "verify_unit", "nice")
"""Fields that are whole numbers."""
_FLAGS = ("direct", "rebase", "sweep", "allow_system", "fill", "draw_first")
"""Fields that are True or False; the last two may be None."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of a run; ``loadstone.plan.kinds.TAKES`` lists those that each kind of workload takes.

    An option that is left out is as the workload says, or has the default below. Sizes are bytes, times
    seconds; both may be texts such as ``64k`` and ``30s``, as on the command line.
    """

    # Target.
    size: int | str | None = None
    """Bytes of the target to use, or a text: ``1g``, ``2x-ram`` (multiples of memory); suites take several
    (``64k-1m``). Default: all, of a new target what is needed. Of a benchmark, what its files hold."""
    maps: Mapping[str, Place] = field(default_factory=dict)
    """Target of single objects of a trace or model, by the object's name or number."""
    offsets: Offsets | None = None
    """How to treat requests beyond the end of the target; default ``error``."""
    backend: Backend | None = None
    """How to perform requests. ``auto``: io_uring where permitted, else sync; null for ``null:``."""
    direct: bool = False
    """Bypass the page cache (O_DIRECT)."""
    sync: Sync | None = None
    """O_SYNC, O_DSYNC, or RWF_DSYNC on requests that had it in the trace; default ``none``."""
    fadvise: Advice | None = None
    """Advice to the kernel on how targets are read (posix_fadvise); only through the page cache."""
    fill: bool | None = None
    """Write the target from end to end first; default: if it is new or may be overwritten."""
    allow_destroy: Sequence[Place] = ()
    """Existing targets whose content may be overwritten, named exactly; of job files also directories."""
    rebase: bool = False
    """Put paths of a script or job file that lie elsewhere below the target."""

    # Load.
    variables: Mapping[str, object] = field(default_factory=dict)
    """Variables of the workload, as text or numbers."""
    bs: int | str | None = None
    """Bytes per request of a uniform load: one size, a range ``4k-64k`` (multiples of its smallest, and its
    largest), or shares ``4k:60,64k:40``; default 4k."""
    skew: str | None = None
    """How random requests are distributed over blocks: ``uniform``, ``zipf:EXPONENT``, ``pareto:SHARE`` (that
    share of the blocks gets the rest of the requests) or ``hotcold:ACCESSES,SPACE`` (shares of requests and
    of blocks); hot blocks are spread over the target, by ``seed``."""
    rate: float | None = None
    """Requests per second at an open pace; default: as fast as ``depth`` in flight allow."""
    arrival: str | None = None
    """How requests are spread over time at that rate: ``constant``, ``poisson``, ``gamma:SHAPE``,
    ``hyper:VARIATION`` (the squared coefficient of variation), ``onoff:ON,OFF`` (mean seconds of both,
    without memory while on) or ``trace:FILE``: at the times of a trace's requests, over and over, stretched
    to the rate if there is one."""
    depth: int | None = None
    """Most requests in flight; default 32, with io_uring at an open pace 256."""
    requests: int | None = None
    """Most requests; default: no limit."""
    duration: float | None = None
    """Longest time of the run; default: until the source ends."""
    until_steady: str | None = None
    """End a run in a steady state: ``WHAT:LIMIT`` or ``WHAT:LIMIT,WINDOW``. ``iops:10%,60s`` ends it once no
    second of a minute is 10 percent off the minute's mean; ``bw_slope:1%`` once a line through the seconds
    rises or falls less than that a second. WHAT is ``iops``, ``bw`` or ``lat`` (mean latency). The window is
    30 s by default. ``steady`` of the summary says whether it was reached."""
    latency_target: str | None = None
    """Search the greatest depth up to ``depth`` at which requests are fast enough: ``TIME``, or
    ``TIME:PERCENT,WINDOW`` for a share of them and the time that each depth is tried (1 s). The run ends
    once it is found. ``depths`` of the summary has the result."""
    seed: int | None = None
    """Seed of all random numbers; default 0."""
    sweep: bool = False
    """Run all sizes that the original of a suite runs by itself."""
    compat: Compat | None = None
    """Version of Filebench whose semantics count, with its faults; default: the version that the script is
    written in, without faults."""
    layout: Layout | None = None
    """Trees of a script's file sets: of drawn widths and depths (``gamma``), or one level of directories of
    ``dirwidth`` entries."""
    allow_system: bool = False
    """Let a script run shell commands, and a job file of fio run programs."""

    # Pace.
    pace: Pace | None = None
    """``recorded``, an acceleration (2.0 or ``x2``), or ``max``: as fast as possible."""
    order: Order | None = None
    """``completion``: a request goes out only when everything that had completed before its submission in the
    trace has completed again; what replays of files have where there are latencies. ``dependency``: it waits
    for the completion of its actor that came last before, and then for the time between them."""
    independent: Pace | None = None
    """Pace of requests that depend on no other, in order of dependencies."""
    think: float | None = None
    """Divisor of think times in order of dependencies; 0: no think time."""
    within: float | None = None
    """With dependencies, a request later than this after a completion does not depend on it; default 1 s."""
    draw_first: bool | None = None
    """Draw a model's requests before the run, so that drawing takes no CPU in it, or during it. Default:
    before, unless drawing is four times as fast as the requests are due. At most 1 GiB of them, and a quarter
    of the available memory, are drawn before; the others follow during the run."""
    reading: Reading = field(default_factory=Reading)
    """How a trace is read, which a plan keeps: options of :class:`loadstone.trace.Options` but
    ``dependencies`` and ``threads``."""

    # Content and verification.
    content: str | Content | None = None
    """Content of written data: ``unique``, ``dataset:FILE[@SNAPSHOT]``, or as a plan has it. Default: random,
    with a stamp in every 4 KiB."""
    dedupe: float | None = None
    """Blocks for each unique block; default 1: all differ."""
    compress: float | None = None
    """How many times smaller codecs make it; default 1: not at all."""
    dedupe_unit: int | None = None
    """Size in bytes of blocks that deduplicate and compress; default 4096."""
    verify: bool | Verify = False
    """Compare each block that the load reads with what it should hold, and all blocks at the end; or as a
    plan has it."""
    verify_unit: int | None = None
    """Verification block size in bytes; default 4096."""
    verify_state: Place | None = None
    """File for the state of the verification."""
    verify_from: Place | None = None
    """State of an earlier run to continue from; nothing is filled."""

    # Surroundings.
    cpus: Sequence[int] = ()
    """CPUs the load is pinned to."""
    cache: Cache | None = None
    """How to treat caches before the load. ``drop`` drops the target's pages, ``drop-host`` also all clean
    caches of the host, as root. ``remount`` unmounts the target's file system and mounts it again; no other
    process may use it. Default ``drop``; for scripts and suites ``none``."""
    memory_limit: int | None = None
    """Bytes of memory the run gets, page cache included, by a memory cgroup."""
    nice: int | None = None
    """Niceness of the load's threads, -20 to 19."""
    ioprio: str | None = None
    """I/O priority of the load's threads: ``idle``, ``best-effort:LEVEL`` or ``realtime:LEVEL``, 0 to 7."""

    # What is recorded.
    interval: float | None = None
    """Length of recorded intervals; default 1 s."""
    log: Place | None = None
    """File for a log of every request (Parquet)."""
    group: str | None = None
    """Name of the group (VM, client, host) the load belongs to."""

    def __post_init__(self) -> None:
        """Reads texts, and raises ``OptionError`` for values that no run can have."""
        for name, read in _TEXTS.items():
            if isinstance(value := getattr(self, name), str):
                try:
                    object.__setattr__(self, name, read(value))
                except Error as error:
                    raise OptionError(name, None, str(error)) from None
            elif name != "cpus" and (isinstance(value, bool) or not isinstance(value, int | float | None)):
                raise OptionError(name, None, f"{value!r} is no number")
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) is not None and value not in choices:
                raise OptionError(name, None, f"{value!r} must be one of: {', '.join(choices)}")
        for name in _FLAGS:
            if not isinstance(value := getattr(self, name), bool) and (
                value is not None or name in _FLAGS[:4]
            ):
                raise OptionError(name, None, f"{value!r} must be True or False")
        for name, (least, most) in _RANGES.items():
            self._check_number(name, least, most)
        for name, check in _LAWS.items():
            if (value := getattr(self, name)) is not None:
                check(value)
        if not all(isinstance(one, int) and 0 <= one < _values.MOST_CPUS for one in self.cpus):
            raise OptionError("cpus", None, f"{self.cpus!r} must be numbers of CPUs, as in [0, 2, 3]")
        if isinstance(self.allow_destroy, str | os.PathLike):
            object.__setattr__(self, "allow_destroy", (self.allow_destroy,))
        if not isinstance(self.verify, bool | Mapping):
            raise OptionError("verify", None, f"{self.verify!r} must be True or False")

    def _check_number(self, name: str, least: float, most: float) -> None:
        value = getattr(self, name)
        if value is None or isinstance(value, str):
            return
        if not least <= value <= most or value == float("inf"):
            bound = f"{least:g} or more" if most >= _values.MOST else f"{least:g} to {most:g}"
            raise OptionError(name, None, f"{value} is out of range: use {bound}")
        if name in _WHOLE and value != int(value):
            raise OptionError(name, None, f"{value} is no whole number")
        if name in _WHOLE:
            object.__setattr__(self, name, int(value))

    def given(self) -> dict[str, Any]:
        """Options that are set, by name."""
        found = {}
        for one in fields(self):
            value = getattr(self, one.name)
            empty = isinstance(value, (Mapping, Sequence)) and not value
            if value is None or (one.default is False and value is False):
                continue
            if not (empty and (one.default == () or one.default_factory is not MISSING)):
                found[one.name] = value
        return found

    @property
    def asked_content(self) -> Content | None:
        """Content of written data that these options ask for, as a plan has it."""
        from loadstone.content import of_options

        if isinstance(self.content, Mapping):
            return self.content
        return of_options(self.content, self.dedupe, self.compress, self.dedupe_unit)

    @property
    def asked_verify(self) -> Verify | None:
        """Verification that these options ask for, as a plan has it."""
        from loadstone.verification import of_options

        if isinstance(self.verify, Mapping):
            return self.verify
        return of_options(self.verify, self.verify_unit, self.verify_state, self.verify_from)


_CHOICES: Mapping[str, Sequence[str]] = {
    "offsets": get_args(Offsets),
    "backend": get_args(Backend),
    "sync": get_args(Sync),
    "fadvise": get_args(Advice),
    "compat": get_args(Compat),
    "layout": get_args(Layout),
    "order": get_args(Order),
    "cache": get_args(Cache),
}
"""Fields that are one of some words."""


def _block_sizes(bs: int | str) -> None:
    try:
        _values.block_sizes(str(bs))
    except Error as error:
        raise OptionError("bs", bs, f"{error}; several are written 4k-64k or 4k:60,64k:40") from None


_PRIORITIES = {"idle": "idle", "best-effort": "best_effort", "realtime": "realtime"}


def ioprio_of(text: str) -> dict[str, object]:
    """An I/O priority as a worker has it, from ``CLASS`` or ``CLASS:LEVEL``."""
    name, sign, level = text.strip().partition(":")
    if name not in _PRIORITIES or (sign and level not in tuple("01234567")):
        raise OptionError("ioprio", text, "write idle, best-effort:LEVEL or realtime:LEVEL, 0 (highest) to 7")
    # 4 is what the kernel gives a thread of usual niceness.
    usual = 0 if name == "idle" else 4
    return {"class": _PRIORITIES[name], "level": int(level) if sign else usual}


def pace_of(pace: Pace, name: str = "pace") -> dict[str, object]:
    """The pace as a plan has it."""
    speed: float | None
    if isinstance(pace, str):
        text = pace.strip().lower()
        if text == "max":
            return {"kind": "closed"}
        if text == "recorded":
            speed = 1.0
        else:
            try:
                speed = _values.factor(text)
            except Error:
                speed = None
    else:
        speed = float(pace)
    if speed is None or not 0 < speed < float("inf"):
        raise OptionError(name, f"{pace!r}", "write recorded, max, or an acceleration such as x2 or x0.5")
    return {"kind": "open", "speed": speed}


_ARRIVALS: Mapping[str, Sequence[str]] = {
    "constant": (),
    "poisson": (),
    "gamma": ("shape",),
    "hyper": ("variation",),
    "onoff": ("on_s", "off_s"),
}


def arrival_of(text: str) -> dict[str, object]:
    """A law of arrivals as a plan has it, from ``NAME``, ``NAME:NUMBER,NUMBER`` or ``trace:FILE``."""
    name, _, numbers = text.strip().partition(":")
    if name == "trace":
        if not numbers:
            raise OptionError("arrival", text, "write trace:FILE")
        return {"kind": name, "artefact": "arrivals"}
    parameters = _ARRIVALS.get(name)
    if parameters is None:
        raise OptionError("arrival", text, f"must be one of: {', '.join(_ARRIVALS)}, trace:FILE")
    try:
        values = [_values.number(number) for number in numbers.split(",")] if numbers else []
    except Error:
        values = []
    if len(values) != len(parameters):
        wanted = f"{name}:{','.join(p.removesuffix('_s').upper() for p in parameters)}".rstrip(":")
        raise OptionError("arrival", text, f"write {wanted}")
    return {"kind": name, **dict(zip(parameters, values, strict=True))}


def backend_of(asked: Backend | None, null: bool) -> str:
    """The backend: the one asked for, or the best there is."""
    if null:
        if asked not in (None, "auto", "null"):
            raise OptionError("backend", asked, "the target null: performs nothing; name a file or a device")
        return "null"
    if asked in (None, "auto"):
        return "sync" if _core.uring_refused() else "io_uring"
    return str(asked)


def depth_of(depth: int | None, backend: str, is_open: bool) -> int:
    """Most requests in flight."""
    if depth is not None:
        return depth
    return 256 if is_open and backend == "io_uring" else 32


def pace_asked(options: RunOptions) -> Pace:
    """The pace of what depends on nothing. Raises ``OptionError`` for options that contradict the order."""
    if options.order != "dependency":
        for name in ("independent", "think", "within"):
            if getattr(options, name) is not None:
                raise OptionError(name, None, "needs `order` dependency")
        return "recorded" if options.pace is None else options.pace
    if options.pace is not None:
        raise OptionError(
            "pace", None, "with `order` dependency, `independent` says the pace of what depends on none"
        )
    return "recorded" if options.independent is None else options.independent


_LAWS: Mapping[str, Callable[[Any], object]] = {
    "bs": _block_sizes,
    "skew": skew_of,
    "arrival": arrival_of,
    "until_steady": lambda text: steady_of(text, 1.0),
    "latency_target": latency_target_of,
    "pace": pace_of,
    "independent": lambda pace: pace_of(pace, "independent"),
    "ioprio": ioprio_of,
}
"""Fields that say more than one number, and what reads them and raises ``OptionError``."""

NOTHING = RunOptions()
"""Nothing is asked for."""
