"""The command ``loadstone``, and ``python -m loadstone``."""

import signal


def main() -> None:
    """Starts the command line; until its libraries are loaded, Ctrl-C ends the process without a word."""
    # Python's own handler would print a traceback of whatever is being imported.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from loadstone.cli import main as command

    command()


if __name__ == "__main__":
    main()
