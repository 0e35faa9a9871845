"""From the parser's reductions to the syntax tree. Imports lark, so _parse.py imports this only to parse.

Methods are named after the rules and terminals of the grammar; each gets what its rule matched.
"""

from __future__ import annotations

from sys import intern
from typing import Any, TypeVar

from lark import Token, Transformer

from loadstone.wml import _ast as ast
from loadstone.wml._errors import Span
from loadstone.wml._literals import joined, literal, quoted, variable

Children = list[Any]
T = TypeVar("T")


def _span(token: Token) -> Span:
    assert token.start_pos is not None and token.end_pos is not None
    return Span(token.start_pos, token.end_pos)


def _over(children: Children) -> Span:
    """From the first to the last of what a rule matched."""
    first: Any = children[0]
    last: Any = children[-1]
    start: Any = first.start_pos if isinstance(first, Token) else first.at.start
    end: Any = last.end_pos if isinstance(last, Token) else last.at.end
    return Span(start, end)


def _of(kind: type[T], children: Children) -> tuple[T, ...]:
    return tuple(child for child in children if isinstance(child, kind))


def _attributes(children: Children) -> tuple[ast.Attribute, ...]:
    return _of(ast.Attribute, children)


_FILES: dict[str, Any] = {"FILE": "file", "FILESET": "fileset"}
_WHAT: dict[str, Any] = {"FILE": "files", "FILESET": "filesets", "PROCESS": "processes"}


class Builder(Transformer[Token, Any]):
    """Makes nodes. It has no state, as one parser serves all scripts."""

    # Terminals

    def VALUE(self, token: Token) -> Any:
        return literal(token.value, _span(token))

    WORD = NUMBER = VALUE

    def VARIABLE(self, token: Token) -> ast.Variable:
        return variable(token.value, _span(token))

    def STRING(self, token: Token) -> ast.Text:
        return quoted(token.value, _span(token))

    def JOINED(self, token: Token) -> ast.Text:
        return joined(token.value, _span(token))

    JOINED_SET = JOINED

    # Parts

    def attribute(self, children: Children) -> ast.Attribute:
        value = children[1] if len(children) > 1 else None
        return ast.Attribute(intern(children[0].value), value, at=_over(children))

    def local(self, children: Children) -> ast.Local:
        return ast.Local(children[0], children[1] if len(children) > 1 else None, at=_over(children))

    def row(self, children: Children) -> ast.Row:
        return ast.Row(tuple(children[1:-1]), at=_over(children))

    def table(self, children: Children) -> ast.Table:
        return ast.Table(tuple(children[1:-1]), at=_over(children))

    def sum(self, children: Children) -> ast.Arithmetic:
        operators = tuple(token.value for token in children[1::2])
        return ast.Arithmetic(tuple(children[::2]), operators, at=_over(children))

    product = sum

    def randvar(self, children: Children) -> ast.RandomVariable:
        return ast.RandomVariable(_attributes(children), at=_over(children))

    def cvar(self, children: Children) -> ast.CustomVariable:
        return ast.CustomVariable(_attributes(children), at=_over(children))

    def flowop(self, children: Children) -> ast.Flowop:
        return ast.Flowop(
            _attributes(children), intern(children[1].value), _of(ast.Local, children), at=_over(children)
        )

    def thread(self, children: Children) -> ast.Thread:
        return ast.Thread(_attributes(children), _of(ast.Flowop, children), at=_over(children))

    def machine(self, children: Children) -> ast.Machine:
        body = tuple(child for child in children if isinstance(child, ast.Flowop | ast.Thread))
        return ast.Machine(_attributes(children), body, at=_over(children))

    # Commands

    def start(self, children: Children) -> tuple[ast.Command, ...]:
        return tuple(children)

    def set_variable(self, children: Children) -> ast.Set:
        return ast.Set(children[1], children[2], at=_over(children))

    def set_mode(self, children: Children) -> ast.Mode:
        return ast.Mode(children[-1].value, at=_over(children))

    def define_files(self, children: Children) -> ast.DefineFiles:
        kind = _FILES[children[1].type]
        return ast.DefineFiles(_attributes(children), kind, at=_over(children))

    def define_process(self, children: Children) -> ast.DefineProcess:
        return ast.DefineProcess(_attributes(children), _of(ast.Thread, children), at=_over(children))

    def define_flowop(self, children: Children) -> ast.DefineFlowop:
        return ast.DefineFlowop(
            _attributes(children), _of(ast.Local, children), _of(ast.Flowop, children), at=_over(children)
        )

    def define_randvar(self, children: Children) -> ast.DefineRandom:
        return ast.DefineRandom(_attributes(children), at=_over(children))

    def define_posset(self, children: Children) -> ast.DefinePositions:
        return ast.DefinePositions(_attributes(children), at=_over(children))

    def create(self, children: Children) -> ast.Create:
        return ast.Create(_WHAT[children[1].type], at=_over(children))

    def shutdown(self, children: Children) -> ast.Shutdown:
        return ast.Shutdown(_WHAT[children[1].type], at=_over(children))

    def eventgen(self, children: Children) -> ast.EventGenerator:
        return ast.EventGenerator(_attributes(children), at=_over(children))

    def enable(self, children: Children) -> ast.Enable:
        word = children[0] if len(children) == 1 else children[1]
        return ast.Enable(_attributes(children), word.value, at=_over(children))

    def multisync(self, children: Children) -> ast.MultiSync:
        return ast.MultiSync(_attributes(children), at=_over(children))

    def say(self, children: Children) -> ast.Say:
        return ast.Say(children[0].value, children[1], at=_over(children))

    def system(self, children: Children) -> ast.System:
        return ast.System(children[1], at=_over(children))

    def pause(self, children: Children) -> ast.Pause:
        return ast.Pause(children[0].value, children[1], at=_over(children))

    def show(self, children: Children) -> ast.Show:
        what = children[1].type.lower() if len(children) > 1 else None
        return ast.Show(children[0].value, what, at=_over(children))

    def load(self, children: Children) -> ast.Load:
        return ast.Load(children[1], at=_over(children))

    def run(self, children: Children) -> ast.Run:
        return ast.Run(*children[1:], at=_over(children))

    def psrun(self, children: Children) -> ast.PeriodicRun:
        return ast.PeriodicRun(*children[1:], at=_over(children))

    def quit(self, children: Children) -> ast.Quit:
        return ast.Quit(children[0].value, at=_over(children))

    def debug(self, children: Children) -> ast.Debug:
        return ast.Debug(children[1], at=_over(children))

    def foreach(self, children: Children) -> ast.Foreach:
        opening = next(
            i for i, child in enumerate(children) if isinstance(child, Token) and child.type == "LBRACE"
        )
        values, commands = children[3:opening], children[opening + 1 : -1]
        return ast.Foreach(children[1], tuple(values), tuple(commands), at=_over(children))

    def stats(self, children: Children) -> ast.Stats:
        argument = children[2] if len(children) > 2 else None
        return ast.Stats(children[1].value, argument, at=_over(children))

    def hook(self, children: Children) -> ast.Hook:
        return ast.Hook(_attributes(children), children[0].value, at=_over(children))

    def hypervisor(self, children: Children) -> ast.Hypervisor:
        return ast.Hypervisor(_attributes(children), _of(ast.Machine, children), at=_over(children))
