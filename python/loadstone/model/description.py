"""A model in words and pictures: bars of a marginal, names of its buckets, the plot."""

from __future__ import annotations

import errno
import os
from pathlib import Path as FilePath
from typing import Any

from loadstone import _core, _pictures
from loadstone._files import aside
from loadstone._text import one_line
from loadstone._units import duration, size
from loadstone.errors import Error
from loadstone.model._check import unit
from loadstone.model._model import Marginal, Model
from loadstone.model._shown import NEW
from loadstone.trace import FLAGS, OPS, Path

_TITLES = {
    "op": "Kind of request",
    "object": "Object",
    "size": "Size",
    "jump": "Jump from the end of the request before, where near",
    "op_jump": "Jump from the end of the request of the same op before, where near and the place new",
    "region": "Region of the object, where the jump is far and the place new",
    "gap": "Inter-arrival time",
    "align": "Offset modulo 4 KiB",
    "resume": "Requests since the one it goes on from, if any",
    "reuse": "Requests since the place was last used, if it was and the request does not go on",
    "reuse_distance": "Other blocks used since its last one was, if it was",
    "run": "Requests it directly continues",
    "latency": "Latency in the trace",
    "actor": "Who asked",
    "flags": "Flags",
    "outstanding": "Requests under way when it was submitted",
    "think": "Think time of its actor",
    "after": "Requests of its actor since the one it waited for",
    "stream": "Requests of its sequential stream before it",
    "reuse_time": "Time since the place was last used",
    "age": "Requests since its first block was first used",
    "popularity": "Blocks that were used more often",
    "file": "Other files used since the file was, if it was",
    "state": "What the file is, and what was done to it before",
    "near": "Directories used since that of a new file (below 0: new directories)",
    "length": "Length of the file",
    "other": "Other files used since the second file was (below 0: it is new)",
    "result": "Errno, 0 where the request succeeded",
    "seek": "Jump from the position in the file",
}

# As the feature ``state`` numbers them.
_KINDS = ("file", "directory", "link", "?")


def title(dimension: str) -> str:
    """What a dimension is, in words."""
    inner = dimension.removeprefix("previous(").removesuffix(")")
    text = _TITLES.get(inner, inner)
    return text if inner == dimension else f"{text} of the request before"


def features() -> list[dict[str, Any]]:
    """What can be measured of a request: ``name``, ``unit``, default ``rule``, ``drawn`` and ``text``."""
    keys = ("name", "unit", "rule", "drawn", "text")
    return [dict(zip(keys, (*row, _TITLES.get(row[0], "")), strict=True)) for row in _core.model_features()]


def bytes_text(value: int) -> str:
    """``512 B``, ``4 KiB``, ``-1.5 MiB``."""
    return size(value)


def time_text(ns: int) -> str:
    """``0 ns``, ``12.5 us``, ``3.2 s``."""
    return duration(ns, seconds=4)


def value_text(model: Model, dimension: str, value: int) -> str:
    """One number of a dimension as people read it."""
    of = unit(dimension, model)
    if of == "op code":
        return OPS.get(value, str(value))
    if of == "object id":
        names = {o["id"]: o["name"] for o in model.header["objects"]}
        return one_line(names.get(value) or str(value))
    if of == "flag bits":
        return "+".join(name for bit, name in FLAGS.items() if value & bit) or "none"
    if dimension == "state":
        return _state_text(value)
    if of == "errno":
        return errno.errorcode.get(-value, str(value)) if value else "success"
    if of == "ns":
        return time_text(value)
    return bytes_text(value) if of == "byte" else f"{value:,}"


def _state_text(value: int) -> str:
    """``file, there, after stat``."""
    op, kind = value >> 4, _KINDS[value & 3]
    if op == NEW:
        return f"new {kind}"
    there = "there" if value & 4 else "not there"
    return f"{kind}, {there}, after {OPS.get(op, str(op))}{' (second)' if value & 8 else ''}"


def bucket_text(model: Model, dimension: str, first: int, last: int) -> str:
    """A bucket as people read it: one number, or a range."""
    text = value_text(model, dimension, first)
    if first == last:
        return text
    # Half-open, as the upper end is then the next bucket's round number.
    return f"{text} to {value_text(model, dimension, last + 1)}"


def coarse(marginal: Marginal, rows: int) -> list[tuple[int, int, int]]:
    """At most ``rows`` (first, last, count), neighbours taken together; without the none bucket."""
    keep = ~marginal.none
    first, last = marginal.first[keep].tolist(), marginal.last[keep].tolist()
    bars = list(zip(first, last, marginal.counts[keep].tolist(), strict=True))
    while len(bars) > rows:
        # The pair that holds the fewest requests together goes first.
        i = min(range(len(bars) - 1), key=lambda i: bars[i][2] + bars[i + 1][2])
        one, other = bars[i], bars[i + 1]
        merged = (min(one[0], other[0]), max(one[1], other[1]), one[2] + other[2])
        bars[i : i + 2] = [merged]
    return bars


def summary(model: Model) -> dict[str, Any]:
    """What the model is, as plain data: one object for machines."""
    counts, matrix = model.windows()
    header = model.header
    matrices = model.matrices()
    return {
        "requests": int(counts.sum()),
        "span_s": header["source"]["span_ns"] / 1e9,
        "window_s": model.window,
        "windows": len(counts),
        "phases": model.phases(),
        "matrices": [
            {**m, "windows": int(((matrix == i) & (counts > 0)).sum())} for i, m in enumerate(matrices)
        ],
        "cells": sum(m["cells"] for m in matrices),
        "stored_cells": model.stored_cells,
        "chain": model.chain,
        "lost_bits": (header.get("chain") or {}).get("lost_bits", 0.0),
        "dimensions": header["dimensions"],
        "tables": header["tables"],
        "offset_rule": header["offset_rule"],
        "merging": header["merging"],
        "objects": header["objects"],
        "source": header["source"],
        "marginals": {name: _plain(model.marginal(name)) for name in model.dimensions},
    }


def _plain(marginal: Marginal) -> list[dict[str, int | None]]:
    columns = (marginal.first, marginal.last, marginal.counts, marginal.none)
    return [
        {"first": None if none else first, "last": None if none else last, "count": count}
        for first, last, count, none in zip(*(c.tolist() for c in columns), strict=True)
    ]


def plot(model: Model, out: Path, *, force: bool = False, title_text: str = "") -> None:
    """Draws phases over time and each marginal; the file's ending chooses the format.

    Raises ``Error`` where the ending is no picture's, the file exists and ``force`` is not set, or matplotlib
    is not installed.
    """
    _pictures.ready()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = FilePath(os.fspath(out))
    if path.exists() and not force:
        raise Error(f"{path}: the file exists; choose another name, or overwrite it with `force`")
    names = [n for n in model.dimensions if len(coarse(model.marginal(n), 64)) > 1]
    rows = 1 + (len(names) + 1) // 2
    figure = Figure(figsize=(11, 2.7 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(rows, 2)
    axes = figure.add_subplot(grid[0, :])
    handles = phases_axes(axes, model)
    axes.legend(handles=handles, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for i, name in enumerate(names):
        _marginal(figure.add_subplot(grid[1 + i // 2, i % 2]), model, name)
    if title_text:
        figure.suptitle(_pictures.plain(title_text), fontsize=12)
    save_figure(figure, path, force)


def picture_ending(path: FilePath) -> str:
    """The format of a picture, by the ending of its name."""
    ending = path.suffix.lower().removeprefix(".")
    if ending not in ("png", "svg", "pdf"):
        raise Error(f"{path}: a picture is a .png, .svg or .pdf file; choose one of these endings")
    return ending


def save_figure(figure: Any, path: FilePath, force: bool) -> None:
    """Writes a picture aside and renames it; the file's ending chooses the format.

    ``force``: a file of that name is replaced. Raises ``Error`` where there is one and it is not to be.
    """
    ending = picture_ending(path)
    with aside(path, force) as hidden:
        figure.savefig(hidden, format=ending, dpi=110)


# Okabe and Ito's palette, told apart by colour-blind readers too.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_GREY = "#999999"


def phases_axes(axes: Any, model: Model) -> list[Any]:
    """Requests per second over time, coloured by matrix; what a legend needs."""
    import numpy as np

    # No more bars than can be seen: neighbours are averaged, and take the busiest matrix.
    length, requests = model.over_time(600)
    share = requests.sum(axis=0)
    order = np.argsort(-share)[: len(_COLOURS)].tolist()
    colour = {m: _COLOURS[i] for i, m in enumerate(order)}
    axes.bar(
        np.arange(len(requests)) * length,
        requests.sum(axis=1) / length,
        width=length,
        align="edge",
        color=[colour.get(m, _GREY) for m in requests.argmax(axis=1).tolist()],
        linewidth=0,
    )
    from matplotlib.patches import Patch

    total = max(1.0, float(share.sum()))
    handles = [Patch(color=colour[m], label=f"matrix {m}: {share[m] / total:.0%}") for m in order]
    if len(share) > len(order):
        rest = (total - share[order].sum()) / total
        handles.append(Patch(color=_GREY, label=f"{len(share) - len(order)} others: {rest:.0%}"))
    axes.set_xlim(0, model.window_starts()[-1])
    axes.set_xlabel("time in the trace (s)", fontsize=9)
    axes.set_ylabel("requests/s", fontsize=9)
    axes.set_title(f"{len(model.phases())} phases, {len(share)} matrices", fontsize=10)
    return handles


def _marginal(axes: Any, model: Model, name: str) -> None:
    bars = coarse(model.marginal(name), 24)
    total = max(1, model.requests)
    shares = [count / total for _, _, count in bars]
    axes.barh(range(len(bars)), shares, color=_COLOURS[0])
    axes.set_yticks(range(len(bars)))
    size = 8 if len(bars) < 14 else 5.5
    labels = [bucket_text(model, name, first, last) for first, last, _ in bars]
    axes.set_yticklabels(labels, fontsize=size)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.3g}%")
    axes.set_title(title(name), fontsize=10)
