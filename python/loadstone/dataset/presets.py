"""The six datasets of the thesis, as far as its tables 4.1 to 4.3 tell of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from loadstone.dataset._laws import SIGMA, Laws, laws
from loadstone.dataset._scan import Path
from loadstone.errors import OptionError

PREFIX = "preset:"
"""How presets are named where a profile is asked for."""

# Standard deviation of the logarithm of file sizes where Impressions' does not fit: C headers and a Debian 12
# installation, /usr/include and /usr/lib of which have 1.4 and 1.8.
_SOURCES = 1.5
_INSTALLED = 1.8

ASSUMED = (
    "Sizes of files are lognormal; their mean is that of table 4.1, the deviation of the logarithm as below.",
    "Depths are Poisson with a mean of 6.49 (Impressions), there is a directory for every ten files, and "
    "files have no extensions.",
    "Chunks are those of FastCDC with 8 KiB on average; none is there twice in the first snapshot, and none "
    "compresses, unless that is asked for.",
    "A changed place is one chunk, whatever its age, and the number of chunks stays; files of the pattern "
    "BEM are changed as a whole. Any file may change so, if it has enough chunks.",
    "The first snapshot is so large that the mean of all is that of table 4.1, and it changes as much as "
    "later ones do in the long run; how many files go then follows from the other transitions.",
)
"""What is assumed beyond the tables."""


@dataclass(frozen=True)
class Preset:
    """One dataset; percent as in the tables."""

    name: str
    what: str
    snapshots: int
    gigabytes: float
    """Of a snapshot, on average (table 4.1)."""
    thousands: float
    """Files of a snapshot, on average."""
    n: float
    """New files of those before (table 4.2)."""
    new: tuple[float, float, float]
    """Of new files, those that are modified, unmodified and deleted next: NM, NU, ND."""
    modified: tuple[float, float, float]
    """MU, MD, MM."""
    unmodified: tuple[float, float, float]
    """UM, UD, UU."""
    dn: float
    """Deleted files that come again."""
    d: float
    """Deleted files of those before; not used, because it follows from the others."""
    patterns: tuple[float, ...]
    """B, E, M, BE, BM, ME, BEM (table 4.3)."""
    sigma: float = SIGMA
    note: str = ""

    @property
    def mean_size(self) -> float:
        """Bytes of a file."""
        return self.gigabytes * 2**30 / (self.thousands * 1000)

    def steady(self) -> tuple[float, float, float]:
        """Modified and deleted files, and files after, in percent of those before, in the long run."""
        shares = [1.0, 0.0, 0.0]
        for _ in range(1000):
            n, m, u = shares
            modified = n * self.new[0] + m * self.modified[2] + u * self.unmodified[0]
            deleted = n * self.new[2] + m * self.modified[1] + u * self.unmodified[1]
            rest = 100.0 - modified - deleted
            after = 100.0 + self.n - deleted
            shares = [self.n / after, modified / after, rest / after]
        return modified, deleted, after

    def chain(self, of: Laws) -> dict[str, Any]:
        """Transitions and patterns as the native module takes them.

        Files that are modified and deleted are drawn; the rest stays, so a row that does not sum to 100 is
        filled up by what stays. Patterns count in proportion.
        """
        modified, deleted, _ = self.steady()
        return {
            "laws": of,
            "n": self.n,
            "nm": self.new[0],
            "nd": self.new[2],
            "mm": self.modified[2],
            "md": self.modified[1],
            "um": self.unmodified[0],
            "ud": self.unmodified[1],
            "dn": self.dn,
            "first": (modified, deleted),
            "patterns": list(self.patterns),
        }

    def laws(self, duplicates: Path, compress: float) -> Laws:
        """What files are like.

        Raises ``OptionError`` or ``Error`` where ``duplicates`` or ``compress`` cannot be used.
        """
        mu = math.log(self.mean_size) - self.sigma**2 / 2
        sizes = {"kind": "lognormal", "mu": mu, "sigma": self.sigma, "tail": None}
        return laws(sizes, duplicates=duplicates, compress=compress)

    def first_files(self) -> float:
        """Files of the first snapshot."""
        growth = self.steady()[2] / 100
        mean = sum(growth**i for i in range(self.snapshots)) / self.snapshots
        return self.thousands * 1000 / mean


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "kernels",
            "Linux kernel sources, 2.6.0 to 2.6.39",
            40,
            0.3,
            23,
            5,
            (32, 65, 3),
            (49, 3, 48),
            (17, 3, 80),
            1,
            3,
            (52, 8, 7, 14, 5, 3, 11),
            sigma=_SOURCES,
        ),
        Preset(
            "centos",
            "installations of CentOS, 5.0 to 5.7",
            8,
            4.5,
            195,
            13,
            (4, 22, 74),
            (43, 2, 55),
            (4, 1, 95),
            1,
            10,
            (69, 3, 2, 8, 2, 1, 15),
            sigma=_INSTALLED,
        ),
        Preset(
            "home",
            "students' home directories, weekly",
            15,
            227,
            1023,
            4,
            (2, 78, 20),
            (54, 10, 36),
            (0.14, 0.35, 99.51),
            6,
            0.5,
            (38, 3, 8, 10, 11, 1, 29),
        ),
        Preset(
            "macos",
            "a Mac OS X server of a research group, daily",
            71,
            59,
            1173,
            0.1,
            (11, 78, 11),
            (37.46, 0.03, 62.51),
            (0.05, 0.03, 99.92),
            1,
            0.03,
            (53, 21, 1, 12, 1, 1, 11),
        ),
        Preset(
            "system-logs",
            "/var of a mailing-list server, weekly",
            8,
            78,
            334,
            2,
            (9, 90, 1),
            (44.40, 0.18, 55.42),
            (0.03, 0.01, 99.06),
            4,
            0.02,
            (42, 34, 5, 6, 0, 1, 10),
            note="The row of unmodified files sums to 99.10 in table 4.2: UU is 99.96 here, what they leave. "
            "The row of table 4.3 sums to 98: its numbers count in proportion.",
        ),
        Preset(
            "sources",
            "a Perforce repository of source code and change logs, weekly",
            8,
            162,
            139,
            0.2,
            (7, 88, 5),
            (58.76, 0.04, 41.20),
            (0.07, 0, 99.93),
            0,
            0.01,
            (20, 6, 41, 7, 7, 1, 18),
            sigma=_SOURCES,
        ),
    )
}


def preset(name: str) -> Preset:
    """A preset by its name, with or without :data:`PREFIX`."""
    plain = name.removeprefix(PREFIX)
    if plain not in PRESETS:
        raise OptionError(None, None, f"{name!r} is no preset: there are {', '.join(PRESETS)}")
    return PRESETS[plain]
