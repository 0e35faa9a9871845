"""``loadstone replay``: a trace on a target."""

from __future__ import annotations

from typing import Any

import click

from loadstone.cli._command import Command
from loadstone.cli._options import EVERY, options, run_options
from loadstone.cli._reading import reading_options

_OTHERS = {
    "variables",
    "bs",
    "skew",
    "arrival",
    "rate",
    "rebase",
    "sweep",
    "compat",
    "layout",
    "allow_system",
    "draw_first",
}
"""What traces do not take."""


@click.command(cls=Command)
@click.argument("trace")
@options(*(name for name in EVERY if name not in _OTHERS))
@reading_options
def command(trace: str, reading: dict[str, Any], **given: Any) -> None:
    """Replay a trace of any known format on a target.

    At an open pace (recorded, xN) requests go out at their own times, however slow the target is. Response
    counts from the intended time, service from the issue. At max, --depth requests are always in flight.
    With --order dependency a request waits for the answer that it waited for in the trace. So a faster
    target gets requests sooner, as from the application.

    A trace of system calls (strace -f -ttt -T) or of NFS (pcap, nfsdump, DataSeries) is replayed on files.
    --on names a new or empty directory. The replay first makes the files that the trace found, with the sizes
    that it saw, and then uses them by name. It touches nothing outside. In completion order, the default
    there, processes wait for each other as they did; with --order dependency only where they share files.

    \b
    Example:
      loadstone replay trace.parquet --on /mnt/target --pace x2 --out replay.bundle
      loadstone replay trace.spc --on /mnt/target --size 8g --offsets wrap --pace max
      loadstone replay trace.parquet --map 7,0=/mnt/a --map 7,1=/mnt/b --order completion
      loadstone replay trace.parquet --on /mnt/target --order dependency --independent max --think x2
      loadstone replay app.strace --on /mnt/tree --pace max
      loadstone replay clients.pcap --on /mnt/tree --pace max
      loadstone replay t.trace --on /mnt/target --format mqsim --max-damaged 10
    """
    import loadstone
    from loadstone.cli._perform import perform

    asked = run_options(given, reading=reading)
    perform(loadstone.job(trace, given["on"], asked, kind="trace"), given)
