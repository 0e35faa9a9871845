"""``loadstone completion``: the shell's completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from loadstone.cli._command import Command


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Example:
      loadstone completion bash > ~/.local/share/bash-completion/completions/loadstone
    """
    complete = get_completion_class(shell)
    if complete is None:
        raise click.ClickException(f"no completion for {shell}")
    root = click.get_current_context().find_root().command
    click.echo(complete(root, {}, "loadstone", "_LOADSTONE_COMPLETE").source())
