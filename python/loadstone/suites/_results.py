"""Measurements of a suite: one row each, as data and as the tables that people know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadstone.suites._build import Measure, SuitePlans
from loadstone.suites._needs import size_text

Row = dict[str, Any]


def measured(found: SuitePlans, summaries: Sequence[Mapping[str, Any]]) -> list[Row]:
    """One row for each measurement, in order.

    ``test``, ``processes`` and what else it is known by; ``seconds`` from the first begin of any process to
    the last end; ``bytes``, ``bytes_per_s``; ``count`` and ``per_s`` where files or seeks are counted, of
    those of which every request succeeded; ``left_out``, entries of archives that were not unpacked;
    ``requests`` and ``cpu_s``, CPU seconds of all processes together. What was not measured, because the run
    ended early, has None.
    """
    rows = []
    for one in found.measures:
        of_run = summaries[one.run] if one.run < len(summaries) else {}
        spans = [span for span in of_run.get("spans", ()) if span["name"] == one.span]
        row: Row = dict(one.key)
        if len(spans) < one.key["processes"]:
            rows.append(row | dict.fromkeys(("seconds", "bytes", "bytes_per_s", "requests", "cpu_s")))
            continue
        seconds = (max(span["to_ns"] for span in spans) - min(span["from_ns"] for span in spans)) / 1e9
        requests = sum(span["requests"] for span in spans)
        count = _counted(one, of_run, requests)
        moved = sum(span["bytes"] for span in spans)
        if one.moved:
            moved = sum(of_run["steps"].get(name, {}).get("bytes", 0) for name in one.moved)
        if count is not None and one.each is not None:
            # What failed may have moved some, too.
            moved = count * one.each
        row |= {"seconds": seconds, "bytes": moved, "bytes_per_s": moved / max(seconds, 1e-9)}
        if count is not None:
            row |= {"count": count, "per_s": count / max(seconds, 1e-9)}
        if one.count == "requests":
            row["left_out"] = of_run.get("left_out", 0)
        row["requests"] = requests
        row["cpu_s"] = sum(span["cpu_ns"] for span in spans) / 1e9
        rows.append(row)
    return rows


def _counted(one: Measure, of_run: Mapping[str, Any], requests: int) -> int | None:
    """How many files or seeks succeeded: as many as the one of its steps that failed most."""
    if one.count is None or one.count == "requests":
        return requests if one.count else None
    steps = [of_run.get("steps", {}).get(name, {"count": 0, "errors": {}}) for name in one.count]
    return min(int(step["count"] - sum(step["errors"].values())) for step in steps)


def _distinct(rows: Sequence[Row], *names: str) -> list[tuple[Any, ...]]:
    return list(dict.fromkeys(tuple(row.get(name) for name in names) for row in rows))


def _rate(row: Row | None, unit: float, digits: int = 1) -> str:
    value = None if row is None else row.get("bytes_per_s")
    return "-" if value is None else f"{value / unit:,.{digits}f}".replace(",", "" if digits == 0 else ",")


def table(suite: str, rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Heads of the columns, and the cells, as the original prints them."""
    return {"iozone": _iozone, "bonnie": _bonnie, "vxbench": _sequential}.get(suite, _commands)(rows)


def _iozone(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """IOzone's matrix: KiB and KiB/s."""
    tests = list(dict.fromkeys(row["test"] for row in rows))
    several = len(_distinct(rows, "processes")) > 1 or rows[0]["processes"] > 1
    heads = ["KiB", "record", *(["processes"] if several else []), *tests]
    by_key = {(row["file"], row["record"], row["processes"], row["test"]): row for row in rows}
    cells = []
    for file, record, processes in _distinct(rows, "file", "record", "processes"):
        line = [f"{file >> 10}", f"{record / 1024:g}", *([f"{processes}"] if several else [])]
        line += [_rate(by_key.get((file, record, processes, test)), 1024, 0) for test in tests]
        cells.append(line)
    return heads, cells


def _cpu(row: Row) -> str:
    if not row.get("seconds"):
        return "-"
    return f"{row['cpu_s'] / row['seconds'] * 100:.0f} %"


def _bonnie(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    cells = []
    for row in rows:
        counted = row.get("per_s")
        rate = f"{counted:,.0f} /s" if counted is not None else f"{_rate(row, 1e6)} MB/s"
        cells.append([row["test"], f"{row['processes']}", rate, _cpu(row), _seconds(row)])
    return ["test", "processes", "rate", "CPU", "seconds"], cells


def _seconds(row: Row) -> str:
    return "-" if row.get("seconds") is None else f"{row['seconds']:.3f}"


def _sequential(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Processes down, operation and I/O size across, MB/s."""
    columns = _distinct(rows, "test", "bs")
    by_key = {(row["processes"], row["test"], row["bs"]): row for row in rows}
    cells = [
        [f"{n}", *(_rate(by_key.get((n, test, size)), 1e6) for test, size in columns)]
        for (n,) in _distinct(rows, "processes")
    ]
    return ["processes", *(f"{test} {size / 1024:g} KiB" for test, size in columns)], cells


def _amount(row: Row) -> str:
    if "file" in row:
        return size_text(row["file"])
    counted = row.get("count", row.get("requests"))
    return "-" if counted is None else f"{counted:,}"


def _commands(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    cells = []
    archives = any("left_out" in row for row in rows)
    for row in rows:
        counted = row.get("per_s")
        cells.append(
            [
                row["test"],
                f"{row['processes']}",
                _amount(row),
                _seconds(row),
                f"{_rate(row, 1e6)} MB/s",
                "-" if counted is None else f"{counted:,.0f} /s",
                _cpu(row),
                *([f"{row.get('left_out', 0):,}"] if archives else []),
            ]
        )
    heads = ["test", "processes", "size or files", "seconds", "rate", "files", "CPU"]
    return [*heads, *(["left out"] if archives else [])], cells
