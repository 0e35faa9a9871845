"""Pictures of a model over time: phases and their boundaries, a dimension over time, two dimensions
jointly; and of what caches miss of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

from loadstone import _pictures
from loadstone.errors import Error
from loadstone.model._check import BLOCK
from loadstone.model._model import Model
from loadstone.model.description import (
    bucket_text,
    bytes_text,
    phases_axes,
    picture_ending,
    save_figure,
    title,
)
from loadstone.model.histograms import Histogram, histogram, together
from loadstone.trace import Path

ROWS = 28
"""Buckets of a heat map's axis at most; neighbours are taken together."""

COLUMNS = 240
"""Steps of time at most."""

MATRICES = 6
"""Joint histograms shown at most, those with the most requests."""

_NONE = -(2**63)


def plot_over_time(
    model: Model,
    out: Path,
    *,
    dimensions: Sequence[str] = ("size",),
    joint: tuple[str, str] | None = None,
    force: bool = False,
    title_text: str = "",
) -> None:
    """Draws the phases with their boundaries, dimensions over time, and two dimensions jointly by matrix.

    The file's ending chooses the format. Raises ``Error`` where the file exists or there is no such
    dimension.
    """
    _pictures.ready()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = FilePath(os.fspath(out))
    if path.exists() and not force:
        raise Error(f"{path}: the file exists; choose another name, or overwrite it with `force`")
    picture_ending(path)
    for names in (*((name,) for name in dimensions), *([joint] if joint else [])):
        together(model, names).project(*names)
    matrices = sorted(range(len(model.matrices())), key=lambda m: -model.matrices()[m]["requests"])[:MATRICES]
    joint_rows = -(-len(matrices) // 3) if joint else 0
    rows = 1 + len(dimensions) + joint_rows
    figure = Figure(figsize=(13, 3.1 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    # The narrow column is for scales, so that all axes of time are one above the other.
    grid = figure.add_gridspec(rows, 2, width_ratios=(1, 0.02))
    axes = figure.add_subplot(grid[0, 0])
    axes.legend(handles=phases_axes(axes, model), fontsize=8, loc="upper right")
    _boundaries(axes, model)
    for i, name in enumerate(dimensions, 1):
        over = figure.add_subplot(grid[i, 0], sharex=axes)
        image = _over_time(over, model, name)
        figure.colorbar(image, cax=figure.add_subplot(grid[i, 1]))
    if joint:
        inner = grid[1 + len(dimensions) :, 0].subgridspec(joint_rows, 3)
        image = None
        for i, matrix in enumerate(matrices):
            axes = figure.add_subplot(inner[i // 3, i % 3])
            image = _joint(axes, model, matrix, joint, labelled=i % 3 == 0)
        figure.colorbar(image, cax=figure.add_subplot(grid[1 + len(dimensions), 1]))
    if title_text:
        figure.suptitle(_pictures.plain(title_text), fontsize=12)
    save_figure(figure, path, force)


def _boundaries(axes: Any, model: Model) -> None:
    """Lines where phases begin, unless there are too many to see anything."""
    starts = [phase["start"] for phase in model.phases()[1:]]
    if len(starts) <= 60:
        for start in starts:
            axes.axvline(start, color="#444444", linewidth=0.8, linestyle=":")
    else:
        axes.set_title(f"{axes.get_title()} (boundaries not drawn: {len(starts):,})", fontsize=10)


def _axis(model: Model, whole: Histogram, name: str) -> tuple[dict[tuple[int, int], int], list[str]]:
    """The row of every bucket, and the labels of the rows, ascending; no number comes first."""
    alone = whole.project(name)
    cells = sorted(
        zip(alone.first[:, 0].tolist(), alone.last[:, 0].tolist(), alone.counts.tolist(), strict=True)
    )
    groups = [[cell] for cell in cells]
    while len(groups) > ROWS:
        # The pair of neighbours with the fewest requests together goes first.
        weight = [sum(c for *_, c in group) for group in groups]
        i = min(range(len(groups) - 1), key=lambda i: weight[i] + weight[i + 1])
        groups[i : i + 2] = [groups[i] + groups[i + 1]]
    rows, labels = {}, []
    for row, group in enumerate(groups):
        for first, last, _ in group:
            rows[first, last] = row
        known = [(first, last) for first, last, _ in group if first != _NONE]
        text = bucket_text(model, name, min(known)[0], max(last for _, last in known)) if known else "none"
        labels.append(text)
    return rows, labels


def _rows(found: Histogram, d: int, rows: dict[tuple[int, int], int]) -> list[int]:
    ends = zip(found.first[:, d].tolist(), found.last[:, d].tolist(), strict=True)
    return [rows[first, last] for first, last in ends]


def _norm() -> Any:
    """Shares on a logarithmic scale: the rare is seen beside the common."""
    from matplotlib.colors import LogNorm

    return LogNorm(vmin=1e-3, vmax=1.0, clip=True)


def _over_time(axes: Any, model: Model, name: str) -> Any:
    import numpy as np

    rows, labels = _axis(model, together(model, [name]), name)
    shares = np.zeros((len(model.matrices()), len(labels)))
    for matrix in range(len(shares)):
        found = together(model, [name], matrix).project(name)
        np.add.at(shares[matrix], _rows(found, 0, rows), found.normalised().counts)
    length, weights = model.over_time(COLUMNS)
    total = weights.sum(axis=1, keepdims=True)
    over = np.where(total > 0, weights @ shares / np.maximum(total, 1), 0)
    axes.set_title(f"{title(name)}: share of the requests over time", fontsize=10)
    axes.set_xlabel("time in the trace (s)", fontsize=9)
    extent = (0, len(weights) * length, -0.5, len(labels) - 0.5)
    image = axes.imshow(
        np.where(over > 0, over, np.nan).T,
        aspect="auto",
        origin="lower",
        extent=extent,
        cmap="cividis",
        norm=_norm(),
        interpolation="nearest",
    )
    _ticks(axes.yaxis, labels)
    return image


def _joint(axes: Any, model: Model, matrix: int, joint: tuple[str, str], *, labelled: bool) -> Any:
    import numpy as np

    found = histogram(model, matrix).project(*joint).normalised()
    # The same axes for every matrix, so that they can be compared.
    whole = histogram(model)
    (xs, x_labels), (ys, y_labels) = (_axis(model, whole, name) for name in joint)
    table = np.zeros((len(y_labels), len(x_labels)))
    np.add.at(table, (_rows(found, 1, ys), _rows(found, 0, xs)), found.counts)
    shown = np.where(table > 0, table, np.nan)
    image = axes.imshow(
        shown, aspect="auto", origin="lower", cmap="cividis", norm=_norm(), interpolation="nearest"
    )
    share = model.matrices()[matrix]["requests"] / max(1, model.requests)
    axes.set_title(f"matrix {matrix}: {share:.0%} of the requests", fontsize=10)
    _ticks(axes.xaxis, x_labels)
    axes.tick_params(axis="x", rotation=60 if len(x_labels) > 6 else 0)
    axes.set_xlabel(joint[0], fontsize=9)
    if labelled:
        _ticks(axes.yaxis, y_labels)
        axes.set_ylabel(joint[1], fontsize=9)
    else:
        axes.set_yticks([])
    return image


def _ticks(axis: Any, labels: list[str]) -> None:
    """As many labels as can be read."""
    step = -(-len(labels) // 14)
    axis.set_ticks(range(0, len(labels), step), labels[::step], fontsize=7)


def picture(found: dict[str, Any], out: Path, *, force: bool = False, title_text: str = "") -> None:
    """Draws both miss-ratio curves over linear and geometric sizes; the ending chooses the format.

    ``found`` is what :func:`check` returns. Raises ``Error`` where the ending is no picture's, the file
    exists and ``force`` is not set, or matplotlib is not installed.
    """
    _pictures.ready()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = FilePath(os.fspath(out))
    if path.exists() and not force:
        raise Error(f"{path}: the file exists; choose another name, or overwrite it with `force`")
    figure = Figure(figsize=(11, 4), layout="constrained")
    FigureCanvasAgg(figure)
    curves = found["miss_ratio"]
    for i, scale in enumerate(("linear", "log")):
        axes = figure.add_subplot(1, 2, i + 1)
        axes.plot(curves["sizes"], curves["trace"], color="#0072B2", label="trace")
        axes.plot(curves["sizes"], curves["drawn"], color="#D55E00", linestyle="--", label="drawn")
        if scale == "log":
            axes.set_xscale("log", base=16)
        else:
            # Ticks at whole powers of two, at most eight of them.
            most = max(curves["sizes"][-1], BLOCK)
            step = 1 << (most // 8).bit_length()
            axes.set_xticks(range(0, most + 1, step))
        axes.set_ylim(0, 1.02)
        axes.xaxis.set_major_formatter(lambda x, _: bytes_text(round(x)))
        axes.tick_params(labelsize=8)
        axes.set_xlabel("size of an LRU cache", fontsize=9)
        axes.set_ylabel("miss ratio of 4 KiB blocks", fontsize=9)
        axes.legend(fontsize=8)
    off = f"miss ratios differ by {curves['mean']:.3f} on average, {curves['max']:.3f} at most"
    figure.suptitle(f"{_pictures.plain(title_text)}: {off}" if title_text else off, fontsize=11)
    save_figure(figure, path, force)
