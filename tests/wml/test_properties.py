"""Laws: what is printed is read as the same tree, and nothing but one kind of error comes of any text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loadstone import wml
from loadstone.wml import WmlError, parse, parse_profile, print_script
from loadstone.wml._errors import Source
from loadstone.wml._literals import literal
from loadstone.wml._parse import syntax
from loadstone.wml._words import COMMANDS, FIELDS

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*"))
TEXTS = [path.read_bytes().decode() for path in FIXTURES if path.suffix == ".f"]

# Trees, as the parser may make them: before they are judged, so that any attribute may have any value.

KEYWORDS = {*COMMANDS, "thread", "flowop", "vm"}


def is_word(text):
    return isinstance(literal(text, wml.Span(0, 0)), wml.Word)


def is_name(name):
    before, dot, last = name.rpartition(".")
    return not (dot and before and last in FIELDS)


integers = st.builds(wml.Integer, st.integers(-(2**63) + 1, 2**63 - 1))
floats = st.builds(wml.Number, st.floats(allow_nan=False, allow_infinity=False))
booleans = st.builds(wml.Boolean, st.booleans())
words = st.from_regex(r"[A-Za-z0-9_/.~+@%\-][A-Za-z0-9_/.:;~+@%\-]{0,12}", fullmatch=True)
words = st.builds(wml.Word, st.one_of(st.sampled_from(sorted(KEYWORDS)), words).filter(is_word))
# In set what begins with a digit may be a number and an operator.
plain_words = words.filter(lambda word: word.text[0].isalpha() or word.text[0] == "/")
dotted = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]{0,8}", fullmatch=True)
variables = st.one_of(
    st.builds(wml.Variable, dotted.filter(is_name)),
    st.builds(wml.Variable, dotted, st.sampled_from(FIELDS)),
    st.builds(wml.Variable, dotted, st.none(), st.just(True)),
)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
texts = st.one_of(texts, st.sampled_from(["$", "\\", '"', "\n", "$(", "${x}", ".mean", "_", "\\n", "a"]))


@st.composite
def strings(draw):
    parts = []
    for part in draw(st.lists(st.one_of(texts, variables), max_size=5)):
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    return wml.Text(tuple(parts))


def tuples(of, least=0, most=3):
    return st.lists(of, min_size=least, max_size=most).map(tuple)


cells = st.one_of(integers, floats, booleans, words, variables)
tables = st.builds(wml.Table, tuples(st.builds(wml.Row, tuples(cells, 1)), 1))
values = st.one_of(integers, floats, booleans, words, strings(), variables, tables)
plain = st.one_of(integers, floats, variables)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
names = st.one_of(names, st.sampled_from(["name", "iosize", "random"])).filter(
    lambda name: name.lower() not in KEYWORDS
)
attributes = tuples(st.builds(wml.Attribute, names, st.one_of(st.none(), values)), 0, 4)
locals_ = tuples(st.builds(wml.Local, variables, st.one_of(st.none(), values)), 0, 2)


def chain(operands, signs):
    return st.integers(2, 4).flatmap(
        lambda n: st.builds(
            wml.Arithmetic,
            st.lists(operands, min_size=n, max_size=n).map(tuple),
            st.lists(st.sampled_from(signs), min_size=n - 1, max_size=n - 1).map(tuple),
        )
    )


arithmetic = st.recursive(plain, lambda inner: chain(inner, "+-") | chain(inner, "*/"), max_leaves=8)
types = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.:\-]{0,8}", fullmatch=True)
flowops = st.builds(wml.Flowop, attributes, types, locals_)
threads = st.builds(wml.Thread, attributes, tuples(flowops))
paths = st.one_of(words, integers, floats, booleans, strings(), variables)
optional = st.one_of(st.none(), plain)
assigned = st.one_of(
    integers, floats, booleans, plain_words, strings(), variables,
    arithmetic.filter(lambda value: isinstance(value, wml.Arithmetic)),
    st.builds(wml.RandomVariable, attributes), st.builds(wml.CustomVariable, attributes),
)  # fmt: skip
what = st.sampled_from(["files", "filesets", "processes"])
simple = st.one_of(
    st.builds(wml.Set, variables, assigned),
    st.builds(wml.Mode, st.sampled_from(["timeout", "alldone", "firstdone", "nousestats"])),
    st.builds(wml.DefineFiles, attributes, st.sampled_from(["file", "fileset"])),
    st.builds(wml.DefineProcess, attributes, tuples(threads)),
    st.builds(wml.DefineFlowop, attributes, locals_, tuples(flowops)),
    st.builds(wml.DefineRandom, attributes),
    st.builds(wml.DefinePositions, attributes),
    st.builds(wml.Create, what),
    st.builds(wml.Shutdown, what),
    st.builds(wml.EventGenerator, attributes),
    st.builds(wml.Enable, attributes, st.just("multi")),
    st.builds(wml.Enable, st.just(()), st.sampled_from(["lathist", "enable_osprof", "disable_osprof"])),
    st.builds(wml.MultiSync, attributes),
    st.builds(wml.Say, st.sampled_from(["echo", "usage", "log"]), strings()),
    st.builds(wml.System, strings()),
    st.builds(wml.Pause, st.sampled_from(["sleep", "warmup"]), plain),
    st.builds(wml.Show, st.sampled_from(["help", "vars", "version", "list"])),
    st.builds(wml.Show, st.just("list"), st.sampled_from(["fileset", "flowop"])),
    st.builds(wml.Load, paths),
    st.builds(wml.Run, optional),
    st.builds(wml.PeriodicRun, optional),
    st.builds(wml.PeriodicRun, plain, plain),
    st.builds(wml.Quit, st.sampled_from(["quit", "exit"])),
    st.builds(wml.Debug, st.one_of(integers, floats)),
    st.builds(wml.Stats, st.sampled_from(["snap", "clear"])),
    st.builds(wml.Stats, st.sampled_from(["directory", "dump", "xmldump", "multidump"]), paths),
    st.builds(wml.Stats, st.just("command"), strings()),
    st.builds(wml.Hook, attributes, st.sampled_from(["fscheck", "fsflush"])),
    st.builds(
        wml.Hypervisor,
        attributes,
        tuples(st.builds(wml.Machine, attributes, tuples(st.one_of(flowops, threads)))),
    ),
)
listed = tuples(st.one_of(integers, floats, booleans, words, strings()), 1)
commands = st.recursive(
    simple, lambda inner: st.builds(wml.Foreach, variables, listed, tuples(inner)), max_leaves=6
)


def test_every_command_is_drawn():
    """The strategies above cover the whole union, so that a new command is not forgotten."""
    drawn = set(re.findall(r"wml\.(\w+)", Path(__file__).read_text()))
    assert {kind.__name__ for kind in wml.Command.__args__} <= drawn


def same_again(script):
    text = print_script(script)
    again = syntax(Source("printed", text))
    assert again == tuple(script)
    assert print_script(again) == text


@pytest.mark.slow
@given(st.lists(commands, max_size=4))
@settings(max_examples=100, deadline=None)
def test_what_is_printed_is_read_as_the_same(script):
    same_again(script)


@pytest.mark.slow
@given(st.lists(st.one_of(arithmetic, strings(), assigned), min_size=1, max_size=3))
@settings(max_examples=200, deadline=None)
def test_values_that_are_printed_are_read_as_the_same(these):
    same_again([wml.Set(wml.Variable("x"), value) for value in these])


def only_that_error(text):
    """The script, if it is one; any other exception than the one of the reader is a failure."""
    try:
        script = parse(text)
    except WmlError as error:
        lines = str(error).splitlines()
        assert lines[0].startswith(f"<script>:{error.line}:{error.column}: ") and error.what
        mark = lines[2].index("^")
        assert lines[1].startswith(f"{error.line:>5} | ") and mark <= len(lines[1])
        assert len(lines[2]) <= max(len(lines[1]), mark + 1)
        assert 1 <= error.column <= len(error.text) + 1
        return None
    again = parse(print_script(script))
    assert again == script and again.dialect == script.dialect
    for remark in script.warnings:
        assert str(remark)
    return script


@given(st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
@example(b"\xff")
@example(b"\xf0\x9f")
def test_bytes(data):
    only_that_error(data)
    try:
        parse_profile(data)
    except WmlError as error:
        assert str(error)


SOUP = sorted(
    {word for text in TEXTS for word in re.findall(r'"[^"]*"|\$\S\w+|[\w./-]+|[^\w\s]', text)}
    | KEYWORDS | {'"', "$", "\\", "\0", "\r", "\n", "#", "{{1,2,3}}", "randvar(", "\u00a0", "1e999", "-"}
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(SOUP), st.sampled_from(["", " ", " ", "\n"])), max_size=40))
@settings(max_examples=300, deadline=None)
def test_words_in_any_order(pieces):
    only_that_error("".join(word + space for word, space in pieces))


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_damaged_scripts(data):
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.integers(0, 20))
        other = data.draw(st.sampled_from(TEXTS))
        from_ = data.draw(st.integers(0, len(other)))
        piece = data.draw(
            st.one_of(
                st.sampled_from(SOUP), st.just(""), st.just(other[from_ : from_ + 30]), st.text(max_size=3)
            )
        )
        text = text[:start] + piece + text[end:]
    only_that_error(text)
