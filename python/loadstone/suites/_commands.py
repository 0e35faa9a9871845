"""File commands: making large files, many small ones, copies and archives (VxFS study, section 4)."""

from __future__ import annotations

from loadstone.suites._build import Builder, Files, Op, Phase, Settings, SuitePlans, fixed
from loadstone.suites._needs import size_text
from loadstone.suites._suite import Suite
from loadstone.suites._variables import Given, Variable


def _mkfile(settings: Settings, given: Given) -> SuitePlans:
    """A plan for each size."""
    builder, block = Builder("mkfile", settings), given.size("bs")
    for size in given.sizes("size"):
        where = {"set": "mkfile", "index": 0}
        zeros = given.flag("zeros") or None
        timed: list[Op] = [fixed("create", "create", **where)]
        for name, times, length in _pieces("write", size, block):
            timed.append(fixed(name, "write", set="mkfile", size=length, times=times, zeros=zeros))
        if given.flag("fsync"):
            timed.append(fixed("fsync", "sync"))
        timed.append(fixed("close", "close"))
        phase = Phase("mkfile", timed=[timed], key={"file": size}, makes=True)
        builder.add(size_text(size), [Files("mkfile", 1, size)], [phase])
    return builder.done()


def _pieces(name: str, size: int, block: int) -> list[tuple[str, int, int]]:
    """Name, number and bytes of the requests for a whole file: the last one is what is left."""
    pieces = [(name, size // block, block), (f"last {name}", 1, size % block)]
    return [one for one in pieces if one[1] and one[2]]


MKFILE = Suite(
    "mkfile",
    "one file of a given size, written from end to end",
    """\
A file is made and written from end to end. Reported are the time it takes, with fsync and close, and the
rate; the bundle and its report have the rate over time.""",
    """\
Section 4 of the VxFS study: mkfile(1) of Solaris with files of 1, 2, 4 and 8 GB (figures 9 and 14), which
writes zeros. Random data is written here, as zeros are what a store may make nothing of; zeros=yes is the
original.""",
    {
        "size": Variable("1g", "bytes of the file; several (a,b) are made one after the other"),
        "bs": Variable("64k", "bytes of a request"),
        "fsync": Variable("yes", "count an fsync at the end"),
        "zeros": Variable("no", "write zeros"),
    },
    _mkfile,
    size="size",
    block="bs",
)


def _touch_files(settings: Settings, given: Given) -> SuitePlans:
    """A plan for one process and one for many."""
    builder = Builder("touch-files", settings)
    directories, files, block = given.number("directories"), given.number("files"), given.size("bs")
    flags = {"sync": given.flag("sync") or None}
    for test in given.among("tests", ("single", "multi")):
        processes = directories if test == "multi" else 1
        each = directories * files // processes
        timed: list[list[Op]] = []
        for i in range(processes):
            parts: list[Op] = [
                fixed("create", "create", set="touch", index=i * each, **flags),
                fixed("write", "write", set="touch", size=block, **flags),
                fixed("close", "close"),
            ]
            timed.append([fixed("file", "group", times=each, ops=parts)])
        phase = Phase(
            test,
            timed=timed,
            key={"size": block},
            count=("create", "write", "close"),
            each=block,
            makes=True,
        )
        tree = Files("touch", directories * files, block, width=files)
        builder.add(test, [tree], [phase])
    return builder.done()


TOUCH_FILES = Suite(
    "touch-files",
    "many files, each made with a synchronous first block, by one process and by one for each directory",
    """\
Files are made in numbered directories, each opened with O_SYNC, given its first block and closed; by one
process, directory after directory, or by as many processes as there are directories. Reported are the
time and the files per second. Directories are made before, and are not part of the time.""",
    """\
Section 4 of the VxFS study and appendix C: touch_files 100 1000 6144, and with -m for a process per
directory (figure 10).""",
    {
        "directories": Variable("100", "directories"),
        "files": Variable("1000", "files in each"),
        "bs": Variable("6144", "bytes of the first block"),
        "tests": Variable("all", "single, multi"),
        "sync": Variable("yes", "open with O_SYNC"),
    },
    _touch_files,
    block="bs",
    depth="directories",
)


def _copies(settings: Settings, given: Given) -> SuitePlans:
    """A plan for each number of copies."""
    builder, block, size = Builder("cp-fanout", settings), given.size("bs"), given.size("size")
    if given.text("method") not in ("read", "range"):
        raise given.fail("method", "write read or range")
    for number, copies in enumerate(given.numbers("copies")):
        pieces: list[Op] = []
        for name, times, length in _pieces("piece", size, block):
            prefix = name.removesuffix("piece")
            if given.text("method") == "range":
                one = [fixed(f"{prefix}copy", "copy_range", set="copies", slot=2, other_slot=1, size=length)]
            else:
                one = [
                    fixed(f"{prefix}read", "read", set="source", slot=1, size=length),
                    fixed(f"{prefix}write", "write", set="copies", slot=2, size=length, echo=True),
                ]
            pieces.append(fixed(name, "group", times=times, ops=one))
        ends: list[Op] = [fixed("fsync", "sync", slot=2)] if given.flag("fsync") else []
        ends += [fixed("close copy", "close", slot=2), fixed("close", "close", slot=1)]

        def process(i: int, pieces: list[Op] = pieces, ends: list[Op] = ends) -> list[Op]:
            return [
                fixed("open", "open", set="source", index=0, slot=1),
                fixed("create", "create", set="copies", index=i, slot=2),
                *pieces,
                *ends,
            ]

        timed = [process(i) for i in range(copies)]
        phase = Phase(
            f"1:{copies}",
            timed=timed,
            key={"file": size, "copies": copies},
            moved=("copy", "last copy") if given.text("method") == "range" else ("write", "last write"),
            makes=True,
        )
        sets = [Files("source", 1, size, there=True), Files("copies", copies, size)]
        builder.add(f"1:{copies}", sets, [phase], cache="drop", kept=number > 0)
    return builder.done()


CP_FANOUT = Suite(
    "cp-fanout",
    "a file copied once, to five and to ten files in parallel",
    """\
Each process copies the same file to one of its own: it reads a piece and writes what it read, or has the
kernel copy it (method=range: copy_file_range(2), which may share blocks where the file system can). Reported
are the time until all copies are made, and the rate of what was copied. Caches are dropped before.""",
    """\
Section 4 of the VxFS study: cp of a file of 4.5 GB, 1:1, 1:5 and 1:10 in parallel, from one file system to
another (figure 11, table 12). Here both lie in the directory of the run.""",
    {
        "size": Variable("512m", "bytes of the file"),
        "bs": Variable("128k", "bytes of a piece (as GNU cp)"),
        "copies": Variable("1,5,10", "copies made in parallel, one after the other"),
        "method": Variable("read", "read: read and write; range: copy_file_range"),
        "fsync": Variable("no", "count an fsync of each copy"),
    },
    _copies,
    size="size",
    block="bs",
    depth="copies",
)
