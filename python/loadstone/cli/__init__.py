"""The command line: parses, calls the public functions, shows what they return."""

from __future__ import annotations

import importlib
import sys

import click

import loadstone

# Verb -> (module, one-line help). Modules are imported only when their verb is used.
VERBS: dict[str, tuple[str, str]] = {
    "trace": ("loadstone.cli.trace", "Convert, describe and cut traces of storage requests."),
    "model": ("loadstone.cli.model", "Fit a model to a trace and look at it."),
    "run": ("loadstone.cli.run", "Run a model or a plan on a target."),
    "replay": ("loadstone.cli.replay", "Replay a trace on a target."),
    "evaluate": ("loadstone.cli.evaluate", "Measure how faithful a model is to its trace."),
    "report": ("loadstone.cli.report", "Write an HTML report from bundles."),
    "completion": ("loadstone.cli.completion", "Print the shell's completion script."),
}


class LazyGroup(click.Group):
    """A group whose verbs are imported when they are needed, so that --help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order of the work."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports one verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(VERBS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, text) for verb, (_, text) in VERBS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(loadstone.__version__, prog_name="loadstone")
def command() -> None:
    """Turn real storage activity into load that anyone can run again.

    \b
    Example:
      loadstone trace describe trace.spc
      loadstone model fit trace.spc -o trace.mdh
      loadstone run trace.mdh --on /tmp/target --size 1g --pace x4 --out run.bundle
    """


def main() -> None:
    """Entry point: errors go to standard error as one line, and the status tells of success."""
    try:
        command.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (loadstone.Error, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
