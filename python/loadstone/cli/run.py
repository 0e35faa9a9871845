"""``loadstone run``: a model, a plan, a script, a job file or a named workload on a target."""

from __future__ import annotations

from typing import Any

import click

from loadstone.cli._options import EVERY, LOAD, grouped, options, run_options
from loadstone.cli._personality import RunCommand, complete, show_list, source_of

ORDER_HELP = (
    "dependency: a request waits for the answer that the model says, and then for its actor's think time; a "
    "faster target gets requests sooner [none]."
)


@click.command(cls=RunCommand)
@click.argument("workload", required=False, shell_complete=complete)
@grouped(LOAD, "--list", "listing", is_flag=True, help="Name all benchmarks that can be run, and stop.")
@grouped(LOAD, "--source", is_flag=True, help="Print the script of a benchmark, and stop.")
@options(
    *(name for name in EVERY if name != "within"),
    order={"type": click.Choice(["none", "dependency"]), "help": ORDER_HELP},
)
def command(workload: str | None, listing: bool, source: bool, **given: Any) -> None:
    """Run a workload on a target.

    WORKLOAD is a model (.mdh), a plan (.json), a script of Filebench (.f, .prof), a job file of fio (.fio,
    .job, .ini), a benchmark such as varmail (--list names all, "loadstone run varmail --help" describes one),
    or one of randread, randwrite, randrw, randtrim, read, write, rw, trim. Models, plans and job files with
    other names are recognised by their content. A missing target is made and filled. An existing one is
    written only if --allow-destroy names it. The status is 0 only if no request failed.

    A plan file is not trusted. It may destroy, log, keep a state, limit memory or remount only what options
    name too (docs/reference/formats/plan.md).

    A model that was fitted with --think can run with --order dependency: requests then come when the
    application would send them to this target, not at the times of the trace.

    A model of requests of files (of an strace) runs on a new or empty directory. It first builds its tree
    there, and touches nothing outside.

    A script of Filebench, 1.4 or 1.5, also runs on such a directory, which becomes its $dir. -D NAME=VALUE
    overrides any set of the script, --duration its runs (docs/reference/filebench.md). Benchmarks are such
    scripts of Loadstone's own; --size sets what their files hold (docs/reference/workloads.md).
    iozone, bonnie, vxbench, mkfile, touch-files and cp-fanout use files of their own and print their usual
    table; --size, --bs and --depth set the size of files, of records, and the number of processes
    (docs/reference/suites.md).

    A job file of fio runs on the directory of its files, or on the one file or device that its jobs use.
    Jobs that run together are one run; stonewall begins the next. A key that Loadstone cannot honour is an
    error (docs/reference/fio.md).

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
    import loadstone
    from loadstone.cli._perform import perform
    from loadstone.plan.kinds import no_workload, refuse_others
    from loadstone.workload.jobs import known_kind

    if listing:
        if workload is not None:
            raise click.UsageError(f"--list: leave out {workload}")
        show_list(given["as_json"])
        return
    if workload is None:
        raise click.UsageError("Missing argument 'WORKLOAD'; --list names those that need no file")
    kind = known_kind(workload)
    if kind == "trace":
        raise loadstone.Error(f"{workload}: {no_workload(workload)}")
    asked = run_options(given)
    refuse_others(kind, workload, [*asked.given(), *(["source"] if source else [])])
    if source:
        click.echo(source_of(workload), nl=False)
        return
    if given["dry_run"] and kind in ("script", "jobs"):
        # Nothing runs where only the plans are printed.
        asked = run_options({**given, "allow_system": True})
    perform(loadstone.job(workload, given["on"], asked, kind=kind), given)
