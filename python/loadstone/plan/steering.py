"""What ends or steers a load by what it has reached, as plans have it: a steady state, a latency."""

from __future__ import annotations

import re
from typing import Any

from loadstone import _values
from loadstone.errors import Error, OptionError

SAMPLED = {"iops": "requests", "bw": "bytes", "lat": "latency"}
"""What a steady state is of, by the name in options and job files."""

_WINDOW = 30.0
_SAMPLE = 1.0


def steady(
    what: str, limit: float, relative: bool, window: float, after: float, interval: float, sample: float
) -> dict[str, Any]:
    """A steady state of ``iops``, ``bw`` or ``lat``, with ``_slope`` behind for slopes; times in seconds.

    ``limit``: requests or bytes per second, or ns; a share of the mean if ``relative``. A sample is as many
    whole ``interval`` as reach ``sample``.
    """
    name, slope, _ = what.partition("_slope")
    interval_ns = round(interval * 1e9)
    sample_ns = -(-round(sample * 1e9) // interval_ns) * interval_ns
    return {
        "of": SAMPLED[name],
        "by": "slope" if slope else "deviation",
        "limit": limit,
        "relative": relative,
        "window_ns": round(window * 1e9),
        "after_ns": round(after * 1e9),
        "sample_ns": sample_ns,
    }


def steady_of(text: str, interval: float) -> dict[str, Any]:
    """That of ``WHAT:LIMIT`` or ``WHAT:LIMIT,WINDOW``, such as ``iops:10%`` or ``bw_slope:1%,60s``."""
    found = re.fullmatch(
        r"(iops|bw|lat)(_slope)?:(\d+(?:\.\d+)?|\.\d+)(%|[a-z]*)(?:,(\w+(?:\.\w+)?))?", text.strip()
    )
    if found is None:
        raise OptionError(
            "until_steady",
            text,
            "write WHAT:LIMIT or WHAT:LIMIT,WINDOW; WHAT is iops, bw or lat, or has "
            "_slope behind, LIMIT is a number or percent of the mean, as in iops:10%,60s",
        )
    name, slope, number, unit, window = found.groups()
    try:
        if unit == "%":
            limit = float(number) / 100
        elif name == "lat":
            limit = _values.duration(number + unit) * 1e9
        else:
            limit = float(_values.size(number + unit)) if unit else float(number)
        length = _WINDOW if window is None else _values.duration(window)
    except Error as error:
        raise OptionError("until_steady", text, str(error)) from None
    return steady(name + (slope or ""), limit, unit == "%", length, 0.0, interval, _SAMPLE)


def latency_target_of(text: str) -> dict[str, Any]:
    """That of ``TIME``, ``TIME:PERCENT`` or ``TIME:PERCENT,WINDOW``, such as ``2ms:99.9``."""
    found = re.fullmatch(r"([\d.]+[a-z]+)(?::([\d.]+)(?:,([\d.]+[a-z]+))?)?", text.strip())
    try:
        if found is None:
            raise Error("write TIME or TIME:PERCENT, as in 2ms:99.9, and a window behind, as in 2ms:99.9,5s")
        time, percent, window = found.groups()
        share = 1.0 if percent is None else _values.number(percent) / 100
        if not 0 < share <= 1:
            raise Error(f"{percent} must be above 0 and at most 100 percent")
        return {
            "ns": round(_values.duration(time) * 1e9),
            "share": share,
            "window_ns": round(1e9 if window is None else _values.duration(window) * 1e9),
        }
    except Error as error:
        raise OptionError("latency_target", text, str(error)) from None
