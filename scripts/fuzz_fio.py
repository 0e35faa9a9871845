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
import time
import traceback
from pathlib import Path

from loadstone import Error
from loadstone.fio import ACCEPTED, ALIASES, ENGINES, REFUSED, USED, Settings, lower, parse
from loadstone.workload import check

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


def damaged(dice: random.Random) -> str:
    """A fixture with some pieces replaced by others, repeated or left out."""
    text = dice.choice(TEXTS)
    for _ in range(dice.randint(1, 3)):
        start = dice.randrange(len(text) + 1)
        end = start + int(dice.expovariate(1 / 6))
        other = dice.choice(TEXTS)
        at = dice.randrange(len(other))
        piece = dice.choice(
            [
                "",
                dice.choice(VALUES),
                other[at : at + dice.randrange(60)],
                text[start:end] * dice.randint(2, 5),
                chr(dice.choice([dice.randrange(128), dice.randrange(0x3000)])),
            ]
        )
        text = text[:start] + piece + text[end:]
    return text


def read(text: str | bytes) -> str:
    """What came of a text: plans, or a refusal."""
    try:
        found = lower(parse(text, "x.fio"), Settings(on="null:"))
    except Error as error:
        assert str(error).isprintable(), f"moves the cursor: {error}"
        return "refused"
    for plan in found.plans:
        # Some thousands of workers would take most of the time.
        if len(plan["workers"]) < 2_000:
            check(plan)
    return "planned"


def main() -> int:
    """The exit status."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns()
    dice = random.Random(seed)
    counts = {"planned": 0, "refused": 0}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        text: str | bytes = dice.choice([soup, usable, damaged, damaged])(dice)
        if dice.random() < 0.05:
            data = bytearray(str(text).encode())
            for _ in range(min(len(data), 3)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            text = bytes(data)
        begun = time.process_time()
        try:
            counts[read(text)] += 1
            # As many workers as a plan can have take some seconds.
            assert time.process_time() - begun < 10 + len(text) / 10_000, "takes too long"
        except Exception:
            traceback.print_exc()
            print(f"seed {seed}, text:\n{text!r}")
            return 1
    print(
        f"{sum(counts.values()):,} texts, {counts['planned']:,} of them planned; nothing found (seed {seed})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
