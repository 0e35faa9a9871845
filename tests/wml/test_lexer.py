"""What words, numbers, strings and variables are: as the value of an attribute, and in ``set``."""

from __future__ import annotations

import pytest

from loadstone.wml import Boolean, Integer, Number, Text, Variable, WmlError, Word, parse

K, M, G, T = 1 << 10, 1 << 20, 1 << 30, 1 << 40

# What both dialects read, and below what only this reader does. The last column: whether it is warned of.
VALUES = [
    ("0", Integer(0), False),
    ("64", Integer(64), False),
    ("08", Integer(8), False),
    ("8k", Integer(8 * K), False),
    ("10m", Integer(10 * M), False),
    ("2g", Integer(2 * G), False),
    ("true", Boolean(True), False),
    ("false", Boolean(False), False),
    ("a", Word("a"), False),
    ("read1", Word("read1"), False),
    ("/tmp/a.b_c-d", Word("/tmp/a.b_c-d"), False),
    ("-o", Word("-o"), False),
    ("-", Word("-"), False),
    ("shape:2;rate:0.5", Word("shape:2;rate:0.5"), False),
    ("random1", Word("random1"), False),
    ("truest", Word("truest"), False),
    ('"a b, c"', Text(("a b, c",)), False),
    (r'"a\nb"', Text(("a\nb",)), False),
    (r'"\$x"', Text(("$x",)), False),
    ("$ab", Variable("ab"), False),
    ("$a_b1", Variable("a_b1"), False),
    # wider
    ("8K", Integer(8 * K), False),
    ("1t", Integer(T), False),
    ("3T", Integer(3 * T), False),
    ("16gb", Integer(16 * G), False),
    ("16GB", Integer(16 * G), False),
    ("0x40", Integer(64), False),
    ("0XfF", Integer(255), False),
    ("0x1b", Integer(27), False),
    ("9223372036854775807", Integer(2**63 - 1), False),
    ("-5", Integer(-5), False),
    ("-5k", Integer(-5 * K), False),
    ("0.5", Number(0.5), False),
    (".5", Number(0.5), False),
    ("1.5m", Number(1.5 * M), False),
    ("1.5GB", Number(1.5 * G), False),
    ("1e6", Number(1e6), False),
    ("2.5E-3", Number(0.0025), False),
    ("1e+3", Number(1000.0), False),
    ("set", Word("set"), False),
    ("random", Word("random"), False),
    ("flowop", Word("flowop"), False),
    ("randvar", Word("randvar"), False),
    ("4kread", Word("4kread"), True),
    ("8q", Word("8q"), True),
    ("0xg", Word("0xg"), True),
    ("1.2.3", Word("1.2.3"), True),
    ("10.0.0.1", Word("10.0.0.1"), True),
    ("4-way", Word("4-way"), True),
    ("5k;", Word("5k;"), True),
    ("~/x", Word("~/x"), True),
    ("a@b", Word("a@b"), True),
    ("a+b", Word("a+b"), True),
    ("50%", Word("50%"), True),
    ("./x", Word("./x"), True),
    ("_x", Word("_x"), True),
    ('""', Text(()), False),
    (r'"\\ \""', Text(('\\ "',)), False),
    (r'"a\tb"', Text(("a\\tb",)), True),
    ('"5$"', Text(("5$",)), True),
    ('"$1"', Text(("$1",)), True),
    ('"a\nb"', Text(("a\nb",)), True),
    ("$a", Variable("a"), False),
    ("${a}", Variable("a"), False),
    ("${a_}", Variable("a_"), False),
    ("$(HOME)", Variable("HOME", environment=True), False),
    ("$x.mean", Variable("x", "mean"), False),
    ("${x.mean}", Variable("x", "mean"), False),
    ("$stats.iocount", Variable("stats.iocount"), False),
    ("$x.other", Text((Variable("x"), ".other")), True),
    ("$dir/sub", Text((Variable("dir"), "/sub")), True),
    ("/tmp/$dir", Text(("/tmp/", Variable("dir"))), True),
    ("$a$b", Text((Variable("a"), Variable("b"))), True),
    ("${a}b", Text((Variable("a"), "b")), True),
    ("$a_", Text((Variable("a"), "_")), True),
    ("$(HOME)/x", Text((Variable("HOME", environment=True), "/x")), True),
    ("$dir/./x.$n-1", Text((Variable("dir"), "/./x.", Variable("n"), "-1")), True),
    ("$x.mean/a", Text((Variable("x", "mean"), "/a")), True),
    ("run$i", Text(("run", Variable("i"))), True),
    ("${stats.iocount}", Variable("stats.iocount"), False),
    ('"/tmp/$dir/x"', Text(("/tmp/", Variable("dir"), "/x")), False),
    ('"$dir.bak"', Text((Variable("dir"), ".bak")), False),
    ('"$x.mean."', Text((Variable("x", "mean"), ".")), False),
    ('"$x.means"', Text((Variable("x"), ".means")), False),
    ('"$dir_"', Text((Variable("dir"), "_")), False),
    ('"${dir}s$(A)$b"', Text((Variable("dir"), "s", Variable("A", environment=True), Variable("b"))), False),
]


@pytest.mark.parametrize(("text", "value", "warned"), VALUES, ids=[text for text, _, _ in VALUES])
def test_values(text, value, warned):
    definition = parse(f"define flowop name=f,$v = {text} , iters=1 {{ flowop hog name=h }}")
    assert definition.commands[0].locals[0].value == value
    assignment = parse(f"set $v={text} # comment")
    assert assignment.commands[0].value == value
    assert bool(assignment.warnings) == warned
    listed = not isinstance(value, Variable) and (text[0] == '"' or "$" not in text)
    again = parse(f"foreach $v in {text},{text} {{ run }}") if listed else None
    assert again is None or again.commands[0].values == (value, value)


@pytest.mark.parametrize(
    ("text", "operators", "values"),
    [
        ("$a + 1", "+", ["a", 1]),
        ("$a+1", "+", ["a", 1]),
        ("$a-1", "-", ["a", 1]),
        ("$a/2", "/", ["a", 2]),
        ("$a*$b", "*", ["a", "b"]),
        ("4+4", "+", [4, 4]),
        ("4 - -4", "-", [4, -4]),
        ("4--4", "-", [4, -4]),
        ("8k*2", "*", [8192, 2]),
        ("1e3+0x10", "+", [1000.0, 16]),
        ("1 - 2 + 3 - 4", "-+-", [1, 2, 3, 4]),
        ("100 / 10 * 2", "/*", [100, 10, 2]),
        ("$a/$b", "/", ["a", "b"]),
        ("${a}/2", "/", ["a", 2]),
        ("4/$b", "/", [4, "b"]),
        ("8k-$b", "-", [8192, "b"]),
        ("$a/.5", "/", ["a", 0.5]),
    ],
)
def test_arithmetic(text, operators, values):
    computed = parse(f"set $x={text}").commands[0].value
    assert "".join(computed.operators) == operators
    assert [o.name if isinstance(o, Variable) else o.value for o in computed.operands] == values


def test_products_come_before_sums():
    def shape(value):
        if isinstance(value, (Integer, Variable)):
            return value.value if isinstance(value, Integer) else value.name
        return [shape(value.operands[0])] + [
            part
            for operator, operand in zip(value.operators, value.operands[1:], strict=True)
            for part in (operator, shape(operand))
        ]

    for text, wanted in [
        ("1 + 2 * 3 - $a / 4", [1, "+", [2, "*", 3], "-", ["a", "/", 4]]),
        ("(1 + 2) * 3", [[1, "+", 2], "*", 3]),
        ("1 - (2 - 3)", [1, "-", [2, "-", 3]]),
        ("(1 - 2) - 3", [[1, "-", 2], "-", 3]),
        ("((1)) + (($a))", [1, "+", "a"]),
        ("2 * (3 / (4 + 5))", [2, "*", [3, "/", [4, "+", 5]]]),
    ]:
        assert shape(parse(f"set $x={text}").commands[0].value) == wanted, text


@pytest.mark.parametrize(
    "space", [" ", "\t", "\n", "\r\n", "\r", "\f", "# comment\n", "#\r", " #a\n\r\n#b\n "]
)
def test_white_space(space):
    words = ["set", "$a", "=", "4", "define", "fileset", "name", "=", "a", ",", "path", "=", "/t", "run", "5"]
    script = parse(space.join(words) + space)
    assert script == parse("set $a=4 define fileset name=a,path=/t run 5")
    assert not script.warnings


def test_lines_end_as_editors_end_them():
    for end in ("\n", "\r\n", "\r"):
        script = parse(end.join(["# one", "", "set $a=4", "\trun 5"]))
        assert [script.place(command) for command in script.commands] == [(3, 1), (4, 2)]


def test_numbers_keep_how_they_were_written():
    value = parse("set $a=08K").commands[0].value
    assert (value.value, value.text) == (8192, "08K")


def test_names_may_be_numbers_and_flags():
    for name in ("123", "0x10", "1.50", "true", "8k"):
        (files,) = parse(f"define fileset name={name},path=/t").commands
        assert files.name == name


def test_the_byte_order_mark_is_no_text():
    assert parse(b"\xef\xbb\xbfrun 5") == parse("run 5") == parse("\ufeffrun 5")


def test_variables_end_before_what_cannot_be_their_name():
    with pytest.raises(WmlError, match="quote both"):
        parse('define fileset name=a,path="x"$dir')
    assert parse('define fileset name=a,path="$dir/x"').commands[0].get("path").parts[1] == "/x"
