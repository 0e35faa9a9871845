"""Histograms as values: summed, projected, conditioned, normalised, compared.

>>> from loadstone import model
>>> whole = model.histogram(model.Model.load("disk.mdh"))
>>> sizes = whole.where(op=0).project("size").normalised()   # of reads
>>> by_op = whole.project("op", "size").given("op")          # shares of sizes, for each op
>>> busy = model.histogram(fitted, 3) + model.histogram(fitted, 5)

A histogram is the table of a model's joint cells: buckets (first and last number) of each dimension and a
count. What these operations are called is what they are called for probability tables: projection is the
marginal, conditioning the slice. Source: MDH thesis, section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadstone.errors import Error
from loadstone.model._check import Numbers, apart
from loadstone.model._model import Model, as_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

_NONE = -(2**63)

Bounds = int | tuple[int | None, int | None] | None
"""One number, the lowest and the highest (``None``: no limit), or ``None`` for requests that have no
number."""


@dataclass(frozen=True)
class Histogram:
    """How often combinations of buckets occur."""

    dimensions: tuple[str, ...]
    """Names, in the order of the columns below."""
    names: frozenset[str]
    """Those of them whose numbers are names, as those of ops and objects are."""
    first: Ints
    """Smallest number of each bucket, by cell and dimension; -2^63 where a request has none."""
    last: Ints
    """Largest number of each bucket."""
    counts: Floats
    """Requests in each cell, or shares of them."""
    exact: Mapping[str, Ints] = field(default_factory=dict)
    """By dimension, ascending, numbers with buckets of their own: a range around them is without them."""

    @property
    def total(self) -> float:
        """Requests in all cells."""
        return float(self.counts.sum())

    def __len__(self) -> int:
        """Cells."""
        return len(self.counts)

    def _at(self, dimension: str) -> int:
        if dimension not in self.dimensions:
            known = ", ".join(self.dimensions)
            raise Error(f"there is no dimension {dimension!r} in this histogram; there are {known}")
        return self.dimensions.index(dimension)

    def project(self, *dimensions: str) -> Histogram:
        """Summed over all other dimensions: the marginal of these."""
        import numpy as np

        at = [self._at(name) for name in dimensions]
        return _gathered(
            tuple(dimensions),
            self.names & frozenset(dimensions),
            self.first[:, at],
            self.last[:, at],
            self.counts.astype(np.float64),
            {name: values for name, values in self.exact.items() if name in dimensions},
        )

    def where(self, **bounds: Bounds) -> Histogram:
        """Only cells whose buckets reach into these bounds; all dimensions stay.

        A number that has a bucket of its own (:attr:`exact`) is in no range around it.

        What is asked of ``previous(op)`` is written ``where(**{"previous(op)": 0})``.
        """
        import numpy as np

        keep = np.ones(len(self.counts), bool)
        for name, bound in bounds.items():
            d = self._at(name)
            first, last = self.first[:, d], self.last[:, d]
            if bound is None:
                keep &= first == _NONE
                continue
            low, high = bound if isinstance(bound, tuple) else (bound, bound)
            begin = first if low is None else np.maximum(first, low)
            end = last if high is None else np.minimum(last, high)
            keep &= (first != _NONE) & (begin <= end)
            if (exact := self.exact.get(name)) is not None:
                inside = np.searchsorted(exact, end, "right") - np.searchsorted(exact, begin, "left")
                keep &= (first == last) | (end - begin >= inside)
        return self._with(self.first[keep], self.last[keep], self.counts[keep])

    def normalised(self) -> Histogram:
        """Shares that add up to 1. Raises ``Error`` where there is no request."""
        if self.total <= 0:
            raise Error("there is no request in this histogram, so there are no shares")
        return self._with(self.first, self.last, self.counts / self.total)

    def given(self, *dimensions: str) -> Histogram:
        """Conditional shares: for each combination of these dimensions, the others add up to 1."""
        import numpy as np

        at = [self._at(name) for name in dimensions]
        if not at:
            return self.normalised()
        _, slice_ = np.unique(self.first[:, at], axis=0, return_inverse=True)
        sums = np.bincount(slice_.ravel(), weights=self.counts)
        return self._with(self.first, self.last, self.counts / sums[slice_.ravel()])

    def __add__(self, other: Histogram) -> Histogram:
        """The sum of two histograms of the same dimensions, in this order."""
        import numpy as np

        if self.dimensions != other.dimensions:
            raise Error(
                f"histograms of {', '.join(self.dimensions)} and of {', '.join(other.dimensions)} cannot be "
                "added; project both to the dimensions they share"
            )
        return _gathered(
            self.dimensions,
            self.names & other.names,
            np.concatenate([self.first, other.first]),
            np.concatenate([self.last, other.last]),
            np.concatenate([self.counts, other.counts]).astype(np.float64),
            # A range of the other may have what is exact in one alone.
            {
                name: np.intersect1d(values, other.exact[name])
                for name, values in self.exact.items()
                if name in other.exact
            },
        )

    def __mul__(self, factor: float) -> Histogram:
        """All counts times a factor."""
        return self._with(self.first, self.last, self.counts * factor)

    def distance(self, other: Histogram) -> float:
        """Total variation of the shares, 0 to 1; buckets that are not the same have nothing in common."""
        import numpy as np

        both = self.normalised() + other.normalised() * -1.0
        return float(0.5 * np.abs(both.counts).sum())

    def distances(self, other: Histogram) -> dict[str, tuple[float, float | None]]:
        """By dimension that both have: Kolmogorov-Smirnov and Wasserstein distance, in its unit.

        Of names it is the total variation, and the second is ``None``. Numbers are even inside a bucket, so
        histograms with different bucket rules can be compared.
        """
        found = {}
        for name in self.dimensions:
            if name in other.dimensions:
                names = name in self.names and name in other.names
                ks, moved, _ = apart(self.numbers(name), other.numbers(name), names=names)
                found[name] = (ks, moved)
        return found

    def numbers(self, dimension: str) -> Numbers:
        """The marginal of a dimension as buckets that do not overlap, ascending."""
        alone = self.project(dimension)
        return numbers_of(alone.first[:, 0], alone.last[:, 0], alone.counts)

    def table(self) -> Any:
        """An Arrow table: ``NAME`` and ``NAME_last`` for each dimension (null: no number), ``count``."""
        columns = {}
        for d, name in enumerate(self.dimensions):
            columns[name] = self.first[:, d]
            columns[f"{name}_last"] = self.last[:, d]
        return as_table({**columns, "count": self.counts})

    def _with(self, first: Ints, last: Ints, counts: Floats) -> Histogram:
        return Histogram(self.dimensions, self.names, first, last, counts, self.exact)


def numbers_of(first: Ints, last: Ints, count: Floats) -> Numbers:
    """Buckets that do not overlap, ascending, of buckets that may hold others inside them."""
    import numpy as np

    known = first != _NONE
    none = count[~known].sum()
    first, last, count = first[known], last[known], count[known]
    # A value with a bucket of its own may lie inside a range; one that it begins with begins after it.
    first = first + ((last > first) & np.isin(first, first[first == last]))
    starts, at = np.unique(first, return_inverse=True)
    ends = np.full(len(starts), np.iinfo(np.int64).min)
    np.maximum.at(ends, at, last)
    counts = np.bincount(at, weights=count, minlength=len(starts))
    # A range that goes on past the next bucket's start is taken to end there.
    ends[:-1] = np.minimum(ends[:-1], starts[1:] - 1)
    return Numbers(none, starts, ends, counts)


def _without(first: Ints, last: Ints, exact: Ints) -> tuple[Ints, Ints]:
    """Bounds of buckets whose ranges neither begin nor end with a number that has a bucket of its own."""
    import numpy as np

    begin, end = first.copy(), last.copy()
    ranges = (last > first) & (first != _NONE)
    while (at := ranges & np.isin(begin, exact)).any():
        begin[at] += 1
    while (at := ranges & np.isin(end, exact)).any():
        end[at] -= 1
    # A range of nothing but such numbers has no requests; should it have some, it stays as it is.
    empty = begin > end
    begin[empty], end[empty] = first[empty], last[empty]
    return begin, end


def _gathered(
    dimensions: tuple[str, ...],
    names: frozenset[str],
    first: Ints,
    last: Ints,
    counts: Floats,
    exact: Mapping[str, Ints],
) -> Histogram:
    """Equal cells added up, in ascending order."""
    import numpy as np

    cells, at = np.unique(np.concatenate([first, last], axis=1), axis=0, return_inverse=True)
    sums = np.bincount(at.ravel(), weights=counts, minlength=len(cells)).astype(np.float64)
    width = len(dimensions)
    return Histogram(dimensions, names, cells[:, :width], cells[:, width:], sums, exact)


def histogram(model: Model, matrix: int | None = None, *, observed: str | None = None) -> Histogram:
    """The joint histogram of a model, of all its matrices or of one.

    Dimensions that are only observed are not in it: each has a table of its own, which ``observed`` names.
    Raises ``Error`` where there is no such matrix or observed dimension, or the tables of the model form a
    chain.
    """
    import numpy as np

    columns = model.columns()
    tables = model.header["tables"]
    if any(len(table["given"]) and table["dimensions"] != tables[0]["dimensions"] for table in tables):
        raise Error("the tables of this model form a chain, which has no joint histogram")
    number = 0 if observed is None else _observed(model, observed)
    keep = columns["table"] == number
    if matrix is not None:
        if not 0 <= matrix < len(model.matrices()):
            raise Error(f"there is no matrix {matrix}; the model has 0 to {len(model.matrices()) - 1}")
        keep &= columns["matrix"] == matrix
    dimensions = tuple(model.dimensions[d] for d in tables[number]["dimensions"])
    first = np.empty((int(keep.sum()), len(dimensions)), np.int64)
    last = np.empty_like(first)
    rules = {d["feature"]: d["rule"] for d in model.header["dimensions"]}
    exact = {
        name: np.sort(np.array(rules[name]["values"], np.int64))
        for name in dimensions
        if rules[name]["kind"] == "exact"
    }
    for d, name in enumerate(dimensions):
        codes = columns[name][keep]
        buckets = model.buckets(name)
        order = np.argsort(buckets["code"])
        at = order[np.searchsorted(buckets["code"], codes, sorter=order)]
        first[:, d], last[:, d] = buckets["first"][at], buckets["last"][at]
        if name in exact:
            first[:, d], last[:, d] = _without(first[:, d], last[:, d], exact[name])
    names = frozenset(name for name in dimensions if rules[name]["kind"] == "category")
    return _gathered(dimensions, names, first, last, columns["count"][keep].astype(np.float64), exact)


def _observed(model: Model, dimension: str) -> int:
    """The number of the table that an observed dimension has to itself."""
    alone = {
        model.dimensions[table["dimensions"][0]]: number
        for number, table in enumerate(model.header["tables"])
        if number and len(table["dimensions"]) == 1
    }
    if dimension not in alone:
        known = ", ".join(alone) or "none"
        raise Error(f"{dimension!r} is no dimension that this model only observes; it has {known}")
    return alone[dimension]


def together(model: Model, dimensions: Iterable[str], matrix: int | None = None) -> Histogram:
    """The histogram that has these dimensions: the joint one, or that of one which is only observed."""
    whole = histogram(model, matrix)
    asked = dict.fromkeys(dimensions)
    apart = [name for name in asked if name in model.dimensions and name not in whole.dimensions]
    if not apart:
        return whole
    if len(asked) > 1:
        others = ", ".join(name for name in asked if name != apart[0])
        raise Error(
            f"{apart[0]} is only observed: it has a table of its own and goes with no other dimension; "
            f"ask for it without {others}"
        )
    return histogram(model, matrix, observed=apart[0])
