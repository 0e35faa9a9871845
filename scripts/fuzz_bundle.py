#!/usr/bin/env python3
"""Fuzzes the reader of bundles, and reports of them: scripts/fuzz_bundle.py SECONDS [SEED]

Replaces values of the JSON and of the tables of a small bundle, or bytes of its files, and makes a report of what comes
of it. Ends with status 1 where anything but an error of Loadstone's comes out, where it takes longer than ten seconds,
or 2 GiB. Make each find a test.
"""

from __future__ import annotations

import copy
import json
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/report"))
import bundles
import numpy as np

from loadstone import Error, report
from loadstone.bundle import Bundle, aside, table, write_bundle
from loadstone.bundle.check import damaged

VALUES: list[Any] = [
    None, True, -1, 0, 1, 0.5, 1e300, 1 << 31, 1 << 32, 1 << 62, 1 << 64, 10**40,
    "", "x", "NaN", "../..", [], [[]], {}, {"a": 1}, [0] * 100,
]  # fmt: skip
NUMBERS = [0, 1, -1, 127, 255, 65535, (1 << 31) - 1, (1 << 32) - 1, 1 << 40, (1 << 62) + 1, (1 << 63) - 1]
TEXTS = ["summary.json", "plan.json", "environment/h.json"]
TABLES = ["ops.parquet", "events.parquet", "series.parquet", "response.parquet"]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every value in a JSON, as what holds it and its key there."""
    inside = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    found = [(value, key) for key, _ in inside]
    for _, one in inside:
        if isinstance(one, dict | list):
            found += places(one)
    return found


def change(dice: random.Random, folder: Path, whole: dict[str, dict[str, Any]]) -> str:
    """Damages one file of the bundle, and says which."""
    kind = dice.randrange(4)
    if kind == 0:
        name = dice.choice([*TEXTS, *TABLES])
        data = bytearray((folder / name).read_bytes())
        for _ in range(dice.randint(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        (folder / name).write_bytes(data[: dice.randrange(len(data))] if dice.random() < 0.1 else data)
    elif kind == 1:
        name = dice.choice(list(whole))
        columns = dict(whole[name])
        column = dice.choice(list(columns))
        values = columns[column]
        if isinstance(values, np.ndarray) and len(values):
            values = values.astype(dice.choice([np.int64, np.float64, values.dtype]))
            at = dice.randrange(len(values)) if dice.random() < 0.5 else slice(None)
            values[at] = np.array(dice.choice(NUMBERS)).astype(values.dtype)
        elif dice.random() < 0.5:
            values = np.arange(len(values))
        else:
            values = ["x"] * len(values)
        columns[column] = values
        if dice.random() < 0.2:
            del columns[dice.choice(list(columns))]
        table.write(folder / name, columns, {})
    else:
        name = dice.choice(TEXTS)
        text = json.loads((folder / name).read_text())
        for _ in range(dice.randint(1, 3)):
            if found := places(text):
                holder, key = dice.choice(found)
                holder[key] = copy.deepcopy(dice.choice(VALUES))
        (folder / name).write_text(json.dumps(text))
    return name


def main() -> int:
    """Asks until the time is over; the status."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns()
    resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
    dice, counts, end = random.Random(seed), Counter[str](), time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as scratch:
        good, folder = Path(scratch) / "good", Path(scratch) / "b"
        with aside(good) as inside:
            made = bundles.outcome(10, seconds=6, failed=5)
            seen = bundles.observation(1, seconds=6)
            write_bundle(inside, bundles.plan("trace", 1), made, {"host": "h"}, seen)
        opened = Bundle.read(good)
        whole = {"ops.parquet": opened.ops.columns, "series.parquet": opened.series}
        whole["response.parquet"] = table.read(good / "response.parquet", ())
        while time.monotonic() < end:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(good, folder)
            name = change(dice, folder, whole)
            begun = time.process_time()
            try:
                with damaged(str(folder)):
                    report.build(report.collect([folder]))
                counts["report"] += 1
            except Error as error:
                text = str(error)
                counts["error" if "holds what no bundle" not in text else "contradiction"] += 1
                assert str(folder) in text or "model" in text, text
            except BaseException:
                traceback.print_exc()
                kept = Path(tempfile.mkdtemp(prefix="find-")) / "b"
                shutil.copytree(folder, kept)
                print(f"seed {seed}: {name} of {kept}")
                return 1
            assert time.process_time() - begun < 10, f"seed {seed}: {name} takes too long"
    print(f"seed {seed}: {sum(counts.values())} bundles, {dict(counts)}")
    return 0


sys.exit(main())
