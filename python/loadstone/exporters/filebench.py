"""A model as Filebench workloads (WML of Filebench 1.5): one file for each piece of time, and a script that
runs them.

Each piece is one thread whose loop has a hundred slots: random and sequential reads and writes by their
shares, spread evenly, each followed by an ``eventlimit`` that takes its tokens from the event generator. So
what Filebench can keep is kept: the mix to one percent, sizes as a table, the rate, runs as a sequential
stream beside the random one.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from loadstone.errors import Error
from loadstone.exporters._load import READ, Direction, Job, Load, Piece, percents, size_percents, unmoved
from loadstone.model.description import bytes_text

SLOTS = 100
"""Slots of a thread's loop."""

TOKENS = 100
"""Tokens per second at least: the event generator's rate is a whole number, so slow requests take several."""

Kind = tuple[int, bool]
"""Op, and whether it goes on where the one before of the kind ended."""


def export(load: Load, target: str) -> dict[str, str]:
    """The script, and a workload file for each piece that has reads or writes."""
    path = PurePosixPath(target)
    if not path.is_absolute() or path.name == "":
        raise Error(f"{target}: Filebench needs an absolute path of a file or device")
    _losses(load)
    script, files = ["set -e", 'cd "$(dirname "$0")"'], {}
    for number, piece in enumerate(load.pieces, 1):
        if not piece.directions:
            script.append(f"sleep {piece.seconds:.3f}")
            continue
        ending = f".{number}.f"
        files[ending] = _workload(load, piece, path)
        script.append(f'filebench -f "$(basename "$0"){ending}"')
    load.needs.append(f"The target {target} has {bytes_text(load.extent)} and is written first (prealloc).")
    return {"": "\n".join(script) + "\n", **files}


def _workload(load: Load, piece: Piece, path: PurePosixPath) -> str:
    kinds: dict[Kind, int] = {}
    for op, of in piece.directions.items():
        runs = round(of.requests * of.sequential)
        kinds |= {kind: n for kind, n in (((op, False), of.requests - runs), ((op, True), runs)) if n}
    slots: dict[Kind, int] = percents(kinds)
    requests = sum(kinds.values())
    rate = requests / piece.seconds
    tokens = max(1, round(TOKENS / rate))
    largest = max(max(of.sizes) for of in piece.directions.values())
    lines = [
        "set mode quit timeout",
        f"define file name={_text(path.name)},path={_text(str(path.parent))},size={load.extent},"
        "prealloc,reuse",
    ]
    for op, of in piece.directions.items():
        lines.append(f"set ${_word(op)}size=randvar(type=tabular,min=0,randtable={_table(of)})")
    lines += [
        "define process name=piece,instances=1",
        "{",
        f"  thread name=all,memsize={largest},instances=1",
        "  {",
    ]
    # The position in a file is that of its descriptor: streams have their own.
    descriptors = {kind: fd for fd, kind in enumerate(slots, 1)}
    for slot, (op, runs) in enumerate(spread(slots)):
        name = f"{_word(op)}{slot}"
        place = "" if runs else ",random"
        fd = descriptors[op, runs]
        lines.append(
            f"    flowop {_word(op)} name={name},filename={_text(path.name)},fd={fd},"
            f"iosize=${_word(op)}size{place},directio"
        )
        lines.append(f"    flowop eventlimit name=limit{slot}" + (f",iters={tokens}" if tokens > 1 else ""))
    lines += [
        "  }",
        "}",
        f"eventgen rate={max(1, round(rate * tokens))}",
        f"run {max(1, round(piece.seconds))}",
    ]
    for (op, runs), share in slots.items():
        of = piece.directions[op]
        sizes = size_percents(of)
        zone = (0, min(sizes), 1) if runs else (0, load.extent, 1)
        count = max(1, round(requests * share / SLOTS))
        load.jobs.append(Job(op, piece.start, piece.seconds, count, sizes, [zone], float(runs), min(sizes)))
    return "\n".join(lines) + "\n"


def spread(slots: dict[Kind, int]) -> list[Kind]:
    """Kinds as often as they have slots, each as evenly as can be."""
    turns = [((i + 0.5) / n, kind) for kind, n in slots.items() for i in range(n)]
    return [kind for _, kind in sorted(turns)]


def _table(of: Direction) -> str:
    rows = ",".join(f"{{{share},{size},{size}}}" for size, share in size_percents(of).items())
    return f"{{{rows}}}"


def _word(op: int) -> str:
    return "read" if op == READ else "write"


def _text(text: str) -> str:
    if re.search(r'["$\\]|[^ -~]', text):
        raise Error(f"{text!r}: Filebench's strings cannot hold quotes, $, backslashes or other than ASCII")
    return f'"{text}"'


def _losses(load: Load) -> None:
    short = sum(
        1 for piece in load.pieces if piece.directions and abs(piece.seconds - round(piece.seconds)) > 0.05
    )
    load.losses += [
        "where requests go: random ones are even over the whole file, at multiples of their size;",
        "how they come in bursts: within a piece they are as far apart as its rate says, one at a time;",
        "when places are used again, and more than one sequential stream of reads and one of writes;",
        "kinds and sizes that are below one percent of a piece;",
    ]
    if short:
        load.losses.append(f"the length of {short:,} pieces, as Filebench runs for whole seconds;")
    load.losses += unmoved(
        load, flushes="its fsync is of a file, not when a trace had one", discards="it has none"
    )
