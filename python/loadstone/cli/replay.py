"""``loadstone replay``: a trace on a target."""

from __future__ import annotations

from typing import Any, Literal

import click

from loadstone.cli._load import carry_out, load_options, lowering_options


@click.command()
@click.argument("trace")
@load_options
@click.option(
    "--pace",
    metavar="PACE",
    default="recorded",
    show_default=True,
    help="recorded, an acceleration such as x2, or max (as fast as possible).",
)
@click.option(
    "--order",
    type=click.Choice(["none", "completion"]),
    default="none",
    show_default=True,
    help="completion: wait for what had completed before, as in the trace.",
)
def command(trace: str, pace: str, order: Literal["none", "completion"], **given: Any) -> None:
    """Replay a trace of any known format on a target.

    At an open pace (recorded, xN) requests go out at their own times, however slow the target is:
    response counts from the intended time, service from the issue. At max, as many as --depth are
    always in flight.

    \b
    Example:
      loadstone replay trace.parquet --on /mnt/target --pace x2 --out replay.bundle
      loadstone replay trace.spc --on /mnt/target --size 8g --offsets wrap --pace max
      loadstone replay trace.parquet --map 7,0=/mnt/a --map 7,1=/mnt/b --order completion
    """
    from loadstone.workload import plan_replay

    plan = plan_replay(trace, given["on"], pace=pace, order=order, **lowering_options(given))
    carry_out(plan, given)
