"""Checks of whole scripts: all that can be refused before any variable has a value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from loadstone._text import meant
from loadstone.wml import _ast as ast
from loadstone.wml._attributes import described, judge, judge_variable, value_of
from loadstone.wml._errors import shown
from loadstone.wml._names import Names
from loadstone.wml._review import Review
from loadstone.wml._words import COMMANDS, FIELDS, TYPES, flowop_type, flowop_word

DEEPEST = 64
"""How deep ``foreach`` and parentheses may be nested."""

_RANDOM = TYPES["randvar"].attributes
_NAMED_FLOWOP = frozenset({"name", "iters"})
# As in 2011-05-17.
_GLUED = re.compile(r"(?<![$\w])[0-9]\w*[-/][0-9]")


def review(commands: Sequence[ast.Command], of: Review) -> Names:
    """Raises the first error of a script; warnings and evidence are left in ``of``."""
    every = list(flatten(commands, of))
    names = Names(of)
    for command in every:
        names.define(command)
    names.check_recursion()
    for command in every:
        _Checker(of, names).command(command)
    for earlier, later in pairwise(commands):
        if isinstance(earlier, ast.Quit):
            of.warn(of.head(later), f"this is never reached: the script ends at {earlier.word} before it")
            break
    return names


def flatten(commands: Sequence[ast.Command], of: Review) -> Iterator[ast.Command]:
    """All commands in the order of the script, those of ``foreach`` too."""
    stack = [iter(commands)]
    while stack:
        command = next(stack[-1], None)
        if command is None:
            stack.pop()
            continue
        yield command
        if isinstance(command, ast.Foreach):
            if len(stack) > DEEPEST:
                raise of.error(of.head(command), f"foreach is nested deeper than {DEEPEST}")
            stack.append(iter(command.commands))


class _Checker:
    def __init__(self, of: Review, names: Names) -> None:
        self._of = of
        self._names = names

    def command(self, command: ast.Command) -> None:
        """Judges a command by its class, without the commands in it."""
        of = self._of
        match command:
            case ast.Set():
                self._set(command)
            case ast.DefineFiles():
                judge(of, TYPES[command.kind], command)
                self._readonly(command)
            case ast.DefineProcess():
                judge(of, TYPES["process"], command)
                self._some(command, command.threads, "process", "thread")
                for thread in command.threads:
                    self._thread(thread)
                self._alike(command)
            case ast.DefineFlowop():
                judge(of, TYPES["flowop"], command)
                self._locals(command.locals)
                self._some(command, command.flowops, "composite flowop", "flowop")
                for flowop in command.flowops:
                    self._flowop(flowop)
            case ast.DefineRandom():
                of.tell("1.4", "define randvar", command.at)
                judge_variable(of, "define randvar", command)
            case ast.DefinePositions():
                of.tell("1.4", "define posset", command.at)
                judge(of, TYPES["posset"], command)
            case ast.Hypervisor():
                self._word("hypervisor", command)
                judge(of, TYPES["hypervisor"], command)
                self._some(command, command.machines, "hypervisor", "VM")
                for machine in command.machines:
                    self._machine(machine)
            case ast.EventGenerator():
                judge(of, TYPES["eventgen"], command)
            case ast.Enable():
                self._enable(command)
            case ast.MultiSync():
                self._word("domultisync", command)
                judge(of, TYPES["domultisync"], command)
            case ast.Hook():
                self._word(command.word, command)
                judge(of, TYPES[command.word], command)
            case _:
                self._plain(command)

    def _plain(self, command: ast.Command) -> None:
        """Commands without attributes."""
        of = self._of
        match command:
            case ast.Mode():
                of.note(command.word, command.at)
            case ast.Create() | ast.Shutdown():
                if isinstance(command, ast.Shutdown):
                    self._word("shutdown", command)
                elif command.what != "files":
                    of.tell("1.4", f"create {command.what}", command.at)
            case ast.Say():
                self._word(command.word, command)
                of.value(command.text)
            case ast.System():
                of.value(command.command)
            case ast.Pause():
                self._word(command.word, command)
                self._seconds(command.word, command.seconds)
            case ast.Show() | ast.Quit():
                self._word(command.word, command)
            case ast.Load():
                self._word("load", command)
                of.value(command.file)
            case ast.Run():
                self._seconds("run", command.seconds)
            case ast.PeriodicRun():
                self._word("psrun", command)
                self._seconds("psrun", command.period, negative=True)
                self._seconds("psrun", command.seconds)
            case ast.Debug():
                if command.level.value not in range(11):
                    raise of.error(
                        command.level.at, f"debug goes from 0 to 10, not to {_said(command.level)}"
                    )
            case ast.Foreach():
                self._foreach(command)
            case ast.Stats():
                self._word("stats", command)
                of.note(f"stats {command.action}", command.at)
                if command.argument is not None:
                    of.value(command.argument)

    def _word(self, word: str, node: ast.Node) -> None:
        self._of.tell(COMMANDS[word].dialect, word, node.at)
        self._of.note(word, self._of.head(node))

    def _some(self, node: ast.Node, inner: Sequence[ast.Node], what: str, needs: str) -> None:
        if not inner:
            raise self._of.error(self._of.head(node), f"this {what} has no {needs}")

    def _set(self, command: ast.Set) -> None:
        of, target, value = self._of, command.variable, command.value
        if target.environment:
            raise of.error(target.at, "variables of the environment cannot be set", f"write ${target.name}")
        if target.field is not None:
            of.tell("1.4", "set $name.field", command.at)
            if isinstance(value, ast.Arithmetic | ast.RandomVariable | ast.CustomVariable):
                raise of.error(value.at, f"{target.field} of a random variable wants a plain value")
            value_of(of, _RANDOM[target.field], target.field, value, value.at)
        elif "." in target.name:
            field = target.name.rpartition(".")[2]
            known = f"random variables have {', '.join(FIELDS)}"
            raise of.error(target.at, f"${target.name} cannot be set", meant(field, FIELDS, known))
        match value:
            case ast.RandomVariable():
                of.tell("1.5", "set $name = randvar(...)", command.at)
                judge_variable(of, "randvar", value)
            case ast.CustomVariable():
                of.tell("1.5", "set $name = cvar(...)", command.at)
                judge_variable(of, "cvar", value)
            case ast.Arithmetic():
                of.tell("1.4", "arithmetic", command.at)
                self._arithmetic(value)
            case ast.Variable():
                of.tell("1.4", "set $name = $other", command.at)
                of.variable(value)
            case _:
                of.value(value)

    def _arithmetic(self, top: ast.Arithmetic) -> None:
        of = self._of
        stack = [(top, 1)]
        while stack:
            node, depth = stack.pop()
            if depth > DEEPEST:
                raise of.error(node.at, f"parentheses are nested deeper than {DEEPEST}")
            for operator, operand in zip(("", *node.operators), node.operands, strict=True):
                if isinstance(operand, ast.Arithmetic):
                    stack.append((operand, depth + 1))
                elif isinstance(operand, ast.Variable):
                    of.variable(operand)
                elif operator == "/" and operand.value == 0:
                    raise of.error(operand.at, "division by zero")
        if _GLUED.search(of.source.text[top.at.start : top.at.end]):
            of.warn(top.at, "this is computed; text that only looks so needs quotes")

    def _readonly(self, command: ast.DefineFiles) -> None:
        found = [command.attribute(name) for name in ("readonly", "writeonly")]
        both = [one for one in found if one is not None and _true(one.value)]
        if len(both) == 2:
            later = max(both, key=lambda one: one.at.start)
            raise self._of.error(later.at, "readonly and writeonly exclude each other")

    def _thread(self, thread: ast.Thread) -> None:
        judge(self._of, TYPES["thread"], thread)
        self._some(thread, thread.flowops, "thread", "flowop")
        for flowop in thread.flowops:
            self._flowop(flowop)

    def _alike(self, process: ast.DefineProcess) -> None:
        """Threads of one name cannot be told apart in what is reported."""
        seen: set[str] = set()
        for thread in process.threads:
            name = thread.name
            if name is not None and name in seen:
                self._of.warn(self._of.head(thread), f"another thread of this process is named {shown(name)}")
            seen.add(name or "")

    def _machine(self, machine: ast.Machine) -> None:
        self._of.tell("V", "VM", machine.at)
        judge(self._of, TYPES["vm"], machine)
        self._some(machine, machine.body, "VM", "flowop")
        for one in machine.body:
            if isinstance(one, ast.Thread):
                self._thread(one)
            else:
                self._flowop(one)

    def _flowop(self, flowop: ast.Flowop) -> None:
        of = self._of
        subject = flowop_type(flowop.type)
        self._locals(flowop.locals)
        composite = self._names.composites.get(flowop.type)
        if composite is not None:
            judge(of, subject, flowop, _NAMED_FLOWOP)
            self._arguments(flowop, composite)
            return
        word = flowop_word(flowop.type)
        if word is None:
            self._names.unknown_type(flowop)
            judge(of, subject, flowop)
            return
        of.tell(word.dialect, f"flowop {word.name}", flowop.at)
        judge(of, subject, flowop, word.heeds)
        for name in word.required:
            if flowop.attribute(name) is None:
                raise of.error(of.head(flowop), f"flowop {flowop.type} needs {name}=", f"add {name}=...")
        for local in flowop.locals:
            of.warn(local.at, f"flowop {flowop.type} has no use for variables of its own")

    def _locals(self, given: Sequence[ast.Local]) -> None:
        of = self._of
        seen: set[str] = set()
        for local in given:
            name = local.variable.name
            if local.variable.environment or local.variable.field or "." in name:
                raise of.error(local.variable.at, "a flowop's own variable is written $name")
            if name in seen:
                of.warn(local.at, f"${name} is given more than once; the last one counts")
            seen.add(name)
            if local.value is not None:
                of.value(local.value)
                if isinstance(local.value, ast.Table):
                    raise of.error(
                        local.value.at, f"${name} wants a plain value, not {described(local.value)}"
                    )

    def _arguments(self, flowop: ast.Flowop, composite: ast.DefineFlowop) -> None:
        """Warns of arguments that the composite flowop does not use."""
        declared = {local.variable.name for local in composite.locals}
        for local in flowop.locals:
            name = local.variable.name
            if name not in declared and name not in (used := self._names.used_by(flowop.type)):
                near = meant(f"${name}", [f"${one}" for one in (*declared, *used)])
                self._of.warn(
                    local.at, f"flowop {flowop.type} does not use ${name}" + (f"; {near}" if near else "")
                )

    def _enable(self, command: ast.Enable) -> None:
        of, word = self._of, command.word
        if word == "multi":
            of.note("enable multi", of.head(command))
            judge(of, TYPES["multi"], command)
        elif word == "lathist":
            of.tell("1.5", "enable lathist", command.at)
        else:
            self._word(word, command)

    def _foreach(self, command: ast.Foreach) -> None:
        of = self._of
        self._word("foreach", command)
        if command.variable.environment or command.variable.field or "." in command.variable.name:
            raise of.error(command.variable.at, "the variable of foreach is written $name")
        if not command.commands:
            raise of.error(of.head(command), "this foreach has no commands")
        for value in command.values:
            of.value(value)

    def _seconds(
        self, word: str, value: ast.Integer | ast.Number | ast.Variable | None, *, negative: bool = False
    ) -> None:
        if value is None:
            return
        if isinstance(value, ast.Variable):
            self._of.variable(value)
            return
        if value.value < 0 and not negative:
            raise self._of.error(value.at, f"{word} wants a time of 0 or more seconds, not {_said(value)}")
        if value.text[-1:].isalpha() and not value.text.lower().startswith("0x"):
            what = f"{value.text} is {value.value:,.15g} seconds: k, m, g and t are powers of 1024"
            self._of.warn(value.at, what)


def _true(value: ast.Value | None) -> bool:
    """Whether a flag is certainly set."""
    match value:
        case None | ast.Boolean(value=True) | ast.Integer(value=1):
            return True
    return False


def _said(value: ast.Value) -> str:
    return shown(ast.constant(value) or "")
