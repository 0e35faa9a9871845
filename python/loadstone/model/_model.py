"""A fitted model: what it says, and what can be drawn from it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from loadstone import _core
from loadstone._other import wanted
from loadstone.errors import Error
from loadstone.trace import Options, Path
from loadstone.trace.options import Paths, Progress, options_json, paths_list

# Fitting needs no numpy, which takes a tenth of a second to load.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

_NONE = -(2**63)

CELL_BITS = 16.0
"""Bits that each cell of a factored model has to save when nothing else is asked for."""

_ENDINGS = {"blktrace", "csv", "fst", "gz", "iolog", "json", "mdh", "msr", "spc", "strace", "txt", "zst"}
"""What a sample is not: endings of other formats."""

_FEW = 3
"""Requests on average below which a window tells of single ones."""
LEAST = 10
"""How often an exact value must have been seen to stand in a model that is published."""


class Phase(TypedDict):
    """A run of windows with the same matrix."""

    windows: tuple[int, int]
    """First window and one past the last."""
    start: float
    """Seconds from the start of the trace."""
    end: float
    """Seconds from the start of the trace."""
    matrix: int
    """Which matrix."""
    requests: int
    """Requests in all its windows."""


class Marginal(NamedTuple):
    """Requests by bucket of one dimension; the arrays have one entry for each bucket that is used."""

    first: Ints
    """Smallest number of the bucket, in the dimension's unit; meaningless where ``none``."""
    last: Ints
    """Largest number of the bucket."""
    counts: Ints
    """Requests in it."""
    none: npt.NDArray[np.bool_]
    """Whether it is the bucket of requests that have no such number, or where another dimension
    decides."""


class Link(TypedDict):
    """One table of a factored model."""

    dimension: str
    """What it sets."""
    given: list[str]
    """The dimensions that it is given, the most telling first."""
    by_matrix: bool
    """Whether every matrix has its own; else all share one."""
    cells: int
    """Cells of all its tables."""
    formulas: list[dict[str, Any]]
    """What stands for the cells of slices."""
    tied: str | None
    """A dimension that it is not given, but tied to by one odds ratio."""
    continues: list[int]
    """How many of 256 requests of each matrix continue the one before, where its cells do not tell."""


class Tally(TypedDict):
    """What the sampler had to do besides drawing."""

    requests: int
    """Requests generated."""
    backed_off: int
    """Requests that follow something else than they are given, because nothing else was left."""
    displaced: int
    """Requests that could not be quite as they were drawn: they went elsewhere, or got another size."""


class Model:
    """Multi-dimensional histograms of a trace, by phase."""

    def __init__(self, core: Any, path: str | None = None) -> None:
        """Wraps what the core made; use :func:`fit` or :meth:`load`."""
        self._core = core
        self.path = path
        """The file that it was read from or saved to last."""

    def __repr__(self) -> str:
        """``<Model x.mdh: 1,000 block requests in 2.5 s, 400 requests/s, 30.0% reads, 52 KiB on disk>``."""
        from loadstone.model import _shown

        return f"<{type(self).__name__} {_shown.line(self)}>"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        from loadstone.model import _shown

        return _shown.html(self)

    @cached_property
    def header(self) -> dict[str, Any]:
        """Everything but the cells, as ``docs/reference/formats/model.md`` describes it."""
        found: dict[str, Any] = json.loads(self._core.header())
        return found

    @staticmethod
    def load(path: Path) -> Model:
        """Reads a model file and checks all of it.

        Raises ``TraceError`` where it cannot be opened, and ``ModelError`` where it is damaged or of a newer
        format.
        """
        with wanted("model", path):
            return Model(_core.Model.load(os.fspath(path)), os.fspath(path))

    def save(self, path: Path, *, force: bool = False) -> None:
        """Writes the model; the file appears only when it is whole, and replaces one by ``force``."""
        self._core.save(os.fspath(path), force)
        self.path = os.fspath(path)

    def published(self, *, least: int = LEAST) -> Model:
        """The model without what could identify its origin.

        Names of objects, dates, the reader's warnings and counts are left out; every exact value seen fewer
        than ``least`` times joins the bucket around it, and largest numbers, extents and the length are
        rounded up.
        """
        return Model(self._core.published(least))

    def exposed(self, *, least: int = LEAST) -> str | None:
        """How far windows or matrices reveal single requests, in words; ``None``: each has several.

        Publishing leaves counts as they are: how many requests each window has, and what those of a matrix
        are like. Where they have one or two each, the model is the trace in other words.
        """
        counts, _ = self.windows()
        full = counts[counts > 0]
        mean = self.requests / max(len(full), 1)
        if mean < _FEW:
            return (
                f"windows of {self.window:.3g} s have {mean:.1f} requests on average, so the model shows "
                "when single requests were made; a longer `window` has more"
            )
        of_matrices = [matrix["requests"] for matrix in self.matrices()]
        if self.requests / max(len(of_matrices), 1) < least:
            mean = self.requests / len(of_matrices)
            return (
                f"{len(of_matrices):,} matrices have {mean:.1f} requests on average, so the model shows "
                "what single requests were like; `group` and `threshold` make fewer"
            )
        return None

    def factored(self, *, cell_bits: float = CELL_BITS) -> Model:
        """The model stored as a chain of small tables: each dimension given only those that say most of it.

        A dimension is given another one, or has a table of its own for every matrix, only where each cell
        that this takes more saves ``cell_bits`` bits of what it costs to tell the requests. The more bits,
        the smaller the file, and the more of what dimensions say of each other is lost (``header["chain"]``).
        Ops always have a table for each matrix, and sizes one for each op and matrix. Where no chain has
        fewer cells, the joint tables stay.
        """
        return Model(self._core.factored(float(cell_bits)))

    def with_formulas(self, formulas: Sequence[tuple[int, dict[str, Any]]]) -> Model:
        """The factored model with formulas in place of cells: number of the link, formula as in the file.

        How many requests each stands for is counted. :func:`approximated` finds them.
        """
        return Model(self._core.approximated(json.dumps(list(formulas))))

    @property
    def chain(self) -> list[Link]:
        """Tables of a factored model in the order of drawing; empty for a joint one."""
        cells_of = self._core.link_cells()
        if not cells_of:
            # The header of a long joint model takes a while to read.
            return []
        names, links = self.dimensions, self.header["chain"]["links"]
        return [
            Link(
                dimension=names[link["dimension"]],
                given=[names[d] for d in link.get("given", [])],
                by_matrix=link.get("by_matrix", False),
                cells=cells,
                formulas=link.get("formulas", []),
                tied=names[link["tie"]["dimension"]] if link.get("tie") else None,
                continues=link.get("continues", []),
            )
            for link, cells in zip(links, cells_of, strict=True)
        ]

    @property
    def stored_cells(self) -> int:
        """Number of cells in the file; of a factored model fewer than :meth:`cells` returns."""
        return int(self._core.stored_cells())

    def scaled(
        self,
        *,
        rate: float | None = None,
        footprint: float | None = None,
        read_share: float | None = None,
        size: float | None = None,
    ) -> Model:
        """The model with some properties changed, the others as they were.

        ``rate``: so many times as many requests per second, in every window; gaps shrink as numbers grow.
        ``footprint``: objects so many times as large; what does not go on from other requests or come back to
        places lies farther apart. ``read_share``: reads in reads and writes, above 0 and below 1; the odds
        change by one factor at all times. ``size``: requests so many times as large, rounded to the grain of
        sizes. Raises ``Error`` where a factor is not finite or not above 0, or the model has nothing to scale
        by it.
        """
        asked = {"rate": rate, "footprint": footprint, "read_share": read_share, "size": size}
        plain = {name: float(value) for name, value in asked.items() if value is not None}
        if wrong := [name for name, value in plain.items() if not math.isfinite(value)]:
            raise Error(f"{', '.join(wrong)}: {plain[wrong[0]]} is no number to scale by")
        return Model(self._core.scaled(json.dumps(plain)))

    @property
    def requests(self) -> int:
        """Requests of the whole stream."""
        return sum(requests for _, requests in self._core.matrices())

    @property
    def of_files(self) -> bool:
        """Whether it draws requests of files, whose names are made up, and not of blocks."""
        return any(d["feature"] == "file" and d["role"] == "sets" for d in self.header["dimensions"])

    @property
    def window(self) -> float:
        """Length of a window in seconds."""
        return float(self._core.window_ns() / 1e9)

    @property
    def dimensions(self) -> list[str]:
        """Names of the dimensions."""
        return [d["feature"] for d in self.header["dimensions"]]

    def windows(self) -> tuple[Ints, Ints]:
        """Requests and matrix of every window."""
        counts, matrices = self._core.windows()
        return counts, matrices

    def window_starts(self) -> Floats:
        """Where each window begins and, one number more, where the last one ends; seconds."""
        starts: Floats = self._core.window_starts() / 1e9
        return starts

    def over_time(self, most: int) -> tuple[float, Floats]:
        """Length of an interval in seconds, and requests by interval (rows, at most so many) and matrix.

        Windows that lie in several intervals are spread evenly over these.
        """
        import numpy as np

        counts, matrices = self.windows()
        starts, shortest = self._core.window_starts(), self._core.window_ns()
        whole = int(starts[-1]) // shortest
        step = -(-whole // most)
        length = step * shortest
        found = np.zeros((-(-whole // step), len(self.matrices())))
        first, last = starts[:-1] // length, (starts[1:] - 1) // length
        inside = first == last
        np.add.at(found, (first[inside], matrices[inside]), counts[inside])
        for i in np.flatnonzero(~inside & (counts > 0)).tolist():
            edges = np.clip(np.arange(first[i], last[i] + 2) * length, starts[i], starts[i + 1])
            found[first[i] : last[i] + 1, matrices[i]] += counts[i] * np.diff(edges) / (edges[-1] - edges[0])
        return length / 1e9, found

    @property
    def warnings(self) -> list[str]:
        """What reading the trace reported."""
        return list(self._core.warnings())

    def matrices(self) -> list[dict[str, int]]:
        """``cells`` and ``requests`` of each matrix."""
        return [{"cells": cells, "requests": requests} for cells, requests in self._core.matrices()]

    def phases(self) -> list[Phase]:
        """The phases in order of time; they cover all windows."""
        return [
            Phase(windows=windows, start=start / 1e9, end=end / 1e9, matrix=matrix, requests=requests)
            for windows, (start, end), matrix, requests in self._core.phases()
        ]

    def marginal(self, dimension: str, matrix: int | None = None) -> Marginal:
        """Requests by bucket of one dimension, of one matrix or of all, in order of the numbers."""
        import numpy as np

        columns = self._core.marginal(dimension, matrix)
        none = columns["first"] == _NONE
        order = _order(columns)
        return Marginal(
            columns["first"][order],
            columns["last"][order],
            columns["count"][order].astype(np.int64),
            none[order],
        )

    def measured(self, n: int, *, seed: int = 0) -> dict[str, Ints]:
        """The first ``n`` generated requests, measured anew by the dimensions of the model.

        By dimension, one count for each bucket of :meth:`marginal`, and one more for what fell in none.
        """
        import numpy as np

        out = {}
        for name, (codes, counts) in self._core.measured(seed, n).items():
            columns = self._core.marginal(name, None)
            known = columns["code"][_order(columns)]
            found = dict(zip(codes.tolist(), counts.tolist(), strict=True))
            own = [found.pop(code, 0) for code in known.tolist()]
            out[name] = np.array([*own, sum(found.values())], dtype=np.int64)
        return out

    def cells(self) -> Any:
        """All cells as an Arrow table: matrix, table, one code for each dimension, count.

        A code is -1 where the table does not have the dimension; what codes stand for is told by
        the dimension's rule (``docs/reference/formats/model.md``).
        """
        return as_table(self._core.cells())

    def columns(self) -> dict[str, Ints]:
        """The columns of :meth:`cells` as numpy arrays."""
        found: dict[str, Ints] = self._core.cells()
        return found

    def stored(self) -> dict[str, Ints]:
        """The cells that the file has, as :meth:`columns`; in a factored model the links of its chain are the
        tables, and matrix -1 is what all matrices share."""
        found: dict[str, Ints] = self._core.stored()
        return found

    def ranges(self, dimension: str, first: int, last: int) -> dict[str, Ints]:
        """``code``, ``first`` and ``last`` number of all buckets between two codes, ascending."""
        found: dict[str, Ints] = self._core.ranges(dimension, first, last)
        return found

    def buckets(self, dimension: str) -> dict[str, Ints]:
        """``code``, ``first`` and ``last`` number of each bucket in use; -2^63 where there is no number."""
        found: dict[str, Ints] = self._core.marginal(dimension, None)
        return found

    def sample(self, n: int | None = None, *, seed: int = 0) -> Any:
        """Generated requests as an Arrow table: the whole stream, or its first ``n`` requests.

        Columns ``time`` (ns), ``op``, ``object``, ``offset`` and ``size`` (bytes, null where the
        request has none).
        """
        import numpy as np

        sampler = self._core.sampler(seed)
        parts: dict[str, list[npt.NDArray[Any]]] = {
            name: [] for name in ("time", "op", "object", "offset", "size")
        }
        got = 0
        while (n is None or got < n) and (columns := sampler.next()) is not None:
            for name, column in columns.items():
                parts[name].append(column if n is None else column[: n - got])
            got += len(columns["time"])
        empty: npt.NDArray[Any] = np.zeros(0, np.int64)
        return as_table({name: np.concatenate(part or [empty]) for name, part in parts.items()})

    def write_sample(
        self, out: Path, *, seed: int = 0, force: bool = False, progress: Progress | None = None
    ) -> Tally:
        """Writes a whole generated stream as a trace (Parquet); another format's ending is refused.

        Raises ``Error`` where the ending is another, or ``out`` exists and ``force`` is not set.
        """
        ending = os.path.splitext(os.fspath(out))[1][1:].lower()
        if ending in _ENDINGS:
            raise Error(
                f"{os.fspath(out)}: a sample is written as Parquet; name a .parquet file, of which "
                "loadstone trace convert makes other formats"
            )
        done = self._core.write_sample(os.fspath(out), seed, force, progress)
        requests, backed_off, displaced = done
        return Tally(requests=requests, backed_off=backed_off, displaced=displaced)


def merge(
    models: Sequence[Model],
    *,
    shifts: Sequence[float] = (),
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Model:
    """A model of several loads at once on one store, each on objects of its own.

    ``shifts`` are the seconds after which each begins (0 where not given). The requests of all are drawn and
    fitted together: one load's follow the other's then, and what a request goes on from lies farther back.
    The models must have the same dimensions with the same bucket rules; observed ones that drawn requests do
    not have (latency, actor, ...) are left out. ``progress(done, total)`` is called with requests. Raises
    ``Error`` where their dimensions or rules differ.
    """
    moved = [round(shift * 1e9) for shift in shifts]
    return Model(_core.model_merge([model._core for model in models], moved, seed, progress))


def _order(columns: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.intp]:
    """Buckets in order of their numbers, that of no number first."""
    import numpy as np

    return np.lexsort((columns["last"], columns["first"], columns["first"] != _NONE))


def as_table(columns: dict[str, npt.NDArray[Any]]) -> Any:
    """An Arrow table of numpy columns; the core's mark for "not known" becomes null."""
    import numpy as np
    from arro3.core import Array, DataType, Table

    def array(values: npt.NDArray[Any]) -> Any:
        if values.dtype == np.int64 and (values == _NONE).any():
            plain = [None if v == _NONE else v for v in values.tolist()]
            return Array(plain, DataType.int64())
        return Array.from_numpy(np.ascontiguousarray(values))

    return Table.from_pydict({name: array(values) for name, values in columns.items()})


# What says which request waits for which, and how long.
_WAITS = ("actor", "after", "think")


def _named(dimension: str) -> str:
    """The name in ``role:name=rule``."""
    return dimension.partition("=")[0].rpartition(":")[2]


def _waiting(dimensions: Sequence[str], without: Sequence[str]) -> list[str]:
    """The dimensions, and those that think times need; each of these as it was asked for, if it was."""
    for name in _WAITS:
        if name in without:
            raise Error(f"without {name}: with think times it is needed; leave out one of the two")
        for dimension in dimensions:
            role = dimension.partition("=")[0].rpartition(":")[0]
            if _named(dimension) == name and role not in ("", "sets"):
                raise Error(f"{dimension}: with think times {name} is set; use sets:{name}")
    asked = {_named(one): one for one in dimensions}
    waits = [asked.get(name, name) for name in _WAITS]
    others = [one for one in dimensions if _named(one) not in _WAITS]
    return [*others, *(one if one.startswith("sets:") else f"sets:{one}" for one in waits)]


# What a small model has where nothing else is asked for: found by trial on four block traces.
_SMALL = {"in_window": 32, "threshold": 0.25, "cell_bits": 250}
_SMALL_OF_BLOCKS = {"regions": 8, "far": 64 << 20}


def _smaller(asked: dict[str, Any], layer: str) -> dict[str, Any]:
    """The same with the options of a small model of this layer where none are given."""
    small: dict[str, Any] = dict(_SMALL)
    if layer == "block":
        small |= _SMALL_OF_BLOCKS
    given = {name: value for name, value in asked.items() if value is not None}
    return small | given


def fit(
    paths: Paths,
    *,
    window: float | None = None,
    in_window: float | None = None,
    group: int | None = None,
    merge: str | None = None,
    distance: str | None = None,
    threshold: float | None = None,
    max_matrices: int | None = None,
    dimensions: Iterable[str] = (),
    without: Iterable[str] = (),
    only: bool = False,
    think: bool = False,
    offset_rule: str | None = None,
    far: int | None = None,
    regions: int | None = None,
    boundaries: Sequence[float] = (),
    cell_bits: float | None = None,
    small: bool = False,
    trace: Options | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Model:
    """Fits a model to a trace of any known format.

    ``window`` is in seconds (by default the smaller of 20 s and a thirtieth of the trace, halved as long as
    windows then hold ``in_window`` requests on average, 8). Neighbouring windows that hold ``group`` requests
    together (256; 0: each window by itself) are compared and merged: ``merge`` is ``none``, ``adjacent`` or
    ``all``; ``distance`` is ``marginals``, ``tv`` or ``max-cell``; those whose distance beyond chance is at
    most ``threshold`` share a matrix, and there are at most ``max_matrices``. ``dimensions`` replace or add
    to the default ones, written as ``size=log2:4`` or ``given:previous(op)``; those of them in ``without``
    are left out, with ``only`` all of them. With ``think`` the model draws think times too, so that it can be
    run in order of dependencies; the trace must have latencies. ``offset_rule`` is ``near``, ``jump`` or
    ``region``; jumps up to ``far`` bytes (one region) are near; an object has about ``regions`` regions.
    ``boundaries`` are times in seconds at which phases begin, ascending, each taken to the start of its
    window; with them nothing is compared, and all windows between two share a matrix. With ``cell_bits`` the
    model is factored (:meth:`Model.factored`). ``small`` is for a model of about a hundredth of the trace's
    size that keeps what LRU caches miss: it is factored, and has longer windows, wider regions and fewer
    matrices, wherever nothing else is asked for. ``trace`` says how the trace is read. ``progress(done,
    total)`` is called with bytes. Raises ``OptionError`` or ``Error`` where an option has no meaning here or
    excludes another, and ``TraceError`` where the trace cannot be read or has no requests.
    """
    if in_window is not None and not 0 <= in_window < float("inf"):
        raise Error(f"in_window {in_window}: how many requests a window should hold is a number from 0 on")
    for name, value in (("distance", distance), ("threshold", threshold)):
        if merge == "none" and value is not None:
            raise Error(f"{name}: with merge none nothing is compared; leave out one of the two")
    if far is not None and offset_rule in ("jump", "region"):
        raise Error(f"far: with offset_rule {offset_rule} no jump is near or far; leave out one of the two")
    names, opened = paths_list(paths), options_json(**(trace or Options()))
    dimensions, without = list(dimensions), list(without)
    asked: dict[str, Any] = {
        "window_ns": None if window is None else round(window * 1e9),
        "in_window": in_window,
        "group": group,
        "merge": merge,
        "distance": distance,
        "threshold": threshold,
        "max_matrices": max_matrices,
        "dimensions": _waiting(dimensions, without) if think else dimensions,
        "without": without,
        "only": only,
        "offset_rule": offset_rule,
        "far": far,
        "regions": regions,
        "boundaries_ns": [round(at * 1e9) for at in boundaries],
        "cell_bits": cell_bits,
    }
    of_blocks = {
        "regions": regions,
        "far": far,
        "offset_rule": None if offset_rule == "jump" else offset_rule,
    }
    placed = [name for name, value in of_blocks.items() if value is not None]
    if small or placed:
        with wanted("trace", *names):
            layer = json.loads(_core.TraceReader(names, opened).info())["layer"]
        if placed and layer != "block":
            raise Error(
                f"{placed[0]}: says where requests of block traces go, and this trace is of files; "
                "leave it out"
            )
        asked = _smaller(asked, layer) if small else asked
    if any("user." in dimension for dimension in asked["dimensions"]):
        from loadstone.model._feature import find_features

        find_features(asked["dimensions"])
    plain = json.dumps({name: value for name, value in asked.items() if value is not None})
    with wanted("trace", *names):
        fitted = Model(_core.model_fit(names, opened, plain, progress))
    if think and fitted.marginal("think").none.all():
        raise Error(
            f"{names[0]}: no request waited for another, or its latencies show none; fit without `think`"
        )
    return fitted
