"""What fuzzers of readers written in Python share: damaged texts, and asking for them until the time is over."""

from __future__ import annotations

import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence

Text = str | bytes


def damaged(dice: random.Random, texts: Sequence[str], words: Sequence[str], mean: float) -> str:
    """One of the texts with some pieces, of ``mean`` characters, replaced by others, repeated or left out."""
    text = dice.choice(texts)
    for _ in range(dice.randint(1, 3)):
        start = dice.randrange(len(text) + 1)
        end = start + int(dice.expovariate(1 / mean))
        other = dice.choice(texts)
        at = dice.randrange(len(other))
        piece = dice.choice(
            [
                "",
                dice.choice(words),
                other[at : at + dice.randrange(60)],
                text[start:end] * dice.randint(2, 5),
                chr(dice.choice([dice.randrange(128), dice.randrange(0x3000)])),
            ]
        )
        text = text[:start] + piece + text[end:]
    return text


def fuzz(
    kinds: Sequence[Callable[[random.Random], str]], read: Callable[[Text], str], patience: float
) -> int:
    """Reads texts for as many seconds as the command line says (60), from its seed if it has one; the status.

    ``read`` says what came of a text and raises where that is a fault; ``patience``: seconds of CPU time that
    a text may take, besides a tenth of a millisecond for each of its characters.
    """
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns()
    dice = random.Random(seed)
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        text: Text = dice.choice(kinds)(dice)
        if dice.random() < 0.05:
            data = bytearray(str(text).encode())
            for _ in range(min(len(data), 3)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            text = bytes(data)
        begun = time.process_time()
        try:
            counts[read(text)] += 1
            assert time.process_time() - begun < patience + len(text) / 10_000, "takes too long"
        except Exception:
            traceback.print_exc()
            print(f"seed {seed}, text:\n{text!r}")
            return 1
    parts = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
    print(f"{counts.total():,} texts ({parts}); nothing found (seed {seed})")
    return 0
