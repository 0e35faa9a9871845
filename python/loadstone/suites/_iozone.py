"""The IOzone set: one file after the other, record by record, in the ways of IOzone (Norcott and Capps)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadstone.errors import Error
from loadstone.suites._build import Builder, Files, Op, Phase, Settings, SuitePlans, drawn, fixed
from loadstone.suites._needs import size_text
from loadstone.suites._suite import Suite
from loadstone.suites._variables import Given, Variable

_SMALL_RECORD, _LARGE_FILE = 64 << 10, 32 << 20


@dataclass(frozen=True)
class _Test:
    act: str
    """Act of a record."""
    place: str = "next"
    """``next``, ``random``, ``backward``, ``strided``, ``first``."""
    streams: bool = False
    """Through a stream of the C library, with a buffer of a record."""

    @property
    def writes(self) -> bool:
        return self.act in ("write", "fwrite")


TESTS: dict[str, _Test] = {
    "write": _Test("write"),
    "rewrite": _Test("write"),
    "read": _Test("read"),
    "reread": _Test("read"),
    "random read": _Test("read", "random"),
    "random write": _Test("write", "random"),
    "backward read": _Test("read", "backward"),
    "record rewrite": _Test("write", "first"),
    "strided read": _Test("read", "strided"),
    "fwrite": _Test("fwrite", streams=True),
    "refwrite": _Test("fwrite", streams=True),
    "fread": _Test("fread", streams=True),
    "refread": _Test("fread", streams=True),
}
"""In IOzone's order."""

_MAKERS = ("write", "fwrite")


def _lower(settings: Settings, given: Given) -> SuitePlans:
    """Plans of all files and records that were asked for."""
    direct = given.flag("direct")
    tests = [name for name in given.among("tests", TESTS) if not (direct and TESTS[name].streams)]
    builder = Builder("iozone", settings)
    files, records = given.sizes("size"), given.sizes("record")
    if direct and (odd := [size for size in (*files, *records) if size % 4096]):
        raise Error(f"iozone: with direct=yes sizes must be multiples of 4096, not {odd[0]}")
    passed = 0
    for size in files:
        for record in records:
            small = record < _SMALL_RECORD and size > _LARGE_FILE and len(records) > 1
            if record > size or (small and not given.flag("every")):
                passed += 1
                continue
            for processes in given.numbers("processes"):
                _cell(builder, given, tests, size, record, processes)
    if not builder.plans and records[0] > files[-1]:
        raise Error(
            f"iozone: the record of {records[0]:,} bytes is larger than the file of {files[-1]:,}; "
            "make it smaller (`variables` record=), or the file larger (`variables` size=)"
        )
    if not builder.plans:
        raise Error(
            "iozone: several records below 64 KiB are left out for files above 32 MiB, as in IOzone; "
            "`variables` every=yes brings them back"
        )
    if passed:
        builder.notes.append(
            f"{passed} pairs of file and record are left out, as in IOzone: records larger than the file, or "
            "below 64 KiB for files above 32 MiB (`variables` every=yes brings the latter back)"
        )
    return builder.done()


def _cell(
    builder: Builder, given: Given, tests: Sequence[str], size: int, record: int, processes: int
) -> None:
    count = builder.whole(size, record, "record")
    laws = _laws(count, record, given.number("stride"))
    used = {TESTS[name].place for name in tests} & set(laws)
    key = {"file": count * record, "record": record}
    phases = [_phase(given, name, count, record, processes, key, name == tests[0]) for name in tests]
    many = f" x{processes}" if processes > 1 else ""
    builder.add(
        f"{size_text(count * record)} file, {size_text(record)} record{many}",
        [Files("iozone", processes, count * record)],
        phases,
        [{"id": ident, "law": laws[ident]} for ident in sorted(used)],
        there=tests[0] not in _MAKERS,
    )


def _laws(count: int, record: int, stride: int) -> dict[str, dict[str, Any]]:
    """Where the records of a pass lie."""
    return {
        "random": {"kind": "permuted", "count": count, "unit": record},
        "backward": {"kind": "strided", "count": count, "unit": record, "backward": True},
        "strided": {"kind": "strided", "count": count, "unit": record, "stride": stride},
    }


def _phase(
    given: Given, name: str, count: int, record: int, processes: int, key: dict[str, Any], first: bool
) -> Phase:
    test = TESTS[name]
    flags = {"sync": given.flag("osync") or None, "direct": given.flag("direct") or None}
    end: list[Op] = []
    # A file that is closed within the time cannot be made stable after it, in IOzone either.
    if test.writes and (given.flag("fsync") or not given.flag("close")):
        end.append(fixed(f"{name}: fsync", "sync", set="iozone"))
    end.append(fixed(f"{name}: close", "close", set="iozone"))
    # Whatever is not to be counted is done all the same, after the time was taken.
    counted = [one for one in end if given.flag("fsync" if one["act"] == "sync" else "close")]
    later = [one for one in end if one not in counted]
    place: dict[str, Any] = {"random": drawn("random"), "backward": drawn("backward")}
    place |= {"strided": drawn("strided"), "first": 0}
    one = fixed(
        name,
        test.act,
        set="iozone",
        size=record,
        times=count,
        position=place.get(test.place),
        value=record if test.streams else None,
        **flags,
    )
    makes = name in _MAKERS

    def opened(number: int) -> list[Op]:
        where = {"set": "iozone", "index": number}
        if not makes:
            return [fixed(f"{name}: open", "open", **where, **flags)]
        made = fixed(f"{name}: create", "create", **where, **flags)
        # What a pass before has left goes first.
        return [made] if first else [fixed(f"{name}: remove", "remove", **where), made]

    return Phase(
        name,
        timed=[[one, *counted] for _ in range(processes)],
        before=[opened(number) for number in range(processes)],
        after=[later for _ in range(processes)],
        key=key,
        makes=makes,
    )


SUITE = Suite(
    "iozone",
    "write, read, re-read, random, backward, strided and buffered passes over a file, record by record",
    """\
Each process has one file and passes over it in records: it writes it, writes it again, reads it and reads
it again; then records by chance, each once, read and written; backward; in strides; the same record over
and over; and with fwrite(3) and fread(3), through a buffer of a record. Reported is the rate of each
pass, in KiB/s, from its first request to its last, and with fsync=yes and close=yes to the end of these.
With several processes all begin a pass together, and the rate is that of all of them, until the last has
ended. As in IOzone caches are left alone, so a file that fits in memory measures memory; `cache` drop or
remount empties them before each pass, and `memory_limit` makes memory small.""",
    """\
IOzone 3's passes and their defaults (-a: files of 64 KiB to 512 MiB, records of 4 KiB to 16 MiB, below 64
KiB only for files under 32 MiB; -j: strides of 17 records), as in table 4.1 of the snapshots
thesis. There: -s 2g -r 16m -i 0 -i 1 -i 2 -i 3 with two processes (table 5.20). COW thesis, 4.2.3.4: -i 0 -i
1 -i 2 -g 4g -q 64k -a. NFS report, 4.3: -i0 -i2 -c -ag4096.""",
    {
        "size": Variable(
            "512m", "bytes of each file: one size, several (a,b), or a-b, each double the one before"
        ),
        "record": Variable("64k", "bytes of a record, likewise"),
        "processes": Variable("1", "processes, each with a file of its own, likewise"),
        "tests": Variable("all", "passes: " + ", ".join(TESTS)),
        "stride": Variable("17", "records from one strided read to the next"),
        "fsync": Variable("no", "count an fsync after passes that write (IOzone's -e)"),
        "close": Variable("no", "count closing the file (-c); without fsync=yes none is made stable then"),
        "osync": Variable("no", "open with O_SYNC (-o)"),
        "direct": Variable("no", "open with O_DIRECT (-I); buffered passes are left out"),
        "every": Variable("no", "small records for large files, too (-z)"),
    },
    _lower,
    sweep={"size": "64k-512m", "record": "4k-16m"},
    size="size",
    block="record",
    depth="processes",
)
