"""A comparison as text, Markdown, HTML of notebooks and plain data."""

from __future__ import annotations

import html as markup
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loadstone._text import one_line
from loadstone.compare import words
from loadstone.compare.differences import Difference
from loadstone.compare.verdicts import Finding
from loadstone.stats.intervals import Interval

if TYPE_CHECKING:
    from loadstone.compare.comparison import Comparison

FORMAT = "loadstone-comparison"
"""Of the plain data."""
VERSION = 1

_COLOURS: Mapping[str, str] = {"better": "32", "worse": "31", "higher": "36", "lower": "36"}
_WIDEST = 48
"""Characters of a value in the table of differences; a kernel's command line has many more."""


def sentence(one: Finding, margin: float) -> str:
    """``ops_per_s is better: 1.213 times (1.18 to 1.25)``; names are as they are."""
    of = f" {_ratio(one)}" if one.ratio is not None else ""
    match one.verdict:
        case "better" | "worse" | "higher" | "lower":
            return f"{one.metric.name} is {one.verdict}:{of or ' ' + _difference(one)}"
        case "same":
            return f"{one.metric.name} is the same within {words.percent(margin)}:{of or ' no run differs'}"
        case "undecided":
            return f"{one.metric.name} is undecided:{of or ' ' + _difference(one)}; {_why(one)}"
        case _:
            return f"{one.metric.name} has no verdict: one run cannot show what is chance"


def _why(one: Finding) -> str:
    if one.below_floor and one.floor is not None:
        return f"below the floor of {words.percent(one.floor)}, by which runs of one thing differ"
    if one.more is None:
        return "more than 30 runs of each would be needed to decide"
    return f"about {one.more} runs of each would decide"


def _ratio(one: Finding) -> str:
    assert one.ratio is not None
    return f"{words.ratio(one.ratio.value)} times ({_ends(one.ratio)})"


def _ends(interval: Interval) -> str:
    if not (math.isfinite(interval.high) and (interval.low > 0 or interval.n > 1)):
        return "not known"
    return f"{words.ratio(interval.low)} to {words.ratio(interval.high)}"


def _difference(one: Finding) -> str:
    low, high = one.difference.low, one.difference.high
    if not math.isfinite(high - low):
        return f"{words.value(one.metric, one.difference.value)} apart"
    return (
        f"{words.value(one.metric, one.difference.value)} apart "
        f"({words.value(one.metric, low)} to {words.value(one.metric, high)})"
    )


def sentences(of: Comparison) -> list[str]:
    """What is said of the primary metric, a sentence for each arm."""
    return [one_line(f"{one.arm} against {one.base}: {sentence(one, of.margin)}") for one in of.primary]


def heads(of: Comparison, one: Finding) -> list[str]:
    """Heads of the table of an arm."""
    return [
        "metric",
        "verdict",
        "ratio",
        f"{words.percent(of.confidence)} interval",
        one.base,
        one.arm,
        "runs",
    ]


def cells(one: Finding) -> list[str]:
    """A row of the table of an arm."""
    ratio, ends = ("–", "–") if one.ratio is None else (words.ratio(one.ratio.value), _ends(one.ratio))
    runs = f"{one.runs[0]}" if one.runs[0] == one.runs[1] else f"{one.runs[0]}, {one.runs[1]}"
    return [one.metric.name, _verdict(one), ratio, ends, *(_value(one, value) for value in one.values), runs]


def _verdict(one: Finding) -> str:
    if one.verdict == "undecided" and one.below_floor:
        return "undecided (below floor)"
    if one.verdict == "undecided":
        return f"undecided ({'>30' if one.more is None else f'~{one.more}'} runs)"
    return one.verdict


def _value(one: Finding, found: Interval) -> str:
    """``81,234 ops/s ±2.1 %``."""
    text = words.value(one.metric, found.value)
    if found.n < 2 or not math.isfinite(found.high - found.low) or not found.value:
        return text
    flag = " (!)" if one.metric.positive and found.low < 0 else ""
    return f"{text} ±{words.percent((found.high - found.low) / 2 / abs(found.value))}{flag}"


def by_arm(of: Comparison) -> list[list[Finding]]:
    """Findings of each arm but the base."""
    return [[one for one in of.verdicts if one.arm == arm.name] for arm in of.arms[1:]]


def remarks(of: Comparison) -> list[str]:
    """Notes, and how figures are meant."""
    found = [one_line(note) for note in of.notes]
    if any(
        value.low < 0 for one in of.verdicts if one.metric.positive for value in one.values if value.n > 1
    ):
        found.append(
            "(!): the interval reaches below zero, where the figure cannot be: too few runs, or too noisy"
        )
    if len(of.verdicts) > len(of.primary):
        name = of.primary[0].metric.name
        found.append(f"{name} is judged by itself, the others together: by chance some intervals exclude 1")
    if any(one.floor is not None for one in of.verdicts):
        told = {one.metric.name: one.floor for one in of.verdicts if one.floor is not None}
        floors = ", ".join(f"{name} {words.percent(floor)}" for name, floor in told.items())
        found.append(f"floor, by which runs of one thing differ: {floors}")
    return found


def text(of: Comparison, colour: bool = False) -> str:
    """For a terminal."""
    lines: list[str] = []
    if of.differences:
        lines += ["differs:", *_aligned(_of_differences(of), indent="  "), ""]
    else:
        lines += ["host, settings and load: the same", ""]
    for one in of.primary:
        said = one_line(f"{one.arm} against {one.base}: {sentence(one, of.margin)}")
        lines.append(_coloured(said, one.verdict) if colour else said)
    for findings in by_arm(of):
        rows = [[one_line(cell) for cell in cells(one)] for one in findings]
        table = _aligned([[one_line(cell) for cell in heads(of, findings[0])], *rows], right=(2, 6))
        if colour:
            table = [
                table[0],
                *(_coloured(line, one.verdict) for line, one in zip(table[1:], findings, strict=True)),
            ]
        lines += ["", *table]
    if notes := remarks(of):
        lines += ["", *(f"note: {note}" for note in notes)]
    return "\n".join(lines)


def _coloured(line: str, verdict: str) -> str:
    """A line in which the verdict has its colour; only of differences that are real."""
    if verdict not in _COLOURS:
        return line
    return re.sub(rf"\b{verdict}\b", f"\x1b[{_COLOURS[verdict]}m{verdict}\x1b[0m", line, count=1)


def _of_differences(of: Comparison) -> list[list[str]]:
    """A row for each difference, with heads."""
    rows = [["", *(one_line(arm.name) for arm in of.arms)]]
    for one in of.differences:
        mark = " (!)" if one.refused else ""
        rows.append([one_line(one.name) + mark, *map(_shown, values_of(one, len(of.arms)))])
    return rows


def values_of(one: Difference, arms: int) -> list[str]:
    """Values of a difference, a column for each arm; those of runs of one arm are in the first."""
    if one.within is not None:
        return [" | ".join(one.values), *[""] * (arms - 1)]
    return list(one.values)


def _shown(value: str) -> str:
    plain = one_line(value)
    return plain if len(plain) <= _WIDEST else f"{plain[: _WIDEST - 3]}..."


def _aligned(rows: Sequence[Sequence[str]], indent: str = "", right: Sequence[int] = ()) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    out = []
    for row in rows:
        line = (
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        out.append((indent + "  ".join(line)).rstrip())
    return out


_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")


def _escaped(cell: str) -> str:
    """A cell of Markdown that is shown as it is: a name gives no orders, and calls nobody."""
    plain = one_line(cell).replace("&", "&amp;")
    return _SPECIAL.sub(r"\\\1", plain).replace("@", "@&#8203;")


def markdown(of: Comparison) -> str:
    """As a pull request shows it."""
    marks = {"better": "✅ ", "worse": "❌ ", "undecided": "❔ "}
    lines = []
    for one in of.primary:
        said = f"{one.arm} against {one.base}: {sentence(one, of.margin)}"
        lines.append(f"{marks.get(one.verdict, '')}**{_escaped(said)}**\n")
    for findings in by_arm(of):
        lines += [*_table(heads(of, findings[0]), [cells(one) for one in findings]), ""]
    if of.differences:
        head, *rows = _of_differences(of)
        lines += [
            "<details><summary>What differs besides</summary>",
            "",
            *_table(head, rows),
            "",
            "</details>",
            "",
        ]
    lines += [f"- {_escaped(note)}" for note in remarks(of)]
    return "\n".join(lines).strip() + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head)]
    return [
        f"| {' | '.join(line if line == '---' else _escaped(line) for line in row)} |"
        for row in (*lines, *rows)
    ]


def html(of: Comparison) -> str:
    """For notebooks."""
    parts = [f"<p>{markup.escape(said)}</p>" for said in sentences(of)]
    for findings in by_arm(of):
        head = "".join(f"<th>{markup.escape(one_line(one))}</th>" for one in heads(of, findings[0]))
        rows = (
            "".join(f"<td>{markup.escape(one_line(cell))}</td>" for cell in cells(one)) for one in findings
        )
        parts.append(f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>")
    return "".join(parts)


def plain(of: Comparison) -> dict[str, Any]:
    """As plain data, ``docs/reference/compare.md``."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "margin": of.margin,
        "confidence": of.confidence,
        "arms": [
            {
                "name": arm.name,
                "runs": len(arm.runs),
                "factors": dict(arm.factors),
                "bundles": [str(run.path) for run in arm.runs if run.path is not None],
            }
            for arm in of.arms
        ],
        "differences": [
            {"name": one.name, "values": list(one.values), "refused": one.refused, "within": one.within}
            for one in of.differences
        ],
        "verdicts": [_plain(one) for one in of.verdicts],
        "notes": list(of.notes),
    }


def _plain(one: Finding) -> dict[str, Any]:
    return {
        "metric": one.metric.name,
        "unit": one.metric.unit,
        "better": one.metric.better,
        "base": one.base,
        "arm": one.arm,
        "primary": one.primary,
        "verdict": one.verdict,
        "ratio": _interval(one.ratio),
        "difference": _interval(one.difference),
        "change": one.change,
        "p": one.p,
        "runs": list(one.runs),
        "values": [_interval(value) for value in one.values],
        "runs_to_decide": one.more,
        "floor": one.floor,
        "below_floor": one.below_floor,
    }


def _interval(found: Interval | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    ends = {"value": found.value, "low": found.low, "high": found.high}
    return {name: value if math.isfinite(value) else None for name, value in ends.items()}
