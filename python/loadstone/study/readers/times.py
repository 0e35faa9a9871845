"""What ``time`` prints: POSIX (``time -p``), bash's own, GNU's default and ``time -v``."""

from __future__ import annotations

import re

from loadstone.errors import Error
from loadstone.stats.metric import Metric

_CLOCK = r"(?:(\d+):)?(?:(\d+):)?([\d.]+)"
_FORMS: tuple[tuple[str, str], ...] = (
    ("real", r"^real\s+(?:(\d+)m)?([\d.]+)s?\s*$"),
    ("user", r"^user\s+(?:(\d+)m)?([\d.]+)s?\s*$"),
    ("sys", r"^sys\s+(?:(\d+)m)?([\d.]+)s?\s*$"),
)
_VERBOSE: tuple[tuple[str, str], ...] = (
    ("real", rf"Elapsed \(wall clock\) time \(.*\): {_CLOCK}"),
    ("user", r"User time \(seconds\): ([\d.]+)"),
    ("sys", r"System time \(seconds\): ([\d.]+)"),
)
_SHORT = re.compile(r"([\d.]+)user ([\d.]+)system (?:(\d+):)?(?:(\d+):)?([\d.]+)elapsed")


def read(text: str) -> list[tuple[Metric, float]]:
    """``real``, ``user`` and ``sys`` in seconds; of several the last."""
    if told := _SHORT.findall(text):
        user, system, *clock = told[-1]
        values = {"real": _seconds(clock), "user": float(user), "sys": float(system)}
    else:
        values = {}
        for name, regex in (*_FORMS, *_VERBOSE):
            for match in re.finditer(regex, text, re.M):
                values[name] = _seconds(match.groups())
    if "real" not in values:
        raise Error("has no times as time(1), time -p or bash print them")
    return [(Metric(name, "s", "lower"), values[name]) for name in ("real", "user", "sys") if name in values]


def _seconds(parts: list[str] | tuple[str | None, ...]) -> float:
    """Of hours, minutes and seconds, as many as there are."""
    total = 0.0
    for part in parts:
        if part:
            total = total * 60 + float(part)
    return total
