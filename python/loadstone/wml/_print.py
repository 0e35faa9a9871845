"""A script as text: one form for all that means the same. Comments are not kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loadstone.wml import _ast as ast
from loadstone.wml._literals import PLAIN_VARIABLE
from loadstone.wml._parse import Script

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "$": "\\$"})


def print_script(script: Script | Iterable[ast.Command]) -> str:
    """The script's text. Read again it is the same script, and printed again the same text."""
    commands = script.commands if isinstance(script, Script) else script
    lines: list[str] = []
    _block(commands, "", lines)
    return "\n".join(lines) + "\n" if lines else ""


def print_value(value: ast.Value | ast.Arithmetic) -> str:
    """A value as it is written."""
    match value:
        case ast.Integer(value=number, text=text) | ast.Number(value=number, text=text):
            return text or repr(number)
        case ast.Boolean(value=flag):
            return "true" if flag else "false"
        case ast.Word(text=text):
            return text
        case ast.Text(parts=parts):
            return '"' + _inner(parts) + '"'
        case ast.Variable():
            return _variable(value)
        case ast.Table(rows=rows):
            return "{" + ",".join(f"{{{','.join(map(print_value, row.cells))}}}" for row in rows) + "}"
        case ast.Arithmetic():
            return _arithmetic(value)


def _inner(parts: Sequence[str | ast.Variable]) -> str:
    text = ""
    pieces = []
    for part in reversed(parts):
        # The last printed is what follows: where it would go on with the variable's name, braces end it.
        text = part.translate(_ESCAPES) if isinstance(part, str) else _variable(part, before=text[:1])
        pieces.append(text)
    return "".join(reversed(pieces))


def _variable(variable: ast.Variable, before: str = "") -> str:
    if variable.environment:
        return f"$({variable.name})"
    name = variable.name + (f".{variable.field}" if variable.field else "")
    plain = PLAIN_VARIABLE.fullmatch(variable.name) is not None
    if not plain or (before.isascii() and (before.isalnum() or before in ("_", "."))):
        return f"${{{name}}}"
    return f"${name}"


def _arithmetic(value: ast.Arithmetic) -> str:
    multiplies = value.operators[0] in "*/"
    pieces: list[str] = []
    for operator, operand in zip(("", *value.operators), value.operands, strict=True):
        text = print_value(operand)
        if isinstance(operand, ast.Arithmetic) and (multiplies or operand.operators[0] in "+-"):
            text = f"({text})"
        pieces += [operator, text] if operator else [text]
    return " ".join(pieces)


def _attributes(node: ast.Attributed, locals: Sequence[ast.Local] = ()) -> str:
    pieces = [
        one.name if one.value is None else f"{one.name}={print_value(one.value)}" for one in node.attributes
    ]
    for local in locals:
        value = "" if local.value is None else f"={print_value(local.value)}"
        pieces.append(_variable(local.variable) + value)
    return ",".join(pieces)


def _block(
    commands: Iterable[ast.Command | ast.Thread | ast.Flowop | ast.Machine], indent: str, lines: list[str]
) -> None:
    for command in commands:
        inner = _within(command)
        head = " ".join(piece for piece in _words(command) if piece)
        if inner is None:
            lines.append(indent + head)
        else:
            lines.append(f"{indent}{head} {{")
            _block(inner, indent + "  ", lines)
            lines.append(indent + "}")


def _within(
    node: ast.Command | ast.Thread | ast.Flowop | ast.Machine,
) -> Sequence[ast.Command | ast.Thread | ast.Flowop | ast.Machine] | None:
    """What stands in a node's braces."""
    match node:
        case ast.DefineProcess():
            return node.threads
        case ast.DefineFlowop() | ast.Thread():
            return node.flowops
        case ast.Hypervisor():
            return node.machines
        case ast.Machine():
            return node.body
        case ast.Foreach():
            return node.commands
    return None


def _words(node: ast.Command | ast.Thread | ast.Flowop | ast.Machine) -> tuple[str, ...]:
    """The words of a command up to its braces; empty ones are none."""
    match node:
        case ast.Set():
            return ("set", f"{_variable(node.variable)}={_set_value(node.value)}")
        case ast.Mode():
            return ("set mode", "" if node.word == "nousestats" else "quit", node.word)
        case ast.DefineFiles():
            return ("define", node.kind, _attributes(node))
        case ast.DefineProcess():
            return ("define process", _attributes(node))
        case ast.DefineFlowop():
            return ("define flowop", _attributes(node, node.locals))
        case ast.DefineRandom():
            return ("define randvar", _attributes(node))
        case ast.DefinePositions():
            return ("define posset", _attributes(node))
        case ast.Thread():
            return ("thread", _attributes(node))
        case ast.Flowop():
            return ("flowop", node.type, _attributes(node, node.locals))
        case ast.Create():
            return ("create", node.what)
        case ast.Shutdown():
            return ("shutdown", node.what)
        case ast.EventGenerator():
            return ("eventgen", _attributes(node))
        case ast.Enable():
            enable = "" if node.word.endswith("osprof") else "enable"
            return (enable, node.word, _attributes(node))
        case ast.MultiSync():
            return ("domultisync", _attributes(node))
        case ast.Say():
            return (node.word, print_value(node.text))
        case ast.System():
            return ("system", print_value(node.command))
        case ast.Pause():
            return (node.word, print_value(node.seconds))
        case ast.Show():
            return (node.word, node.what or "")
        case ast.Load():
            return ("load", print_value(node.file))
        case ast.Run():
            return ("run", _optional(node.seconds))
        case ast.PeriodicRun():
            return ("psrun", _optional(node.period), _optional(node.seconds))
        case ast.Quit():
            return (node.word,)
        case ast.Debug():
            return ("debug", print_value(node.level))
        case ast.Foreach():
            values = ",".join(map(print_value, node.values))
            return ("foreach", _variable(node.variable), "in", values)
        case ast.Stats():
            return ("stats", node.action, _optional(node.argument))
        case ast.Hook():
            return (node.word, _attributes(node))
        case ast.Hypervisor():
            return ("HYPERVISOR", _attributes(node))
        case ast.Machine():
            return ("VM", _attributes(node))


def _optional(value: ast.Value | None) -> str:
    return "" if value is None else print_value(value)


def _set_value(value: ast.Value | ast.Arithmetic | ast.RandomVariable | ast.CustomVariable) -> str:
    match value:
        case ast.RandomVariable():
            return f"randvar({_attributes(value)})"
        case ast.CustomVariable():
            return f"cvar({_attributes(value)})"
        case _:
            return print_value(value)
