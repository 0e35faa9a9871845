"""How a model is shown in a Python session: one line, and a table for notebooks."""

from __future__ import annotations

import html as markup
import os
from typing import Any, Protocol

from loadstone._text import one_line
from loadstone._units import duration, number, size

_COMMON = 4
"""Sizes that are named."""
NEW = 255
"""Of the feature ``state``: the file is new."""
_KINDS = (("file", "files"), ("directory", "directories"), ("link", "links"))
"""Objects, one and several, as the feature ``state`` numbers them."""


class Model(Protocol):
    """What is asked of a model; the class itself shows itself by this module."""

    path: str | None

    @property
    def header(self) -> dict[str, Any]: ...
    @property
    def of_files(self) -> bool: ...
    @property
    def requests(self) -> int: ...
    @property
    def dimensions(self) -> Any: ...
    @property
    def window(self) -> float: ...
    def marginal(self, dimension: str) -> Any: ...
    def matrices(self) -> Any: ...
    def phases(self) -> Any: ...
    def windows(self) -> Any: ...


def line(model: Model) -> str:
    """Name, requests, rate, share of reads, and size of the file."""
    span = model.header["source"]["span_ns"]
    kind = "file requests" if model.of_files else "block requests"
    parts = [f"{model.requests:,} {kind} in {duration(span)}"]
    if (rate := _rate(model)) is not None:
        parts.append(f"{rate} requests/s")
    if (share := read_share(model)) is not None:
        parts.append(f"{share:.1%} reads")
    if (stored := _stored(model)) is not None:
        parts.append(f"{stored} on disk")
    return f"{_name(model)}{', '.join(parts)}"


def html(model: Model) -> str:
    """One row for each property: load, sizes, places, phases, dimensions, file."""
    share = read_share(model)
    matrices = len(model.matrices())
    dimensions = model.header["dimensions"]
    rows = {
        "requests": f"{model.requests:,} in {duration(model.header['source']['span_ns'])}",
        "requests/s": _rate(model) or "-",
        "reads": "-" if share is None else f"{share:.1%} of reads and writes",
        "common sizes": _sizes(model),
        "files" if model.of_files else "blocks": _extent(model),
        "phases": f"{_count(len(model.phases()), 'phase')} of {_count(matrices, 'matrix', 'matrices')}, "
        f"{_count(len(model.windows()[0]), 'window')} of {duration(model.window * 1e9)}",
        "draws": ", ".join(d["feature"] for d in dimensions if d["role"] == "sets"),
        "given": ", ".join(d["feature"] for d in dimensions if d["role"] == "given"),
        "observes": ", ".join(d["feature"] for d in dimensions if d["role"] == "observed"),
        "on disk": _stored(model) or "not saved",
    }
    body = "".join(
        f"<tr><th>{markup.escape(name)}</th><td>{markup.escape(text)}</td></tr>"
        for name, text in rows.items()
        if text
    )
    return f"<p>{markup.escape(line(model))}</p><table>{body}</table>"


def read_share(model: Model) -> float | None:
    """Reads in reads and writes, 0 to 1; None where there are neither, or ops are no dimension."""
    if "op" not in model.dimensions:
        return None
    from loadstone.trace import OPS

    ops = model.marginal("op")
    counts = {OPS.get(op): n for op, n in zip(ops.first.tolist(), ops.counts.tolist(), strict=True)}
    reads, writes = counts.get("read", 0), counts.get("write", 0)
    return reads / (reads + writes) if reads + writes else None


def _name(model: Model) -> str:
    return "" if model.path is None else f"{one_line(model.path)}: "


def _rate(model: Model) -> str | None:
    span = model.header["source"]["span_ns"]
    if not span:
        return None
    rate = model.requests / span * 1e9
    return f"{rate:,.0f}" if rate >= 1000 else number(rate)


def _stored(model: Model) -> str | None:
    """Size of the file that it was read from or saved to, where that is still there."""
    try:
        return None if model.path is None else size(os.path.getsize(model.path), 3)
    except OSError:
        return None


def _sizes(model: Model) -> str:
    """The most common sizes, with their shares of all requests."""
    if "size" not in model.dimensions:
        return ""
    first, last, counts, none = model.marginal("size")
    rows = zip(first.tolist(), last.tolist(), counts.tolist(), none.tolist(), strict=True)
    common = sorted((row for row in rows if not row[3]), key=lambda row: -row[2])[:_COMMON]
    return ", ".join(
        f"{size(one)}{'' if one == other else f' to {size(other + 1)}'} {count / max(model.requests, 1):.1%}"
        for one, other, count, _ in common
    )


def _extent(model: Model) -> str:
    """Objects and their bytes of a block model; what a model of files makes, by kind."""
    if not model.of_files:
        objects = model.header["objects"]
        return f"{_count(len(objects), 'object')}, {size(sum(one['extent'] for one in objects))} altogether"
    made = new_objects(model)
    return ", ".join(_count(made[kind], *names) for kind, names in enumerate(_KINDS) if made.get(kind))


def new_objects(model: Model) -> dict[int, int]:
    """How many objects of each kind a model of files makes up: 0 files, 1 directories, 2 symbolic links."""
    state = model.marginal("state")
    found: dict[int, int] = {}
    for value, count in zip(state.first.tolist(), state.counts.tolist(), strict=True):
        if value >> 4 == NEW:
            found[value & 3] = found.get(value & 3, 0) + count
    return found


def _count(n: int, one: str, several: str = "") -> str:
    return f"{n:,} {one if n == 1 else several or one + 's'}"
