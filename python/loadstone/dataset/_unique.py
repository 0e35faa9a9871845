"""A mutator for micro-benchmarks: how many chunks of a snapshot are unique (Tarasov, section 4.3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.dataset._mutate import Changes, Tree
from loadstone.errors import Error

if TYPE_CHECKING:
    import numpy as np


def unique(tree: Tree, rng: np.random.Generator, share: float = 0.5, run: float = 8) -> Changes:
    """Replaces chunks by fresh ones of their size, so that a share of the next snapshot's are in no other.

    ``share``: from 0 to 1, of all chunks that the next snapshot has. ``run``: how many chunks that follow
    each other in a file are replaced together, on average.
    """
    import numpy as np

    if not 0 <= share <= 1 or not 1 <= run <= 1e9:
        raise Error(f"unique with a share of {share} and runs of {run}: use 0 to 1, and 1 to a billion")
    changes = Changes()
    start = tree.start.astype(np.int64)
    count = len(tree.chunks)
    wanted = round(share * count)
    fresh = np.zeros(count, dtype=bool)
    # Runs begin anywhere, so that each chunk has the same chance; those that overlap are drawn again.
    while (left := wanted - int(fresh.sum())) > 0:
        begins = rng.permutation(np.flatnonzero(~fresh))[: max(1, int(left / run))]
        lengths = rng.geometric(1 / run, len(begins))
        ends = start[np.searchsorted(start, begins, side="right")]
        before = fresh.copy()
        for begin, end in zip(begins, np.minimum(begins + lengths, ends), strict=True):
            fresh[begin:end] = True
        if (over := int(fresh.sum()) - wanted) > 0:
            fresh[rng.choice(np.flatnonzero(fresh & ~before), over, replace=False)] = False
    chunks: Any = tree.chunks.copy()
    old = chunks[fresh]
    chunks[fresh] = tree.fresh(tree.chunk_size[old], changes, tree.chunk_ratio[old])
    places = np.searchsorted(start, np.flatnonzero(fresh), side="right") - 1
    for file in np.unique(places):
        changes.modify(int(file), chunks[start[file] : start[file + 1]])
    return changes
