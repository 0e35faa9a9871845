"""Sizes as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([kmgt]?)(?:i?b)?")


def parse_size(text: str) -> int | None:
    """Bytes of ``4096``, ``4k``, ``1.5g`` or ``4KiB``, in powers of 1024; None for anything else."""
    match = _SIZE.fullmatch(text.strip().lower())
    return int(float(match[1]) * _UNITS[match[2]]) if match else None
