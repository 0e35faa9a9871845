"""File commands: making large files, many small ones, copies and archives (VxFS study, section 4)."""

from __future__ import annotations

from loadstone.suites._build import Builder, Files, Op, Phase, Settings, SuitePlans, fixed
from loadstone.suites._suite import Suite
from loadstone.suites._variables import Given, Variable


def _mkfile(settings: Settings, given: Given) -> SuitePlans:
    """A plan for each size."""
    builder, block = Builder("mkfile", settings), given.size("bs")
    for size in given.sizes("size"):
        count = size // block
        if not count:
            raise given.fail("size", f"is less than a request of {block:,} bytes")
        where = {"set": "mkfile", "index": 0}
        timed: list[Op] = [
            fixed("create", "create", **where),
            fixed(
                "write",
                "write",
                set="mkfile",
                size=block,
                times=count,
                zeros=given.flag("zeros") or None,
            ),
        ]
        if given.flag("fsync"):
            timed.append(fixed("fsync", "sync"))
        timed.append(fixed("close", "close"))
        phase = Phase("mkfile", timed=[timed], key={"file": count * block}, makes=True)
        builder.add(f"{size >> 20} MiB", [Files("mkfile", 1, count * block)], [phase])
        builder.bytes_moved += count * block
    return builder.done()


MKFILE = Suite(
    "mkfile",
    "one file of a given size, written from end to end",
    """\
A file is made and written from end to end. What is told is the time it takes, with fsync and close, and the
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
        phase = Phase(test, timed=timed, key={"size": block}, count=directories * files, makes=True)
        tree = Files("touch", directories * files, block, width=files)
        builder.add(test, [tree], [phase])
        builder.bytes_moved += directories * files * block
    return builder.done()


TOUCH_FILES = Suite(
    "touch-files",
    "many files, each made with a synchronous first block, by one process and by one for each directory",
    """\
Files are made in numbered directories, each opened with O_SYNC, given its first block and closed; by one
process, directory after directory, or by as many processes as there are directories. What is told is the
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
    builder, block = Builder("cp-fanout", settings), given.size("bs")
    count = given.size("size") // block
    if not count:
        raise given.fail("size", f"is less than a piece of {block:,} bytes")
    if given.text("method") not in ("read", "range"):
        raise given.fail("method", "write read or range")
    for number, copies in enumerate(given.numbers("copies")):
        if given.text("method") == "range":
            piece = [fixed("copy", "copy_range", set="copies", slot=2, other_slot=1, size=block)]
        else:
            piece = [
                fixed("read", "read", set="source", slot=1, size=block),
                fixed("write", "write", set="copies", slot=2, size=block, echo=True),
            ]
        ends: list[Op] = [fixed("fsync", "sync", slot=2)] if given.flag("fsync") else []
        ends += [fixed("close copy", "close", slot=2), fixed("close", "close", slot=1)]

        def process(i: int, piece: list[Op] = piece, ends: list[Op] = ends) -> list[Op]:
            return [
                fixed("open", "open", set="source", index=0, slot=1),
                fixed("create", "create", set="copies", index=i, slot=2),
                fixed("piece", "group", times=count, ops=piece),
                *ends,
            ]

        timed = [process(i) for i in range(copies)]
        moved = copies * count * block
        phase = Phase(
            f"1:{copies}",
            timed=timed,
            key={"file": count * block, "copies": copies},
            bytes=moved,
            makes=True,
        )
        sets = [Files("source", 1, count * block, there=True), Files("copies", copies, count * block)]
        builder.add(f"1:{copies}", sets, [phase], cache="drop", kept=number > 0)
        builder.bytes_moved += 2 * copies * count * block
    return builder.done()


CP_FANOUT = Suite(
    "cp-fanout",
    "a file copied once, to five and to ten files in parallel",
    """\
Each process copies the same file to one of its own: it reads a piece and writes what it read, or has the
kernel copy it (method=range: copy_file_range(2), which may share blocks where the file system can). What is
told is the time until all copies are made, and the rate of what was copied. Caches are dropped before.""",
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
