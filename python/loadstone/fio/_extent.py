"""What part of a file a job uses and how many requests it makes there, reckoned as fio reckons it.

Judged by fio 3.33: shares are of the file as it is before any job runs (nothing of one that is not
there yet). Offsets that a share has a part in are rounded up to the smallest block, sizes are bounded by
what is left and rounded down to it. What is left at the end of a file and fills no block is no request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadstone.fio._load import Load

Portion = tuple[int, bool]


@dataclass(frozen=True)
class Part:
    """A worker's part of one of its files."""

    base: int
    """Its first byte."""
    size: int
    """Bytes from there on."""
    blocks: int
    """Requests of the smallest size that fit."""
    bytes: int
    """Of those that are used; requests that ascend use one that reaches beyond ``size`` if it is there."""


def base_of(load: Load, number: int, there: int) -> int:
    """Where worker ``number`` of a job begins in a file of ``there`` bytes."""

    def of(portion: Portion) -> int:
        return there * portion[0] // 100 if portion[1] else portion[0]

    base = of(load.offset) + number * of(load.increment)
    if load.offset[1] or load.increment[1]:
        base = -(-base // load.least) * load.least
    return base


def part_of(
    load: Load, base: int, there: int, files: int, fixed: bool, refuse: Callable[[str], object]
) -> Part:
    """The part from ``base`` on of a file of ``there`` bytes, one of ``files``; ``fixed``: it cannot grow.

    ``refuse`` raises an error.
    """
    whole = there if load.file_size is None else load.file_size
    if load.file_size is None and load.size is not None and not load.size[1]:
        size = load.size[0] // files
    else:
        if base > whole:
            refuse(f"begins at byte {base}, and there are {whole}")
        size = whole - base
    if load.size is not None and load.size[1] and load.size[0] != 100:
        size = min(whole * load.size[0] // 100, size)
        size -= size % load.least
    if fixed and base + size > there and (base == 0 or load.sequential):
        # fio ends at the end of a device, too.
        size = max(there - base, 0)
    blocks = size // load.unit
    reached = blocks * load.unit
    if load.sequential and not load.sizes and size % load.unit and base + reached + load.unit <= there:
        blocks += 1
        reached += load.unit
    return Part(base, size, blocks, reached if load.sequential and not load.sizes else size)


def pieces_of(load: Load, part: Part, most: int) -> list[tuple[int, int]]:
    """Begin and bytes of the pieces of a part that requests ascend through, in order; empty where they are
    more than ``most``."""
    if load.strided is not None:
        length, step = load.strided
        if part.size // step >= most:
            return []
        begins = range(0, part.size - load.unit + 1, step)
        sizes = (min(length, part.size - at) // load.unit * load.unit for at in begins)
        return [(part.base + at, size) for at, size in zip(begins, sizes, strict=True)]
    if load.sequence is None:
        return [(part.base, part.bytes)]
    # Each time the numbers have moved on, and begin again at the front once they are beyond the end.
    numbers, stride = load.sequence
    times = part.blocks // math.gcd(part.blocks, stride) if stride else 1
    if times * len(numbers) > most:
        return []
    found = [(number + stride * time) % part.blocks for time in range(times) for number in numbers]
    return [(part.base + block * load.unit, load.unit) for block in found]


@dataclass(frozen=True)
class Amount:
    """How much a worker does before it ends."""

    requests: int
    """At most so many; 0: no limit."""
    bytes: int
    """Until they have so many bytes; 0: no limit."""


def amount_of(load: Load, parts: Sequence[Part], endless: bool) -> Amount:
    """When a worker ends; ``endless``: when its time is over, and no sooner."""
    most = load.requests * load.loops
    if endless:
        return Amount(0 if load.endless else most, 0)
    total = sum(part.size * load.share // 100 for part in parts)
    limit = total if load.size is None or load.size[1] else min(load.size[0], total)
    moved = (load.moved or limit) * load.loops
    if load.loops > 1 and load.moved is not None and load.moved > total:
        load.job.entries["loops"].refuse("goes with an io_size above the file's in ways of fio's own")
    if load.strided is not None or load.sequence is not None:
        requests = -(-moved // load.most)
        return Amount(min(requests, most) if most else requests, 0)
    once = sum(part.blocks for part in parts) * load.unit
    if load.sequential and any(row["high"] % load.least for row in load.sizes):
        # Sizes of all kinds fit to the end.
        once = sum(part.size for part in parts)
    # In a pass over the blocks each comes once. It is not begun again for less than the largest request.
    if load.skip > 0 and load.moved is None:
        # fio ends with the first pass, unless that skips the end of the file: then it begins again.
        step = load.unit + load.skip
        counts = [max(part.size - load.unit, 0) // step + 1 for part in parts]
        ends = [(count - 1) * step + load.unit for count in counts]
        if all(
            end == part.size or end + load.skip < part.size for end, part in zip(ends, parts, strict=True)
        ):
            moved = sum(counts) * load.unit * load.loops
    passes = load.once or (load.sequential and not load.apart and not load.skip)
    if passes and load.moved is None:
        moved = min(moved, once * load.loops)
    elif passes and once and moved > once and moved % once < load.most:
        moved -= moved % once
    if load.sizes:
        return Amount(most, moved)
    requests = -(-moved // load.most)
    return Amount(min(requests, most) if most else requests, 0)
