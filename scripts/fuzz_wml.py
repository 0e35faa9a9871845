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
import time
import traceback
from pathlib import Path

# Loaded with the first type that is none of the usual ones, which would count as time for that text.
import scipy.stats  # noqa: F401

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


def damaged(dice: random.Random) -> str:
    """A fixture with some pieces replaced by others, repeated or left out."""
    text = dice.choice(TEXTS)
    for _ in range(dice.randint(1, 3)):
        start = dice.randrange(len(text) + 1)
        end = start + int(dice.expovariate(1 / 8))
        other = dice.choice(TEXTS)
        at = dice.randrange(len(other))
        piece = dice.choice(
            [
                "",
                dice.choice(WORDS),
                other[at : at + dice.randrange(60)],
                text[start:end] * dice.randint(2, 5),
                chr(dice.choice([dice.randrange(128), dice.randrange(0x3000)])),
            ]
        )
        text = text[:start] + piece + text[end:]
    return text


def read(text: str | bytes) -> str:
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


def main() -> int:
    """The exit status."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns()
    dice = random.Random(seed)
    counts = {"read": 0, "refused": 0}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        text: str | bytes = dice.choice([soup, damaged, damaged, damaged])(dice)
        if dice.random() < 0.05:
            data = bytearray(str(text).encode())
            for _ in range(min(len(data), 3)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            text = bytes(data)
        begun = time.process_time()
        try:
            counts[read(text)] += 1
            try:
                parse_profile(text)
            except WmlError as error:
                str(error)
            assert time.process_time() - begun < 1 + len(text) / 10_000, "takes too long"
        except Exception:
            traceback.print_exc()
            print(f"seed {seed}, text:\n{text!r}")
            return 1
    print(f"{sum(counts.values()):,} texts, {counts['read']:,} of them scripts; nothing found (seed {seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
