"""Plain columns to Parquet and back."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone import _arrow, _core
from loadstone._files import write_private
from loadstone.bundle.check import opened
from loadstone.errors import Error


@dataclass(frozen=True)
class Lists:
    """A column of lists: row ``i`` is ``values[offsets[i]:offsets[i + 1]]``."""

    offsets: NDArray[np.int64]
    values: NDArray[Any]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        """One row's list."""
        return self.values[self.offsets[row] : self.offsets[row + 1]]


Column = NDArray[Any] | Sequence[str] | Lists
Columns = dict[str, Any]


def prepare() -> None:
    """Loads what writing takes, so that it does not fail for want of memory or files after a run."""
    import arro3.core
    import arro3.io  # noqa: F401


def write(path: Path, columns: Mapping[str, Column], metadata: Mapping[str, str]) -> None:
    """Writes one Parquet file (zstd); numpy columns, lists of text and :class:`Lists`."""
    from arro3.io import write_parquet

    # In memory first: the library panics where a disk is full.
    whole = io.BytesIO()
    write_parquet(_arrow.table(columns), whole, compression="zstd(3)", key_value_metadata=dict(metadata))
    write_private(path, whole.getbuffer())


def read(path: Path, needed: Sequence[str]) -> Columns:
    """Reads a file back into numpy columns, lists of text and :class:`Lists`; whole numbers have 64 bits.

    Not by the library that writes: that one ends with a panic on damaged files.
    """
    with opened(path) as file:
        try:
            found = _core.read_table(file.fileno())
        except Error as error:
            raise Error(f"{path}: cannot be read ({error}); the bundle is damaged") from None
    missing = [name for name in needed if name not in found]
    if missing:
        raise Error(
            f"{path}: has no column {', '.join(missing)}; the bundle is damaged or of another version"
        )
    return {name: Lists(*column) if isinstance(column, tuple) else column for name, column in found.items()}
