"""Logs that fio writes of single requests (``write_lat_log``, ``log_offset=1``), gathered into a trace."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from loadstone.errors import Error

# Milliseconds, latency in ns, direction, bytes, offset and priority: HOWTO, "Log file formats".
_LINE = re.compile(rb"\d+, \d+, [012], \d+(, \d+)?, (0x)?[0-9a-f]+$")
_NAME = re.compile(r"_(s?lat|clat)\.\d+\.log$")
_OPS = "RW"


def _is_log(path: str) -> bool:
    if not path.endswith(".log"):
        return False
    try:
        with open(path, "rb") as file:
            return _LINE.match(file.readline(256).rstrip()) is not None
    except OSError:
        return False


@contextmanager
def gathered(paths: Sequence[str]) -> Iterator[list[str]]:
    """Paths as they are, or where all are logs of fio's, that of one trace of their requests in SPC.

    Each job has a log of its own; with ``log_unix_epoch=1`` their times go on from one to the next. Raises
    ``Error`` where a log tells no offsets, or several kinds tell of the same requests.
    """
    names = [os.fspath(path) for path in paths]
    if not names or not all(_is_log(name) for name in names):
        yield names
        return
    kinds = {match[1] for name in names if (match := _NAME.search(name))}
    if len(kinds) > 1:
        raise Error(f"{names[0]}: there are logs of {' and '.join(sorted(kinds))}; name those of one kind")
    with tempfile.TemporaryDirectory(prefix="loadstone-fio-") as folder:
        path = os.path.join(folder, "gathered.spc")
        _write(names, path)
        yield [path]


def _write(names: Sequence[str], out: str) -> None:
    import numpy as np

    tables = []
    for name in names:
        try:
            with open(name) as file:
                rows = np.loadtxt(file, dtype=np.int64, delimiter=",", ndmin=2)
        except ValueError as error:
            raise Error(f"{name}: is no whole log of fio's: {error}") from None
        except OSError as error:
            raise Error(f"{name}: {error.strerror}") from None
        if rows.shape[1] != 6:
            raise Error(f"{name}: has no offsets of requests; let fio write it with log_offset=1")
        if (rows[:, 2] > 1).any():
            raise Error(f"{name}: has discards, which cannot be compared; leave its job out")
        tables.append(rows)
    rows = np.concatenate(tables)
    # A request is logged when it is done.
    time = rows[:, 0] * 1_000_000 - rows[:, 1]
    order = np.argsort(time, kind="stable")
    time = time[order] - time.min()
    with open(out, "w") as file:
        for (_, _, op, size, offset, _), when in zip(rows[order].tolist(), time.tolist(), strict=True):
            file.write(f"0,{offset // 512},{size},{_OPS[op]},{when // 10**9}.{when % 10**9:09d}\n")
