"""Scripts performed: commands in order, until all that is left is a list of actions."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from loadstone._core import __version__, open_regular
from loadstone._files import absolute
from loadstone._text import meant
from loadstone._values import is_null
from loadstone.errors import Error, OptionError
from loadstone.plan.actions import FIGURES, Action, Beside, Dump, Figure, Print, RunPlan, Shell, Wait, Window
from loadstone.plan.options import NOTHING, RunOptions
from loadstone.plan.surroundings import steps_of
from loadstone.wml import _ast as ast
from loadstone.wml._errors import Remark, WmlError, shown
from loadstone.wml._interpretation import Interpretation
from loadstone.wml._lower import Ground, Lowering, State
from loadstone.wml._parse import Definition, Script, check_names, parse
from loadstone.wml._scope import Drawn, Plain, Scope, read, said
from loadstone.wml._words import COMMANDS, canonical

USUAL = 60.0
"""Seconds that a run takes unless something else is said."""

LONGEST = 9e9
"""Seconds of a run at most: their nanoseconds are counted in 64 bits."""

_DEEPEST = 32
# Commands that are performed: what loops in loops ask for beyond is more than memory holds.
_MOST = 100_000


@dataclass(frozen=True)
class Settings:
    """How scripts are performed."""

    on: str
    """The directory of the run, a block device, or ``null:``."""
    options: RunOptions = NOTHING
    """Variables stand above any ``set``; ``duration`` is that of runs, in place of what they say."""

    @property
    def given_up(self) -> frozenset[str]:
        """Absolute paths of directories, files and devices that may be overwritten."""
        return frozenset(absolute(path) for path in self.options.allow_destroy)

    @property
    def allow_destroy(self) -> bool:
        """Whether that of the run is among them."""
        return absolute(self.on) in self.given_up


@dataclass
class _Live:
    """Processes that ``create processes`` has started."""

    elapsed: float = 0.0
    cleared: float | None = None
    snapped: bool = False
    windows: list[Window] = field(default_factory=list)
    before: list[Action] = field(default_factory=list)
    after: list[Action] = field(default_factory=list)


class _Ended(Exception):
    """``quit``."""


def interpret(
    script: Script, settings: Settings, *, given: Mapping[str, Plain] | None = None
) -> Interpretation:
    """What a script does: texts, plans of its runs, and what lies between them.

    ``given``: variables that stand above those of the script, and below those of the settings.
    Raises ``WmlError`` where it cannot be done. Nothing is run or made.
    """
    return _Interpreter(script, settings, given or {}).whole()


class _Interpreter:
    def __init__(self, script: Script, settings: Settings, given: Mapping[str, Plain]) -> None:
        """A script of which nothing is done yet."""
        self.main, self.settings = script, settings
        self.performed = 0
        fixed: dict[str, Plain] = dict(given)
        root = None
        if not is_null(settings.on):
            root = absolute(settings.on)
            fixed["dir"] = root
        fixed.update({name: read(str(text)) for name, text in settings.options.variables.items()})
        device = root is not None and os.path.exists(root) and stat.S_ISBLK(os.stat(root).st_mode)
        allowed = settings.allow_destroy
        self.ground = Ground(root, allowed, settings.options.rebase, device, settings.given_up)
        self.state = State(Scope(fixed=fixed))
        # On null: any place will do, that of the script or none.
        self.state.scope.names.setdefault("dir", "/")
        self.dialect = settings.options.compat or script.dialect
        self.out: list[Action] = []
        self.warnings: list[Remark] = list(script.warnings)
        self.notes: list[str] = []
        self.live: _Live | None = None
        self.directory = ""
        self.besides = 0
        self.runs = 0
        self.loads: dict[str, Script] = {}
        self.loading: list[str] = [absolute(script.name)]
        self.mentioned = _mentioned(script)
        self.commands: Mapping[type, Callable[[Script, Any], None]] = {
            ast.Set: self._set,
            ast.Mode: self._mode,
            ast.DefineFiles: lambda s, c: self._define(self.state.sets, s, c, "file or file set"),
            ast.DefineProcess: lambda s, c: self._define(self.state.processes, s, c, "process"),
            ast.DefineFlowop: lambda s, c: self._define(self.state.composites, s, c, "composite flowop"),
            ast.DefinePositions: lambda s, c: self._define(self.state.positions, s, c, "position set"),
            ast.DefineRandom: self._random,
            ast.EventGenerator: self._rate,
            ast.Create: self._create,
            ast.Shutdown: self._shutdown,
            ast.Say: lambda s, c: self._act(Print(self._text(s, c.text))),
            ast.System: self._system,
            ast.Pause: self._pause,
            ast.Show: self._show,
            ast.Load: self._load,
            ast.Run: self._run,
            ast.PeriodicRun: self._periodic,
            ast.Quit: self._quit,
            ast.Foreach: self._foreach,
            ast.Stats: self._stats,
            ast.Hypervisor: self._machines,
        }

    def whole(self) -> Interpretation:
        """Performs the script to its end."""
        self._check_loads()
        with suppress(_Ended):
            self._perform(self.main, self.main.commands)
        self._end_live()
        for name in self.settings.options.variables:
            if name not in self.mentioned and name != "dir":
                near = meant(f"${name}", [f"${one}" for one in self.mentioned])
                text = f"{self.main.name} has no variable ${name}"
                raise OptionError("variables", name, f"{text}; {near}" if near else text)
        if not self.runs:
            if self.settings.options.duration is None:
                usual = self._usual()
                how = f"for {usual:g} s" if usual else "until it is done"
                what = f"has no run command; it is run {how} (`duration` says otherwise)"
                self.notes.append(f"{self.main.name} {what}")
            self._plan(self.settings.options.duration or self._usual(), ())
        files = [self.main.name, *self.loads]
        return Interpretation(self.out, self.warnings, self.notes, files)

    def _perform(self, script: Script, commands: Sequence[ast.Command]) -> None:
        for command in commands:
            self.performed += 1
            if self.performed > _MOST:
                raise script.error(command, f"loops lead to more than {_MOST:,} commands; use fewer values")
            # All else has been remarked by the reader and does nothing: enable, hooks, debug, domultisync.
            if (perform := self.commands.get(type(command))) is not None:
                perform(script, command)

    def _act(self, action: Action) -> None:
        # What is said and done while processes run comes when they have ended: a plan is run in one piece.
        (self.out if self.live is None else self.live.after).append(action)

    def _warn(self, script: Script, node: ast.Node, what: str) -> None:
        if all(one.what != what for one in self.warnings):
            self.warnings.append(script.warning(node, what))

    # Variables

    def _set(self, script: Script, command: ast.Set) -> None:
        variable, value = command.variable, command.value
        scope = self.state.scope
        if variable.field is not None:
            if variable.name in scope.fixed:
                return
            found = scope.find(variable.name)
            if not isinstance(found, Drawn):
                what = f"${variable.name} is no random variable and has no {variable.field}"
                raise script.error(variable, what, help="define randvar makes one")
            assert not isinstance(value, ast.Arithmetic | ast.RandomVariable | ast.CustomVariable)
            found.attributes[variable.field] = (script, self._now(script, value))
        elif variable.name not in scope.fixed:
            if isinstance(value, ast.RandomVariable | ast.CustomVariable):
                kind = "cvar" if isinstance(value, ast.CustomVariable) else "randvar"
                scope.set(variable.name, self._drawn(script, variable.name, kind, value))
            elif isinstance(value, ast.Arithmetic):
                scope.set(variable.name, scope.computed(script, value))
            else:
                scope.set(variable.name, scope.value(script, value))

    def _now(self, script: Script, value: ast.Value) -> ast.Value:
        """A variable as the value that it has at this moment."""
        if not isinstance(value, ast.Variable):
            return value
        found = self.state.scope.plain(script, value)
        if isinstance(found, bool):
            return ast.Boolean(found, at=value.at)
        if isinstance(found, str):
            return ast.Word(found, at=value.at)
        kind = ast.Integer if isinstance(found, int) else ast.Number
        return kind(found, at=value.at)  # type: ignore[arg-type]

    def _drawn(self, script: Script, name: str, kind: str, node: ast.Attributed) -> Drawn:
        drawn = Drawn(name, kind, script, node)
        for attribute in node.attributes:
            if attribute.value is not None and attribute.name != "name":
                drawn.attributes[canonical(attribute.name)] = (script, attribute.value)
        return drawn

    def _random(self, script: Script, command: ast.DefineRandom) -> None:
        name = command.get("name")
        assert isinstance(name, ast.Variable)
        self.state.scope.set(name.name, self._drawn(script, name.name, "randvar", command))

    def _text(self, script: Script, text: ast.Text) -> str | tuple[str | Figure, ...]:
        """A text for people: variables without a value stay as they are written."""
        parts: list[str | Figure] = []
        for part in text.parts:
            found = part if isinstance(part, str) else self._said(script, part)
            if isinstance(found, str) and parts and isinstance(parts[-1], str):
                parts[-1] += found
            else:
                parts.append(found)
        if all(isinstance(part, str) for part in parts):
            return "".join(map(str, parts))
        return tuple(parts)

    def _said(self, script: Script, variable: ast.Variable) -> str | Figure:
        """What stands for a variable in a text."""
        written = script.source.text[variable.at.start : variable.at.end]
        name = variable.name.removeprefix("stats.")
        if name != variable.name and name in FIGURES and (self.runs or self.live is not None):
            return Figure(name, written)
        try:
            found = self.state.scope.look(script, variable)
        except WmlError as error:
            if (known := self._system_variable(variable.name)) is not None:
                return known
            early = name != variable.name and name in FIGURES
            what = f"{written} is known when something has run" if early else error.what
            self._warn(script, variable, f"{what}; it stays as it is written")
            return written
        return written if isinstance(found, Drawn) else said(found)

    def _system_variable(self, name: str) -> str | None:
        """What 1.4 knows by itself. Results (``stats.``) are not there before a run."""
        match name:
            case "date":
                return time.strftime("%Y-%m-%d")
            case "hostname":
                return socket.gethostname()
            case "scriptname":
                return self.main.name
            case "rate":
                # Without a generator of events nobody waits, which is what a rate of 0 says.
                if self.state.rate is None:
                    return "0"
                value = self.state.rate.node.get("rate")
                return said(self.state.scope.plain(self.state.rate.script, value))
        return None

    # Definitions

    def _define(
        self, known: dict[str, Definition], script: Script, command: ast.Attributed, what: str
    ) -> None:
        value = command.get("name")
        assert value is not None
        name = self.state.scope.text(script, value)
        earlier = known.get(name)
        # A loop that comes by again defines it anew.
        if earlier is not None and earlier.node is not command:
            line = earlier.script.place(earlier.node)[0]
            help = f"it is defined in line {line} of {earlier.script.name}"
            raise script.error(value, f"there is already a {what} {shown(name)}", help=help)
        known[name] = Definition(script, command)

    def _machines(self, script: Script, command: ast.Hypervisor) -> None:
        # A loop that comes by again defines them anew.
        if all(known.node is not command for known in self.state.hosts):
            self.state.hosts.append(Definition(script, command))

    def _mode(self, script: Script, command: ast.Mode) -> None:
        if command.word != "nousestats":
            self.state.mode = command.word

    def _rate(self, script: Script, command: ast.EventGenerator) -> None:
        self.state.rate = Definition(script, command)

    # Runs

    def _create(self, script: Script, command: ast.Create) -> None:
        # Files are made by the run that needs them: each plan prepares its sets.
        if command.what == "processes" and self.live is None:
            self.live = _Live()

    def _shutdown(self, script: Script, command: ast.Shutdown) -> None:
        if command.what == "processes":
            self._end_live()
        else:
            self._end_live()
            self.state.kept.clear()

    def _end_live(self) -> None:
        live, self.live = self.live, None
        if live is None:
            return
        self.out += live.before
        if live.elapsed > 0:
            if live.cleared is not None and not live.snapped and live.elapsed > live.cleared:
                live.windows.append(_window(len(live.windows) + 1, live.cleared, live.elapsed))
            self._plan(live.elapsed, tuple(live.windows))
        self.out += live.after

    def _seconds(self, script: Script, node: ast.Node | None, name: str) -> float | None:
        if node is None:
            return None
        assert isinstance(node, ast.Integer | ast.Number | ast.Variable)
        return self.state.scope.number(script, node, name)

    def _run(self, script: Script, command: ast.Run) -> None:
        self._for(self.settings.options.duration or self._seconds(script, command.seconds, "run"), 0)

    def _periodic(self, script: Script, command: ast.PeriodicRun) -> None:
        period = self._seconds(script, command.period, "psrun")
        seconds = self.settings.options.duration or self._seconds(script, command.seconds, "psrun")
        self._for(seconds, period or 10.0)

    def _usual(self) -> float:
        """Seconds of a run that says none; 0: until it is done."""
        return USUAL if self.state.mode == "timeout" else 0

    def _for(self, seconds: float | None, period: float) -> None:
        """A run of so many seconds, reported every ``period``; of a negative one, each for itself."""
        seconds = seconds or self._usual()
        if seconds < 0:
            raise Error(f"{self.main.name}: a run takes 0 or more seconds, not {seconds:g}")
        start = 0.0
        live = self.live
        if live is not None:
            # The processes are there already: what is measured begins now.
            start, live.snapped = live.elapsed, True
            live.windows.append(_window(len(live.windows) + 1, start, start + seconds))
            live.elapsed += seconds
            self._end_live()
            return
        windows = []
        step = abs(period)
        count = int(seconds / step + 1e-9) if step else 0
        if count > 100_000:
            raise Error(f"{self.main.name}: psrun would report {count:,} times; give a longer period")
        for i in range(count):
            windows.append(_window(i + 1, 0.0 if period > 0 else i * step, (i + 1) * step))
        if period < 0 and seconds - count * step > 1e-9:
            windows.append(_window(count + 1, count * step, seconds))
        self._plan(seconds, tuple(windows))

    def _plan(self, seconds: float, windows: tuple[Window, ...]) -> None:
        options = self.settings.options
        if seconds > LONGEST:
            raise Error(f"{self.main.name}: a run takes {LONGEST:,.0f} s at most, not {seconds:,.15g}")
        if not self.state.processes and not self.state.hosts:
            raise Error(f"{self.main.name}: defines no process, so there is nothing to run")
        faithful = options.compat is not None
        lowering = Lowering(
            self.state, self.ground, self.dialect, options.layout or "gamma", faithful, self.warnings
        )
        plan = lowering.plan(
            round(seconds * 1e9),
            seed=options.seed or 0,
            interval_ns=round((options.interval or 1.0) * 1e9),
            cpus=options.cpus,
            steps=steps_of(options.cache, options.memory_limit, "none"),
            memory_limit=options.memory_limit,
        )
        if not plan["workers"]:
            raise Error(f"{self.main.name}: no process has threads, so there is nothing to run")
        self.state.kept.update(str(one["id"]) for one in plan.get("sets", ()))
        self.runs += 1
        self.out.append(RunPlan(plan, windows))

    def _pause(self, script: Script, command: ast.Pause) -> None:
        seconds = self._seconds(script, command.seconds, command.word) or 0
        if seconds > LONGEST:
            raise Error(
                f"{self.main.name}: a {command.word} takes {LONGEST:,.0f} s at most, not {seconds:,.15g}"
            )
        if self.live is None:
            self._act(Wait(seconds))
            return
        if command.word == "sleep" and self.settings.options.duration:
            seconds = self.settings.options.duration
        self.live.elapsed += seconds

    def _stats(self, script: Script, command: ast.Stats) -> None:
        live = self.live
        match command.action:
            case "clear":
                if live is not None:
                    live.cleared, live.snapped = live.elapsed, False
            case "snap":
                if live is not None:
                    start = live.cleared or 0.0
                    if live.elapsed > start:
                        live.windows.append(_window(len(live.windows) + 1, start, live.elapsed))
                    live.snapped = True
            case "command":
                self._beside(script, command)
            case "directory":
                assert command.argument is not None
                self.directory = self.state.scope.text(script, command.argument)
            case _:
                assert command.argument is not None
                path = self.state.scope.text(script, command.argument)
                self._act(Dump(self._own(script, command, path), self._base()))

    def _beside(self, script: Script, command: ast.Stats) -> None:
        """``stats command``: it is run beside the run that goes on, or the next one."""
        self._allowed(script, command)
        assert command.argument is not None
        text = self.state.scope.text(script, command.argument)
        self.besides += 1
        name = os.path.basename((text.split() or [""])[0]) or "command"
        path = self._own(script, command, f"{name}.{self.besides}.out")
        action = Beside(text, path, self._base())
        if self.live is None:
            self.out.append(action)
        else:
            self.live.before.append(action)

    def _own(self, script: Script, command: ast.Stats, path: str) -> str:
        """Where a file lies that the script has written: below the directory of the run; on none, here."""
        path = os.path.join(self.directory, path)
        ground = self.ground
        base = self._base()
        whole = absolute(os.path.join(base, path))
        if os.path.relpath(whole, base).split("/")[0] == "..":
            if not ground.rebase:
                help = f"write a relative path, or `rebase` to put it below {base}"
                raise script.error(command, f"{shown(whole)} does not lie in {base}", help=help)
            whole = os.path.join(base, os.path.normpath("/" + path).lstrip("/"))
        return whole

    def _base(self) -> str:
        """The directory of the run; on none, the one we are in."""
        ground = self.ground
        return os.getcwd() if ground.root is None or ground.device else ground.root

    # All else

    def _allowed(self, script: Script, command: ast.Node) -> None:
        if not self.settings.options.allow_system:
            help = "look at what it does, and allow it with `allow_system`"
            raise script.error(command, "this script runs shell commands", help=help)

    def _system(self, script: Script, command: ast.System) -> None:
        self._allowed(script, command)
        self._act(Shell(self.state.scope.text(script, command.command)))

    def _show(self, script: Script, command: ast.Show) -> None:
        state = self.state
        match command.word, command.what:
            case "version", _:
                text = f"Loadstone {__version__}"
            case "help", _:
                text = "\n".join(f"{word.name}: {word.about}" for word in COMMANDS.values())
            case "vars", _:
                drawn = {
                    k: f"({v.kind})" if isinstance(v, Drawn) else said(v)
                    for k, v in state.scope.names.items()
                }
                text = "\n".join(f"${name} = {value}" for name, value in sorted(drawn.items()))
            case _, "flowop":
                text = "\n".join(["composite flowops:", *state.composites])
            case _, "fileset":
                text = "\n".join(["file sets:", *state.sets])
            case _:
                text = "\n".join(["file sets:", *state.sets, "processes:", *state.processes])
        self._act(Print(text))

    def _quit(self, script: Script, command: ast.Quit) -> None:
        raise _Ended

    def _foreach(self, script: Script, command: ast.Foreach) -> None:
        name = command.variable.name
        # A value of the user stands for all of the loop's.
        values = command.values[:1] if name in self.state.scope.fixed else command.values
        for value in values:
            self.state.scope.set(name, self.state.scope.value(script, value))
            self._perform(script, command.commands)

    def _load(self, script: Script, command: ast.Load) -> None:
        loaded = self._open(script, command, self.state.scope.text(script, command.file))
        path = absolute(loaded.name)
        if path in self.loading or len(self.loading) > _DEEPEST:
            raise script.error(command, f"{loaded.name} loads itself")
        self.loading.append(path)
        self._perform(loaded, loaded.commands)
        self.loading.pop()

    def _open(self, script: Script, command: ast.Load, name: str) -> Script:
        path = os.path.join(os.path.dirname(script.name), name if name.endswith(".f") else f"{name}.f")
        if path not in self.loads:
            try:
                os.stat(path)
                with open(open_regular(path), "rb") as file:
                    self.loads[path] = parse(file.read(), path, whole=False)
            except (Error, OSError) as error:
                what = error.strerror if isinstance(error, OSError) else str(error)
                raise script.error(
                    command.file, f"{path}: {what}".removeprefix(f"{path}: {path}: ")
                ) from None
            self.warnings += self.loads[path].warnings
            self.mentioned |= _mentioned(self.loads[path])
        return self.loads[path]

    def _check_loads(self) -> None:
        """Looks for names that no script of all that are loaded defines, where all are known."""
        waiting, seen = [self.main], {absolute(self.main.name)}
        every = [self.main]
        while waiting:
            script = waiting.pop()
            for node in ast.walk(*script.commands):
                if not isinstance(node, ast.Load):
                    continue
                name = ast.constant(node.file)
                if name is None:
                    return
                loaded = self._open(script, node, name)
                if (path := absolute(loaded.name)) not in seen:
                    seen.add(path)
                    waiting.append(loaded)
                    every.append(loaded)
        for script in every if len(every) > 1 else []:
            check_names(script, [other for other in every if other is not script])


def _mentioned(script: Script) -> set[str]:
    return {node.name for node in ast.walk(*script.commands) if isinstance(node, ast.Variable)}


def _window(number: int, start: float, end: float) -> Window:
    return Window(str(number), round(start * 1e9), round(end * 1e9))
