"""What a job of fio's asks for, in our terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from loadstone._core import uring_refused
from loadstone.fio import _values
from loadstone.fio._beside import read_cpu, read_program, refuse_others
from loadstone.fio._keys import (
    ACCEPTED,
    ATOMIC_ENGINES,
    BY_NAME,
    CHECKSUMS,
    ENGINES,
    IDLE,
    NO_CHECKSUM,
    OTHER_ENGINES,
)
from loadstone.fio._load import Load
from loadstone.fio._priority import read_ioprio, read_priorities
from loadstone.fio._read import Entry, FioError, Job, possible, refused, sections, together
from loadstone.fio._sizes import align, read_sizes
from loadstone.fio._steer import read_flow, read_latency, read_sequence, read_steady, read_zones

_DEEPEST = 4096
_MOST_FILES = 4096
# Of those that are only called by name; they take 8 bytes each.
_MOST_NAMES = 100_000_000
_PATTERNS = {
    "read": (1.0, True),
    "write": (0.0, True),
    "rw": (0.5, True),
    "readwrite": (0.5, True),
    "randread": (1.0, False),
    "randwrite": (0.0, False),
    "randrw": (0.5, False),
    "trim": (0.0, True),
    "randtrim": (0.0, False),
}
_TRIMS = ("trimwrite", "randtrimwrite")


def parse(
    text: str | bytes,
    name: str = "job file",
    variables: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[Job]:
    """The jobs of a file, with all keys known and all variables put in.

    ``${NAME}`` is one of ``variables``, or of ``environment`` (by default the process's own); ``$pagesize``,
    ``$ncpus`` and ``$mb_memory`` are those of this host. Raises ``FioError`` and nothing else. Where lines
    cannot be read, it tells of them and of all values and keys of other lines that are wrong.
    """
    jobs, faults = sections(text, name, variables, environment)
    if faults:
        known = {fault.line for fault in faults}
        values = [fault for job in jobs for fault in _read(job, 1.0, lines_only=True)[1]]
        together([*faults, *(fault for fault in values if fault.line not in known)])
    return jobs


def read_jobs(jobs: Sequence[Job], interval: float = 1.0) -> list[Load]:
    """What jobs ask for; raises ``FioError`` with all values that are wrong and all keys that are refused."""
    read = [_read(job, interval) for job in jobs]
    together([fault for _, faults in read for fault in faults])
    return [load for load, _ in read if load is not None]


def _read(job: Job, interval: float, *, lines_only: bool = False) -> tuple[Load | None, list[FioError]]:
    """What a job asks for, and all that is wrong with its lines.

    A line that is wrong is left out, and the rest is read again. ``lines_only``: what the job lacks as a
    whole may be due to lines that are left out already.
    """
    faults = [fault for entry in job.entries.values() if (fault := refused(entry))]
    entries = {key: entry for key, entry in job.entries.items() if refused(entry) is None}
    while True:
        try:
            return read_job(replace(job, entries=entries), interval), faults
        except FioError as fault:
            key = next((key for key, entry in entries.items() if entry.line == fault.line), None)
            if key is None:
                return None, faults if faults or lines_only else [fault]
            if all(other.line != fault.line for other in faults):
                faults.append(fault)
            entry = entries.pop(key)
            if (other := possible(entry)) is not None:
                entries[key] = other
            elif key == "zonemode":
                # The keys that say more of it mean nothing without it.
                entries = {key: one for key, one in entries.items() if not key.startswith("zone")}


def read_job(job: Job, interval: float = 1.0) -> Load:
    """What a job asks for; raises ``FioError`` where it cannot be had."""
    entries = job.entries
    rw = entries.get("rw")
    pattern = "read" if rw is None else rw.value
    pattern, _, modifier = pattern.partition(":")
    if rw is not None and pattern in _TRIMS:
        rw.refuse("discards that are followed by writes of the same blocks cannot be drawn")
    if rw is not None and pattern not in _PATTERNS:
        rw.refuse(f"must be one of: {', '.join(_PATTERNS)}")
    reads, sequential = _PATTERNS[pattern]
    way: _values.Direction = "both" if reads == 0.5 else "read" if reads else "write"
    unit, sizes, write_sizes = read_sizes(job, way)
    # That of a [global] section is not a job's.
    named = entries.get("name")
    name = named.value if named is not None and named.line > job.line else job.name
    load = Load(job, name, reads, sequential, unit, sizes, least=unit, most=unit)
    load.discards = pattern.endswith("trim")
    if rw is not None and modifier:
        load.skip = _skip(rw, load, modifier)
    load.write_sizes = write_sizes
    if sizes:
        load.least = int(min(row["low"] for row in [*sizes, *write_sizes]))
        load.most = int(max(row["high"] for row in [*sizes, *write_sizes]))
    _mix(load, way)
    align(load, way)
    _engine(load)
    refuse_others(job, load.backend)
    _amount(load)
    if load.backend in IDLE:
        return _idle(load)
    load.priorities = read_priorities(job, load.reads, load.backend, load.notes)
    _place(load)
    _pace(load, way)
    _rest(load)
    _steer(load, interval)
    _remarks(load)
    return load


def _idle(load: Load) -> Load:
    """A job that issues no requests: of the rest only its time and its threads matter."""
    load.reads = 0.0
    _rest(load)
    load.verified = load.refilled = False
    if load.backend == "cpu":
        load.cpu = read_cpu(load.job, load.runtime)
    else:
        load.program = read_program(load.job, load.name, load.runtime, load.workers)
    return load


def _skip(rw: Entry, load: Load, text: str) -> int:
    """Bytes that ascending requests leave out, or below 0 go back, each time."""
    if not load.sequential:
        rw.refuse("several random requests in a row cannot be drawn; see percentage_random")
    if load.apart or load.sizes:
        rw.refuse("skips bytes, and needs requests of one op and one size")
    skip = _values.size(rw, text.strip().removeprefix("-"))
    return -skip if text.strip().startswith("-") else skip


def _mix(load: Load, way: _values.Direction) -> None:
    """Share of reads, and where random requests go."""
    entries = load.job.entries
    if way == "both":
        for key in entries:
            if key in ("rwmixread", "rwmixwrite"):
                percent = _values.number(entries[key], most=100)
                load.reads = (percent if key == "rwmixread" else 100 - percent) / 100
    if entry := entries.get("percentage_random"):
        percent = _values.directed(entry, way, lambda e, t: _values.number(e, t, most=100), 100, "shares")
        if not load.sequential and percent == 0:
            load.sequential = True
        elif not load.sequential:
            load.follow = (100 - percent) / 100
    if entry := entries.get("random_distribution"):
        skew = _skew(entry)
        if entry.value.startswith("sequence"):
            _sequence(load, entry)
        elif skew and load.sequential:
            load.notes.append("random_distribution has no effect on requests that ascend")
        elif skew and load.write_sizes:
            entry.refuse("needs reads and writes of the same sizes; write a job for each")
        elif skew:
            load.skew = skew


def _sequence(load: Load, entry: Entry) -> None:
    """Blocks in an order of their own: they ascend through pieces of the file that are put in that order."""
    if load.sequential or load.sizes or 0 < load.reads < 1:
        entry.refuse("is of random requests of one size that only read or only write")
    load.sequence = read_sequence(entry, load.job)
    load.sequential = True


def _skew(entry: Entry) -> dict[str, Any] | None:
    law, _, text = entry.value.partition(":")
    law = law.strip()
    if law == "sequence":
        return None
    if law in ("normal", "gauss"):
        entry.refuse(f"fio knows it, Loadstone does not: {law} cannot be drawn; use zipf, pareto or zoned")
    if law not in ("random", "zipf", "pareto", "zoned", "zoned_abs"):
        entry.refuse("must be one of: random, zipf:THETA, pareto:H, zoned:..., zoned_abs:..., sequence:...")
    if law in ("zoned", "zoned_abs"):
        return {"kind": law, "zones": _zones(entry, text, law == "zoned")}
    if "/" in text:
        entry.refuse("fio knows it, Loadstone does not: hot blocks have no centre, the seed spreads them")
    if law == "random":
        return None
    if law == "zipf":
        return {"kind": "zipf", "exponent": _values.decimal(entry, text) if text else 1.1}
    share = _values.decimal(entry, text) if text else 0.2
    if not 0 < share < 1:
        entry.refuse(f"{share:g} must lie between 0 and 1")
    return {"kind": "pareto", "share": share}


def _zones(entry: Entry, text: str, in_percent: bool) -> list[dict[str, float]]:
    """Stretches of the file: shares of the requests, and of the file or its bytes."""
    if "," in text:
        entry.refuse("fio knows it, Loadstone does not: reads and writes have the same zones")
    zones: list[dict[str, float]] = []
    parts = text.split(":")
    for number, part in enumerate(parts, 1):
        access, slash, space = part.partition("/")
        if not slash:
            entry.refuse(f"{part.strip()!r} is no zone; write ACCESS/SIZE, as 60/10")
        if not space.strip() and in_percent and number == len(parts):
            # What is left of the file.
            left = max(0.0, 1 - sum(zone["space"] for zone in zones))
            zones.append({"share": _values.decimal(entry, access), "space": left})
            continue
        size = _values.decimal(entry, space) / 100 if in_percent else float(_values.size(entry, space))
        zones.append({"share": _values.decimal(entry, access), "space": size})
    if not 99.5 < sum(zone["share"] for zone in zones) < 100.5:
        entry.refuse("the accesses of all zones do not add up to 100")
    if in_percent and sum(zone["space"] for zone in zones) > 1:
        entry.refuse("the zones are more than 100 percent of the file")
    return zones


def _engine(load: Load) -> None:
    entries = load.job.entries
    entry = entries.get("ioengine")
    engine = "psync" if entry is None else entry.value
    if entry is not None and engine not in ENGINES:
        why = OTHER_ENGINES.get(engine.split(":")[0])
        if why is None:
            entry.refuse(f"must be one of: {', '.join(ENGINES)}")
        entry.refuse(f"fio knows it, Loadstone does not: {why}")
    load.backend, alone = ENGINES[engine]
    depth = _values.number(entries["iodepth"], least=1, most=_DEEPEST) if "iodepth" in entries else 1
    if alone and depth > 1:
        load.notes.append(f"iodepth has no effect with {engine}, in fio either: one request is in flight")
    load.depth = 1 if alone else depth
    _atomic(load, engine)
    if engine == "libaio":
        load.notes.append("libaio is performed by io_uring, or by threads where that is not permitted")
    for key in entries:
        if key in ("direct", "buffered"):
            load.direct = _values.flag(entries[key]) == (key == "direct")
    if load.atomic and not load.direct:
        entries["atomic"].refuse("needs direct=1, as the page cache tears writes apart")
    if entry := entries.get("sync"):
        known: dict[str, Literal["none", "sync", "dsync"]] = {"0": "none", "none": "none", "1": "sync"}
        load.sync = {**known, "sync": "sync", "dsync": "dsync"}[
            _values.choice(entry, "none", "0", "sync", "1", "dsync")
        ]


def _atomic(load: Load, engine: str) -> None:
    """Whether each write is stored whole or not at all; what a file can do of it is known once it is open."""
    entry = load.job.entries.get("atomic")
    if entry is None or not _values.flag(entry):
        return
    if engine not in ATOMIC_ENGINES:
        entry.refuse(f"needs one of the engines {', '.join(ATOMIC_ENGINES)}")
    if load.reads == 1 or load.discards:
        load.notes.append("atomic has no effect on a job that writes nothing, in fio either")
        return
    load.atomic = True


def _amount(load: Load) -> None:
    """Where a job begins in its file, how much it moves, and when it ends."""
    entries = load.job.entries
    if entry := entries.get("size"):
        load.size = _values.portion(entry)
        if load.size[0] == 0:
            entry.refuse("is nothing; write how much, or leave it out where the file is there")
    if entry := entries.get("filesize"):
        if "-" in entry.value or "," in entry.value:
            entry.refuse("fio knows it, Loadstone does not: files of a job have one size")
        load.file_size = _values.size(entry)
        if load.file_size == 0:
            entry.refuse("is nothing")
    if entry := entries.get("io_size"):
        moved, percent = _values.portion(entry)
        if percent:
            load.share = moved or 100
        else:
            load.moved = moved or None
    if entry := entries.get("loops"):
        load.loops = max(_values.number(entry, most=1 << 20), 1)
    if entry := entries.get("offset"):
        load.offset = _values.portion(entry)
    if entry := entries.get("offset_increment"):
        load.increment = _values.portion(entry)
    if load.loops > 1:
        # Judged by fio 3.33, which then does some of them, and other numbers from one job to the next.
        odd = [key for key in ("io_size", "offset", "offset_increment") if key in entries]
        if odd and not load.sequential:
            entries["loops"].refuse(
                f"goes with {odd[0]} in ways of fio's own; write io_size that much larger"
            )
    if entry := entries.get("number_ios"):
        load.requests = _values.number(entry)
    if entry := entries.get("runtime"):
        load.runtime = _values.seconds(entry) or None
    if entry := entries.get("time_based"):
        load.endless = _values.flag(entry)
        if load.endless and load.runtime is None:
            load.notes.append("time_based has no effect without runtime, in fio either")
            load.endless = False
        for key in ("number_ios", "loops"):
            if load.endless and key in entries:
                load.notes.append(f"{key} has no effect with time_based, in fio either")


def _place(load: Load) -> None:
    """Names of the files, not yet below any directory."""
    entries = load.job.entries
    if entry := entries.get("directory"):
        load.directories = [part.replace("\\:", ":") for part in re.split(r"(?<!\\):", entry.value)]
        if "" in load.directories:
            entry.refuse("has an empty name")
    if entry := entries.get("nrfiles"):
        most = _MOST_NAMES if load.backend in BY_NAME else _MOST_FILES
        load.many = _values.number(entry, least=1, most=most)
    if entry := entries.get("filename_format"):
        load.name_format = entry.value
        rest = re.sub(r"\$(jobname|jobnum|filenum)", "", entry.value)
        if "$" in rest or not entry.value:
            entry.refuse("is made of text, $jobname, $jobnum and $filenum")
    if entry := entries.get("filename"):
        load.files = [part.replace("\\:", ":") for part in re.split(r"(?<!\\):", entry.value)]
        if "" in load.files:
            entry.refuse("has an empty name")
        if "-" in load.files:
            entry.refuse("fio knows it, Loadstone does not: standard input and output are no targets")
        if len(load.files) > _MOST_FILES:
            entry.refuse(f"has more than {_MOST_FILES} names")
        if len(set(load.files)) < len(load.files):
            entry.refuse("has a name twice")
        if "nrfiles" in entries and load.many != len(load.files):
            entries["nrfiles"].refuse(f"filename names {len(load.files)}; leave one of both out")
        if "filename_format" in entries:
            entries["filename_format"].refuse(f"filename in line {entry.line} names the files; leave one out")
        load.many = len(load.files)
    if load.many > 1 and load.backend not in BY_NAME:
        _in_turn(load)


def _in_turn(load: Load) -> None:
    """Refuses what cannot be on several files."""
    entry = load.job.entries.get("file_service_type")
    kind = "roundrobin" if entry is None else entry.value
    about = entry or load.job.entries.get("filename") or load.job.entries["nrfiles"]
    if load.skip:
        load.job.entries["rw"].refuse("skips bytes of one file; write a job for each")
    if load.sequential and kind != "sequential":
        about.refuse(
            f"{load.many} files are taken one after the other; write file_service_type=sequential, "
            "or a job for each"
        )
    if not load.sequential and kind not in ("random", "roundrobin"):
        about.refuse("blocks of several files are chosen by chance; use file_service_type=random")
    if load.skew is not None:
        about.refuse("hot blocks of several files cannot be told apart by file; write a job for each")
    if not load.sequential and kind == "roundrobin":
        load.notes.append("blocks of several files are chosen by chance, and files not in turn")


def _pace(load: Load, way: _values.Direction) -> None:
    entries = load.job.entries
    rate, iops = entries.get("rate"), entries.get("rate_iops")
    if (about := iops or rate) is not None and load.write_sizes:
        about.refuse("needs reads and writes of the same sizes; write a job for each")
    if rate is not None and iops is not None:
        iops.refuse(f"is a rate, and so is rate in line {rate.line}; leave one out")
    if entry := iops or rate:
        if way == "both" and entry.value.strip("0, "):
            load.byte_rate = _rates(load, entry)
        elif iops is not None:
            # fio makes it a rate of bytes, of requests of the smallest size.
            load.byte_rate = float(_values.directed(iops, way, _values.number, 0, "rates") * load.least)
        else:
            load.byte_rate = float(_values.directed(entry, way, _values.size, 0, "rates"))
    if entry := entries.get("rate_process"):
        load.poisson = _values.choice(entry, "linear", "poisson") == "poisson"
    if load.byte_rate and (load.poisson or not load.sizes):
        # Arrivals are so many a second, whatever sizes they have.
        whole = load.poisson and load.byte_rate >= load.least
        load.rate = float(load.byte_rate // load.least) if whole else load.byte_rate / load.least
        load.byte_rate = 0.0
    if load.rate or load.byte_rate:
        load.notes.append("requests at a rate are due at times of their own, and response counts from these")


def _rates(load: Load, entry: Entry) -> float:
    """Bytes per second of reads and writes, each of which fio limits: together these decide the mix."""
    one = _values.number if entry.key == "rate_iops" else _values.size
    parts = [one(entry, part) if part.strip() else 0 for part in entry.value.split(",")]
    read, write = parts[0], parts[1] if len(parts) > 1 else parts[0]
    if len(parts) > 3 or not read or not write:
        entry.refuse(
            "limits reads or writes alone, which skews their mix; give both a rate, or write two jobs"
        )
    load.reads = read / (read + write)
    load.notes.append(f"{entry.key} of reads and writes decides how many are reads: {load.reads:.0%}")
    return float((read + write) * (load.least if entry.key == "rate_iops" else 1))


def _steer(load: Load, interval: float) -> None:
    """What ends or steers the job, and where its requests lie in zones."""
    job = load.job
    entries = job.entries
    load.steady = read_steady(job, interval, load.notes)
    load.latency, load.flow, load.strided = read_latency(job), read_flow(job), read_zones(job)
    if load.latency is not None:
        about = entries["latency_target"]
        if load.backend == "sync" and load.depth == 1:
            load.backend = "io_uring"
        if load.rate or load.byte_rate:
            about.refuse("and a rate both say how much is in flight; leave one out")
        if load.backend != "io_uring" or uring_refused():
            about.refuse(
                "searches a depth, and needs io_uring; write ioengine=io_uring where it is permitted"
            )
    if load.flow is not None:
        about = entries["flow"]
        if load.rate or load.byte_rate:
            about.refuse("and a rate both hold requests back; leave one out")
        if load.delay or load.waits_for is not None:
            about.refuse("is of a job that begins later, and the others would wait; leave one out")
    if load.strided is not None:
        if not load.sequential or load.apart or load.skip or load.sequence or load.many > 1:
            entries["zonemode"].refuse(
                "is of requests that ascend through one file; write rw=read or rw=write"
            )
        if load.strided[0] % load.unit or load.strided[1] % load.unit:
            entries["zonesize"].refuse(f"and zoneskip must be multiples of the block, {load.unit}")
    if entry := entries.get("fallocate"):
        load.sparse = _values.choice(entry, "1", "native", "posix", "keep", "0", "none", "truncate") in (
            "0",
            "none",
            "truncate",
        )
    if entry := entries.get("fill_device"):
        load.fills = _values.flag(entry)
    if load.fills and load.reads:
        entries["fill_device"].refuse("is of jobs that only write")


def _rest(load: Load) -> None:
    entries = load.job.entries
    if entry := entries.get("numjobs"):
        load.workers = _values.number(entry, least=1, most=65_535)
    for key in entries:
        if key == "cpus_allowed":
            load.cpus = _values.cpus(entries[key])
        elif key == "cpumask":
            mask = _values.number(entries[key], least=1)
            load.cpus = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    if entry := entries.get("cpus_allowed_policy"):
        load.split = _values.choice(entry, "shared", "split") == "split"
    if entry := entries.get("nice"):
        load.nice = _values.number(entry, least=-20, most=19)
    load.ioprio = read_ioprio(load.job)
    if not load.direct:
        by_pattern: Literal["random", "sequential"] = "sequential" if load.sequential else "random"
        hints: dict[str, Literal["normal", "random", "sequential"]] = {
            "0": "normal",
            "none": "normal",
            "1": by_pattern,
            "random": "random",
            "sequential": "sequential",
        }
        hint = entries.get("fadvise_hint")
        load.advice = by_pattern if hint is None else hints[_values.choice(hint, *hints)]
    if entry := entries.get("randseed"):
        load.seed = _values.number(entry)
    if entry := entries.get("invalidate"):
        load.drop = _values.flag(entry)
    if load.drop and not load.direct and load.reads and (load.endless or load.loops > 1):
        load.notes.append(
            "fio drops its files' pages before each pass over them, Loadstone once before the first: what is "
            "read again may come from memory; direct=1 or invalidate=0 makes both alike"
        )
    if entry := entries.get("overwrite"):
        load.overwrite = _values.flag(entry)
    _content(load)
    _verify(load)
    if entry := entries.get("stonewall"):
        load.stonewall = _values.flag(entry)
    _when(load)


def _when(load: Load) -> None:
    """When the job begins, pauses, and ends others."""
    entries = load.job.entries
    if entry := entries.get("startdelay"):
        if "-" in entry.value:
            entry.refuse("fio knows it, Loadstone does not: a delay by chance; write one time")
        load.delay = _values.seconds(entry)
    if entry := entries.get("ramp_time"):
        load.ramp = _values.seconds(entry)
    if entry := entries.get("thinktime"):
        load.think = _values.microseconds(entry)
    if entry := entries.get("thinktime_blocks"):
        load.think_blocks = _values.number(entry, least=1)
    if load.think and (load.rate or load.byte_rate):
        entries["thinktime"].refuse("and a rate both space requests out; leave one out")
    if entry := entries.get("exitall"):
        load.ends_others = _values.flag(entry)
    if entry := entries.get("exit_what"):
        load.ends_later = _values.choice(entry, "group", "stonewall", "all") == "all"
    if entry := entries.get("wait_for"):
        load.waits_for = entry.value


def _content(load: Load) -> None:
    """What is asked of written data: fio tells shares of it, a plan ratios."""
    entries = load.job.entries
    if entry := entries.get("dedupe_percentage"):
        load.dedupe = 100 / (100 - _values.number(entry, most=99))
    if entry := entries.get("buffer_compress_percentage"):
        share = _values.number(entry, most=90)
        if 0 < share < 5:
            entry.refuse("is less than codecs need to find anything; write 0, or 5 to 90")
        load.compress = 100 / (100 - share)
    # The other two imply it.
    load.refilled = load.dedupe > 1 or load.compress > 1
    if entry := entries.get("refill_buffers"):
        load.refilled |= _values.flag(entry)


def _verify(load: Load) -> None:
    """Whether what is written is verified."""
    entry = load.job.entries.get("verify")
    if entry is None or (asked := entry.value.strip().lower()) in NO_CHECKSUM:
        return
    if asked not in CHECKSUMS:
        entry.refuse(
            "is no checksum of blocks; write verify=crc32c, and blocks are verified in our own way "
            "(docs/explanation/verification.md)"
        )
    load.verified = True
    load.notes.append(
        f"verify={asked}: blocks carry marks of our own; whatever is read is compared, and all at the end"
    )


def _remarks(load: Load) -> None:
    """Notes on keys that are accepted, and on what is otherwise without any key."""
    entries = load.job.entries
    for key, entry in entries.items():
        accepted = ACCEPTED.get(key)
        if accepted is not None and accepted.silent is not None and entry.value not in accepted.silent:
            load.notes.append(f"{key}={entry.value} has no effect: {accepted.why}")
