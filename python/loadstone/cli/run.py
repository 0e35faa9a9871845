"""``loadstone run``: a model, a plan or a named workload on a target."""

from __future__ import annotations

from typing import Any, Literal

import click

from loadstone.cli._load import (
    _pairs,
    carry_out,
    independent_option,
    load_options,
    lowering_options,
    ordered,
    think_option,
)
from loadstone.cli._show import SIZE


@click.command()
@click.argument("workload")
@load_options
@click.option("--pace", metavar="PACE", help="recorded, an acceleration such as x4, or max [recorded].")
@click.option(
    "--order",
    type=click.Choice(["none", "dependency"]),
    help="dependency: a model's requests wait for the answers it says, and then as long as their actor "
    "thought, so that a faster target is asked sooner. Default none.",
)
@independent_option
@think_option
@click.option("--bs", type=SIZE, default=4096, help="Bytes per request of a named workload [4k].")
@click.option("--rate", type=click.FloatRange(0), default=0.0, help="Requests per second (open loop).")
@click.option(
    "-D",
    "variables",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_pairs,
    help="Variable of the workload (repeatable).",
)
def command(
    workload: str,
    pace: str | None,
    order: Literal["none", "dependency"] | None,
    independent: str | None,
    think: str | None,
    bs: int,
    rate: float,
    variables: dict[str, str],
    **given: Any,
) -> None:
    """Run a workload on a target.

    WORKLOAD is a model (.mdh), a plan (.json), or one of randread, randwrite, randrw, read, write,
    rw. A target that does not exist is made and filled; one that does is only written to when
    --allow-destroy names it. The status is 0 only when no request failed.

    A model that was fitted with --think can be run with --order dependency: not at the times of its trace,
    but as the application would have asked this target.

    A model of requests of files (of an strace) runs on a directory, new or empty, in which the tree that it
    asks for is built first. Nothing outside of that directory is touched.

    \b
    Example:
      loadstone run trace.mdh --on /mnt/target --size 8g --pace x4 --out run.bundle
      loadstone run app.mdh --on /mnt/target --size 8g --order dependency --think x2
      loadstone run randrw -D reads=0.7 --on /mnt/target --size 1g --direct --duration 30s
      loadstone run app.mdh --on /mnt/tree --pace max
      loadstone run trace.mdh --on null: --dry-run > plan.json
      loadstone run plan.json
    """
    from loadstone.workload import load_workload

    ordering = ordered(order, pace, independent, think)
    if pace is None and independent is None:
        ordering["pace"] = None
    plan = load_workload(
        workload,
        given["on"],
        **ordering,
        bs=bs,
        rate=rate,
        variables=variables,
        **lowering_options(given),
    )
    carry_out(plan, given)
