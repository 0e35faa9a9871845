"""The command line: parses, calls the public functions, shows what they return."""

from __future__ import annotations

import errno
import importlib
import os
import re
import sys
import warnings
from typing import Any, NoReturn

import click

import loadstone
from loadstone import _signals
from loadstone._extras import missing
from loadstone._kept import FromEnvironment, LeftBehind
from loadstone._text import visible
from loadstone.cli import _show, _streams
from loadstone.errors import Kept, OptionError

# Verb -> (module, one-line help). Modules are imported only when their verb is used.
VERBS: dict[str, tuple[str, str]] = {
    "trace": ("loadstone.cli.trace", "Convert, describe and cut traces of storage requests."),
    "model": ("loadstone.cli.model", "Fit a model to a trace and look at it."),
    "run": ("loadstone.cli.run", "Run a model or a plan on a target."),
    "replay": ("loadstone.cli.replay", "Replay a trace on a target."),
    "evaluate": ("loadstone.cli.evaluate", "Measure how faithful a model is to its trace."),
    "verify": ("loadstone.cli.verify", "Tell whether targets hold what a run wrote to them."),
    "content": ("loadstone.cli.content", "Tell how far data deduplicates and compresses."),
    "dataset": ("loadstone.cli.dataset", "Scan, model, evolve and write file trees."),
    "compare": ("loadstone.cli.compare", "Say which of several results is better, and how sure that is."),
    "study": ("loadstone.cli.study", "Run experiments that a file describes, until they are sure."),
    "report": ("loadstone.cli.report", "Write an HTML report from bundles."),
    "completion": ("loadstone.cli.completion", "Print the shell's completion script."),
}


_ENDS = r"[\n<>\"'=]"
"""What ends a name in a text."""


_HINTS = {
    "describe": "loadstone trace describe, loadstone model show and loadstone dataset describe look at files",
    "diff": "loadstone compare A B compares results; loadstone model diff compares models",
    "fio": "loadstone run JOB.fio --on DIR runs a job file",
    "fit": "It is loadstone model fit",
    "help": "It is loadstone --help, or loadstone COMMAND --help",
    "scan": "It is loadstone dataset scan",
    "convert": "It is loadstone trace convert",
    "version": "It is loadstone --version",
}
"""Hints for unknown commands."""


def _hint(word: str) -> str | None:
    """A hint for an unknown command: the name of a file or a workload goes to ``run`` or ``replay``."""
    if word in _HINTS:
        return _HINTS[word]
    from loadstone.plan.kinds import kind_of
    from loadstone.workload.jobs import known_kind

    try:
        # A file that is not there tells by its name.
        verb = "replay" if (kind_of(word) or known_kind(word)) == "trace" else "run"
    except loadstone.Error:
        return None
    return f"loadstone {verb} {word} performs it"


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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Names the nearest verb when there is none of that name."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            if hint := _hint(args[0]):
                raise click.UsageError(f"No such command {args[0]!r}. {hint}", ctx) from None
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=list(VERBS), ctx=ctx
            ) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, text) for verb, (_, text) in VERBS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(loadstone.__version__, prog_name="loadstone")
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="No progress and no live lines; only results and errors. Also accepted after a verb.",
)
def command(quiet: bool) -> None:
    """Turn real storage activity into load that anyone can run again.

    \b
    Example:
      loadstone trace describe trace.spc
      loadstone model fit trace.spc -o trace.mdh
      loadstone run trace.mdh --on /tmp/target --size 1g --pace x4 --out run.bundle

    The exit status is 0 for success, 1 if the work or part of it failed, 2 if the command was not understood,
    3 if a condition of compare --fail-if holds.
    Ctrl-C, SIGTERM and SIGHUP end a run and keep what it measured (status 130, 143, 129). So do SIGUSR1,
    SIGUSR2 and SIGXCPU, which batch systems send.
    """
    # Nothing is coloured here, and what looks like a colour is part of a name, which is shown whole.
    click.get_current_context().color = True
    _show.set_quiet(quiet)


def main() -> None:
    """Entry point: errors go to standard error, and the exit status tells of success.

    0 success; 1 the work failed or was only partly done; 2 the command was not understood; 3 a condition of
    ``compare --fail-if`` holds; 130 interrupted
    by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP, and so on for SIGUSR1, SIGUSR2 and SIGXCPU: these end the work
    in the same way.
    """
    _signals.install()
    warnings.showwarning = _warn
    # Nothing here multiplies matrices, and idle BLAS threads spin beside the work that is measured.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _streams.steady()
    try:
        # A verb that ends by ctx.exit(n) makes this return n; a verb itself returns nothing.
        status = command.main(standalone_mode=False)
        _streams.raise_what_waits()
    except click.Abort:
        _fail("interrupted", _signals.status())
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(error.ctx.get_usage(), err=True)
            click.echo(f"Try '{error.ctx.command_path} --help' for help.", err=True)
        _fail(error.format_message(), error.exit_code)
    except BrokenPipeError:
        # Whoever read our output (head, say) has seen enough; the interpreter must not flush again.
        _streams.give_up_output()
        sys.exit(141)
    except OSError as error:
        if error.filename == _streams.NAME:
            _streams.give_up_output()
        # A terminal that is gone takes no text, and its SIGHUP has ended the work.
        gone = error.errno == errno.EIO and _signals.came()
        _fail(_system(error), _signals.status() if gone else 1)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("loadstone"):
            raise
        _fail(missing(error.name), 1)
    except UnicodeEncodeError as error:
        # The name may stand in a whole page; what is around it tells nobody anything.
        before, after = error.object[: error.start], error.object[error.start :]
        name = re.split(_ENDS, before)[-1] + re.split(_ENDS, after)[0]
        _fail(
            f"{visible(name, lines=False)}: no text in UTF-8, as names must be here; give it another name", 1
        )
    except MemoryError:
        _fail("memory ran out; raise the limit (ulimit -v), or give less to do", 1)
    except Kept as error:
        _fail(str(error), _signals.status() if error.interrupted else 1)
    except loadstone.Error as error:
        _fail(str(error), 2 if isinstance(error, OptionError) else 1)
    else:
        _signals.done()
        sys.exit(status if isinstance(status, int) else 0)


def _warn(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    if issubclass(category, LeftBehind | FromEnvironment):
        click.echo(f"warning: {message}", err=True)
    else:
        _usual_warning(message, category, *where, **more)


_usual_warning = warnings.showwarning


def _system(error: OSError) -> str:
    """What the system refused, as ``FILE: reason``."""
    if error.strerror is None:
        return str(error)
    names = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    return ": ".join([" -> ".join(names), error.strerror] if names else [error.strerror])


def _fail(message: str, status: int) -> NoReturn:
    # Colour is the only escape of our own here; the message may have others.
    click.echo(click.style("error:", fg="red", bold=True), file=_streams.drawn(err=True), nl=False)
    click.echo(f" {message}", err=True, color=True)
    _signals.done()
    sys.exit(status)
