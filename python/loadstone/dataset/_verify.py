"""Asked against achieved: a series beside the profile it was made from."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NotRequired, TypedDict, cast

from loadstone import content
from loadstone._scratch import scratch
from loadstone.dataset._laws import within
from loadstone.dataset._make import Profiled, describe_profile, profile
from loadstone.dataset._scan import Chunking, Described, Path, Progress, Report, scan
from loadstone.dataset.presets import PREFIX
from loadstone.errors import Error

FEW = 1000
"""Classes of fewer chunks are judged by three standard deviations of their count."""
COUNTED = ("files", "chunks", "unique", "dup1", "dup2")
"""What table 4.4 of the thesis has."""
TRANSITIONS = ("n", "nm", "nu", "nd", "mu", "md", "mm", "um", "ud", "uu", "dn", "d")
"""In the order of table 4.2 of the thesis."""
PATTERNS = ("B", "E", "M", "BE", "BM", "ME", "BEM")
CHUNK_SIZES = tuple(size << 10 for size in (4, 8, 16, 32, 64, 128))
"""Bytes of fixed blocks, and of chunks on average, that dedup ratios are shown for."""
CODECS = ("zstd", "lz4", "zlib")
_RATIOS = ("dedup_ratio", "compress_ratio")
_DISTRIBUTIONS = ("depths", "sizes", "types")
UNFINISHED = ".loadstone-unfinished"
"""The mark of a directory that is being written."""
VERDICTS = {(True, True): "ok", (True, False): "differs", (False, True): "not compared"}
"""What is said of a parameter, by whether it is compared and whether it is near enough."""
_NUMBERED = re.compile(r"(\d{3,})(\.tar|\.hash)?")
_PIECE = 128 << 10
_SAMPLE = 64 << 20


class Parameter(TypedDict):
    """One parameter, asked and achieved."""

    name: str
    snapshot: int | None
    """Which one it is of, all before it included; None: of the series."""
    asked: float | None
    """None where nothing says what it should be."""
    achieved: float
    error_percent: float | None
    """Relative, of counts and ratios; of shares (transitions, patterns) the difference in percentage points;
    of distributions the distance (Kolmogorov-Smirnov of depths and sizes, total variation of types)."""
    judged: bool
    """Whether it must be near; other parameters are only shown."""
    ok: bool


class Compared(TypedDict):
    """Numbers of snapshots."""

    asked: int
    achieved: int
    compared: int


class Verified(TypedDict):
    """What :func:`verify` and :func:`compare` return."""

    parameters: list[Parameter]
    worst_percent: float
    """Largest relative error of a count or ratio of at least 1,000 at any snapshot."""
    mean_percent: float
    """Mean relative error of those counts after the last snapshot, as in table 4.4."""
    snapshots: Compared
    distributions: dict[str, tuple[dict[str, int], dict[str, int]]]
    """Files of the last snapshot that was compared, asked and achieved (figure 4.12): ``depths`` (directories
    that they are in), ``sizes`` (below so many bytes) and ``types`` (extensions)."""
    ok: bool
    scanned: NotRequired[list[Report]]
    """What the scan of each snapshot met; files that could not be read make the rest not ``ok``."""


def verify(
    paths: Path | Sequence[Path],
    profile_path: Path | None = None,
    *,
    against: Path | Sequence[Path] | None = None,
    chunk_sizes: Sequence[int] = CHUNK_SIZES,
    tolerance: float = 10.0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Scans what was written, as the profile was scanned, and compares it with the profile.

    ``paths``: the snapshots in order, each a directory or a tar archive; or one directory in which they
    are named ``000``, ``001`` and so on, as :func:`write` makes them, with nothing else beside them.
    ``against``: the real snapshots, named alike; without a profile everything is compared with them. Only
    content says how it deduplicates in chunks of other sizes than a profile's, and what codecs make of
    it: so dedup ratios for blocks and chunks (FastCDC) of ``chunk_sizes`` bytes have something to be
    compared with only where ``against`` is given, and are shown otherwise. The ratios of zstd at level 1,
    lz4 and zlib at level 6 in pieces of a chunk's size and of 128 KiB (of snapshots that are directories)
    are only shown: each chunk has one compressibility. Where both have different numbers of snapshots, the
    first of them are compared.

    ``tolerance``: percent that counts and ratios may be off at each snapshot; shares of files may be off by
    half as many percentage points, and distributions of few files by what chance does to them. Raises
    ``Error`` where there is nothing to compare with, snapshots are missing, or their chunks are cut
    differently; ``DatasetError`` where something cannot be scanned.
    """
    if profile_path is None and against is None:
        raise Error("nothing to compare with: give a profile, or the real snapshots")
    if profile_path is not None and (named := os.fspath(profile_path)).startswith(PREFIX):
        raise Error(
            f"{named} is a preset, which has no counts to compare with: profile the series that was made "
            "by it (loadstone dataset profile), and verify by that"
        )
    within(tolerance, "a tolerance", 0, 1e6)
    found, real = _listed(paths), None if against is None else _listed(against)
    with scratch("verify") as folder:

        def scanned(given: list[str], name: str, chunking: str, compress: bool) -> tuple[str, Described]:
            series = os.path.join(folder, name)
            told = scan(
                given,
                series,
                chunking=chunking,
                compress=compress,
                threads=threads,
                progress=progress,
                force=True,
            )
            return series, told

        if profile_path is not None:
            asked = describe_profile(profile_path)
        else:
            asked = profile(scanned(real or [], "real.fst", "fastcdc", True)[0])
        how = text_of(asked["chunking"])
        series, told = scanned(found, "found.fst", how, asked["codec"] is not None)
        compared = compare(asked, profile(series), tolerance=tolerance)
        if real is not None:
            # Of the snapshots that both have.
            both = compared["snapshots"]["compared"]
            found, real = found[:both], real[:both]
        ratios: list[Parameter] = []
        for size in chunk_sizes:
            for kind, chunking in (
                ("fixed", f"fixed:{size}"),
                ("fastcdc", f"fastcdc:{size // 4},{size},{8 * size}"),
            ):
                pair = [
                    scanned(given, "ratio.fst", chunking, False)[1]["snapshots"][-1]["together"][
                        "dedup_ratio"
                    ]
                    for given in (found, real)
                    if given is not None
                ]
                name = f"dedup {kind}:{size >> 10}k" if size % 1024 == 0 else f"dedup {kind}:{size}"
                ratios.append(_ratio(name, pair, tolerance))
    ratios += _codecs(found, real, asked["chunking"], tolerance, progress)
    unread = any(one["unreadable"] or one["vanished"] or one["changed"] for one in told["scanned"])
    return {
        **compared,
        "parameters": compared["parameters"] + ratios,
        "ok": compared["ok"] and not unread and all(one["ok"] for one in ratios),
        "scanned": told["scanned"],
    }


def _listed(paths: Path | Sequence[Path]) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        return snapshots_in(paths)
    return snapshots_in(paths[0]) if len(paths) == 1 else [os.fspath(one) for one in paths]


def _codecs(
    found: list[str],
    real: list[str] | None,
    chunking: Chunking,
    tolerance: float,
    progress: Progress | None,
) -> list[Parameter]:
    """What codecs make of pieces of the snapshots that are directories, of a chunk's size and larger."""
    sides = [[one for one in given if os.path.isdir(one)] for given in (found, real) if given is not None]
    if not all(sides):
        return []
    unit = chunking["average"] if chunking["kind"] == "fastcdc" else chunking["size"]
    told = [
        content.examine(side, unit=unit, piece=max(_PIECE, unit), compress=_SAMPLE, progress=progress)
        for side in sides
    ]
    return [
        _ratio(f"compress {codec} {size >> 10}k", [one[by][codec] for one in told], tolerance, judged=False)  # type: ignore[literal-required]
        for size, by in ((unit, "by_unit"), (max(_PIECE, unit), "by_piece"))
        for codec in CODECS
        if all(codec in one[by] for one in told)  # type: ignore[literal-required]
    ]


def snapshots_in(path: Path) -> list[str]:
    """A directory itself, or the snapshots in it where it has such as :func:`write` makes.

    Hidden entries and ``lost+found`` count as not there. Raises ``Error`` where something else lies beside
    snapshots that are numbered from 000 on: neither all of it nor they alone may be meant.
    """
    path = os.fspath(path)
    if not os.path.isdir(path):
        return [path]
    names = sorted(os.listdir(path))
    if UNFINISHED in names:
        raise Error(
            f"{path}: is unfinished: loadstone dataset write writes there, or was ended before all was "
            f"there; write it again, or remove {UNFINISHED} in it to use the part that is there"
        )
    numbered = [name for name in names if _NUMBERED.fullmatch(name)]
    others = [name for name in names if name not in numbered and name[0] != "." and name != "lost+found"]
    if not numbered or (others and int(_NUMBERED.sub(r"\1", numbered[-1])) != len(numbered) - 1):
        return [path]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise Error(
            f"{path}: beside {len(numbered)} snapshots ({numbered[0]} to {numbered[-1]}) has {others[0]!r}"
            f"{more}, which is none: move it elsewhere, or name the snapshots one by one"
        )
    numbers = sorted({int(_NUMBERED.sub(r"\1", name)) for name in numbered})
    if (gone := next((at for at, number in enumerate(numbers) if at != number), None)) is not None:
        raise Error(
            f"{path}: has {numbered[-1]}, and no snapshot {gone:03}: those behind it would be taken for "
            "others; write it again, or name the snapshots one by one"
        )
    return [os.path.join(path, name) for name in numbered]


def text_of(chunking: Chunking) -> str:
    """A chunking as :func:`scan` takes it."""
    if chunking["kind"] == "fixed":
        return f"fixed:{chunking['size']}"
    return f"fastcdc:{chunking['min']},{chunking['average']},{chunking['max']}"


def compare(asked: Profiled, found: Profiled, *, tolerance: float = 10.0) -> Verified:
    """Compares two profiles: every parameter of the tables 4.2 to 4.4, and figures 4.5 to 4.12.

    ``tolerance``: see :func:`verify`. Raises ``Error`` where their chunks are cut differently or one has no
    step to compare, and ``OptionError`` for a tolerance out of range.
    """
    within(tolerance, "a tolerance", 0, 1e6)
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
            if wanted[name] is None or achieved[name] is None:
                what = "is no number; the profile is damaged, scan again"
                raise Error(f"the {name} of snapshot {number} {what}")
            pair = (float(cast(float, wanted[name])), float(cast(float, achieved[name])))
            parameters.append(_relative(name, number, pair, tolerance))
    last = len(both) - 1
    one, other = both[-1]
    # What chance does to a distribution of so few files: Kolmogorov's distance at 1 %.
    chance = 1.63 / math.sqrt(max(min(sum(one["sizes"]), sum(other["sizes"])), 1))
    for name in _DISTRIBUTIONS:
        far = total_variation if name == "types" else ks
        distance = far(one[name], other[name])  # type: ignore[literal-required]
        parameters.append(_distance(name, last, distance, max(tolerance / 200, chance)))
    # Transitions and patterns are those of the whole series: compared if as many snapshots are there.
    if len(asked["snapshots"]) == len(found["snapshots"]):
        for name in TRANSITIONS if asked["markov"] else ():
            pair = ((asked["markov"] or {})[name], (found["markov"] or {}).get(name, 0.0))
            parameters.append(_points(f"markov {name.upper()}", pair, tolerance))
        for name, *shares in zip(PATTERNS, asked["patterns"] or (), found["patterns"] or (), strict=False):
            parameters.append(_points(f"pattern {name}", (shares[0], shares[1]), tolerance))
    wants, has = asked["resemblance"], found["resemblance"]
    if wants and has:
        for name, share in (("resemblance 128k", "near"), ("resemblance 1m", "far")):
            pair = (100 * wants[share], 100 * has[share])  # type: ignore[literal-required]
            # What resembles its neighbours in half of its bytes and more is not made so.
            parameters.append({**_points(name, pair, tolerance), "judged": False, "ok": True})
    if asked["stays"] is not None and found["stays"] is not None:
        pair = (100 * asked["stays"], 100 * found["stays"])
        parameters.append({**_points("stays in changes", pair, tolerance), "judged": False, "ok": True})
    counted = [one for one in parameters if one["name"] in COUNTED and (one["asked"] or 0) >= FEW]
    ratios = [one for one in parameters if one["name"] in _RATIOS]
    final = [one["error_percent"] or 0.0 for one in counted if one["snapshot"] == last]
    return {
        "parameters": parameters,
        "worst_percent": max((one["error_percent"] or 0.0 for one in counted + ratios), default=0.0),
        "mean_percent": sum(final) / len(final) if final else 0.0,
        "snapshots": {
            "asked": len(asked["snapshots"]),
            "achieved": len(found["snapshots"]),
            "compared": len(both),
        },
        "distributions": {
            "depths": (_named(one["depths"], str), _named(other["depths"], str)),
            "sizes": (_named(one["sizes"], _below), _named(other["sizes"], _below)),
            "types": (one["types"], other["types"]),
        },
        "ok": all(one["ok"] for one in parameters),
    }


def _named(counts: Sequence[int], name: Callable[[int], str]) -> dict[str, int]:
    return {name(index): count for index, count in enumerate(counts)}


def _below(index: int) -> str:
    """A class of sizes by the bytes that files have less than."""
    return str(1 << index)


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


def _relative(name: str, snapshot: int | None, pair: tuple[float, float], tolerance: float) -> Parameter:
    asked, achieved = pair
    off = abs(achieved - asked)
    allowed = asked * tolerance / 100
    if name in COUNTED and asked < FEW:
        allowed = max(3 * max(asked, 1.0) ** 0.5, allowed)
    error = 100 * off / asked if asked else 100.0 * bool(off)
    return _parameter(name, snapshot, pair, error, off <= allowed)


def _points(name: str, pair: tuple[float, float], tolerance: float) -> Parameter:
    off = abs(pair[0] - pair[1])
    return _parameter(name, None, pair, off, off <= tolerance / 2)


def _distance(name: str, snapshot: int, distance: float, allowed: float) -> Parameter:
    return _parameter(name, snapshot, (0.0, distance), 100 * distance, distance <= allowed)


def _ratio(name: str, pair: list[float], tolerance: float, *, judged: bool = True) -> Parameter:
    """A ratio achieved, and the one asked for where there is one."""
    if len(pair) == 1:
        return {
            "name": name,
            "snapshot": None,
            "asked": None,
            "achieved": pair[0],
            "error_percent": None,
            "judged": False,
            "ok": True,
        }
    told = _relative(name, None, (pair[1], pair[0]), tolerance)
    return {**told, "judged": judged, "ok": told["ok"] or not judged}


def _parameter(
    name: str, snapshot: int | None, pair: tuple[float, float], error: float, ok: bool
) -> Parameter:
    return {
        "name": name,
        "snapshot": snapshot,
        "asked": pair[0],
        "achieved": pair[1],
        "error_percent": error,
        "judged": True,
        "ok": bool(ok),
    }
