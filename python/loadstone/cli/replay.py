"""``loadstone replay``: a trace on a target."""

from __future__ import annotations

from typing import Any, Literal

import click

from loadstone.cli._command import Command
from loadstone.cli._confirm import confirm_plans
from loadstone.cli._load import (
    carry_out,
    conclude,
    independent_option,
    load_options,
    lowering_options,
    options_of,
    ordered,
    think_option,
)
from loadstone.cli._reading import reading_options
from loadstone.cli._types import TIME


@click.command(cls=Command)
@click.argument("trace")
@load_options
@click.option(
    "--pace",
    metavar="PACE",
    help="recorded (default), an acceleration such as x2, or max (as fast as possible).",
)
@click.option(
    "--order",
    type=click.Choice(["none", "completion", "dependency"]),
    help="completion: wait for what had completed before, as in the trace. dependency: wait for the last "
    "completion of the same actor, and then as long as it thought. Default none; for files, completion.",
)
@independent_option
@think_option
@click.option(
    "--within",
    type=TIME,
    metavar="TIME",
    help="With dependencies, a request later than this after a completion does not depend on it; default 1s.",
)
@reading_options
def command(
    trace: str,
    pace: str | None,
    order: Literal["none", "completion", "dependency"] | None,
    independent: str | None,
    think: str | None,
    within: float | None,
    reading: dict[str, Any],
    **given: Any,
) -> None:
    """Replay a trace of any known format on a target.

    At an open pace (recorded, xN) requests go out at their own times, however slow the target is:
    response counts from the intended time, service from the issue. At max, as many as --depth are
    always in flight. With --order dependency requests follow the answers they followed in the trace, so
    that a faster target is asked sooner, as the application would.

    A trace of system calls (strace -f -ttt -T) or of NFS (pcap, nfsdump, DataSeries) is replayed on files:
    --on names an empty or new directory, in which the files are made that the trace found, with the sizes it
    saw, and then used by name. Nothing outside of that directory is touched. In completion order, the default
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
    from loadstone.trace._parts import left_out
    from loadstone.workload import plan_replay

    if within is not None and order != "dependency":
        raise click.UsageError("--within needs --order dependency")
    with options_of(trace, "trace"):
        if warning := left_out(trace):
            click.echo(f"warning: {warning}", err=True)
        plan = plan_replay(
            trace,
            given["on"],
            **ordered(order, pace, independent, think),
            within=1.0 if within is None else within,
            reading=reading,  # type: ignore[arg-type]  # a dict of trace.Options
            **lowering_options(given),
        )
        if not given["dry_run"]:
            confirm_plans([plan], given["yes"])
        conclude([carry_out(plan, given)])
