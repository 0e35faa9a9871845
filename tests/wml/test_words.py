"""The table of words, and that documentation has all of them."""

from __future__ import annotations

import re

import pytest

from loadstone.wml import COMMANDS, FLOWOPS, TYPES, WmlError, canonical, flowop_word, parse
from loadstone.wml._words import NOTES, flowop_type

ORIGINAL = re.findall(
    r"\w+",
    """read write readwholefile writewholefile appendfile appendfilerand openfile createfile
    closefile deletefile statfile fsync fsyncset makedir removedir listdir aiowrite aiowait hog delay
    eventlimit iopslimit opslimit bwlimit finishoncount finishonbytes block wakeup semblock sempost print
    testrandvar""",
)
ADDED = re.findall(
    r"\w+",
    """rename link symlink readlink truncate access fallocate setxattr getxattr copyfilerange readdirplus
    mmapread mmapwrite fdatasync""",
)


def test_flowops():
    assert [name for name, word in FLOWOPS.items() if word.dialect is None] == ORIGINAL
    assert [name for name, word in FLOWOPS.items() if word.dialect == "loadstone"] == ADDED
    assert flowop_word("copy_file_range") is FLOWOPS["copyfilerange"]
    assert flowop_word("nosuch") is None
    known = set(flowop_type("").attributes)
    for word in FLOWOPS.values():
        assert {"name", "iters"} <= word.heeds <= known, word.name
        assert set(word.required) <= word.heeds, word.name
    assert known == set().union(*(word.heeds for word in FLOWOPS.values()))


@pytest.mark.parametrize("name", [*FLOWOPS, "copy_file_range"])
def test_every_flowop_is_read(name):
    required = "".join(f",{one}=a" for one in flowop_word(name).required if one != "name")
    script = parse(f"define process name=p {{ thread name=t {{ flowop {name} name=a{required} }} }}")
    assert script.commands[0].threads[0].flowops[0].type == name
    assert not script.warnings


@pytest.mark.parametrize("subject", TYPES)
def test_types(subject):
    word = TYPES[subject]
    assert set(word.required) <= set(word.attributes)
    for name, attribute in word.attributes.items():
        assert attribute.name == name == canonical(name)
        assert bool(attribute.choices) == (attribute.kind == "choice")


def test_commands_are_those_of_the_grammar(root):
    grammar = (root / "python/loadstone/wml/grammar.lark").read_text()
    words = set(re.findall(r"^[A-Z_]+\.2: /(\w+)\(\?!", grammar, re.M))
    assert words == {*COMMANDS, "thread", "flowop", "vm"}
    for name in COMMANDS:
        # Each is known: what is refused is what follows it, or nothing.
        try:
            parse(f"{name} ]")
        except WmlError as error:
            assert "there is no command" not in str(error), name


def test_the_documentation_has_every_word(root):
    page = (root / "docs/reference/filebench.md").read_text()
    plain = " ".join(page.split())
    words = set(re.findall(r"`([a-zA-Z_]+)[ =`]", page))
    attributes = {name for type_ in (*TYPES.values(), flowop_type("")) for name in type_.attributes}
    assert not {*COMMANDS, *FLOWOPS, *attributes} - {"hypervisor"} - words
    for word in FLOWOPS.values():
        assert f": {word.about}" in plain, word.name
    for note in NOTES:
        assert f"`{note}`" in page, note
