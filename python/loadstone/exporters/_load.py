"""What of a model others can be told: pieces of time with rates, sizes, places and runs by op."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from loadstone._units import size
from loadstone._values import MOST
from loadstone.errors import Error
from loadstone.model import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

READ, WRITE, FLUSH, DISCARD = 0, 1, 2, 3

Key = TypeVar("Key")

SIZES = 64
"""Sizes of a direction that are told apart; rarer ones join the next."""

NEAR = 1e-3
"""Part of the mean size that may be lacking, or too much, where sizes become percents."""

QUANTILES = 100
"""Places of a direction are told by so many parts with equally many requests."""

_KEPT = 1 << 19
"""Requests of a direction and piece that are kept to tell its places and sizes; of more every second, fourth,
..."""

_LARGEST = 1 << 40
"""Bytes of a request beyond which none is written for another tool: as of a column in another unit."""


@dataclass
class Direction:
    """Reads, or writes, of a piece of time."""

    requests: int
    """How many."""
    sizes: dict[int, int]
    """Requests by size in bytes, ascending: at most :data:`SIZES`."""
    edges: list[int]
    """Offsets (bytes) between which lie one in :data:`QUANTILES` requests each; from 0 to the extent."""
    sequential: float
    """Share that begins where the one before of the same direction ended."""
    moved: int = 0
    """Bytes of them, where :attr:`sizes`, which rarer sizes have joined, has others; 0: those of sizes."""

    @property
    def bytes(self) -> int:
        """Bytes that they move."""
        return self.moved or sum(size * n for size, n in self.sizes.items())


@dataclass
class Piece:
    """A stretch of time."""

    start: float
    """Seconds from the start."""
    seconds: float
    """How long it is."""
    directions: dict[int, Direction]
    """By op: reads (0) and writes (1), those that occur; none where nothing is moved."""
    flushes: int
    """Flush requests in it."""
    discards: int
    """Discard requests in it."""


@dataclass
class Job:
    """What one job of an exported load does, in numbers as the exporter wrote them, to be played through."""

    op: int
    start: float
    """Seconds from the start."""
    seconds: float
    requests: int
    sizes: dict[int, int]
    """Weights by size in bytes."""
    zones: list[tuple[int, int, int]]
    """First byte, one past the last, and weight."""
    sequential: float
    align: int
    """Bytes that offsets are multiples of."""
    by_bytes: bool = False
    """A request is due when those before it are moved at a rate of bytes, not so long after another."""


@dataclass
class Load:
    """A model as pieces of time."""

    name: str
    """Of the model, for comments."""
    pieces: list[Piece]
    extent: int
    """Bytes of all objects, laid end to end."""
    requests: int
    losses: list[str] = field(default_factory=list)
    """What could not be expressed, a sentence each."""
    needs: list[str] = field(default_factory=list)
    """How large the target is and what becomes of it first, a sentence each."""
    jobs: list[Job] = field(default_factory=list)
    """What the exporter made of it."""


def percents(counts: dict[Key, int]) -> dict[Key, int]:
    """Whole percents that add up to 100, by largest remainder; those that come to nothing are left out."""
    total = sum(counts.values())
    exact = {key: 100 * n / total for key, n in counts.items()}
    out = {key: int(share) for key, share in exact.items()}
    for key in sorted(exact, key=lambda key: out[key] - exact[key])[: 100 - sum(out.values())]:
        out[key] += 1
    return {key: share for key, share in out.items() if share}


def size_percents(of: Direction) -> dict[int, int]:
    """Whole percents of sizes that add up to 100 and keep the mean size, and so the bytes, as they can.

    Every share is the exact one rounded up or down. Begun with largest remainders, roundings of two sizes
    are exchanged as long as that brings the mean nearer: without it, large sizes that are rare are lost,
    and with them most of the bytes.
    """
    total = sum(of.sizes.values())
    exact = {size: 100 * n / total for size, n in of.sizes.items()}
    out = {size: 0 for size in of.sizes} | percents(of.sizes)
    lack = 100 * of.bytes / of.requests - sum(size * share for size, share in out.items())
    while abs(lack) > NEAR * 100 * of.bytes / of.requests:
        up = [size for size in out if out[size] > exact[size]]
        down = [size for size in out if out[size] < exact[size]]
        lost, won = min(
            ((a, b) for a in up for b in down), key=lambda two: abs(lack + two[0] - two[1]), default=(0, 0)
        )
        if abs(lack + lost - won) >= abs(lack):
            break
        out[lost] -= 1
        out[won] += 1
        lack += lost - won
    return {size: share for size, share in out.items() if share}


def unmoved(load: Load, *, flushes: str, discards: str) -> list[str]:
    """What is lost of requests that are no reads or writes, with the reason."""
    counts = {what: sum(getattr(piece, what) for piece in load.pieces) for what in ("flushes", "discards")}
    moved = sum(of.requests for piece in load.pieces for of in piece.directions.values())
    told = []
    if other := load.requests - moved - sum(counts.values()):
        told.append(f"{other:,} requests that move nothing;")
    if counts["flushes"]:
        told.append(f"{counts['flushes']:,} flushes: {flushes};")
    if counts["discards"]:
        told.append(f"{counts['discards']:,} discards: {discards}.")
    return told


class _Part:
    """Requests of one direction and piece, while they are gathered."""

    def __init__(self) -> None:
        import numpy as np

        # Offsets and sizes of the requests that are kept: each so-many-th.
        self.kept: Ints = np.empty((2, 0), np.int64)
        self.each = 1
        self.requests = self.moved = self.followed = 0
        self.end = -1

    def add(self, offset: Ints, size: Ints) -> None:
        import numpy as np

        ends = offset + size
        self.followed += int((offset[1:] == ends[:-1]).sum()) + int(offset[0] == self.end)
        self.end = int(ends[-1])
        first = -self.requests % self.each
        self.requests += len(offset)
        self.moved += int(size.sum())
        self.kept = np.concatenate((self.kept, np.stack((offset, size))[:, first :: self.each]), axis=1)
        while self.kept.shape[1] > _KEPT:
            self.kept = self.kept[:, ::2].copy()
            self.each *= 2

    def direction(self, extent: int) -> Direction:
        import numpy as np

        offset, size = self.kept
        values, counts = np.unique(size, return_counts=True)
        counts *= self.each
        if len(values) > SIZES:
            # The commonest stay; each other joins the nearest of them.
            kept = np.sort(values[np.argsort(-counts, kind="stable")[:SIZES]])
            nearest = np.abs(values[:, None] - kept[None, :]).argmin(axis=1)
            counts = np.bincount(nearest, weights=counts, minlength=SIZES).astype(np.int64)
            values = kept
        quantiles = np.quantile(offset, np.arange(1, QUANTILES) / QUANTILES, method="lower")
        edges = [0, *(int(edge) for edge in quantiles), extent]
        sizes = dict(zip(values.tolist(), counts.tolist(), strict=True))
        return Direction(self.requests, sizes, edges, self.followed / self.requests, self.moved)


def digest(model: Model, name: str, pieces: int, seed: int = 1) -> Load:
    """The load of a model, from one drawn stream, in at most so many pieces of time.

    Objects are laid end to end, in the order of their ids.
    """
    import numpy as np

    if model.of_files:
        raise Error(f"{name}: draws requests of files, which no exporter can express; run it: loadstone run")
    bases: dict[int, int] = {}
    extent = 0
    for item in sorted(model.header["objects"], key=lambda o: o["id"]):
        bases[item["id"]] = extent
        extent += int(item["extent"])
    if extent > MOST:
        raise Error(f"{name}: its objects reach over {size(extent)} together, which no target has")
    base = np.zeros(max(bases, default=0) + 1, np.int64)
    base[list(bases)] = list(bases.values())
    edges = _cuts(model, pieces)
    parts: dict[tuple[int, int], _Part] = {}
    others = np.zeros((len(edges) - 1, 2), np.int64)
    sampler, requests = model._core.sampler(seed), 0
    while (columns := sampler.next()) is not None:
        requests += len(columns["time"])
        if (largest := int(columns["size"].max(initial=0))) > _LARGEST:
            raise Error(f"{name}: draws requests of {size(largest)}, which no load generator can make")
        place = np.clip(np.searchsorted(edges, columns["time"], side="right") - 1, 0, len(edges) - 2)
        offset = columns["offset"] + base[columns["object"]]
        for piece in np.unique(place).tolist():
            mine = place == piece
            for op in (READ, WRITE):
                rows = mine & (columns["op"] == op) & (columns["size"] > 0) & (columns["offset"] >= 0)
                if rows.any():
                    parts.setdefault((piece, op), _Part()).add(offset[rows], columns["size"][rows])
            for i, op in enumerate((FLUSH, DISCARD)):
                others[piece, i] += int((mine & (columns["op"] == op)).sum())
    found = []
    for piece in range(len(edges) - 1):
        directions = {op: parts[piece, op].direction(extent) for op in (READ, WRITE) if (piece, op) in parts}
        start, end = edges[piece] / 1e9, edges[piece + 1] / 1e9
        found.append(Piece(start, end - start, directions, int(others[piece, 0]), int(others[piece, 1])))
    load = Load(name, found, extent, requests)
    if len(bases) > 1:
        load.losses.append(f"which of {len(bases):,} objects is asked: they lie end to end on one target;")
    return load


def _cuts(model: Model, pieces: int) -> Any:
    """Times (ns) between the pieces: at changes of phase where these are few, else by requests."""
    import numpy as np

    counts, _ = model.windows()
    ends = [phase["windows"][1] for phase in model.phases()]
    if len(ends) > pieces:
        done = np.cumsum(counts)
        marks = np.arange(1, pieces + 1) * done[-1] / pieces
        ends = sorted(set((np.searchsorted(done, marks - 0.5) + 1).tolist()))
    ends[-1] = len(counts)
    return model.window_starts()[[0, *ends]] * 1e9
