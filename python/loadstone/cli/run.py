"""``loadstone run``: a model, a plan, a script, a job file or a named workload on a target."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from loadstone.cli._confirm import confirm_plans
from loadstone.cli._load import (
    carry_out,
    conclude,
    content_of,
    independent_option,
    load_options,
    lowering_options,
    options_of,
    ordered,
    several,
    show_plans,
    target_size,
    think_option,
    verify_of,
)
from loadstone.cli._personality import (
    RunCommand,
    complete,
    is_personality,
    is_suite,
    prepared,
    refuse_unknown,
    show_list,
    source_of,
)
from loadstone.cli._types import RATE, pairs

if TYPE_CHECKING:
    from loadstone.bundle import Series
    from loadstone.fio import Plans
    from loadstone.plan.kinds import Kind
    from loadstone.wml import Interpretation, RunPlan


@click.command(cls=RunCommand)
@click.argument("workload", required=False, shell_complete=complete)
@click.option("--list", "listing", is_flag=True, help="Name all benchmarks that can be run, and stop.")
@click.option("--source", is_flag=True, help="Print the script of a benchmark, and stop.")
@click.option("--sweep", is_flag=True, help="All sizes that a benchmark such as iozone goes through.")
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
@click.option(
    "--bs",
    metavar="SIZES",
    default="4k",
    help="Bytes per request of a named workload: 4k, 4k-64k (multiples of 4k, and 64k), or shares such as "
    "4k:60,64k:40 [4k].",
)
@click.option(
    "--skew",
    metavar="LAW",
    default="uniform",
    help="How random requests are shared out among blocks: zipf:EXPONENT, pareto:SHARE, "
    "hotcold:ACCESSES,SPACE [uniform].",
)
@click.option(
    "--rate",
    type=RATE,
    metavar="RATE",
    default=0.0,
    help="Requests per second (open loop), such as 500 or 20k.",
)
@click.option(
    "--arrival",
    metavar="LAW",
    default="constant",
    help="How requests are spread at --rate: poisson, gamma:SHAPE, hyper:VARIATION, onoff:ON,OFF in seconds, "
    "or trace:FILE, at its requests' times [constant].",
)
@click.option(
    "-D",
    "variables",
    metavar="NAME=VALUE",
    multiple=True,
    callback=pairs,
    help="Variable of the workload (repeatable).",
)
@click.option("--allow-system", is_flag=True, help="Let a script of Filebench run shell commands.")
@click.option(
    "--rebase", is_flag=True, help="Put paths of a script or job file that lie elsewhere below --on."
)
@click.option(
    "--filebench-compat",
    "compat",
    type=click.Choice(["1.4", "1.5"]),
    help="What a script means where these versions of Filebench differ [what it is written in], and with "
    "what both do wrong.",
)
@click.option(
    "--layout",
    type=click.Choice(["gamma", "flat"]),
    help="Trees of a script's file sets: of drawn widths and depths, as Filebench makes them, or one level "
    "of directories of dirwidth files [gamma].",
)
def command(
    workload: str | None,
    listing: bool,
    source: bool,
    sweep: bool,
    pace: str | None,
    order: Literal["none", "dependency"] | None,
    independent: str | None,
    think: str | None,
    bs: str,
    skew: str,
    rate: float,
    arrival: str,
    variables: dict[str, str],
    allow_system: bool,
    rebase: bool,
    compat: Literal["1.4", "1.5"] | None,
    layout: Literal["gamma", "flat"] | None,
    **given: Any,
) -> None:
    """Run a workload on a target.

    WORKLOAD is a model (.mdh), a plan (.json), a script of Filebench (.f, .prof), a job file of fio (.fio,
    .job, .ini), a benchmark such as varmail (--list names all, "loadstone run varmail --help" tells what one
    models), or one of randread, randwrite, randrw, read, write, rw. A target that does not exist is made
    and filled; one that does is only written to when --allow-destroy names it. The status is 0 only when no
    request failed. Models, plans and job files of other names are told by their content.

    A plan file is not trusted: it destroys only what --allow-destroy names, and must not log, keep a state,
    limit memory or mount anew what is not named by options, too (docs/formats/plan.md).

    A model that was fitted with --think can be run with --order dependency: not at the times of its trace,
    but as the application would have asked this target.

    A model of requests of files (of an strace) runs on a directory, new or empty, in which the tree that it
    asks for is built first. Nothing outside of that directory is touched.

    A script of Filebench, 1.4 or 1.5, runs on such a directory too, and its $dir is that one. -D NAME=VALUE
    stands above any set of the script, --duration above what its runs say (docs/filebench.md). So does a
    benchmark, which is such a script of Loadstone's own; --size says what its files hold (docs/workloads.md).
    iozone, bonnie, vxbench, mkfile, touch-files and cp-fanout pass over files of their own and print the
    table they are known for; --size, --bs and --depth are those of their files, records and processes
    (docs/suites.md).

    A job file of fio runs on the directory that its files lie in, or on the one file or device its jobs use.
    Jobs that run together are one run, stonewall begins the next. A key that cannot be honoured is an error
    (docs/fio.md).

    \b
    Example:
      loadstone run trace.mdh --on /mnt/target --size 8g --pace x4 --out run.bundle
      loadstone run app.mdh --on /mnt/target --size 8g --order dependency --think x2
      loadstone run randrw -D reads=0.7 --on /mnt/target --size 1g --direct --duration 30s
      loadstone run randread --bs 4k:60,64k:40 --skew zipf:1.1 --on /mnt/target --size 1g --duration 30s
      loadstone run randread --on /dev/vdb --rate 20000 --arrival poisson --duration 60s
      loadstone run app.mdh --on /mnt/tree --pace max
      loadstone run varmail --on /mnt/tree --size 2x-ram --duration 60s --out run.bundle
      loadstone run iozone --sweep --on /mnt/tree --out sweep.bundle
      loadstone run bonnie --on /mnt/tree --size 4x-ram
      loadstone run varmail.f --on /mnt/tree -D nthreads=4 --duration 60s
      loadstone run job.fio --on /mnt/files -D SIZE=1g --out run.bundle
      loadstone run trace.mdh --on null: --dry-run > plan.json
      loadstone run plan.json
    """
    from loadstone.workload import load_workload

    if listing:
        if workload is not None:
            raise click.UsageError(f"--list: leave out {workload}")
        show_list(given["as_json"])
        return
    if workload is None:
        raise click.UsageError("Missing argument 'WORKLOAD'; --list names those that need no file")
    kind = _kind(workload)
    with options_of(workload, kind) as said:
        if kind == "benchmark":
            if source:
                click.echo(source_of(workload), nl=False)
                return
            size = target_size(given["size"], given["memory_limit"])
            path, variables = prepared(workload, size, given["on"], variables)
            _script(workload, path, variables, allow_system, rebase, compat, layout or "gamma", given)
        elif kind == "suite":
            from loadstone.cli._suite import perform as perform_suite

            perform_suite(workload, variables, sweep, {**given, "bs": bs})
        elif kind == "script":
            _script(workload, workload, variables, allow_system, rebase, compat, layout or "gamma", given)
        elif kind == "jobs":
            _jobs(workload, variables, rebase, given)
        else:
            ordering = ordered(order, pace, independent, think)
            if pace is None and independent is None:
                ordering["pace"] = None
            plan = load_workload(
                workload,
                given["on"],
                **ordering,
                bs=bs,
                rate=rate,
                arrival=arrival,
                skew=skew,
                variables=variables,
                **lowering_options(given, said if kind == "plan" else None),
            )
            if not given["dry_run"]:
                confirm_plans([plan], given["yes"])
            conclude([carry_out(plan, given, workload=workload)])


def _kind(workload: str) -> Kind:
    """What a workload is: what bears the name of a benchmark or load is that, all else a file."""
    from loadstone.plan.kinds import kind_of

    if is_personality(workload):
        return "benchmark"
    if is_suite(workload):
        return "suite"
    if (found := kind_of(workload)) is not None:
        return found
    if not os.path.exists(workload):
        refuse_unknown(workload)
    return "name"


def _done(
    workload: str, found: Interpretation | Plans, given: dict[str, Any], kept: Callable[..., Series]
) -> bool:
    """Says what is to be known before; whether it was asked for the plans only, or for a bundle of several
    runs, which ``kept`` writes."""
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    plans = found.plans
    if given["dry_run"]:
        show_plans(workload, plans)
        return True
    confirm_plans(plans, given["yes"])
    if not given["out"] or len(plans) == 1:
        return False
    from loadstone.cli._script import keep

    keep(workload, kept, given)
    return True


def _script(
    workload: str,
    path: str,
    variables: dict[str, str],
    allow_system: bool,
    rebase: bool,
    compat: Literal["1.4", "1.5"] | None,
    layout: Literal["gamma", "flat"],
    given: dict[str, Any],
) -> None:
    """Performs a script, or prints the plans of its runs. ``workload``: what it is called in results."""
    from loadstone.study.script import run_script
    from loadstone.workload import plan_filebench
    from loadstone.workload.filebench import perform

    found = plan_filebench(
        path,
        given["on"],
        variables=variables,
        seed=given["seed"],
        duration=given["duration"],
        allow_destroy=given["allow_destroy"],
        # Nothing runs where only the plans are printed.
        allow_system=allow_system or given["dry_run"],
        rebase=rebase,
        compat=compat,
        interval=given["interval"],
        cpus=given["cpus"] or (),
        cache=given["cache"],
        memory_limit=given["memory_limit"],
        layout=layout,
        content=content_of(given),
        verify=verify_of(given),
    )
    for remark in found.warnings:
        place = f"{remark.source.name}:{remark.line}:{remark.column}"
        click.echo(f"warning: {place}: {remark.what}", err=True)
    say = functools.partial(click.echo, err=given["as_json"])
    if _done(workload, found, given, functools.partial(run_script, found, say=say)):
        return

    with several(workload, given, len(found.plans)) as tell:

        def run(action: RunPlan) -> Mapping[str, Any]:
            return carry_out(action.plan, given, action.windows, workload, tell)

        conclude(perform(found.actions, run, say))


def _jobs(workload: str, variables: dict[str, str], rebase: bool, given: dict[str, Any]) -> None:
    """Performs the jobs of a file, or prints their plans."""
    from loadstone.study.script import run_jobs
    from loadstone.workload import plan_fio

    ctx = click.get_current_context()
    seeded = ctx.get_parameter_source("seed") is not ParameterSource.DEFAULT
    found = plan_fio(
        workload,
        given["on"],
        variables=variables,
        seed=given["seed"] if seeded else None,
        duration=given["duration"],
        allow_destroy=given["allow_destroy"],
        rebase=rebase,
        interval=given["interval"],
        cpus=given["cpus"] or (),
        cache=given["cache"],
        memory_limit=given["memory_limit"],
        content=content_of(given),
        verify=verify_of(given),
    )
    if _done(workload, found, given, functools.partial(run_jobs, found)):
        return
    found.make_directories()
    summaries = []
    with several(workload, given, len(found.plans)) as tell:
        for plan, names in zip(found.plans, found.names, strict=True):
            if len(found.plans) > 1:
                click.echo(f"jobs: {', '.join(names)}", err=given["as_json"])
            summaries.append(carry_out(plan, given, workload=workload, tell=tell))
        conclude(summaries)
