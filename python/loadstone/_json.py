"""Plain data as JSON that every reader takes."""

from __future__ import annotations

import json
import math
import os
from typing import Any


def plain(value: Any) -> Any:
    """Numpy scalars and arrays, paths and NaN as what JSON has: what is no finite number becomes null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


def readable(value: Any) -> str:
    """Indented JSON; what is no data is told as text."""
    return json.dumps(plain(value), indent=2, allow_nan=False, default=str)
