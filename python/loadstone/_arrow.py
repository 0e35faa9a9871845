"""Columns as Arrow tables, which pyarrow, pandas, Polars and DuckDB read without a copy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any


def table(columns: Mapping[str, Any]) -> Any:
    """An ``arro3.core.Table`` of numpy columns, lists of text, and lists of numbers (offsets and values)."""
    import numpy as np
    from arro3.core import Array, DataType, Table, list_array

    arrays: dict[str, Any] = {}
    for name, column in columns.items():
        if isinstance(column, np.ndarray):
            arrays[name] = Array.from_numpy(np.ascontiguousarray(column))
        elif hasattr(column, "offsets"):
            offsets = Array.from_numpy(np.ascontiguousarray(column.offsets, dtype=np.int32))
            arrays[name] = list_array(offsets, Array.from_numpy(np.ascontiguousarray(column.values)))
        else:
            arrays[name] = Array(list(column), type=DataType.utf8())
    return Table.from_pydict(arrays)


class AsArrow(ABC):
    """What can be handed to any library that knows Arrow's C interface: ``pyarrow.table(it)``."""

    @abstractmethod
    def _columns(self) -> Mapping[str, Any]:
        """What the table has."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as a stream of Arrow record batches (Arrow's PyCapsule interface)."""
        return table(self._columns()).__arrow_c_stream__(requested_schema)
