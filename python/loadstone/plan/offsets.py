"""Sizes of requests and hot blocks of a uniform source, from how they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadstone import _values
from loadstone.errors import Error, OptionError

# A request can move no more, see crates/plan.
_MOST = 1 << 28


def _bytes(text: str, whole: str) -> int:
    try:
        return _values.size(text)
    except Error as error:
        raise OptionError("bs", whole, f"{error}; several are written 4k-64k or 4k:60,64k:40") from None


def sizes_of(bs: int | str) -> tuple[int, list[dict[str, Any]]]:
    """Bytes of a block, and the rows of a plan's ``sizes``: none where all requests have one size.

    ``4k``: one size; ``4k-64k``: a range (:func:`rows_of_range`); ``4k:60,64k:40``: several with their
    shares, of which any may be such a range. Blocks have the smallest size of all.
    """
    text = str(bs)
    parts = text.split(",")
    spans = []
    for part in parts:
        sizes, colon, share = part.partition(":")
        low, dash, high = sizes.partition("-")
        least = _bytes(low, text)
        most = _bytes(high, text) if dash else least
        if most < least:
            raise OptionError("bs", text, f"goes from {low.strip()} down to {high.strip()}; exchange them")
        if most > _MOST:
            raise OptionError("bs", text, f"one request can move at most {_MOST >> 20}m")
        if colon or len(parts) > 1:
            try:
                weight = _values.number(share)
            except Error:
                weight = -1.0
            if weight < 0:
                raise OptionError("bs", text, f"{part.strip()} needs its share; write 4k:60,64k:40")
        else:
            weight = 1.0
        spans.append((weight, least, most))
    if not any(weight for weight, _, _ in spans):
        raise OptionError("bs", text, "the shares are all 0")
    unit = min(least for _, least, _ in spans)
    if len(spans) == 1 and spans[0][1] == spans[0][2]:
        return unit, []
    return unit, [row for weight, least, most in spans for row in rows_of_range(least, most, unit, weight)]


def rows_of_range(low: int, high: int, unit: int, share: float = 1.0) -> list[dict[str, Any]]:
    """Rows of a plan's ``sizes`` for a range: from ``low`` on in steps of ``unit``, all alike, and ``high``.

    Where ``high`` is at no whole step it is as much rarer as the last step is shorter, as fio draws bsrange.
    """
    rest = (high - low) % unit
    if not rest:
        return [{"share": share, "low": low, "high": high}]
    whole = high - rest - low + unit
    return [
        {"share": share * whole / (whole + rest), "low": low, "high": high - rest},
        {"share": share * rest / (whole + rest), "low": high, "high": high},
    ]


_SKEWS: Mapping[str, Sequence[str]] = {
    "uniform": (),
    "zipf": ("exponent",),
    "pareto": ("share",),
    "hotcold": ("accesses", "space"),
}


def skew_of(text: str) -> dict[str, Any]:
    """How random requests are shared out among blocks, as a plan has it, from ``NAME:NUMBER,NUMBER``."""
    name, _, numbers = text.strip().partition(":")
    parameters = _SKEWS.get(name)
    if parameters is None:
        raise OptionError("skew", text, f"must be one of: {', '.join(_SKEWS)}")
    try:
        values = [_values.number(number) for number in numbers.split(",")] if numbers else []
    except Error:
        values = []
    if len(values) != len(parameters):
        wanted = f"{name}:{','.join(p.upper() for p in parameters)}".rstrip(":")
        raise OptionError("skew", text, f"write {wanted}")
    return {"kind": name, **dict(zip(parameters, values, strict=True))}
