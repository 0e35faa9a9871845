"""Files that are written aside and get their name when they are whole."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from loadstone._core import AsideFile, trace_files
from loadstone.errors import Error


def absolute(path: str | os.PathLike[str]) -> str:
    """A path from the root, without ``.`` and ``..``; it leads to what the kernel finds (path_resolution(7)).

    Behind a link ``..`` is not what stands before the link, so such a link is followed.
    """
    whole = os.path.join(os.getcwd(), path)
    folded = os.path.normpath(whole)
    parts = whole.split("/")
    if ".." in parts and os.path.realpath(whole) != os.path.realpath(folded):
        after = len(parts) - parts[::-1].index("..")
        return os.path.join(os.path.realpath("/".join(parts[:after])), *parts[after:])
    return folded


def refuse(path: str | os.PathLike[str], force: bool) -> None:
    """Raises ``Error`` for a file that is there, unless ``force``, and for whatever is no regular file."""
    path = Path(path)
    if path.is_dir():
        raise Error(f"{path}: is a directory; name a file in it")
    if path.exists() and not path.is_file():
        raise Error(
            f"{path}: is a device, a pipe or a socket, which a file would take the place of; name a file"
        )
    if path.exists() and not force:
        raise Error(f"{path}: exists; choose another name or overwrite it with `force`")


def write_private(path: str | os.PathLike[str], data: bytes | memoryview) -> None:
    """Writes a file that only its owner may read, whatever the umask and access control lists say.

    A file that is there is written over and keeps its permissions. Raises ``OSError`` where it cannot be.
    """
    with open(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb"
    ) as file:
        file.write(data)


def make_folder(path: str | os.PathLike[str]) -> None:
    """Makes a new folder that only its owner may look into; raises ``OSError`` as :func:`os.mkdir` does."""
    os.mkdir(path, 0o700)


def make_folders(path: str | os.PathLike[str]) -> None:
    """Makes a folder and those that lead to it, as :func:`make_folder` does; they may be there.

    Raises ``OSError`` where one cannot be made.
    """
    missing = [str(path)]
    while not os.path.isdir(above := os.path.dirname(missing[-1]) or "."):
        missing.append(above)
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):
            make_folder(folder)


def is_part(path: str | os.PathLike[str], of: str | os.PathLike[str], commits: bool = False) -> bool:
    """Whether a file is another one, one of a capture, or lies in a directory, under whatever name.

    ``commits``: of a git repository with its own checkout these are meant, and not the files checked out.
    """
    try:
        if not os.path.exists(of):
            return any(_is_same(path, file) for file in trace_files(of))
        if not os.path.isdir(of):
            return _is_same(path, of)
        folders = (commits and _of_git(of)) or [os.fspath(of)]
        places = (path, *Path(os.path.realpath(path)).parents)
        return any(_is_same(one, folder) for one in places for folder in folders)
    except (OSError, ValueError):
        return False


def _of_git(of: str | os.PathLike[str]) -> list[str]:
    """Directories of the repository whose files are checked out in ``of``: none where it is not one's.

    A linked working tree has a file ``.git`` that names a directory of its own, which names the common one.
    """
    inner = os.path.join(of, ".git")
    if os.path.isfile(inner):
        with open(inner, encoding="utf-8", errors="surrogateescape") as file:
            inner = os.path.join(of, file.readline().removeprefix("gitdir:").strip())
    found = [inner] if os.path.isdir(inner) else []
    common = os.path.join(inner, "commondir")
    if os.path.isfile(common):
        with open(common, encoding="utf-8", errors="surrogateescape") as file:
            found.append(os.path.join(inner, file.readline().strip()))
    # Objects of a clone that shares those of another repository.
    for folder in list(found):
        shared = os.path.join(folder, "objects", "info", "alternates")
        if os.path.isfile(shared):
            with open(shared, encoding="utf-8", errors="surrogateescape") as file:
                found += [os.path.join(folder, "objects", line.strip()) for line in file if line.strip()]
    return found


def _is_same(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two names lead to one file; an overlay shows a file with another device."""
    a, b = os.stat(one), os.stat(other)
    if os.path.samestat(a, b):
        return True
    return a.st_dev != b.st_dev and all(
        getattr(a, key) == getattr(b, key) for key in ("st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
    )


@contextlib.contextmanager
def aside(path: str | os.PathLike[str], force: bool = True) -> Iterator[Path]:
    """A path to write to: the file beside ``path`` gets its name when the block ends without an error.

    Where ``path`` is a link, what it leads to is replaced. Raises ``Error`` as :func:`refuse` does, and where
    the file cannot be created.
    """
    refuse(path, force)
    file = AsideFile(path, force)
    # Whatever becomes of the hidden name meanwhile, this leads to the file.
    hidden = Path(f"/proc/self/fd/{file.fileno()}")
    try:
        yield hidden
        file.keep()
    except OSError as error:
        if error.filename not in (None, str(hidden)):
            raise
        # The hidden name would tell nobody which file it is about.
        raise Error(f"{path}: cannot create: {error.strerror}") from error
    finally:
        file.drop()


def distinct(paths: Sequence[str | os.PathLike[str]], ending: str = "") -> list[str]:
    """The shortest ends of paths that tell them apart, without ``ending`` where they do without.

    A path that is there several times is numbered.
    """
    parts = [Path(os.path.realpath(path)).parts for path in paths]

    def end(one: tuple[str, ...], length: int) -> str:
        return "/".join(one[-length:]).replace("//", "/")

    def shortest(one: tuple[str, ...]) -> str:
        others = set(parts) - {one}
        length = next(n for n in range(1, len(one) + 1) if all(end(one, n) != end(o, n) for o in others))
        name = end(one, length)
        bare = name.removesuffix(ending)
        return name if any(end(o, length).removesuffix(ending) == bare for o in others) else bare

    names = [shortest(one) for one in parts]
    counts = Counter(names)
    seen: Counter[str] = Counter()
    for i, name in enumerate(names):
        seen[name] += 1
        if counts[name] > 1:
            names[i] = f"{name} ({seen[name]})"
    return names
