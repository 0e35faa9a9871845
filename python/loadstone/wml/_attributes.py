"""Attributes judged by the table of _words.py."""

from __future__ import annotations

from collections.abc import Set

from loadstone._text import meant
from loadstone.wml import _ast as ast
from loadstone.wml._errors import Refused, Span, WmlError, listed, shown
from loadstone.wml._laws import Fault, is_custom
from loadstone.wml._literals import literal
from loadstone.wml._review import Review
from loadstone.wml._stages import FORM, stages
from loadstone.wml._words import CVARS, LISTS, NUMBERS, TYPES, WANTS, AttributeWord, TypeWord, canonical

_INSTEAD = {
    ("randvar", "max"): "values of type uniform lie between min and 2*mean-min; cvar has max",
    ("define randvar", "max"): "values of type uniform lie between min and 2*mean-min",
    ("define file", "entries"): "a file has no entries; a tree of files is made by define fileset",
}


def judge(review: Review, subject: TypeWord, node: ast.Attributed, heeds: Set[str] | None = None) -> None:
    """Raises where an attribute is unknown, repeated, missing or has a value of another kind.

    ``heeds``: those that matter here; the others are warned of.
    """
    seen: set[str] = set()
    for attribute in node.attributes:
        name = canonical(attribute.name)
        word = subject.attributes.get(name)
        if attribute.value is not None:
            review.value(attribute.value)
        if word is None:
            if not subject.open:
                raise _unknown(review, subject, attribute)
            review.warn(
                _name(attribute), f"{subject.subject} has no attribute {attribute.name}; it is passed over"
            )
            continue
        if name in seen:
            review.warn(_name(attribute), f"{attribute.name} is given more than once; the last one counts")
        seen.add(name)
        review.tell(word.dialect, f"{name}=", attribute.at)
        if heeds is not None and name not in heeds:
            review.warn(_name(attribute), f"{subject.subject} does not use {attribute.name}")
        review.note(name, _name(attribute))
        value_of(review, word, attribute.name, attribute.value, attribute.at)
    for name in subject.required:
        if name not in seen:
            raise review.error(review.head(node), f"{subject.subject} needs {name}=", f"add {name}=...")


def _name(attribute: ast.Attribute) -> Span:
    return Span(attribute.at.start, attribute.at.start + len(attribute.name))


def _unknown(review: Review, subject: TypeWord, attribute: ast.Attribute) -> WmlError:
    name = attribute.name
    help = _INSTEAD.get((subject.subject, name), "")
    if not help:
        elsewhere = [other.subject for other in TYPES.values() if name in other.attributes]
        known = f"it has {listed(subject.attributes)}"
        help = meant(
            name, subject.attributes, f"{listed(elsewhere)} {_have(elsewhere)}" if elsewhere else known
        )
    return review.error(_name(attribute), f"{subject.subject} has no attribute {shown(name)}", help)


def _have(subjects: list[str]) -> str:
    return "has it" if len(subjects) == 1 else "have it"


def value_of(review: Review, word: AttributeWord, name: str, value: ast.Value | None, at: Span) -> None:
    """Raises where the value is of another kind than the table says. Values of variables are not known."""
    if value is None:
        if word.kind not in ("flag", "percent"):
            raise review.error(at, f"{name} needs a value", f"{name} wants {_wants(word)}: {name}=...")
        return
    if isinstance(value, ast.Variable):
        if word.kind == "table" or (word.kind in ("random", "variable") and value.environment):
            raise _wrong(review, word, name, value)
        return
    match word.kind:
        case "text":
            _text(review, word, name, value)
        case "choice":
            _choice(review, word, name, value)
        case "pairs":
            if not isinstance(value, ast.Word | ast.Text):
                raise _wrong(review, word, name, value)
        case "stages":
            _stages(review, word, name, value)
        case "table":
            if not isinstance(value, ast.Table):
                raise _wrong(review, word, name, value)
            _rows(review, value)
        case "random" | "variable":
            raise _wrong(review, word, name, value)
        case _:
            _number(review, word, name, value)


def _number(review: Review, word: AttributeWord, name: str, value: ast.Value) -> None:
    if isinstance(value, ast.Boolean):
        if word.kind not in ("flag", "percent"):
            raise _wrong(review, word, name, value)
        return
    if not isinstance(value, ast.Integer | ast.Number):
        raise _wrong(review, word, name, value)
    number = value.value
    if word.kind == "flag":
        if number not in (0, 1):
            raise _wrong(review, word, name, value)
    elif word.kind == "whole" and number != int(number):
        raise _wrong(review, word, name, value)
    elif (word.least is not None and number < word.least) or (word.most is not None and number > word.most):
        said = f"{word.least:g} or more" if word.most is None else f"{word.least:g} to {word.most:g}"
        raise review.error(value.at, f"{name} must be {said}, not {ast.constant(value)}")


def _text(review: Review, word: AttributeWord, name: str, value: ast.Value) -> None:
    if isinstance(value, ast.Table):
        raise _wrong(review, word, name, value)
    if isinstance(value, ast.Integer | ast.Number):
        review.word(ast.constant(value) or "", value.at)
    if ast.constant(value) == "":
        raise review.error(value.at, f"{name} is empty")


def _choice(review: Review, word: AttributeWord, name: str, value: ast.Value) -> None:
    if not isinstance(value, ast.Word | ast.Text):
        raise _wrong(review, word, name, value)
    text = ast.constant(value)
    if text is not None and text.removeprefix("cvar-") not in word.choices:
        if word.choices == tuple(CVARS) and is_custom(text):
            return
        there = (
            f"there is {word.choices[0]}" if len(word.choices) == 1 else f"there are {listed(word.choices)}"
        )
        raise review.error(value.at, f"{shown(text)} is no {name}", meant(text, word.choices, there))


def _stages(review: Review, word: AttributeWord, name: str, value: ast.Value) -> None:
    if not isinstance(value, ast.Text):
        raise _wrong(review, word, name, value)
    text = ast.constant(value)
    try:
        if text is not None:
            stages(text)
    except Fault as fault:
        raise review.error(value.at, fault.what, fault.help) from None


def _rows(review: Review, table: ast.Table) -> None:
    total = 0.0
    constant = True
    for row in table.rows:
        if len(row.cells) != 3:
            raise review.error(row.at, f"a row of a table has 3 values, this has {len(row.cells)}", _ROW)
        numbers: list[float | None] = []
        for cell in row.cells:
            if isinstance(cell, ast.Variable):
                numbers.append(None)
            elif not isinstance(cell, ast.Integer | ast.Number):
                raise review.error(cell.at, f"a table wants numbers, not {described(cell)}", NUMBERS)
            elif cell.value < 0:
                raise review.error(cell.at, "a table's values are 0 or more")
            else:
                numbers.append(cell.value)
        percent, least, most = numbers
        constant = constant and percent is not None
        total += percent or 0
        if least is not None and most is not None and least > most:
            raise review.error(row.at, "the least value of this row is above its greatest", _ROW)
    if constant and abs(total - 100) > 1e-6:
        raise review.error(table.at, f"the percentages of a table must total 100; these are {total:g}", _ROW)


_ROW = "rows are {percent,min,max}"


def judge_variable(review: Review, kind: str, node: ast.Attributed) -> None:
    """Attributes of a random or custom variable, and what must go together."""
    judge(review, TYPES[kind], node)
    type_ = node.attribute("type")
    named = ast.constant(type_.value) if type_ and type_.value else "gamma"
    if kind == "cvar":
        given = node.attribute("parameters")
        if named is not None and given is not None:
            _parameters(review, named.removeprefix("cvar-"), given)
        return
    table = node.attribute("randtable")
    if named == "tabular" and table is None and type_ is not None:
        raise review.error(type_.at, "type tabular needs randtable=", "add randtable={{percent,min,max},...}")
    if table is not None and named not in ("tabular", None):
        review.warn(_name(table), f"randtable is for type=tabular; type {named} does not use it")


def _parameters(review: Review, type_: str, given: ast.Attribute) -> None:
    value = given.value
    text = ast.constant(value)
    if value is None or text is None:
        return
    if type_ not in CVARS:
        return
    for key, number in ast.pairs(text):
        if key not in CVARS[type_]:
            has = f"its parameters are {listed(CVARS[type_])}"
            raise review.error(
                value.at, f"{type_} has no parameter {shown(key)}", meant(key, CVARS[type_], has)
            )
        if key in LISTS:
            continue
        try:
            wrong = not isinstance(literal(number, value.at), ast.Integer | ast.Number)
        except (Refused, IndexError):
            wrong = True
        if wrong:
            said = shown(number) or "nothing"
            raise review.error(
                value.at, f"parameter {key} wants a number, not {said}", "write key:value;key:value"
            )


def _wants(word: AttributeWord) -> str:
    return listed(word.choices, "or") if word.kind == "choice" else WANTS[word.kind]


def _wrong(review: Review, word: AttributeWord, name: str, value: ast.Value) -> WmlError:
    help = ""
    numeric = word.kind in ("whole", "number")
    raw = review.source.text[value.at.start : value.at.end]
    if isinstance(value, ast.Text) and not raw.startswith('"'):
        what = f"{name} wants {_wants(word)}, not {shown(raw)}"
        return review.error(value.at, what, "set can compute: set $x=...")
    if isinstance(value, ast.Text) and word.kind not in ("text", "choice"):
        inner = value.parts[0] if len(value.parts) == 1 else ""
        plain = raw[1:-1]
        if isinstance(inner, ast.Variable) or (inner and _fits(word, inner)):
            help = f"write it without quotes: {name}={shown(plain)}"
    elif isinstance(value, ast.Word) and word.kind in ("random", "variable"):
        help = f"write {name}=${shown(value.text)}"
    elif isinstance(value, ast.Word) and word.kind in ("flag", "percent"):
        help = meant(value.text, ("true", "false"), f"write {name}, or {name}=false")
    if word.kind == "stages":
        help = FORM
    if not help and numeric and not isinstance(value, ast.Integer | ast.Number):
        help = NUMBERS
    return review.error(value.at, f"{name} wants {_wants(word)}, not {described(value)}", help)


def _fits(word: AttributeWord, text: str) -> bool:
    try:
        value = literal(text, Span(0, 0))
    except Refused:
        return False
    return isinstance(value, ast.Integer | ast.Number) or (
        word.kind in ("flag", "percent") and isinstance(value, ast.Boolean)
    )


def described(value: ast.Value) -> str:
    """A value as messages cite it."""
    match value:
        case ast.Word(text=text):
            return f"the word {shown(text)}"
        case ast.Text():
            return "a string"
        case ast.Table():
            return "a table"
        case ast.Variable(name=name):
            return f"${name}"
    return shown(ast.constant(value) or "")
