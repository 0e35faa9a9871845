"""Content that a plan asks for, and what is found of it after a run."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from loadstone import _core
from loadstone._files import absolute
from loadstone.content._examine import Progress, examine
from loadstone.errors import Error, OptionError

READ = 2 << 30
"""Bytes that are read after a run, at most."""
COMPRESSED = 32 << 20
"""Bytes of those that codecs get."""


_WRITE = 1
"""The op of writes in what was done."""
NEAR = 0.9
"""Of the duplicates that are asked for, what may be missing before it is looked why."""


class Content(TypedDict, total=False):
    """What everything written is like; see ``content`` in ``docs/reference/formats/plan.md``."""

    compress: float
    """How many times smaller codecs make it; 1: not at all."""
    dedupe: float
    """Units for each unique one; 1: all differ."""
    unit: int
    """Bytes of what is deduplicated and compressible by itself."""
    dataset: str
    """In place of all these, the series of file trees (``.fst``) whose chunks are written; in a plan, the id
    of its artefact."""
    snapshot: int
    """The one snapshot of it that is written, from 0; by default all, one after the other."""


def of_options(
    kind: str | None, dedupe: float | None, compress: float | None, unit: int | None
) -> Content | None:
    """What ``--content``, ``--dedupe``, ``--compress`` and ``--dedupe-unit`` ask for, if anything.

    Raises ``Error`` where they do not go together, or the file of a dataset is not there.
    """
    if kind is not None and kind != "unique":
        if dedupe is not None or compress is not None or unit is not None:
            raise OptionError(
                "content",
                kind,
                "a dataset has its own duplicates and compressibility; leave out "
                "`dedupe`, `compress` and `dedupe_unit`",
            )
        return _of_dataset(kind)
    if kind is None and dedupe is None and compress is None:
        if unit is not None:
            raise OptionError(
                "dedupe_unit", None, "says how `dedupe` and `compress` are meant; give one of them"
            )
        return None
    return {
        "compress": 1.0 if compress is None else compress,
        "dedupe": 1.0 if dedupe is None else dedupe,
        "unit": 4096 if unit is None else unit,
    }


def _of_dataset(kind: str) -> Content:
    """Of ``dataset:FILE`` and ``dataset:FILE@SNAPSHOT``."""
    path = kind.removeprefix("dataset:")
    if path == kind or not path:
        raise OptionError(
            "content", kind, "use unique or dataset:FILE, with a series that loadstone dataset makes"
        )
    if os.path.isfile(path):
        return {"dataset": absolute(path)}
    if (split := re.fullmatch(r"(.+)@(\d+)", path)) and os.path.isfile(split[1]):
        return {"dataset": absolute(split[1]), "snapshot": int(split[2])}
    raise OptionError("content", kind, f"{path} is no file; loadstone dataset scan or create makes one")


def of_run(
    plan: Mapping[str, Any], outcome: Mapping[str, Any], progress: Progress | None = None
) -> dict[str, Any] | None:
    """What was asked for beside what an independent reader finds on the targets once a run has ended.

    None where the plan asks for nothing. ``found`` is None where nothing could be read; ``reason`` says why.
    ``progress`` is told of bytes read, of how many. A run whose reading is interrupted is partial.
    """
    if plan.get("content") is None:
        return None
    told: dict[str, Any] = {"asked": _plain(plan), "found": None}
    try:
        told["asked"] = _asked(plan)
        paths = _written(plan)
        if not paths:
            return {**told, "reason": "nothing was written: the plan has no target but null:"}
        told["found"] = _found(told["asked"], paths, outcome, progress)
    except (Error, OSError) as error:
        return {**told, "reason": str(error)}
    except KeyboardInterrupt:
        return {**told, "reason": _interrupted(outcome)}
    return told


def unread(plan: Mapping[str, Any], outcome: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same where reading was interrupted before it began."""
    if plan.get("content") is None:
        return None
    return {"asked": _plain(plan), "found": None, "reason": _interrupted(outcome)}


def _interrupted(outcome: Mapping[str, Any]) -> str:
    outcome["summary"]["partial"] = True
    return "interrupted while the targets were read"


def _found(
    asked: Mapping[str, Any],
    paths: list[tuple[str, int | None]],
    outcome: Mapping[str, Any],
    progress: Progress | None,
) -> dict[str, Any]:
    found = examine(
        paths,
        unit=asked["unit"],
        piece=max(128 << 10, asked["unit"]),
        sample=READ,
        compress=COMPRESSED,
        progress=progress,
    )
    blocks, read = outcome["summary"]["content_blocks"], found["fixed"]["chunks"]
    if "dataset" not in asked:
        expected = {"dedupe_expected": _core.expected_dedupe(asked["dedupe"], blocks, read)}
    else:
        share = _core.dataset_share(asked["dataset"], asked.get("snapshot"), found["read"])
        expected = {f"{ratio}_expected": share[ratio] for ratio in ("dedupe", "compress")}
    by_block = asked.get("chunking", "fixed") == "fixed"
    codecs = found["by_unit" if by_block else "by_piece"]
    dedupe = found["fixed" if by_block else "fastcdc"]["ratio"]
    cut = None
    if "dataset" in asked and dedupe < NEAR * expected["dedupe_expected"]:
        cut = _cut(asked, outcome)
    return {
        "dedupe": dedupe,
        **expected,
        **({} if cut is None else {"cut": cut}),
        "compress": {codec: codecs[codec] for codec in ("lz4", "zstd", "zlib")} if read else {},
        "examined": dict(found),
    }


def _cut(asked: Mapping[str, Any], outcome: Mapping[str, Any]) -> dict[str, float] | None:
    """Mean bytes of writes and of a dataset's chunks, where writes are too small for whole chunks."""
    columns = (outcome["ops"][key] for key in ("op", "count", "bytes"))
    writes = [(int(count), int(size)) for op, count, size in zip(*columns, strict=True) if op == _WRITE]
    counts, sizes = sum(count for count, _ in writes), sum(size for _, size in writes)
    chunk = float(asked["unit"])
    if asked.get("chunking") == "fastcdc":
        described = json.loads(_core.dataset_describe(asked["dataset"]))["snapshots"]
        numbers = [asked["snapshot"]] if asked.get("snapshot") is not None else range(len(described))
        alone = [described[number]["alone"] for number in numbers]
        chunk = sum(one["bytes"] for one in alone) / max(1, sum(one["chunks"] for one in alone))
    request = sizes / max(1, counts)
    return {"request": request, "chunk": chunk} if 0 < request < chunk else None


def _plain(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What the plan says itself."""
    asked = {"compress": 1.0, "dedupe": 1.0, "unit": 4096, **plan["content"]}
    return {key: value for key, value in asked.items() if key not in ("dataset", "snapshot")}


def _asked(plan: Mapping[str, Any]) -> dict[str, Any]:
    """What a plan asks for, in numbers: those of a dataset are of all there is of it before it repeats."""
    asked = {"compress": 1.0, "dedupe": 1.0, "unit": 4096, **plan["content"]}
    if "dataset" not in asked:
        return asked
    artefact = next(one for one in plan["artefacts"] if one["id"] == asked["dataset"])
    share = _core.dataset_share(artefact["path"], asked.get("snapshot"), None)
    return {
        **asked,
        **{key: share[key] for key in ("dedupe", "compress", "bytes")},
        "chunking": "fastcdc" if share["block"] is None else "fixed",
        "unit": share["block"] or asked["unit"],
        "dataset": artefact["path"],
        "digest": artefact.get("digest"),
    }


def reading(on_live: Callable[[Mapping[str, Any]], None] | None, last: Mapping[str, Any]) -> Progress | None:
    """Tells whoever follows a run, to whom ``last`` was told, how far its targets are read after it."""
    if on_live is None:
        return None
    begun = time.monotonic_ns()

    def progress(done: int, of: int) -> None:
        phase = {"phase": "reading", "elapsed_ns": time.monotonic_ns() - begun}
        on_live({**last, **phase, "fraction": done / of if of else None})

    return progress


def _written(plan: Mapping[str, Any]) -> list[tuple[str, int | None]]:
    """Paths of what a run writes to, and how many bytes of each it may use."""
    targets = {target["id"]: target for target in plan["targets"]}
    paths: dict[str, int | None] = {}
    sets = [one for one in plan.get("sets", ()) if targets[one["target"]]["kind"] == "tree"]
    for one in sets:
        paths[os.path.join(targets[one["target"]]["path"], one["path"])] = None
    within = {one["target"] for one in sets}
    for target in targets.values():
        if target["kind"] != "null" and target["id"] not in within:
            paths[target["path"]] = None if target["kind"] == "tree" else target["size"]
    return list(paths.items())
