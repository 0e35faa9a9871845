"""The journal of a study: what was begun and ended, what must be taken back, and all finished runs."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from loadstone._files import write_private
from loadstone._json import plain
from loadstone.errors import StudyError
from loadstone.stats.metric import Metric

VERSION = 1
"""Of the folder and its journal."""

_TABLES = """
CREATE TABLE IF NOT EXISTS facts(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS steps(
    id INTEGER PRIMARY KEY, cell TEXT, block INTEGER, step TEXT NOT NULL,
    began REAL NOT NULL, ended REAL, failure TEXT);
CREATE TABLE IF NOT EXISTS made(
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, what TEXT NOT NULL, made REAL NOT NULL, gone REAL);
CREATE TABLE IF NOT EXISTS runs(
    id INTEGER PRIMARY KEY, cell TEXT NOT NULL, block INTEGER NOT NULL, began REAL NOT NULL,
    ended REAL NOT NULL, failure TEXT, "values" TEXT NOT NULL, metrics TEXT NOT NULL,
    environment TEXT NOT NULL, folder TEXT NOT NULL, cpu TEXT NOT NULL, UNIQUE(cell, block));
"""


@dataclass(frozen=True)
class Run:
    """One run that is over, well or not."""

    cell: str
    block: int
    """Number of the block, from 1; in scripted order that of the run."""
    began: float
    ended: float
    failure: str | None = None
    """Why it failed; None for a good one."""
    values: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    """``before`` and ``after`` it."""
    folder: str = ""
    """Where its results are, below the folder of the study."""
    cpu: Mapping[str, float] = field(default_factory=dict)
    """``busy``: share of all CPUs; ``busiest``: that of the busiest one."""


@dataclass(frozen=True)
class Made:
    """Something that a study made and has not yet taken back."""

    id: int
    kind: str
    what: Mapping[str, Any]


class Journal:
    """A journal that is open; a context manager. Every write is stable when the call returns."""

    def __init__(self, folder: Path, new: bool = False) -> None:
        """Opens it. Raises ``StudyError`` where there is none, or one of another version."""
        path = folder / "journal.sqlite"
        if not new and not path.is_file():
            raise StudyError(f"{folder}: holds no study; loadstone study run makes one", path=str(folder))
        if new:
            # SQLite gives the files beside it the permissions of this one.
            write_private(path, b"")
        try:
            self._data = sqlite3.connect(path, isolation_level=None, timeout=30)
            self._data.execute("PRAGMA journal_mode=WAL")
            self._data.execute("PRAGMA synchronous=FULL")
            if new:
                self._data.executescript(_TABLES)
                self["version"] = VERSION
            version = self.get("version")
        except sqlite3.Error as error:
            raise StudyError(f"{path}: cannot be read as a journal: {error}", path=str(path)) from None
        if version != VERSION:
            raise StudyError(
                f"{path}: is of version {version}, and this build knows {VERSION}", path=str(path)
            )

    def __enter__(self) -> Journal:
        """Is open already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        self._data.close()

    def get(self, key: str, default: Any = None) -> Any:
        """A fact."""
        row = self._data.execute("SELECT value FROM facts WHERE key = ?", (key,)).fetchone()
        return default if row is None else json.loads(row[0])

    def __setitem__(self, key: str, value: Any) -> None:
        """Keeps a fact."""
        self._write("INSERT OR REPLACE INTO facts VALUES (?, ?)", key, _json(value))

    @contextlib.contextmanager
    def step(self, step: str, cell: str | None = None, block: int | None = None) -> Iterator[None]:
        """Writes a step before the block begins, and after it ended, with what went wrong."""
        number = self._write(
            "INSERT INTO steps(cell, block, step, began) VALUES (?, ?, ?, ?)", cell, block, step, time.time()
        )
        failure: str | None = None
        try:
            yield
        except BaseException as error:
            failure = str(error) or type(error).__name__
            raise
        finally:
            self._write("UPDATE steps SET ended = ?, failure = ? WHERE id = ?", time.time(), failure, number)

    def steps(self) -> list[dict[str, Any]]:
        """All steps, in order; ``ended`` is None of what was killed."""
        names = ("cell", "block", "step", "began", "ended", "failure")
        rows = self._data.execute(f"SELECT {', '.join(names)} FROM steps ORDER BY id")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def will_make(self, kind: str, what: Mapping[str, Any]) -> int:
        """Writes what is about to be made, so that it can be taken back; returns its number."""
        return self._write(
            "INSERT INTO made(kind, what, made) VALUES (?, ?, ?)", kind, _json(what), time.time()
        )

    def is_gone(self, number: int) -> None:
        """It was taken back."""
        self._write("UPDATE made SET gone = ? WHERE id = ?", time.time(), number)

    def left(self) -> list[Made]:
        """What was made and not taken back, the last first."""
        rows = self._data.execute("SELECT id, kind, what FROM made WHERE gone IS NULL ORDER BY id DESC")
        return [Made(number, kind, json.loads(what)) for number, kind, what in rows]

    def add(self, run: Run) -> None:
        """Keeps a run that is over."""
        self._write(
            "INSERT INTO runs VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(run.cell, run.block, run.began, run.ended, run.failure, _json(run.values)),
            _json({name: vars(metric) for name, metric in run.metrics.items()}),
            *(_json(run.environment), run.folder, _json(run.cpu)),
        )

    def runs(self) -> list[Run]:
        """All runs that are over, in the order in which they ended."""
        rows = self._data.execute(
            'SELECT cell, block, began, ended, failure, "values", metrics, environment, folder, cpu '
            "FROM runs ORDER BY id"
        )
        return [
            Run(
                row[0],
                row[1],
                row[2],
                row[3],
                row[4],
                json.loads(row[5]),
                {name: Metric(**metric) for name, metric in json.loads(row[6]).items()},
                json.loads(row[7]),
                row[8],
                json.loads(row[9]),
            )
            for row in rows
        ]

    def _write(self, statement: str, *values: Any) -> int:
        try:
            return int(self._data.execute(statement, values).lastrowid or 0)
        except sqlite3.Error as error:
            raise StudyError(f"the journal cannot be written: {error}") from None


def _json(value: Any) -> str:
    return json.dumps(plain(value), allow_nan=False, default=str)


def refuse_others(folder: Path) -> None:
    """Raises ``StudyError`` for a folder that somebody else could have written to: what it says is done."""
    for path in (folder, *(folder / name for name in ("study.json", "journal.sqlite"))):
        try:
            found = os.stat(path, follow_symlinks=False)
        except OSError:
            continue
        if found.st_uid not in (os.geteuid(), 0) or found.st_mode & 0o022:
            raise StudyError(
                f"{path}: belongs to somebody else, or others can write to it; a study's folder must be "
                "yours alone (chmod go-w)",
                path=str(path),
            )
