"""The page about a comparison: plots over the snapshots, like figures 4.5 to 4.12 of the thesis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from loadstone.dataset._scan import Path
from loadstone.dataset._verify import VERDICTS, Parameter, Verified

if TYPE_CHECKING:
    from loadstone.report.figure import Figure, Panel
    from loadstone.report.page import Page

_TITLES = {
    "files": "Files",
    "chunks": "Chunks",
    "unique": "Unique chunks",
    "dup1": "Chunks with one duplicate",
    "dup2": "Chunks with two duplicates",
    "dedup_ratio": "Dedup ratio",
    "compress_ratio": "Compress ratio",
}
_SIDES = (("asked", "c0", "solid"), ("achieved", "c1", "dash"))
_LINES = [("asked", "c0", ""), ("achieved", "c1", "dash")]
_BARS = [("asked", "c0", ""), ("achieved", "c1", "")]
_STEEP = 50.0
"""From which ratio of its largest number to its smallest on a figure is logarithmic."""
_TYPES = 15
"""Most types that are drawn; the others are in the table."""


def write_report(
    found: Verified, out: Path, *, title: str | None = None, source: str = "", force: bool = False
) -> Page:
    """Writes what :func:`verify` returned as one HTML file that loads nothing, and returns what is on it.

    ``source``: what was compared, for the foot of the page. Raises ``Error`` where ``out`` is there and
    ``force`` is not set.
    """
    from loadstone.report.page import save

    page = build(found, title, source)
    save(page, out, force=force)
    return page


def build(found: Verified, title: str | None, source: str) -> Page:
    """The page."""
    from loadstone.report.page import Page, Section

    told = found["snapshots"]
    far = [one for one in found["parameters"] if not one["ok"]]
    conclusion = (
        f"Ratios, and counts of 1,000 or more, differ by {found['worst_percent']:.2f} % at most; counts "
        f"after the last snapshot {found['mean_percent']:.2f} % on average. "
        + (
            f"{len(far)} parameters differ by more than the tolerance."
            if far
            else "All are within the tolerance."
        )
    )
    warnings = [
        f"{one['path']}: {one['unreadable']:,} files could not be read, {one['vanished']:,} vanished, "
        f"{one['changed']:,} changed meanwhile."
        for one in found.get("scanned", ())
        if one["unreadable"] or one["vanished"] or one["changed"]
    ]
    if told["asked"] != told["achieved"]:
        warnings.append(f"{told['asked']} snapshots were expected, and {told['achieved']} were found.")
    series = [
        figure
        for figure in (_counts(found), _shares(found), _distributions(found), _chunk_sizes(found))
        if figure is not None
    ]
    return Page(
        title or "Dataset, asked against achieved",
        f"{told['compared']} snapshots",
        conclusion,
        "good" if found["ok"] else "bad",
        source,
        [
            Section("series", "Over the snapshots", figures=series),
            Section("parameters", "All parameters", tables=[_table(found)]),
        ],
        warnings,
    )


def _table(found: Verified) -> Any:
    from loadstone.report.figure import cell_text
    from loadstone.report.page import Row, Table

    last = found["snapshots"]["compared"] - 1
    rows = []
    for one in found["parameters"]:
        if one["snapshot"] in (None, last) or not one["ok"]:
            verdict = VERDICTS[one["judged"], one["ok"]]
            snapshot = "" if one["snapshot"] is None else str(one["snapshot"])
            numbers = (one["asked"], one["achieved"], one["error_percent"])
            cells = [one["name"], snapshot, *(cell_text(number) for number in numbers), verdict]
            rows.append(Row(cells, "bad" if not one["ok"] else ""))
    note = (
        "After the last snapshot, of the series, and what differs before. Difference: percent of counts "
        "and ratios, percentage points of shares, distance of distributions in percent."
    )
    heads = ["parameter", "snapshot", "expected", "found", "difference %", "verdict"]
    return Table(heads, rows, note=note, text=(0, 5), toned=5)


def _counts(found: Verified) -> Figure:
    """Counts and ratios after every snapshot (figures 4.5 to 4.11)."""
    from loadstone.report.figure import Figure, Panel, axis, layout, rounded

    panels, rows = [], []
    for name, title in _TITLES.items():
        mine = [one for one in found["parameters"] if one["name"] == name]
        sides = {side: [one[side] for one in mine] for side, _, _ in _SIDES}  # type: ignore[literal-required]
        positive = [value for values in sides.values() for value in values if value]
        steep = name not in ("files", "chunks") and positive and max(positive) > _STEEP * min(positive)
        y = axis(title.lower(), type="log") if steep else axis(title.lower(), rangemode="tozero")
        # A logarithmic axis has no zero: there a line has a gap.
        heights = {side: [value or None if steep else value for value in sides[side]] for side in sides}
        traces = [
            _line([one["snapshot"] for one in mine], rounded(heights[side]), side, colour, dash)
            for side, colour, dash in _SIDES
        ]
        panels.append(Panel(title, traces, layout(axis("snapshot"), y, showlegend=False), 240))
        rows += [
            [title.lower(), one["snapshot"], one["asked"], one["achieved"], one["error_percent"]]
            for one in mine
        ]
    note = "Of all snapshots up to each one, as figures 4.5 to 4.11 of the thesis have them."
    columns = ["parameter", "snapshot", "asked", "achieved", "off (%)"]
    return Figure("counts", "What deduplicators see", note, panels, columns, rows, small=True, key=_LINES)


def _line(x: Sequence[Any], y: Sequence[Any], name: str, colour: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(x),
        "y": list(y),
        "name": name,
        "line": {"color": f"var(--{colour})", "dash": dash, "width": 2},
        "marker": {"size": 5},
    }


def _bars(title: str, names: Sequence[str], sides: Sequence[Sequence[float]], unit: str) -> Panel:
    from loadstone.report.figure import Panel, axis, layout, rounded

    traces = [
        {
            "type": "bar",
            "x": list(names),
            "y": rounded(values),
            "name": side,
            "marker": {"color": f"var(--{colour})", "line": {"width": 0}},
        }
        for (side, colour, _), values in zip(_SIDES, sides, strict=True)
    ]
    x = axis("", type="category")
    return Panel(
        title, traces, layout(x, axis(unit, rangemode="tozero"), barmode="group", showlegend=False), 240
    )


def _shares(found: Verified) -> Figure | None:
    """Transitions and patterns (tables 4.2 and 4.3); None where snapshots are too few."""
    from loadstone.report.figure import Figure

    panels, rows = [], []
    for prefix, title in (("markov ", "Transitions of files"), ("pattern ", "Where files changed")):
        mine = [one for one in found["parameters"] if one["name"].startswith(prefix)]
        if mine:
            names = [one["name"].removeprefix(prefix) for one in mine]
            sides = [[one["asked"] or 0.0 for one in mine], [one["achieved"] for one in mine]]
            panels.append(_bars(title, names, sides, "percent of files"))
            rows += [[prefix.strip(), *row] for row in zip(names, *sides, strict=True)]
    if not panels:
        return None
    note = "N: new, M: modified, U: unmodified, D: deleted; B, M, E: at the beginning, middle, end."
    columns = ["kind", "name", "asked (%)", "achieved (%)"]
    return Figure("shares", "How files change", note, panels, columns, rows, small=True, key=_BARS)


def _distributions(found: Verified) -> Figure:
    """Sizes, depths and types of files (figure 4.12)."""
    from loadstone.report.facts import size
    from loadstone.report.figure import Figure

    titles = {"sizes": "Size, below", "types": "Type", "depths": "Depth of directories"}
    panels, rows = [], []
    for kind, title in titles.items():
        asked, achieved = found["distributions"][kind]
        names = list(dict.fromkeys([*asked, *achieved]))
        if kind == "types":
            names.sort(key=lambda name: -asked.get(name, 0) - achieved.get(name, 0))
        sides = [
            [100 * side.get(name, 0) / max(sum(side.values()), 1) for name in names]
            for side in (asked, achieved)
        ]
        shown = [size(int(name)) for name in names] if kind == "sizes" else names
        rows += [[kind, name, *shares] for name, *shares in zip(shown, *sides, strict=True)]
        drawn = slice(_TYPES if kind == "types" else None)
        panels.append(_bars(title, shown[drawn], [side[drawn] for side in sides], "percent of files"))
    note = "Of the files of the last snapshot, as figure 4.12 of the thesis has them."
    columns = ["distribution", "class", "asked (%)", "achieved (%)"]
    return Figure("files", "What files are like", note, panels, columns, rows, small=True, key=_BARS)


def _chunk_sizes(found: Verified) -> Figure | None:
    """Dedup ratio over chunk sizes; None where none was asked for."""
    from loadstone.report.figure import Figure, Panel, axis, layout, rounded

    panels, rows = [], []
    for kind, title in (("fixed", "Fixed blocks"), ("fastcdc", "FastCDC, on average")):
        mine: list[Parameter] = [
            one for one in found["parameters"] if one["name"].startswith(f"dedup {kind}:")
        ]
        if not mine:
            continue
        sizes = [one["name"].partition(":")[2] for one in mine]
        traces = []
        for side, colour, dash in _SIDES:
            values = [one[side] for one in mine]  # type: ignore[literal-required]
            if None not in values:
                traces.append(_line(sizes, rounded(values), side, colour, dash))
        x = axis("bytes of a chunk", type="category")
        panels.append(
            Panel(title, traces, layout(x, axis("dedup ratio", rangemode="tozero"), showlegend=False), 240)
        )
        rows += [[kind, size, one["asked"], one["achieved"]] for size, one in zip(sizes, mine, strict=True)]
    if not panels:
        return None
    note = "Of all snapshots together, whatever chunking they were made for."
    columns = ["chunking", "size", "asked", "achieved"]
    return Figure("sizes", "Dedup ratio by chunk size", note, panels, columns, rows, small=True, key=_LINES)
