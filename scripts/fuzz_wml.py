#!/usr/bin/env python3
"""Fuzzes the reader of Filebench's scripts: scripts/fuzz_wml.py SECONDS [SEED]

Damages the fixtures of tests/wml, puts words of them in any order, and reads what comes of it. Ends with status
1 and the text where anything but an error of the reader comes out, where a script that was printed is read as
another, or where a text takes longer than a second for its length. Make each find a test.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

# Loaded with the first type that is none of the usual ones, which would count as time for that text.
import scipy.stats  # noqa: F401
from _damage import Text, damaged, fuzz

from loadstone.wml import FLOWOPS, TYPES, WmlError, parse, parse_profile, print_script

FIXTURES = sorted((Path(__file__).resolve().parent.parent / "tests/wml/fixtures").iterdir())
TEXTS = [path.read_bytes().decode() for path in FIXTURES]
WORDS = sorted(
    {word for text in TEXTS for word in re.findall(r'"[^"]*"|\$\S\w+|[\w./-]+|[^\w\s]', text)}
    | {*FLOWOPS, *(name for type_ in TYPES.values() for name in type_.attributes)}
    | {
        "{{100,1,2}}",
        "randvar(",
        "cvar(",
        "${",
        "$(",
        '"',
        "\\",
        "\0",
        "\r",
        "#",
        "\u00a0",
        "\u201c",
        "1e999",
        "-1",
    }
)
SPACES = ["", "", " ", " ", " ", "\n", "\r\n", ",", "=", "# comment\n"]


def soup(dice: random.Random) -> str:
    """Words in any order."""
    return "".join(dice.choice(WORDS) + dice.choice(SPACES) for _ in range(dice.randrange(60)))


def read(text: Text) -> str:
    """What came of a text: read, or refused."""
    try:
        script = parse(text)
    except WmlError as error:
        lines = str(error).splitlines()
        assert "^" in lines[2] and len(lines[2]) <= max(len(lines[1]), lines[2].index("^") + 1), str(error)
        return "refused"
    printed = print_script(script)
    again = parse(printed)
    assert again == script, f"read as another when printed:\n{printed}"
    assert print_script(again) == printed, "printed otherwise the second time"
    assert again.dialect == script.dialect, f"{script.dialect} became {again.dialect}"
    for remark in script.warnings:
        str(remark)
    return "read"


def profiled(text: Text) -> str:
    """What came of a text, which is read as a profile, too."""
    outcome = read(text)
    try:
        parse_profile(text)
    except WmlError as error:
        str(error)
    return outcome


def broken(dice: random.Random) -> str:
    """A fixture with some pieces of it damaged."""
    return damaged(dice, TEXTS, WORDS, 8)


if __name__ == "__main__":
    sys.exit(fuzz([soup, broken, broken, broken], profiled, patience=1))
