"""Distributions that trees are made of, as people write them."""

from __future__ import annotations

import math
import os
import re
from typing import Any, TypedDict

from loadstone.dataset._scan import Path
from loadstone.errors import Error, OptionError

SIZES = ("impressions", "specsfs-69g", "specsfs-768g")
"""Laws of file sizes by name."""
DEPTHS = "poisson:6.49"
"""Of files, as Impressions has them (FAST 2009, table 2)."""
SIGMA = 2.46
"""Standard deviation of the natural logarithm of file sizes (FAST 2009, table 2)."""

# Agrawal, Arpaci-Dusseau and Arpaci-Dusseau, Generating Realistic Impressions for File-System
# Benchmarking, FAST 2009, table 2: this share of files is of a lognormal body, the others of a Pareto tail.
_BODY_SHARE = 0.99994
_IMPRESSIONS = {
    "kind": "lognormal",
    "mu": 9.48,
    "sigma": SIGMA,
    "tail": {"share": 1 - _BODY_SHARE, "least": 512 * 2.0**20, "shape": 0.91},
}
# VERITAS File System Versus UNIX File System, section 1.3, tables 1 and 2: files of up to so many bytes.
_EDGES = (0, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, int(1.35 * 2**20))
_SPECSFS = {
    "specsfs-69g": ((1_990_612, 473_044, 242_107, 135_901, 28_063, 981), (31 << 20, 5)),
    "specsfs-768g": ((21_896_732, 5_203_484, 2_663_177, 1_494_911, 308_693, 10_791), (156 << 20, 11)),
}
# The mean place of a file in its range with which table 1 has the bytes that are told, 72,641,776 KB.
_PLACE = 0.680
# Depths beyond which no file is expected.
_RARE = 1e-9


class Laws(TypedDict):
    """Distributions as the native module takes them."""

    sizes: dict[str, Any]
    depths: list[float]
    """Shares of files from the root on."""
    extensions: list[tuple[str, float]]
    duplicates: list[tuple[int, float]]
    """How often distinct chunks are there, and their shares."""
    ratio: float


def laws(
    sizes: str | dict[str, Any] = "impressions",
    depths: str = DEPTHS,
    extensions: str = "",
    duplicates: Path = "1=1",
    compress: float = 1.0,
) -> Laws:
    """Distributions from their texts; :func:`loadstone.dataset.populate` tells how these look."""
    return {
        "sizes": parse_sizes(sizes) if isinstance(sizes, str) else sizes,
        "depths": parse_depths(depths),
        "extensions": _shares(extensions, "extensions", "c=30,h=20,=50") if extensions else [("", 1.0)],
        "duplicates": parse_duplicates(duplicates),
        "ratio": within(compress, "a compress ratio", 1, 250),
    }


def finite(text: str) -> float:
    """A number that can be counted with: ``nan`` and ``inf`` raise ``ValueError`` as words do."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def within(number: float, what: str, least: float, most: float) -> float:
    """The number itself; raises ``Error`` where it is not between the two, as nothing is of ``nan``."""
    if not least <= number <= most:
        raise OptionError(None, None, f"{what} of {number:g}: use {least:g} to {most:g}")
    return number


def parse_sizes(text: str) -> dict[str, Any]:
    """A law of file sizes: a name of :data:`SIZES`, ``lognormal:9.5,1.5``, or a file with a table."""
    if text == "impressions":
        return dict(_IMPRESSIONS)
    if text in _SPECSFS:
        counts, (archive, archives) = _SPECSFS[text]
        cells = [
            {"above": above, "to": to, "files": float(files)}
            for above, to, files in zip(_EDGES, _EDGES[1:], counts, strict=False)
        ]
        cells.append({"above": archive - 1, "to": archive, "files": float(archives)})
        return {"kind": "table", "cells": cells, "mean": _PLACE}
    if text.startswith("lognormal:"):
        try:
            mu, sigma = (finite(part) for part in text.removeprefix("lognormal:").split(","))
        except ValueError:
            raise OptionError(
                None, None, f"{text!r}: write mean and deviation of the logarithm, lognormal:9.5,1.5"
            ) from None
        return {"kind": "lognormal", "mu": mu, "sigma": sigma, "tail": None}
    if os.path.isfile(text):
        rows = _rows(text, 3)
        cells = [{"above": int(above), "to": int(to), "files": files} for above, to, files in rows]
        return {"kind": "table", "cells": cells, "mean": 0.5}
    raise OptionError(
        None,
        None,
        f"{text!r} is no law of file sizes: use {', '.join(SIZES)}, lognormal:MU,SIGMA, or a file whose "
        "lines have the bytes that files are larger than, those they have at most, and how many there are",
    )


def parse_depths(text: str) -> list[float]:
    """Shares of files by depth: ``poisson:6.49`` or numbers from the root on, ``1,5,20,10``."""
    try:
        if text.startswith("poisson:"):
            mean = finite(text.removeprefix("poisson:"))
            if not 0 <= mean <= 500:
                raise ValueError
            deepest = int(mean + 10 * math.sqrt(mean) + 10)
            shares = [
                math.exp(d * math.log(mean or 1e-300) - mean - math.lgamma(d + 1)) for d in range(deepest)
            ]
            return [share if share > _RARE else 0.0 for share in shares]
        return [finite(part) for part in text.split(",")]
    except ValueError:
        raise OptionError(
            None,
            None,
            f"{text!r} are no depths: write poisson:MEAN with a mean of up to 500, or shares from the root "
            "on, like 1,5,20,10",
        ) from None


def parse_duplicates(source: Path) -> list[tuple[int, float]]:
    """How often distinct chunks are there: ``1=90,2=7,4=3``, or a file that another tool wrote.

    Files are what DEDISgen writes (lines of a number of duplicates and how many blocks have so many, Paulo
    et al., ACSAC 2012), or what ``zdb -S`` prints: the last table of it, whose rows are ranges of numbers of
    references up to twice as many; a row's blocks are split between the two whole numbers around its mean.
    """
    text = os.fspath(source)
    if not os.path.isfile(text):
        found = _shares(text, "duplicates", "1=90,2=7,4=3, or name a file of DEDISgen or zdb -S")
        try:
            return [(int(times), share) for times, share in found]
        except ValueError:
            raise OptionError(None, None, f"{text!r}: times are whole numbers, 1=90,2=7,4=3") from None
    with open(text, encoding="utf-8", errors="replace") as file:
        content = file.read()
    if "refcnt" in content:
        return _of_zdb(text, content)
    together: dict[int, float] = {}
    for duplicates, blocks in _rows(text, 2):
        if duplicates != int(duplicates) or duplicates < 0:
            raise Error(
                f"{text}: {duplicates:g} duplicates: a line has a whole number of them, and of blocks"
            )
        together[int(duplicates) + 1] = together.get(int(duplicates) + 1, 0.0) + blocks
    return sorted(together.items())


def _of_zdb(path: str, content: str) -> list[tuple[int, float]]:
    """The last table of ``zdb -S`` or ``zdb -DDD``."""
    table = content.rpartition("refcnt")[2]
    count = r"([\d.]+)([KMGTP]?)"
    row = re.compile(rf"^\s*{count}\s+{count}(?:\s+\S+){{3}}\s+{count}(?:\s+\S+){{3}}\s*$", re.M)
    together: dict[int, float] = {}
    for found in row.finditer(table):
        bucket, blocks, references = (_number(found[i], found[i + 1]) for i in (1, 3, 5))
        if blocks <= 0:
            continue
        # Numbers are rounded: the mean of a row is within its range all the same.
        mean = min(max(references / blocks, bucket), 2 * bucket - 1)
        low = int(mean)
        for times, share in ((low, low + 1 - mean), (low + 1, mean - low)):
            if share > 0:
                together[times] = together.get(times, 0.0) + blocks * share
    if not together:
        raise Error(f"{path}: has no row of a table like those that zdb -S prints")
    return sorted(together.items())


def _number(digits: str, unit: str) -> float:
    return float(digits) * 1024.0 ** " KMGTP".index(unit or " ")


def _rows(path: str, columns: int) -> list[list[float]]:
    rows = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            try:
                row = [float(part) for part in line.split()]
            except ValueError:
                row = []
            if len(row) != columns or not all(0 <= one < 2**63 for one in row):
                raise Error(f"{path}:{number}: {line.strip()[:60]!r}: a line has {columns} numbers from 0 on")
            rows.append(row)
    if not rows:
        raise Error(f"{path}: has no line of {columns} numbers")
    return rows


def _shares(text: str, what: str, example: str) -> list[tuple[str, float]]:
    found = []
    for part in text.split(","):
        name, equals, share = part.partition("=")
        try:
            found.append((name.strip().lstrip(".").lower(), finite(share)))
        except ValueError:
            equals = ""
        if not equals:
            raise OptionError(None, None, f"{part!r} in {what}: write a name and a share, like {example}")
    return found
