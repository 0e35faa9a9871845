"""What a suite measured: its table, and a surface over file and record sizes for each pass of IOzone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadstone.bundle import Series
from loadstone.report.figure import Figure, Panel
from loadstone.report.page import Row, Section, Table
from loadstone.suites import SUITES, table


def section(series: Series, number: int) -> Section | None:
    """The section of a suite's bundle; None for others."""
    name, rows = series.summary.get("suite"), series.summary.get("measurements")
    suite = SUITES.get(str(name))
    if suite is None or not rows:
        return None
    heads, cells = table(suite.name, rows)
    note = {
        "iozone": "KiB/s of each pass, from its first request to its last; sizes of file and record in KiB.",
        "vxbench": "MB/s of all processes together, until the last has ended.",
    }.get(suite.name, "CPU is that of the processes, of one CPU.")
    shown = Table(heads, [Row(line) for line in cells], note=note, text=(0,))
    figures = [surface] if (surface := surfaces(rows, f"surface-{number}")) else []
    note = f"{suite.title[0].upper()}{suite.title[1:]}."
    return Section(f"suite-{number}", suite.name, note, tables=[shown], figures=figures)


def conclude(series: Series) -> str | None:
    """What a suite's bundle says in a sentence; None for others."""
    name, rows = series.summary.get("suite"), series.summary.get("measurements")
    if name not in SUITES or not rows:
        return None
    had = sum(row.get("seconds") is not None for row in rows)
    missing = f", {len(rows) - had} more were cut off" if had < len(rows) else ""
    runs = len(series.runs)
    of = f"{had} measurement{'s' * (had != 1)} in {runs} run{'s' * (runs != 1)}"
    return f"{name}: {of}{missing}."


def surfaces(rows: Sequence[Mapping[str, Any]], ident: str) -> Figure | None:
    """Rates over sizes of file and record, a surface for each test; None for too few of either."""
    known = [row for row in rows if row.get("bytes_per_s") is not None and "record" in row]
    files, records = (sorted({row[key] for row in known}) for key in ("file", "record"))
    if len(files) < 2 or len(records) < 2:
        return None
    panels = []
    for test in dict.fromkeys(row["test"] for row in known):
        at = {(row["file"], row["record"]): row["bytes_per_s"] / 1e6 for row in known if row["test"] == test}
        heights = [[_rounded(at.get((file, record))) for record in records] for file in files]
        trace = {
            "type": "surface",
            "x": list(range(len(records))),
            "y": list(range(len(files))),
            "z": heights,
            "text": [[f"{_named(file)} in {_named(record)}" for record in records] for file in files],
            "hovertemplate": "%{text}: %{z:,.0f} MB/s<extra></extra>",
            "colorscale": "Viridis",
            "showscale": False,
        }
        panels.append(Panel(f"{test}, MB/s", [trace], _scene(files, records), 380))
    columns = ["test", "file (bytes)", "record (bytes)", "processes", "bytes/s"]
    cells = [[row["test"], row["file"], row["record"], row["processes"], row["bytes_per_s"]] for row in known]
    note = (
        "Each surface has its own scale; what falls off to the right or the back is a cache that has ended."
    )
    return Figure(ident, "Rate over sizes of file and record", note, panels, columns, cells, small=True)


def _scene(files: Sequence[int], records: Sequence[int]) -> dict[str, Any]:
    def sizes(title: str, values: Sequence[int]) -> dict[str, Any]:
        # Not each of a dozen sizes has room for its name.
        step = -(-len(values) // 6)
        at = list(range(0, len(values), step))
        return {"title": {"text": title}, "tickvals": at, "ticktext": [_named(values[i]) for i in at]}

    return {
        "scene": {
            "xaxis": sizes("record", records),
            "yaxis": sizes("file", files),
            # Its unit stands above the surface: beside the axis a narrow column has no room for it.
            "zaxis": {"title": {"text": ""}, "rangemode": "tozero"},
            "camera": {"eye": {"x": -1.9, "y": -1.9, "z": 1.0}},
        },
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 11, "color": "var(--ink)"},
    }


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else float(f"{rate:.4g}")


def _named(size: int) -> str:
    for unit, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}"
