"""Plain columns to Parquet and back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadstone import Error
from loadstone.bundle.check import damaged, opened

_ROOM, _MOST = 64 << 20, 1000
"""Bytes that the rows of a file may take, and as many times its size: what repeats is packed well."""


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
    from arro3.core import Array, DataType, Table, list_array
    from arro3.io import write_parquet

    arrays: dict[str, Any] = {}
    for name, column in columns.items():
        if isinstance(column, Lists):
            offsets = Array.from_numpy(np.ascontiguousarray(column.offsets, dtype=np.int32))
            arrays[name] = list_array(offsets, Array.from_numpy(np.ascontiguousarray(column.values)))
        elif isinstance(column, np.ndarray):
            arrays[name] = Array.from_numpy(np.ascontiguousarray(column))
        else:
            arrays[name] = Array(list(column), type=DataType.utf8())
    table = Table.from_pydict(arrays)
    write_parquet(table, str(path), compression="zstd(3)", key_value_metadata=dict(metadata))


def read(path: Path, needed: Sequence[str]) -> Columns:
    """Reads a file back into numpy columns, lists of text and :class:`Lists`."""
    from arro3.io import read_parquet

    # arro3-io panics on a damaged footer instead of raising, so the plain damage is found first.
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(4)
        file.seek(max(size - 8, 0))
        tail = file.read(8)
    if data != b"PAR1" or tail[4:] != b"PAR1" or int.from_bytes(tail[:4], "little") + 12 > size:
        raise Error(f"{path}: is cut off or not a Parquet file; the bundle is damaged")
    try:
        table = _bounded(path, read_parquet(str(path)), size)
    except (KeyboardInterrupt, SystemExit, Error):
        raise
    except BaseException as error:
        raise Error(
            f"{path}: is not a Parquet file that can be read ({error}); the bundle is damaged"
        ) from None
    missing = [name for name in needed if name not in table.column_names]
    if missing:
        raise Error(
            f"{path}: has no column {', '.join(missing)}; the bundle is damaged or of another version"
        )
    with damaged(str(path)):
        return _plain(table)


def _bounded(path: Path, reader: Any, size: int) -> Any:
    """All batches of a file, as one table. Raises ``Error`` where they are far more than the file's size."""
    from arro3.core import Table

    schema, batches, held = reader.schema, [], 0
    for batch in reader:
        batches.append(batch)
        held += batch.nbytes
        if held > _ROOM + _MOST * size:
            raise Error(f"{path}: holds more than {held >> 20} MiB in {size:,} bytes; the bundle is damaged")
    return Table.from_batches(batches, schema=schema).combine_chunks()


def _plain(table: Any) -> Columns:
    from arro3.core import list_flatten, list_offsets

    out: Columns = {}
    for name in table.column_names:
        column = table.column(name)
        kind = str(column.type)
        if column.num_chunks == 0:
            out[name] = [] if "Utf8" in kind else np.empty(0)
            if "List" in kind:
                out[name] = Lists(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64))
            continue
        array = column.combine_chunks()
        if "List" in kind:
            out[name] = Lists(list_offsets(array).to_numpy().astype(np.int64), list_flatten(array).to_numpy())
        elif "Utf8" in kind:
            out[name] = array.to_pylist()
        else:
            out[name] = array.to_numpy()
    return out
