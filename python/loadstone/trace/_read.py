"""Traces as Arrow batches and tables, for notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Unpack

from loadstone import _core
from loadstone._other import wanted
from loadstone.trace.options import Options, Paths, options_json, paths_list

# numpy takes a tenth of a second to load, which commands that need no arrays do not spend.
if TYPE_CHECKING:
    import numpy as np
    from arro3.core import RecordBatch, Table

OPS: dict[int, str] = dict(_core.trace_ops())
"""Names of the frozen op codes."""

FLAGS: dict[int, str] = dict(_core.trace_flags())
"""Names of the frozen flag bits, by their value."""

_NULLABLE = ("offset", "size", "latency", "think")


def _batch(columns: dict[str, np.ndarray[Any, Any]]) -> RecordBatch:
    import numpy as np
    from arro3.core import Array, DataType, RecordBatch

    arrays = []
    for name, values in columns.items():
        if name in _NULLABLE:
            # "Not known" is the smallest int64; as uint64 it does not fit, so the cast makes it null.
            array = Array.from_numpy(values.view(np.uint64)).cast(DataType.int64())
        else:
            array = Array.from_numpy(values)
        arrays.append(array)
    return RecordBatch.from_arrays(arrays, names=list(columns))


class Reader:
    """A trace being read: iterate over it for Arrow record batches in time order."""

    def __init__(self, paths: Paths, **options: Unpack[Options]) -> None:
        """Opens a trace.

        Raises ``TraceError`` where it cannot be read or its format is not recognised, and ``OptionError`` for
        an unknown format.
        """
        names = paths_list(paths)
        with wanted("trace", *names):
            self._reader = _core.TraceReader(names, options_json(**options))

    def __iter__(self) -> Iterator[RecordBatch]:
        """The batches that were not yet read."""
        while (columns := self._reader.next()) is not None:
            yield _batch(columns)

    def info(self) -> dict[str, Any]:
        """Format, objects, counts of everything lost or put right, warnings; final after the end."""
        found: dict[str, Any] = json.loads(self._reader.info())
        return found

    def progress(self) -> tuple[int, int]:
        """Bytes read and bytes altogether."""
        done, total = self._reader.progress()
        return done, total


def open(paths: Paths, **options: Unpack[Options]) -> Reader:
    """Opens a trace of any format for reading in batches."""
    return Reader(paths, **options)


def read(paths: Paths, **options: Unpack[Options]) -> Table:
    """Reads a whole trace into an Arrow table; its metadata holds ``info`` as JSON."""
    from arro3.core import Table

    reader = Reader(paths, **options)
    batches = list(reader)
    table = Table.from_batches(batches)
    metadata = {"loadstone.trace": json.dumps(reader.info())}
    return table.with_schema(table.schema.with_metadata(metadata))


def formats() -> dict[str, str]:
    """The formats that can be read: name and what it is."""
    return dict(_core.trace_formats())
