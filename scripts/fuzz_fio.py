#!/usr/bin/env python3
"""Fuzzes the reader of fio's job files: scripts/fuzz_fio.py SECONDS [SEED]

Damages the fixtures of tests/fio, puts keys, values and marks of them in any order, reads what comes of it and turns
it into plans on null:. Ends with status 1 and the text where anything but an error of Loadstone's comes out, where the
engine would not take a plan, or where a text takes longer than ten seconds. Make each find a test.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

from _damage import Text, damaged, fuzz

from loadstone import Error
from loadstone.fio import ACCEPTED, ALIASES, ENGINES, REFUSED, USED, Settings, lower, parse
from loadstone.plan import check

FIXTURES = sorted((Path(__file__).resolve().parent.parent / "tests/fio/fixtures").iterdir())
TEXTS = [path.read_text() for path in FIXTURES]
KEYS = sorted({*USED, *ALIASES, *ACCEPTED, *REFUSED})
VALUES = sorted(
    {value for text in TEXTS for value in re.findall(r"=(\S+)", text)}
    | {
        *ENGINES,
        "",
        "0",
        "1",
        "-1",
        "1e9",
        "9" * 30,
        "100%",
        "4k-1m",
        "4k/50:8k/",
        "a:b",
        "\\:",
        "${HOME}",
        "$ncpus",
    }
    | {
        "zipf:1e9",
        "zipf:0",
        "pareto:0.999",
        "0x10",
        "8p",
        ",",
        ",,,",
        "0-3",
        "\u00b2",
        "\u0663",
        "..",
        "/",
        "-",
        "none",
    }
)
SECTIONS = ["[global]\n", "[a]\n", "[b]\n", "[\n", "]\n", "[c]\nstonewall\n"]


def soup(dice: random.Random) -> str:
    """Lines in any order."""
    lines = []
    for _ in range(dice.randrange(30)):
        kind = dice.random()
        if kind < 0.2:
            lines.append(dice.choice(SECTIONS))
        elif kind < 0.95:
            lines.append(f"{dice.choice(KEYS)}={dice.choice(VALUES)}\n")
        else:
            lines.append(dice.choice(KEYS) + dice.choice(["\n", " ", "=", ";", "\r", "\0"]))
    return dice.choice(["", "[a]\nsize=1m\n"]) + "".join(lines)


def usable(dice: random.Random) -> str:
    """Jobs of keys that are translated, so that plans come of more of them."""
    jobs = ["[global]\nsize=1m\n"]
    for name in "abc"[: dice.randint(1, 3)]:
        keys = "".join(f"{dice.choice(list(USED))}={dice.choice(VALUES)}\n" for _ in range(dice.randrange(4)))
        jobs.append(f"[{name}]\n{keys}")
    return "".join(jobs)


def read(text: Text) -> str:
    """What came of a text: plans, or a refusal."""
    try:
        found = lower(parse(text, "x.fio"), Settings(on="null:"))
    except Error as error:
        assert all(line.isprintable() for line in str(error).split("\n")), f"moves the cursor: {error}"
        return "refused"
    for plan in found.plans:
        # Some thousands of workers would take most of the time.
        if len(plan["workers"]) < 2_000:
            check(plan)
    return "planned"


def broken(dice: random.Random) -> str:
    """A fixture with some pieces of it damaged."""
    return damaged(dice, TEXTS, VALUES, 6)


if __name__ == "__main__":
    # As many workers as a plan can have take some seconds.
    sys.exit(fuzz([soup, usable, broken, broken], read, patience=10))
