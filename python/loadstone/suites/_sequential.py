"""The sequential set: operation, I/O size and number of processes, a constant total (vxbench)."""

from __future__ import annotations

from loadstone.suites._build import Builder, Files, Op, Phase, Settings, SuitePlans, fixed
from loadstone.suites._needs import size_text
from loadstone.suites._suite import Suite
from loadstone.suites._variables import Given, Variable

_SET = "vxbench"


def _lower(settings: Settings, given: Given) -> SuitePlans:
    """A plan for each combination."""
    builder = Builder("vxbench", settings)
    flags = {"direct": given.flag("direct") or None}
    for test in given.among("tests", ("read", "write")):
        for size in given.sizes("bs"):
            if flags["direct"] and size % 4096:
                raise given.fail("bs", f"with direct=yes {size} must be a multiple of 4096")
            for processes in given.numbers("processes"):
                count = builder.whole(given.size("total") // processes, size, "request")
                if not count:
                    what = f"is less than a request of {size:,} bytes for each of {processes} processes"
                    raise given.fail("total", what)
                ends: list[Op] = [fixed(f"{test}: close", "close")]
                counted: list[Op] = []
                if test == "write":
                    flushed = fixed("write: fsync", "sync")
                    counted = [flushed] if given.flag("fsync") else []
                act = fixed(test, test, set=_SET, size=size, times=count, **flags)
                made = "open" if test == "read" else "create"
                phase = Phase(
                    test,
                    timed=[[act, *counted] for _ in range(processes)],
                    before=[
                        [fixed(f"{test}: {made}", made, set=_SET, index=i, **flags)] for i in range(processes)
                    ],
                    after=[ends for _ in range(processes)],
                    key={"bs": size, "file": count * size},
                    makes=test == "write",
                )
                builder.add(
                    f"{test} {size_text(size)} x{processes}",
                    [Files(_SET, processes, count * size)],
                    [phase],
                    there=test == "read",
                    cache="drop",
                )
    return builder.done()


SUITE = Suite(
    "vxbench",
    "sequential reads and writes by one to many processes, each with a file of its own, a constant total",
    """\
Each process reads or writes one file of its own from end to end; the sizes of all files add up to the same
total, however many there are. So one process is sequential, and many are less so the more there are. Reported
is the rate of all processes together, from the first request to the end of the last process, in
MB/s (10^6 bytes). Caches are dropped before each run, and files that are read are written before; `cache`
remount mounts the file system anew, as the original did.""",
    """\
Section 5.3 and appendix D of the VxFS study: vxbench, reads and writes of 1 GB in units of 8 and 64 KiB,
with 1, 2, 4, 8, 16 and 32 processes and files. Its stripes of 1 to 24 disks are a matter of the target.""",
    {
        "total": Variable("1g", "bytes of all files together"),
        "bs": Variable(
            "8k,64k", "bytes of a request: one size, several (a,b), or a-b, each double the one before"
        ),
        "processes": Variable("1-32", "processes and files, likewise"),
        "tests": Variable("all", "read, write"),
        "fsync": Variable("no", "count an fsync after writing"),
        "direct": Variable("no", "open with O_DIRECT"),
    },
    _lower,
    size="total",
    block="bs",
    depth="processes",
)
