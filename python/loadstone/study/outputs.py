"""Figures of a command's output: by its reader, by regular expressions, by paths in JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from loadstone.errors import Error
from loadstone.stats.metric import Metric
from loadstone.study.file.spec import Figure
from loadstone.study.readers import READERS

Figures = dict[str, tuple[Metric, float]]
"""Figures by name."""

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def steps_of(path: str) -> list[str | int]:
    """Steps of a path such as ``jobs[0].read.iops``. Raises ``Error`` for what is none."""
    found: list[str | int] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise Error(f"{path!r} is no path in JSON; write it like jobs[0].read.iops")
        found.append(match[1] if match[2] is None else int(match[2]))
        at = match.end()
    if not found:
        raise Error("a path in JSON needs a name")
    return found


def check(figure: Figure) -> None:
    """Raises ``Error`` for a figure that nothing can be read by."""
    if (figure.regex is None) == (figure.json is None):
        raise Error("needs either regex or json")
    if figure.json is not None:
        steps_of(figure.json)
    elif figure.regex is not None:
        try:
            groups = re.compile(figure.regex, re.M).groups
        except re.error as error:
            raise Error(f"regex: {error}") from None
        if groups < 1:
            raise Error("regex: needs a group, in parentheses, that is the figure")


def read(text: str, reader: str | None, figures: Mapping[str, Figure]) -> Figures:
    """All figures of one output. Raises ``Error`` for what has none; those that are missing are left out."""
    found: Figures = {}
    if reader is not None:
        found |= {metric.name: (metric, value) for metric, value in READERS[reader].read(text)}
    for name, figure in figures.items():
        value = _by_path(text, figure.json) if figure.json is not None else _by_regex(text, figure.regex)
        if value is not None:
            better: Any = figure.better
            found[name] = Metric(name, figure.unit, better, positive=False), value
    return found


def _by_regex(text: str, regex: str | None) -> float | None:
    """The first group of the last match: tools that tell a figure again and again end with the whole."""
    told = [match[1] for match in re.finditer(regex or "", text, re.M)]
    return None if not told else _number(told[-1])


def _by_path(text: str, path: str | None) -> float | None:
    begin = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if begin < 0:
        return None
    try:
        value = json.JSONDecoder().raw_decode(text[begin:])[0]
        for step in steps_of(path or ""):
            value = value[step]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return _number(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value.replace(",", "") if isinstance(value, str) else value)
    except (TypeError, ValueError):
        return math.nan


def together(copies: Sequence[Figures]) -> Figures:
    """Figures of copies at once: rates and times of CPU add up, elapsed is the longest, others the mean."""
    found: Figures = {}
    for name in copies[0]:
        if not all(name in one for one in copies):
            continue
        metric, values = copies[0][name][0], [one[name][1] for one in copies]
        if metric.unit.endswith("/s") or name in ("user", "system"):
            value = math.fsum(values)
        elif name == "elapsed":
            value = max(values)
        else:
            value = fmean(values)
        found[name] = metric, value
    return found
