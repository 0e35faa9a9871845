"""The Bonnie set: a large file by characters and by blocks, seeks, and many small files (Bray; Coker)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadstone.suites._build import Builder, Files, Op, Phase, Settings, SuitePlans, drawn, fixed
from loadstone.suites._suite import Suite
from loadstone.suites._variables import Given, Variable

TESTS = ("putc", "write", "rewrite", "getc", "read", "seeks", "files in order", "files by chance")

_SET = "bonnie"
# As many characters as names of Bonnie++'s files have. It counts: a block of a directory holds fewer of them,
# and those of another length need not be compared.
_DIGITS = 10, 22


def _lower(settings: Settings, given: Given) -> SuitePlans:
    """Plans of the tests that were asked for."""
    tests = given.among("tests", TESTS)
    builder = Builder("bonnie", settings)
    block = given.size("block")
    count = builder.whole(given.size("size"), block, "block")
    if not count:
        raise given.fail("size", f"is less than a block of {block:,} bytes")
    streams = [name for name in tests if name in TESTS[:5]]
    if streams:
        phases = [_pass(name, count, block, name == streams[0]) for name in streams]
        there = streams[0] not in ("putc", "write")
        builder.add("file", [Files(_SET, 1, count * block)], phases, there=there)
    if "seeks" in tests:
        _seeks(builder, given, count, block, kept=bool(streams))
    for name in tests:
        if name.startswith("files"):
            _many(builder, given, name)
    return builder.done()


def _pass(name: str, count: int, block: int, first: bool) -> Phase:
    where = {"set": _SET, "index": 0}
    makes = name in ("putc", "write")
    if makes:
        made = fixed(f"{name}: create", "create", **where)
        before = [made] if first else [fixed(f"{name}: remove", "remove", **where), made]
    else:
        before = [fixed(f"{name}: open", "open", **where)]
    ends: list[Op] = [fixed(f"{name}: close", "close")]
    if name in ("putc", "write", "rewrite"):
        ends.insert(0, fixed(f"{name}: fsync", "sync"))
    size = {"set": _SET, "size": block}
    if name == "rewrite":
        parts = [
            fixed("rewrite: read", "read", **size),
            fixed("rewrite: write", "write", **size, again=True, echo=True),
        ]
        timed = [fixed("block", "group", times=count, ops=parts), *ends]
    else:
        timed = [fixed(name, name, **size, times=count), *ends]
    return Phase(
        name,
        timed=[timed],
        before=[before],
        key={"file": count * block, "block": block},
        moved=("rewrite: write",) if name == "rewrite" else (),
        makes=makes,
    )


def _seeks(builder: Builder, given: Given, count: int, block: int, kept: bool) -> None:
    processes, seeks = given.number("processes"), given.number("seeks")
    each = [seeks // processes + (i < seeks % processes) for i in range(processes)]
    size: dict[str, Any] = {"set": _SET, "size": block}

    def process(times: int) -> list[Op]:
        parts = [
            fixed("seeks: read", "read", **size, random=True),
            fixed("seeks: write back", "write", **size, again=True, echo=True, times=drawn("tenth")),
        ]
        return [fixed("seek", "group", times=times, ops=parts)]

    phase = Phase(
        "seeks",
        timed=[process(times) for times in each],
        before=[[fixed("seeks: open", "open", set=_SET, index=0)] for _ in each],
        after=[[fixed("seeks: close", "close")] for _ in each],
        key={"file": count * block, "block": block},
        count=("seeks: read",),
    )
    tenth = {"id": "tenth", "law": {"kind": "sequence", "values": [1.0, *[0.0] * 9]}}
    builder.add("seeks", [Files(_SET, 1, count * block)], [phase], [tenth], there=True, kept=kept)


def _many(builder: Builder, given: Given, name: str) -> None:
    files, size = given.number("files"), 0
    if given.text("filesize") != "0":
        size = given.size("filesize")
    order = name.removeprefix("files ")
    law: dict[str, Any] = {"kind": "strided" if order == "in order" else "permuted", "count": files}
    where = {"set": "files", "index": drawn("number")}
    made: list[Op] = [fixed("create", "create", **where)]
    if size:
        made.append(fixed("create: write", "write", set="files", size=size))
    made.append(fixed("create: close", "close"))
    looked: list[Op] = [fixed("stat", "stat", **where)]
    if size:
        looked += [
            fixed("stat: open", "open", **where),
            fixed("stat: read", "read", set="files", size=size),
            fixed("stat: close", "close"),
        ]
    parts: dict[str, Sequence[Op]] = {
        "create": made,
        "stat": looked,
        "delete": [fixed("delete", "remove", **where)],
    }
    phases = [
        Phase(
            f"{part} {order}",
            timed=[[fixed(f"all {part}", "group", times=files, ops=list(ops))]],
            key={"files": files, "size": size},
            count=[op["name"] for op in ops],
            each=0 if part == "delete" else size,
            makes=part == "create",
        )
        for part, ops in parts.items()
    ]
    of = Files("files", files, size, digits=_DIGITS)
    builder.add(name, [of], phases, [{"id": "number", "law": law}])


SUITE = Suite(
    "bonnie",
    "output and input by characters and blocks, rewriting, seeks, and making, looking at and removing files",
    """\
One process writes a file character by character, writes it again in blocks, reads each block and
writes it back, reads the file character by character and in blocks. Then several processes seek in it:
each reads blocks by chance and writes one in ten of them back. Last, files are made, looked at and removed,
in the order of their names and by chance. Writing includes fsync and close. Rates of characters and blocks
are MB/s (10^6 bytes), the others per second; CPU is that of the processes, of one CPU. The file should be
several times as large as memory, or memory made small by `memory_limit`: what fits in the page cache
measures that. A character costs a function call of the C library and no system call.""",
    """\
Bonnie (Bray 1988-96): blocks of 8 KiB, 4,000 seeks by 4 processes, one in ten written back, as in section
4.2.3.1 of the COW thesis (there: -s 12288, six times its memory). Bonnie++ (Coker) has 8,192 seeks (section
4.2.3.2: 8,000) and files: -n 16 makes 16 x 1,024, whose names have 10 to 22 characters, as here.
Snapshots thesis, 4.3.2.""",
    {
        "size": Variable("1g", "bytes of the file"),
        "block": Variable("8k", "bytes of a block"),
        "seeks": Variable("8192", "seeks of all processes together"),
        "processes": Variable("4", "processes that seek"),
        "files": Variable("16384", "files that are made, all in one directory"),
        "filesize": Variable("0", "bytes of each of these"),
        "tests": Variable("all", "some of: " + ", ".join(TESTS)),
    },
    _lower,
    size="size",
    block="block",
    depth="processes",
)
