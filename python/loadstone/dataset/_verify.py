"""Asked against achieved: a series beside the profile it was made from."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, TypedDict, cast

from loadstone import Error
from loadstone.dataset._make import Profiled, describe_profile, profile
from loadstone.dataset._scan import Chunking, Path, Progress, scan

FEW = 1000
"""Classes of fewer chunks are judged by three standard deviations of their count."""
COUNTED = ("files", "chunks", "unique", "dup1", "dup2")
"""What table 4.4 of the thesis has."""
PATTERNS = ("B", "E", "M", "BE", "BM", "ME", "BEM")
_RATIOS = ("dedup_ratio", "compress_ratio")


class Parameter(TypedDict):
    """One parameter, asked and achieved."""

    name: str
    snapshot: int | None
    """Which one it is of, all before it included; None: of the series."""
    asked: float
    achieved: float
    error_percent: float
    """Relative, of counts and ratios; of shares (transitions, patterns) the difference in percentage points;
    of distributions the distance (Kolmogorov-Smirnov of depths and sizes, total variation of types)."""
    ok: bool


class Verified(TypedDict):
    """What :func:`verify` and :func:`compare` return."""

    parameters: list[Parameter]
    worst_percent: float
    """Largest relative error of a count or ratio of at least 1,000 at any snapshot."""
    mean_percent: float
    """Mean relative error of those counts after the last snapshot, as in table 4.4."""
    ok: bool


def verify(
    paths: Path | Sequence[Path],
    profile_path: Path,
    *,
    tolerance: float = 10.0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Scans what was written, as the profile was scanned, and compares it with the profile.

    ``paths``: the snapshots in order, each a directory or a tar archive; or one directory in which they
    are named ``000``, ``001`` and so on, as :func:`write` makes them. ``tolerance``: percent that counts
    and ratios may be off at each snapshot; shares of files may be off by half as many percentage points.
    """
    asked = describe_profile(profile_path)
    one = isinstance(paths, (str, os.PathLike))
    found = snapshots_in(paths) if one else list(paths)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory(prefix="loadstone-verify-") as folder:
        series = os.path.join(folder, "found.fst")
        scan(
            found,
            series,
            chunking=text_of(asked["chunking"]),
            compress=asked["codec"] is not None,
            threads=threads,
            progress=progress,
        )
        return compare(asked, profile(series), tolerance=tolerance)


def snapshots_in(path: Path) -> list[str]:
    """A directory itself, or the snapshots in it where it has nothing but such."""
    path = os.fspath(path)
    if os.path.isdir(path):
        names = sorted(os.listdir(path))
        if names and all(re.fullmatch(r"\d{3,}(\.tar)?", name) for name in names):
            return [os.path.join(path, name) for name in names]
    return [path]


def text_of(chunking: Chunking) -> str:
    """A chunking as :func:`scan` takes it."""
    if chunking["kind"] == "fixed":
        return f"fixed:{chunking['size']}"
    return f"fastcdc:{chunking['min']},{chunking['average']},{chunking['max']}"


def compare(asked: Profiled, found: Profiled, *, tolerance: float = 10.0) -> Verified:
    """Compares two profiles: every parameter of the tables 4.2 to 4.4, and figures 4.5 to 4.12."""
    if asked["chunking"] != found["chunking"]:
        raise Error(
            f"chunks of {text_of(asked['chunking'])} and of {text_of(found['chunking'])} cannot be compared; "
            "scan again with the chunking of the other"
        )
    parameters: list[Parameter] = []
    both = list(zip(asked["snapshots"], found["snapshots"], strict=False))
    for number, (before, after) in enumerate(both):
        wanted, achieved = dict(before["together"]), dict(after["together"])
        for name in (*COUNTED, *_RATIOS):
            pair = (float(cast(float, wanted[name])), float(cast(float, achieved[name])))
            parameters.append(_relative(name, number, pair, tolerance))
    last = len(both) - 1
    for one, other in both[-1:]:
        distances = {
            "depths": ks(one["depths"], other["depths"]),
            "sizes": ks(one["sizes"], other["sizes"]),
            "types": total_variation(one["types"], other["types"]),
        }
        parameters += [_distance(name, last, far, tolerance / 200) for name, far in distances.items()]
    # Transitions and patterns are those of the whole series: compared if as many snapshots are there.
    if len(asked["snapshots"]) == len(found["snapshots"]):
        for name, percent in (asked["markov"] or {}).items():
            pair = (percent, (found["markov"] or {}).get(name, 0.0))
            parameters.append(_points(f"markov {name.upper()}", pair, tolerance))
        for name, *shares in zip(PATTERNS, asked["patterns"] or (), found["patterns"] or (), strict=False):
            parameters.append(_points(f"pattern {name}", (shares[0], shares[1]), tolerance))
    counted = [one for one in parameters if one["name"] in COUNTED and one["asked"] >= FEW]
    ratios = [one for one in parameters if one["name"] in _RATIOS]
    final = [one["error_percent"] for one in counted if one["snapshot"] == last]
    return {
        "parameters": parameters,
        "worst_percent": max((one["error_percent"] for one in counted + ratios), default=0.0),
        "mean_percent": sum(final) / len(final) if final else 0.0,
        "ok": all(one["ok"] for one in parameters),
    }


def ks(asked: Sequence[int], found: Sequence[int]) -> float:
    """Largest difference of two cumulated distributions, from 0 to 1."""
    a, b = max(sum(asked), 1), max(sum(found), 1)
    largest = sum_a = sum_b = 0.0
    for one, other in zip_longest(asked, found, fillvalue=0):
        sum_a, sum_b = sum_a + one / a, sum_b + other / b
        largest = max(largest, abs(sum_a - sum_b))
    return largest


def total_variation(asked: dict[str, int], found: dict[str, int]) -> float:
    """Half the sum of differences of two distributions, from 0 to 1."""
    a, b = max(sum(asked.values()), 1), max(sum(found.values()), 1)
    names = asked.keys() | found.keys()
    return sum(abs(asked.get(name, 0) / a - found.get(name, 0) / b) for name in names) / 2


def _relative(name: str, snapshot: int, pair: tuple[float, float], tolerance: float) -> Parameter:
    asked, achieved = pair
    off = abs(achieved - asked)
    allowed = asked * tolerance / 100
    if name in COUNTED and asked < FEW:
        allowed = max(3 * max(asked, 1.0) ** 0.5, allowed)
    error = 100 * off / asked if asked else 100.0 * bool(off)
    return _parameter(name, snapshot, asked, achieved, error, off <= allowed)


def _points(name: str, pair: tuple[float, float], tolerance: float) -> Parameter:
    off = abs(pair[0] - pair[1])
    return _parameter(name, None, pair[0], pair[1], off, off <= tolerance / 2)


def _distance(name: str, snapshot: int, distance: float, allowed: float) -> Parameter:
    return _parameter(name, snapshot, 0.0, distance, 100 * distance, distance <= allowed)


def _parameter(name: str, snapshot: int | None, *rest: Any) -> Parameter:
    asked, achieved, error, ok = rest
    return {
        "name": name,
        "snapshot": snapshot,
        "asked": asked,
        "achieved": achieved,
        "error_percent": error,
        "ok": bool(ok),
    }
