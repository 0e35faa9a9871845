"""What a file is that a command cannot use, and which command can: asked once something has failed."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from typing import Literal

from loadstone import _core
from loadstone.errors import Error, OptionError

Known = Literal["trace", "model", "bundle", "study", "plan", "script", "jobs", "profile", "series", "state"]
"""Files and folders that Loadstone reads or makes."""

_WHAT: dict[Known, str] = {
    "trace": "is a trace{of}; loadstone replay runs it, loadstone trace describe shows what is in it, "
    "loadstone model fit makes a model of it",
    "model": "is a model; loadstone run runs it, loadstone model show says what it holds",
    "bundle": "is a bundle, which holds results of runs; loadstone report shows them",
    "study": "is the folder of a study; loadstone study report tells what came of it",
    "plan": "is a plan; loadstone run runs it",
    "script": "is a script of Filebench; loadstone run runs it",
    "jobs": "is a job file of fio; loadstone run runs it",
    "profile": "is a profile of file trees; loadstone dataset create makes such trees",
    "series": "is a series of file trees; loadstone dataset describe shows what is in it, "
    "loadstone dataset write makes the files",
    "state": "is the state of a verification; loadstone verify --state compares targets with it",
}

_FOOTER = 1 << 28
"""A footer is read as a whole only up to this: no file that is worth a run has a larger one."""
_HEAD = 1 << 20
_PROFILE = 1 << 26
"""Largest file that is tried as a profile."""
_SCRIPT = re.compile(rb"^\s*(define|set|run|psrun|load|usage|debug|enable|eventgen|create)\b", re.M | re.I)


def parquet_footer(file: int) -> bytes:
    """The metadata of a Parquet file, as they stand at its end; empty where there are none."""
    size = os.fstat(file).st_size
    length = int.from_bytes(os.pread(file, 4, max(0, size - 8)), "little")
    return os.pread(file, length, size - 8 - length) if length <= min(size - 8, _FOOTER) else b""


def is_job_file(text: bytes) -> bool:
    """Whether the first line that is no comment is a section, as in job files of fio."""
    lines = [line.strip() for line in text.splitlines()]
    first = next((line for line in lines if line and line[:1] not in b";#"), b"")
    return re.fullmatch(rb"\[[^\[\]]+\]", first) is not None


def trace_format(path: str) -> str | None:
    """The format of a trace, which its content tells; None: it is none, or not told by its content."""
    try:
        found: str = json.loads(_core.TraceReader([path], "{}").info())["format"]
    except Error:
        return None
    return found


def known(path: str) -> Known | None:
    """What a file or folder is by its content; None where that does not tell."""
    if os.path.isdir(path):
        has = {name for name in _FOLDERS if os.path.isfile(os.path.join(path, name))}
        return next((kind for name, kind in _FOLDERS.items() if name in has), None)
    try:
        # Not a pipe, nor a file of procfs: reading some takes what others wait for.
        with open(_core.open_regular(path), "rb") as file:
            head = file.read(_HEAD)
            footer = parquet_footer(file.fileno()) if head[:4] == b"PAR1" else b""
    except (Error, OSError):
        return None
    if b"loadstone.model" in footer:
        return "model"
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"{" and b'"version"' in text and b'"workers"' in text:
        return "plan"
    if is_job_file(text):
        return "jobs"
    if os.path.splitext(path)[1] in (".f", ".prof") and _SCRIPT.search(text):
        return "script"
    if head.startswith(_ZSTD) and os.path.getsize(path) <= _PROFILE:
        with contextlib.suppress(Error):
            _core.dataset_load_profile(path)
            return "profile"
    return "trace" if trace_format(path) else None


_FOLDERS: dict[str, Known] = {"summary.json": "bundle", "bundle.json": "bundle", "study.json": "study"}
"""What folders with such a file are."""
_ZSTD = b"\x28\xb5\x2f\xfd"
_MAGIC: dict[bytes, Known] = {b"LSFSTREE": "series", b"LSVERIFY": "state"}


def what_it_is(path: str) -> str | None:
    """``is a model; loadstone model show says ...``; None where it is nothing that is known."""
    kind = known(path)
    if kind is None:
        return None
    of = f" ({trace_format(path)})" if kind == "trace" else ""
    return _WHAT[kind].format(of=of)


@contextlib.contextmanager
def wanted(kind: Known | Literal["snapshot", "study file"], *paths: str | os.PathLike[str]) -> Iterator[None]:
    """Makes an ``Error`` within say what a path is, where that is not what was wanted, and who takes it."""
    try:
        yield
    except Error as error:
        for path in [os.fspath(one) for one in paths]:
            if (found := known(path)) is None or found == kind:
                continue
            text = f"{path}: {what_it_is(path)}"
            error.args, error.path = (text,), path
            if isinstance(error, OptionError):
                error.option, error.value, error.what = None, None, text
            break
        raise
