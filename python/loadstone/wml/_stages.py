"""``later="60s: mean=8k; 120s: mean=64k"``: what becomes of a random variable while the load runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from loadstone.wml._errors import shown
from loadstone.wml._laws import Fault

FORM = 'write later="60s: mean=8k; 2min: mean=64k, min=1k"'

_TIME = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(ms|s|min|h)?", re.A)
_UNITS = {"ms": 1e6, "s": 1e9, None: 1e9, "min": 60e9, "h": 3600e9}
_MOST = 1 << 63


@dataclass(frozen=True, slots=True)
class Stage:
    """Parameters that are others from some moment of the run on."""

    written: str
    """The moment as the script has it."""
    from_ns: int
    """The same, in nanoseconds from the run's begin."""
    changes: Mapping[str, str]
    """Values by the names of parameters."""


def stages(text: str) -> list[Stage]:
    """The stages of an attribute ``later``, in order of time. Raises ``Fault`` where there are none."""
    found: list[Stage] = []
    for entry in text.split(";"):
        if not entry.strip():
            continue
        moment, colon, rest = entry.partition(":")
        moment = moment.strip()
        match = _TIME.fullmatch(moment)
        if not colon or match is None:
            raise Fault(f"later wants a time and a colon, not {shown(entry.strip())}", FORM)
        at = round(float(match[1]) * _UNITS[match[2]]) if len(moment) < 32 else _MOST
        if not 0 < at < _MOST:
            raise Fault(f"{shown(moment)} is no moment after the begin of a run", FORM)
        if found and at <= found[-1].from_ns:
            raise Fault(f"{moment} comes after {found[-1].written} in later, and is no later time", FORM)
        found.append(Stage(moment, at, _changes(rest)))
    if not found:
        raise Fault("later holds nothing", FORM)
    return found


def _changes(text: str) -> dict[str, str]:
    changes: dict[str, str] = {}
    for one in text.split(","):
        name, sign, value = (part.strip() for part in one.partition("="))
        if not name or not sign or not value:
            raise Fault(f"later wants name=value, not {shown(one.strip()) or 'nothing'}", FORM)
        changes[name] = value
    return changes
