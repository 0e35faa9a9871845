"""FS-MUTATE's plugins: functions over columns that decide what becomes of a tree.

>>> import numpy as np
>>> from loadstone import dataset
>>> def rotate(tree, rng):
...     "The largest file goes, and one of fresh chunks comes in its place."
...     largest = int(np.argmax(np.where(tree.kind == dataset.REGULAR, tree.size, -1)))
...     changes = dataset.Changes()
...     changes.delete(largest)
...     sizes = tree.chunk_size[tree.chunks_of(largest)]
...     changes.create(tree.dir[largest], tree.fresh(sizes, changes))
...     return changes
>>> dataset.mutate("first.fst", "next.fst", mutator=rotate, generations=5)
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from loadstone import _entries
from loadstone.errors import Error

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.integer[Any]]

GROUP = "loadstone.mutators"
"""Entry point group of installed mutators."""
REGULAR = 0
"""Kind of a regular file."""
NEW, MODIFIED, UNMODIFIED = 0, 1, 2
"""States of files: what happened to them since the snapshot before."""


@dataclass(frozen=True)
class Tree:
    """A tree by columns, to be read only. The k-th of what is of files is of file k, and so on."""

    kind: npt.NDArray[np.uint8]
    """Of files: :data:`REGULAR`, 1 symbolic link, 2 further name, 3 device, pipe or socket, 4 unreadable."""
    state: npt.NDArray[np.uint8]
    """Of files: :data:`NEW`, :data:`MODIFIED` or :data:`UNMODIFIED`."""
    dir: npt.NDArray[np.uint32]
    """Of files: the directory they are in."""
    extension: npt.NDArray[np.uint16]
    """Of files: a place in ``extensions``."""
    size: npt.NDArray[np.uint64]
    """Of files: bytes."""
    start: npt.NDArray[np.uint64]
    """Of files: where their chunks begin in ``chunks``; one more says where those of the last end."""
    chunks: npt.NDArray[np.uint32]
    """Chunks of all files, file after file, by number."""
    parent: npt.NDArray[np.uint32]
    """Of directories: the one they are in; that of the root, number 0, is itself."""
    depth: npt.NDArray[np.uint16]
    """Of directories: how many they are in."""
    chunk_size: npt.NDArray[np.uint32]
    """Of chunks of the whole series: bytes."""
    chunk_ratio: npt.NDArray[np.float64]
    """Of chunks: how many times smaller codecs make them."""
    extensions: list[str]
    """The first is empty: of files that have none."""

    def __len__(self) -> int:
        """How many files there are."""
        return len(self.kind)

    def regular(self) -> npt.NDArray[np.int64]:
        """Numbers of regular files."""
        import numpy as np

        return np.flatnonzero(self.kind == REGULAR)

    def chunks_of(self, file: int) -> npt.NDArray[np.uint32]:
        """Chunks of a file, in order."""
        return self.chunks[int(self.start[file]) : int(self.start[file + 1])]

    def fresh(
        self,
        sizes: Sequence[int] | Ints,
        changes: Changes,
        ratio: float | npt.NDArray[np.float64] = 1.0,
    ) -> npt.NDArray[np.uint32]:
        """Numbers of new chunks of these sizes, which nothing has had; they are noted in ``changes``.

        ``ratio``: how many times smaller codecs make them, or each of them.
        """
        import numpy as np

        first = len(self.chunk_size) + len(changes.sizes)
        changes.sizes.extend(int(size) for size in sizes)
        changes.ratios.extend(np.broadcast_to(ratio, len(sizes)).tolist())
        return np.arange(first, first + len(sizes), dtype=np.uint32)


@dataclass
class Changes:
    """What becomes of a tree; files that it does not name stay as they are."""

    deleted: list[int] = field(default_factory=list)
    modified: dict[int, Sequence[int] | Ints] = field(default_factory=dict)
    """Files and the chunks that they have then."""
    created: list[tuple[int, Sequence[int] | Ints, int]] = field(default_factory=list)
    """New files: their directory, chunks and extension."""
    sizes: list[int] = field(default_factory=list)
    """Bytes of new chunks, whose numbers go on from those of the tree."""
    ratios: list[float] = field(default_factory=list)

    def delete(self, file: int) -> None:
        """Deletes a file."""
        self.deleted.append(int(file))

    def modify(self, file: int, chunks: Sequence[int] | Ints) -> None:
        """Gives a file other chunks. Raises ``Error`` where the file is modified already."""
        if int(file) in self.modified:
            raise Error(f"file {file} is modified twice: name it once")
        self.modified[int(file)] = chunks

    def create(self, dir: int, chunks: Sequence[int] | Ints, extension: int = 0) -> None:
        """Adds a file to a directory."""
        self.created.append((int(dir), chunks, int(extension)))

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """As the native module takes them.

        Raises ``Error`` where one is not an array of one dimension of whole numbers in range.
        """
        modified_start, modified_chunks = _lists(list(self.modified.values()), "modified")
        new_start, new_chunks = _lists([chunks for _, chunks, _ in self.created], "created")
        return {
            "deleted": _whole(self.deleted, "deleted files", 32),
            "modified": _whole(list(self.modified), "modified files", 32),
            "modified_start": modified_start,
            "modified_chunks": modified_chunks,
            "new_dir": _whole([dir for dir, _, _ in self.created], "directories", 32),
            "new_extension": _whole([extension for *_, extension in self.created], "extensions", 16),
            "new_start": new_start,
            "new_chunks": new_chunks,
            "sizes": _whole(self.sizes, "sizes", 32),
            "ratios": _floats(self.ratios),
        }


Mutator = Callable[..., Changes]
"""A function of a :class:`Tree`, a numpy generator of random numbers, and parameters of its own by name."""


def find_mutator(name: str) -> Mutator:
    """A mutator: ``file.py:function``, or the name of an installed one."""
    path, colon, function = name.rpartition(":")
    if colon:
        try:
            found = runpy.run_path(path).get(function)
        except OSError as error:
            raise Error(f"{path}: {error.strerror}") from error
        except Exception as error:
            raise Error(f"{path}: {type(error).__name__}: {error}; it is run to get its mutator") from error
        if not callable(found):
            raise Error(f"{path}: defines no function {function}(tree, rng)")
        return cast(Mutator, found)
    loaded: Mutator | None = _entries.load(GROUP, name)
    if loaded is None:
        raise Error(
            f"{name!r} is no mutator: use {', '.join(_entries.named(GROUP)) or 'an installed one'}, or one "
            "of a file, file.py:function"
        )
    return loaded


def asked(mutator: Mutator, parameters: dict[str, float]) -> Callable[[dict[str, Any], int], dict[str, Any]]:
    """A mutator as the native module calls it."""
    name = getattr(mutator, "__name__", "the mutator")

    def ask(columns: dict[str, Any], seed: int) -> dict[str, Any]:
        import numpy as np

        for column in columns.values():
            if isinstance(column, np.ndarray):
                column.flags.writeable = False
        try:
            changes = mutator(Tree(**columns), np.random.default_rng(seed), **parameters)
        except Error:
            raise
        except Exception as error:
            raise Error(f"the mutator {name} failed: {type(error).__name__}: {error}") from error
        if not isinstance(changes, Changes):
            raise Error(
                f"the mutator {name} returned {type(changes).__name__}: return loadstone.dataset.Changes"
            )
        return changes.columns()

    return ask


def _lists(lists: list[Any], what: str) -> tuple[npt.NDArray[np.uint64], npt.NDArray[Any]]:
    import numpy as np

    start = np.zeros(len(lists) + 1, dtype=np.uint64)
    np.cumsum([len(one) for one in lists], out=start[1:])
    arrays = [np.asarray(one) for one in lists if len(one)]
    return start, _whole(np.concatenate(arrays) if arrays else [], f"chunks of {what} files", 32)


def _whole(numbers: Any, what: str, bits: int) -> npt.NDArray[Any]:
    import numpy as np

    array = np.asarray(numbers)
    if array.ndim != 1:
        raise Error(f"{what} of a mutator are an array of shape {array.shape}: use one dimension")
    if array.size and array.dtype.kind not in "iu":
        raise Error(f"{what} of a mutator are {array.dtype}: use whole numbers")
    if array.size and (int(array.min()) < 0 or int(array.max()) >= 2**bits):
        raise Error(f"{what} of a mutator: {int(array.min())} to {int(array.max())}: use 0 to {2**bits - 1}")
    return array.astype(f"uint{bits}")


def _floats(numbers: list[float]) -> npt.NDArray[np.float64]:
    import numpy as np

    array = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(array).all():
        raise Error("ratios of a mutator are no numbers: use 1 and more, or 0 where it is unknown")
    return array
