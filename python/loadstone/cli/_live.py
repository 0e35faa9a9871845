"""The live view: a full screen on the terminal that shows what a run is doing, until it ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections import deque
from collections.abc import Mapping, Sequence
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import click

from loadstone._text import visible
from loadstone.cli._show import human_bytes, human_time, is_quiet, plain_console

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

_BARS = " ▁▂▃▄▅▆▇█"
_PLAIN = " .:-=+*#@"
# Points of the history; one comes every second.
_POINTS = 60
_SHOWN = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9, "p99.99": 99.99}
# Signals that end a program at once where nothing else is done, and would leave the terminal as it is.
_DEADLY = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def check_terminal() -> None:
    """Raises where there is no terminal to draw on, or nothing shall be drawn."""
    if is_quiet():
        raise click.UsageError("--live and --quiet contradict each other; leave one out")
    if not sys.stderr.isatty():
        raise click.UsageError(
            "--live: draws on standard error, which is no terminal here; leave it out, or do not redirect 2>"
        )
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        raise click.UsageError("--live: the terminal (TERM) cannot move its cursor; leave it out")


class LiveView:
    """Draws ``Run.live()`` on the whole terminal (standard error), and gives the terminal back on every exit.

    Called with what the run tells. ``q`` is Ctrl-C: it raises KeyboardInterrupt, once.
    """

    def __init__(self, title: str) -> None:
        """``title`` is what runs. Nothing is drawn before ``with``."""
        self.title = visible(title, lines=False)
        self._history: deque[float] = deque(maxlen=_POINTS)
        self._second = 0
        self._most = 0.0
        self._view: Live | None = None
        # Of the keyboard, if there is one.
        self._settings: list[Any] = []
        self._handlers: dict[int, Any] = {}
        self._asked = False

    def __enter__(self) -> LiveView:
        """Takes the terminal."""
        from rich.live import Live

        self._view = Live(console=plain_console(err=True), screen=True, auto_refresh=False)
        try:
            for number in _DEADLY:
                if signal.getsignal(number) == signal.SIG_DFL:
                    self._handlers[number] = signal.signal(number, self._die)
            self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._pause)
            if sys.stdin.isatty():
                self._settings = termios.tcgetattr(sys.stdin)
            self._take()
        except BaseException:
            self.clear()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Gives the terminal back."""
        self.clear()

    def clear(self) -> None:
        """Gives the terminal back; more than once does no harm."""
        try:
            self._give_back()
        finally:
            self._view = None
            for number, handler in self._handlers.items():
                signal.signal(number, handler)
            self._handlers.clear()

    def _take(self) -> None:
        if self._settings:
            # Keys come one by one and are not shown; Ctrl-C stays an interrupt.
            tty.setcbreak(sys.stdin)
        if self._view is not None:
            self._view.start()

    def _give_back(self) -> None:
        # A terminal that is gone takes nothing back, and results are not lost for that.
        if self._view is not None:
            with contextlib.suppress(OSError):
                self._view.stop()
        if self._settings:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._settings)

    def _die(self, number: int, frame: FrameType | None) -> None:
        self.clear()
        os.kill(os.getpid(), number)

    def _pause(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: the shell gets the terminal until the run goes on."""
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()

    def __call__(self, live: Mapping[str, Any]) -> None:
        """Draws; raises KeyboardInterrupt where q was pressed."""
        if self._view is None:
            return
        self._view.update(self.picture(live), refresh=True)
        if self._pressed() and not self._asked:
            self._asked = True
            raise KeyboardInterrupt

    def _pressed(self) -> bool:
        """Whether q is among the keys pressed since the last look."""
        keys = b""
        while self._settings and select.select([sys.stdin], [], [], 0)[0]:
            read = os.read(sys.stdin.fileno(), 64)
            if not read:
                break
            keys += read
        return b"q" in keys.lower()

    def _remember(self, live: Mapping[str, Any]) -> None:
        """Keeps a point for every second, and the largest rate of all that were shown."""
        if live["phase"] != "running":
            return
        self._most = max(self._most, live["ops_per_s"])
        if (second := int(live["elapsed_ns"] // 1_000_000_000)) != self._second:
            self._second = second
            self._history.append(live["ops_per_s"])

    def picture(self, live: Mapping[str, Any]) -> RenderableType:
        """Everything that is drawn, for one moment."""
        from rich.console import Group
        from rich.text import Text

        self._remember(live)
        view = self._view
        unicode = view is None or view.console.encoding.lower().startswith("utf")
        width, height = view.console.size if view is not None else (100, 40)
        parts: list[RenderableType] = [Text(f"loadstone  {self.title}", style="bold"), _status(live), Text()]
        if live["requests"] or live["phase"] == "running":
            # The largest value stands behind the bars.
            history = list(self._history)[-max(width - 35, 10) :]
            parts += [_rates(live), Text(f"ops/s    {sparkline(history, self._most, unicode)}"), Text()]
            parts += [_percentiles(live), Text(), _kinds(live, max(height - 13, 3))]
        stop = "q or Ctrl-C" if self._settings else "Ctrl-C"
        asked = (
            "stopping: what is in flight is waited for" if self._asked else f"{stop}: stop, keep the results"
        )
        parts += [Text(), Text(asked, style="dim")]
        return Group(*parts)


def sparkline(numbers: Sequence[float], most: float, unicode: bool = True) -> str:
    """Values as bars of eight heights, from zero to ``most``, which stands behind them."""
    if most <= 0:
        return ""
    bars = _BARS if unicode else _PLAIN
    heights = [bars[max(round(8 * number / most), 1 if number else 0)] for number in numbers]
    return f"{''.join(heights)}  most {most:,.0f}"


def _status(live: Mapping[str, Any]) -> Any:
    from rich.text import Text

    parts = [f"{live['phase']} {live['elapsed_ns'] / 1e9:.1f} s"]
    if fraction := live["fraction"]:
        left = live["elapsed_ns"] * (1 - fraction) / fraction
        parts.append(f"{100 * fraction:.0f} %, {left / 1e9:.1f} s left")
    return Text("   ".join(parts))


def _rates(live: Mapping[str, Any]) -> Any:
    from rich.text import Text

    text = Text(
        f"now      {live['ops_per_s']:,.0f} ops/s   {live['bytes_per_s'] / 1e6:,.1f} MB/s\n"
        f"so far   {live['requests']:,} requests   {human_bytes(live['bytes'])}   "
    )
    text.append(f"{live['errors']:,} failed", style="bold red" if live["errors"] else "")
    return text


def _told(live: Mapping[str, Any], q: float) -> str:
    from loadstone.stats import Histogram

    found = Histogram.from_sparse(live["latency_bucket"], live["latency_count"]).told(q)
    return "-" if found is None else human_time(found)


def _percentiles(live: Mapping[str, Any]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("latency, last second")
    for name in _SHOWN:
        table.add_column(name, justify="right", min_width=7)
    table.add_row("all requests", *(_told(live, q) for q in _SHOWN.values()))
    return table


def _kinds(live: Mapping[str, Any], most: int) -> Any:
    """The table of steps or ops; as many rows as there is room for, and how many are left out."""
    from rich.table import Table
    from rich.text import Text

    from loadstone.bundle.codes import op_name
    from loadstone.cli._summary import step_name

    kinds = live["kinds"]
    table = Table(box=None, pad_edge=False)
    table.add_column("step" if any(kind["name"] for kind in kinds) else "op", no_wrap=True, max_width=30)
    for name in ("requests", "ops/s", "MB/s", "p50", "p99", "failed"):
        table.add_column(name, justify="right", min_width=7)
    # The busiest where not all fit, in their order.
    rank = sorted(range(len(kinds)), key=lambda i: -kinds[i]["requests"])
    kept = set(rank if len(rank) <= most else rank[: most - 1])
    for i, kind in enumerate(kinds):
        if i not in kept:
            continue
        failed = f"{kind['errors']:,}"
        table.add_row(
            step_name(kind["name"] or op_name(kind["op"]), {"op": op_name(kind["op"])}),
            f"{kind['requests']:,}",
            f"{kind['ops_per_s']:,.0f}",
            f"{kind['bytes_per_s'] / 1e6:,.1f}",
            _told(kind, 50.0),
            _told(kind, 99.0),
            Text(failed, style="bold red") if kind["errors"] else failed,
        )
    if len(kept) < len(kinds):
        table.add_row(f"{len(kinds) - len(kept)} more")
    return table
