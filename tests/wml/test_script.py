"""Scripts as wholes: trees of the fixtures, dialects, names, and what is refused and warned of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from loadstone import Error
from loadstone.wml import (
    Boolean,
    Integer,
    Remark,
    Text,
    Variable,
    WmlError,
    Word,
    check_names,
    constant,
    pairs,
    parse,
    print_script,
    walk,
)

HERE = Path(__file__).parent


def one_thread(flowops):
    return f"define process name=p {{ thread name=t {{ {flowops} }} }}"


def blocks(name):
    """The scripts of a file, each with what is said of it."""
    found = []
    for block in (HERE / name).read_text(encoding="utf-8").split("\n==== ")[1:]:
        title, _, rest = block.partition("\n")
        script, _, said = rest.partition("\n----\n")
        found.append(pytest.param(script, said.rstrip("\n"), id=title))
    return found


@pytest.mark.parametrize(("script", "said"), blocks("refused.txt"))
def test_refused(script, said):
    with pytest.raises(WmlError) as caught:
        parse(script, "w.f")
    assert str(caught.value) == said


@pytest.mark.parametrize(("script", "said"), blocks("warned.txt"))
def test_warned(script, said):
    assert "\n".join(map(str, parse(script, "w.f").warnings)) == said


def test_the_tree_of_a_script(fixture, tree, golden):
    script = parse(fixture.read_bytes(), fixture.name)
    golden(f"wml/{fixture.stem}.txt", tree(script))


def test_a_printed_script_is_the_same(fixture):
    script = parse(fixture.read_bytes())
    text = print_script(script)
    again = parse(text)
    assert again == script
    assert again.dialect == script.dialect
    assert print_script(again) == text
    assert print_script(script.commands) == text


def test_places_are_those_of_the_text(fixture):
    script = parse(fixture.read_bytes())
    text = script.source.text
    for node in walk(*script.commands):
        part = text[node.at.start : node.at.end]
        assert part and part == part.strip()
        if isinstance(node, Word | Integer):
            assert part == node.text
        elif isinstance(node, Variable):
            assert part.startswith("$") and node.name in part
        elif isinstance(node, Text):
            assert part[0] == part[-1] == '"' or ("$" in part and '"' not in part)


@pytest.mark.parametrize(
    ("text", "dialect", "construct"),
    [
        ('set $a=5 run 60 create files echo "${a}" eventgen rate=5', None, None),
        ("set $a=$b", "1.4", "set $name = $other"),
        ("set $a=1 + 1", "1.4", "arithmetic"),
        ("set $a.mean=5", "1.4", "set $name.field"),
        ('echo "$a.mean"', "1.4", "$name.field"),
        ("set $a=$(HOME)", "1.4", "$(NAME)"),
        ('echo "${stats.iocount}"', "1.4", "${stats...}"),
        ('echo "${date}"', "1.4", "${date}"),
        ('echo "$date"', None, None),
        ("define randvar name=$a", "1.4", "define randvar"),
        ("define posset name=a,max=5", "1.4", "define posset"),
        ("define fileset name=a,path=/t,cached", "1.4", "cached="),
        ("define fileset name=a,path=/t,filesizegamma=0", "1.4", "filesizegamma="),
        ("create processes", "1.4", "create processes"),
        ("shutdown processes", "1.4", "shutdown"),
        ("warmup 5", "1.4", "warmup"),
        ("foreach $x in 1 { run }", "1.4", "foreach"),
        ("stats snap", "1.4", "stats"),
        ("exit", "1.4", "exit"),
        ("load x", "1.4", "load"),
        ('usage "x"', "1.4", "usage"),
        ("enable_osprof", "1.4", "enable_osprof"),
        ("fsflush fstype=x", "1.4", "fsflush"),
        ("psrun", "1.5", "psrun"),
        ("enable lathist", "1.5", "enable lathist"),
        ("set $a=randvar()", "1.5", "set $name = randvar(...)"),
        ("set $a=cvar(type=normal)", "1.5", "set $name = cvar(...)"),
        ("psrun exit", "mixed", "psrun"),
        ("HYPERVISOR name=h { VM name=v { flowop hog name=h } }", "V", "hypervisor"),
        ("HYPERVISOR name=h { VM name=v { flowop hog name=h } } psrun", "1.5", "psrun"),
        ("define process name=p { thread name=t { flowop rename name=r } }", None, "flowop rename"),
    ],
)
def test_dialects(text, dialect, construct):
    script = parse(text)
    assert script.dialect == dialect
    told = {one.construct: one for one in script.evidence}
    if construct is None:
        assert not told
    else:
        assert text[told[construct].at.start : told[construct].at.end].strip()


def test_attributes_are_found_by_their_synonyms():
    (files,) = parse('define fileset name="a b",path=$p,filesize=8k,entries=1,entries=2,prealloc').commands
    assert files.name == "a b"
    assert files.get("size") == files.get("filesize") == Integer(8192)
    assert files.get("entries") == Integer(2)
    assert [one.name for one in files.attributes].count("entries") == 2
    assert files.get("prealloc") == Boolean(True) and files.attribute("prealloc").value is None
    assert files.get("reuse") is None
    assert constant(files.get("path")) is None


def test_parameters_of_custom_variables():
    assert pairs("mean: 4k ;gamma:1.5;") == [("mean", "4k"), ("gamma", "1.5")]
    assert pairs("mean") == [("mean", "")]


def test_errors_of_later_stages_look_alike():
    script = parse("set $a=5\nrun $time\n", "later.f")
    error = script.error(script.commands[1].seconds, "$time has no value", help="give it with -D time=...")
    assert isinstance(error, Error)
    assert str(error) == (
        "later.f:2:5: $time has no value\n"
        "    2 | run $time\n"
        "      |     ^^^^^\n"
        "give it with -D time=..."
    )  # fmt: skip
    assert (error.file, error.line, error.column, error.text) == ("later.f", 2, 5, "run $time")
    assert (error.what, error.help, error.expected) == (
        "$time has no value", "give it with -D time=...", (),
    )  # fmt: skip
    remark = script.warning(script.commands[0], "is not used")
    assert isinstance(remark, Remark) and str(remark).startswith("later.f:1:1: warning: is not used\n")


def test_what_was_expected_is_told():
    with pytest.raises(WmlError) as caught:
        parse("define process name=p { thread name=t { flowop read name=a ] } }")
    assert caught.value.expected == ("','", "a flowop", "'}'")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"run 5\nset $x=\xff\n", "1 | set $x=\ufffd|byte 13 (0xff) is not UTF-8|save the script as UTF-8"),
        (b"# caf\xe9\nrun", "byte 5 (0xe9) is not UTF-8"),
        ("run 60".encode("utf-16"), "byte 0 (0xff) is not UTF-8|seems to be UTF-16"),
        ("run 60".encode("utf-16-le"), "1:2: the script has a zero byte|seems to be UTF-16"),
        ("run\n run\0", "2:5: the script has a zero byte"),
        ("run \ud800", "1:5: character 4 is half a character (U+D800)"),
        ("run \x07", "1:5: illegal character U+0007\n"),
        ("run 60\u00a0", "1:7: illegal character U+00A0 (no-break space)|write a plain space"),
        ("set $x=" + "9" * 5000, "9... is too large a number"),
        ("set $x=-9223372036854775808", "too large a number"),
        ("foreach $x in 1 {\n" * 65 + "run" + "}" * 65, "65:1: foreach is nested deeper than 64"),
        ("a" * 5000, "1:1: there is no command " + "a" * 57 + "...\n"),
    ],
)
def test_texts_that_are_none(text, said):
    with pytest.raises(WmlError) as caught:
        parse(text)
    for part in said.split("|"):
        assert part.removeprefix("1 ") in str(caught.value)


def test_foreach_may_be_as_deep_as_said():
    assert parse("foreach $x in 1 {\n" * 64 + "run" + "}" * 64).dialect == "1.4"


@pytest.mark.parametrize(
    "text",
    [
        "set $x=" + "(" * 10_000 + "1" + ")" * 10_000,
        "set $x=" + "1+" * 10_000 + "1",
        "set $x=" + "1+(" * 10_000 + "1" + ")" * 10_000,
        "foreach $x in 1 {" * 5_000,
        "foreach $x in 1 {" * 5_000 + "}" * 5_000,
        "{" * 10_000,
        '"' * 10_000,
        '"\\' * 10_000,
        "set $x=randvar" + "#" * 10_000 + "\n",
        "set $x=randvar" + "#\n" * 10_000,
        "define fileset " + "name=a," * 10_000 + "path=/t",
        "define flowop name=a0 { flowop hog name=h }"
        + "".join(f"define flowop name=a{i} {{ flowop a{i - 1} name=x }}" for i in range(1, 2000)),
    ],
    ids=lambda text: text[:24],
)
def test_large_and_deep_texts_are_read_or_refused(text):
    """Neither recursion nor backtracking: each of these takes no longer than it is."""
    try:
        script = parse(text)
    except WmlError:
        return
    assert parse(print_script(script)) == script


def test_marks_stay_below_what_they_mark():
    with pytest.raises(WmlError) as caught:
        parse("\tset $a=4\tfoo")
    assert str(caught.value).splitlines()[1:3] == ["    1 | \tset $a=4\tfoo", "      | \t        \t^^^"]
    with pytest.raises(WmlError) as caught:
        parse("set $a=4 " * 100 + "foo" + " set $a=4" * 100)
    line, mark = str(caught.value).splitlines()[1:3]
    assert len(line) < 140 and line[8:11] == "..." and line.endswith("...")
    assert line[mark.index("^") : mark.rindex("^") + 1] == "foo"


def test_marks_end_with_their_line():
    script = parse("  " + one_thread("\n flowop hog name=h"))
    shown = str(script.error(script.commands[0], "is here")).splitlines()
    assert shown[2] == "      |   " + "^" * (len(shown[1]) - len("    1 |   "))


MAIN = "load files\n" + one_thread("flowop big name=r,filename=far")
FILES = "define fileset name=far,path=/t\ndefine flowop name=big { flowop hog name=h }\n"


def test_a_script_that_loads_others_is_judged_with_them():
    script, loaded = parse(MAIN, "main.f"), parse(FILES)
    check_names(script, [loaded])
    with pytest.raises(WmlError, match=r"main\.f:2:\d+: there is no flowop big"):
        check_names(script, [parse("define fileset name=far,path=/t")])
    with pytest.raises(WmlError, match="there is no file or file set far"):
        check_names(script, [parse("define flowop name=big { flowop hog name=h }")])
    part = MAIN.partition("\n")[2]
    with pytest.raises(WmlError, match="there is no flowop big"):
        parse(part)
    check_names(parse(part, whole=False), [parse(FILES)])
    with pytest.raises(WmlError, match="there is no flowop big"):
        check_names(parse(part, whole=False), [])


@pytest.mark.parametrize(
    "script",
    [
        'define fileset name="f$i",path=/t\n' + one_thread("flowop read name=a,filename=f1"),
        one_thread('flowop block name="b$i" flowop wakeup name=w,target=b1'),
        one_thread("flowop read name=a,filename=$f"),
        "define flowop name=$f { flowop hog name=h }\n" + one_thread("flowop f1 name=a"),
        'HYPERVISOR name=h { VM name=v,dsize=1g { flowop read name=r,filesetname="image" } }',
    ],
)
def test_names_with_variables_are_not_judged(script):
    parse(script)


def test_names_may_be_used_before_they_are_defined():
    parse(
        "define process name=p { thread name=t { flowop f name=a,filename=g flowop wakeup name=w,target=b } }"
        "define flowop name=f { flowop block name=b } define file name=g,path=/t"
    )


def test_lark_is_loaded_by_the_first_script():
    code = (
        "import sys, loadstone.wml as w; assert 'lark' not in sys.modules; "
        "w.parse('run'); assert 'lark' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_example_of_the_package(monkeypatch):
    import doctest

    import loadstone.wml

    assert doctest.testmod(loadstone.wml).failed == 0
