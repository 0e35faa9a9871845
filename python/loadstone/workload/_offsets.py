"""Sizes of requests and hot blocks of a uniform source, from how they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadstone import Error, _values
from loadstone._values import Misused

# A request can move no more, see crates/plan.
_MOST = 1 << 28


def _bytes(text: str, whole: str) -> int:
    try:
        return _values.size(text)
    except Error as error:
        raise Misused(f"--bs {whole}: {error}; several are written 4k-64k or 4k:60,64k:40") from None


def sizes_of(bs: int | str) -> tuple[int, list[dict[str, Any]]]:
    """Bytes of a block, and the rows of a plan's ``sizes``: none where all requests have one size.

    ``4k``: one size; ``4k-64k``: the multiples of the smallest, all alike; ``4k:60,64k:40``: several with
    their shares, of which any may be such a range. Blocks have the smallest size of all.
    """
    text = str(bs)
    parts = text.split(",")
    rows = []
    for part in parts:
        sizes, colon, share = part.partition(":")
        low, dash, high = sizes.partition("-")
        least = _bytes(low, text)
        most = _bytes(high, text) if dash else least
        if most < least:
            raise Misused(f"--bs {text}: goes from {low.strip()} down to {high.strip()}; exchange them")
        if most > _MOST:
            raise Misused(f"--bs {text}: one request can move at most {_MOST >> 20}m")
        if colon or len(parts) > 1:
            try:
                weight = _values.number(share)
            except Error:
                weight = -1.0
            if weight < 0:
                raise Misused(f"--bs {text}: {part.strip()} needs its share; write 4k:60,64k:40")
        else:
            weight = 1.0
        rows.append({"share": weight, "low": least, "high": most})
    if not any(row["share"] for row in rows):
        raise Misused(f"--bs {text}: the shares are all 0")
    unit = min(row["low"] for row in rows)
    if len(rows) == 1 and rows[0]["low"] == rows[0]["high"]:
        return int(unit), []
    return int(unit), rows


def mean_size(unit: int, rows: Sequence[Mapping[str, Any]]) -> float:
    """Mean bytes of a request."""
    if not rows:
        return float(unit)
    shares = sum(row["share"] for row in rows)
    # A row's sizes lie at equal steps from its low, so its largest one may be below its high.
    return float(
        sum(row["share"] * (row["low"] + (row["high"] - row["low"]) // unit * unit / 2.0) for row in rows)
        / shares
    )


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
        raise Misused(f"--skew {text}: is none of {', '.join(_SKEWS)}")
    try:
        values = [_values.number(number) for number in numbers.split(",")] if numbers else []
    except Error:
        values = []
    if len(values) != len(parameters):
        wanted = f"{name}:{','.join(p.upper() for p in parameters)}".rstrip(":")
        raise Misused(f"--skew {text}: write {wanted}")
    return {"kind": name, **dict(zip(parameters, values, strict=True))}
