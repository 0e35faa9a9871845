"""A figure of the page: panels drawn by the browser, and the same numbers as table and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loadstone._text import visible
from loadstone._units import number

# Rows shown in the page's own table; the CSV has all.
SHOWN_ROWS = 400

Cell = str | float | int | None


def rounded(values: Any, digits: int = 5) -> list[float | None]:
    """Numbers to ``digits`` significant digits; NaN and infinity become None, which draws a gap."""
    out: list[float | None] = []
    for value in np.asarray(values, dtype=float).ravel().tolist():
        out.append(float(f"{value:.{digits}g}") if math.isfinite(value) else None)
    return out


_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def embedded(value: Any) -> str:
    """JSON that may stand in a script element: whatever it holds, it neither ends nor changes it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.translate(_IN_SCRIPT)


_MARKUP = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}


def plotted(text: str) -> str:
    """A name as plotly shows it: it takes markup in names for orders."""
    return visible(text, lines=False).translate(_MARKUP)


def csv_cell(value: Cell) -> Cell:
    """A cell of CSV; a text that a spreadsheet would take for a formula gets an apostrophe before it."""
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value[:1] in _FORMULA else value


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass
class Panel:
    """One set of axes: plotly traces and layout as plain data.

    A colour is written ``var(--name)`` and looked up in the page's style when drawn, so that the figure
    follows the light and the dark theme.
    """

    title: str
    traces: list[dict[str, Any]]
    layout: dict[str, Any]
    height: int = 340

    def as_json(self) -> str:
        """What the page's script draws, as :func:`embedded`."""
        return embedded({"data": self.traces, "layout": self.layout})


@dataclass
class Figure:
    """A figure with its caption and its numbers.

    ``columns`` and ``rows`` hold everything that is drawn, in the units of the column names.
    """

    id: str
    title: str
    note: str
    panels: list[Panel]
    columns: list[str]
    rows: Sequence[Sequence[Cell]]
    small: bool = False
    # Label, colour and dash of each group, where the panels have no legend of their own.
    key: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def csv(self) -> str:
        """All rows as CSV (RFC 4180)."""
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(self.columns)
        writer.writerows([csv_cell(c) for c in row] for row in self.rows)
        return out.getvalue()

    @property
    def csv_in_page(self) -> str:
        """The CSV as it stands in a script element, as a text of JSON."""
        return embedded(self.csv)

    @property
    def shown(self) -> list[list[str]]:
        """The first rows as text for the page's table."""
        return [[cell_text(c) for c in row] for row in self.rows[:SHOWN_ROWS]]

    @property
    def hidden(self) -> int:
        """Rows that only the CSV has."""
        return max(len(self.rows) - SHOWN_ROWS, 0)


def cell_text(value: Cell) -> str:
    """A table cell: thousands apart, at most four significant digits, a dash for no value."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return number(value, 3 if 0 < abs(value) < 0.001 else 4)


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis in the page's style; its title says quantity and unit."""
    return {
        "title": {"text": title, "standoff": 8, "font": {"size": 12}},
        "gridcolor": "var(--grid)",
        "linecolor": "var(--axis)",
        "zerolinecolor": "var(--grid)",
        "tickcolor": "var(--axis)",
        "ticks": "outside",
        "ticklen": 4,
        "automargin": True,
        **more,
    }


def layout(x: dict[str, Any], y: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A layout in the page's style."""
    return {
        "xaxis": x,
        "yaxis": y,
        "margin": {"l": 56, "r": 16, "t": 8, "b": 44},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "var(--ink)"},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": "var(--card)", "bordercolor": "var(--axis)"},
        "dragmode": "zoom",
        **more,
    }


_TIME_NAMES = {-9: "ns", -6: "µs", -3: "ms", 0: "s"}


def time_ticks(low_ns: float, high_ns: float) -> dict[str, Any]:
    """Ticks of a logarithmic time axis in nanoseconds, named as people say them: 10 µs, 1 ms."""
    first, last = math.floor(math.log10(max(low_ns, 1))), math.ceil(math.log10(max(high_ns, 10)))
    exponents = list(range(first, last + 1))
    text = []
    for e in exponents:
        unit = min(((e - 9) // 3) * 3, 0)
        text.append(f"{10 ** (e - 9 - unit)} {_TIME_NAMES[unit]}")
    return {"type": "log", "tickvals": [10**e for e in exponents], "ticktext": text}


def size_ticks(low: float, high: float) -> dict[str, Any]:
    """Ticks of a logarithmic byte axis at powers of 16: 4 KiB, 64 KiB, 1 MiB."""
    first, last = math.floor(math.log2(max(low, 1))), math.ceil(math.log2(max(high, 2)))
    step = 2 if last - first <= 12 else 4
    exponents = list(range(first - first % step, last + 1, step))
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    text = [f"{2 ** (e % 10)} {units[min(e // 10, 5)]}" for e in exponents]
    return {"type": "log", "tickvals": [2**e for e in exponents], "ticktext": text}


def fade(colour: str, alpha: float = 0.18) -> str:
    """The same named colour, translucent; the page's script resolves it."""
    return f"{colour[:-1]}/{alpha})"
