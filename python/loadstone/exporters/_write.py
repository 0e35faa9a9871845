"""Writing an exported load, and what of the model is left in it."""

from __future__ import annotations

import os
import runpy
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, cast

from loadstone import Error
from loadstone.exporters._load import Job, Load, digest
from loadstone.model import Model, Portrait, compare, portrait
from loadstone.trace import Path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Exporter = Callable[[Load, str], dict[str, str]]
"""The files of a load on a target, by name; the first is the one to begin with."""

PLAYED = 2_000_000
"""Requests of an exported load that are played through at most, to tell what it lost."""


@dataclass
class Exported:
    """What was written and what was lost."""

    files: list[FilePath]
    losses: list[str]
    """What could not be expressed, a sentence each."""
    content: dict[str, Any] | None
    """How far the exported load is from the model's (:func:`loadstone.model.compare`), where it has jobs."""


def exporters() -> dict[str, Exporter]:
    """The exporters there are, by name."""
    return {entry.name: entry.load() for entry in entry_points(group="loadstone.exporters")}


def _named(to: str) -> Exporter:
    """The exporter of a name, or that of a Python file."""
    if to.endswith(".py"):
        try:
            found = runpy.run_path(to).get("export")
        except OSError as error:
            raise Error(f"{to}: {error.strerror}") from error
        except Exception as error:
            raise Error(
                f"{to}: {type(error).__name__}: {error}; it is run to get its function export"
            ) from error
        if not callable(found):
            raise Error(f"{to}: defines no function export(load, target)")
        return cast(Exporter, found)
    known = exporters()
    if to not in known:
        names = ", ".join(sorted(known))
        raise Error(f"there is no exporter {to!r}; there are {names}, or name a Python file that defines one")
    return known[to]


def export(
    model: Model,
    to: str,
    out: Path,
    *,
    target: str,
    name: str = "model",
    pieces: int = 20,
    force: bool = False,
) -> Exported:
    """Writes a model as input of another load generator, which is to run it on ``target``.

    ``to`` is the name of an exporter, or a Python file with a function ``export``. ``out`` is the first
    file; further ones get its name with an ending of their own. Raises ``Error`` where there is no such
    exporter, a file exists, or the exporter cannot express the model at all.
    """
    exporter = _named(to)
    load = digest(model, name, pieces)
    if not any(piece.directions for piece in load.pieces):
        raise Error(f"{name}: the model has no reads and writes that could be exported")
    try:
        texts = exporter(load, target)
    except Error:
        raise
    except Exception as error:
        raise Error(f"the exporter {to} failed: {type(error).__name__}: {error}") from error
    first = FilePath(os.fspath(out))
    paths = [first if not ending else first.with_name(first.name + ending) for ending in texts]
    for path in paths:
        if path.exists() and not force:
            raise Error(f"{path}: the file exists; choose another name, or overwrite it with --force")
    content = _content(model, load) if load.jobs else None
    told = [f"# {line}".rstrip() for line in _words(load, content)]
    for path, text in zip(paths, texts.values(), strict=True):
        aside = path.with_name(f".{path.name}.tmp-{os.getpid()}")
        aside.write_text("\n".join([*told, "", text]))
        aside.replace(path)
    return Exported(paths, load.losses, content)


def _words(load: Load, content: dict[str, Any] | None) -> list[str]:
    """The comment on top of a file."""
    lines = [
        f"Made by Loadstone from {load.name}: {load.requests:,} requests in {len(load.pieces)} pieces.",
        "",
    ]
    lines += ["What this cannot express:", *(f"- {loss}" for loss in load.losses)]
    if content is not None and sum(job.requests for job in load.jobs) > PLAYED:
        lines += ["", f"What follows is of the first requests of each job, {PLAYED:,} together."]
    if content is not None:
        lines += [
            "",
            "What is lost: Kolmogorov-Smirnov distance of each dimension, of what this makes and the model",
        ]
        for row in content["dimensions"]:
            lines.append(f"{row['dimension']:>24}  {row['ks']:6.1%}")
        lines.append(
            f"{'joint total variation':>24}  {content['joint']:6.1%}" if content["joint"] is not None else ""
        )
        lines.append(f"{'LRU miss ratio, mean':>24}  {content['miss_ratio']['mean']:6.3f}")
    return lines


def _content(model: Model, load: Load) -> dict[str, Any]:
    """Plays the exported jobs through and compares what they make with what the model draws."""
    with tempfile.TemporaryDirectory(prefix="loadstone-export-") as folder:
        path = FilePath(folder) / "played.spc"
        play(load.jobs, path)
        made: Portrait = portrait(model, path)
    return compare(model, portrait(model, seed=1), made)


def play(jobs: list[Job], out: FilePath, seed: int = 1) -> None:
    """Writes the requests that jobs make, at their rates and unhindered, as an SPC trace."""
    import numpy as np

    rng = np.random.default_rng(seed)
    share = min(1.0, PLAYED / max(1, sum(job.requests for job in jobs)))
    columns: list[tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], int]] = []
    for job in jobs:
        # Fewer requests are the first ones of each job: their rate stays.
        n = max(1, round(job.requests * share))
        size = rng.choice(np.array(list(job.sizes)), n, p=_shares(list(job.sizes.values())))
        zone = rng.choice(len(job.zones), n, p=_shares([weight for *_, weight in job.zones]))
        first, last = np.array([zone[:2] for zone in job.zones]).T
        blocks = np.maximum((last - first) // job.align, 1)
        start = first[zone] + rng.integers(0, blocks[zone]) * job.align
        fresh = rng.random(n) >= job.sequential
        fresh[0] = True
        # A request that goes on begins where those since the last fresh one ended.
        at = np.maximum.accumulate(np.where(fresh, np.arange(n), 0))
        before = np.concatenate([[0], np.cumsum(size)[:-1]])
        columns.append(
            (
                job.start + (np.arange(n) + 0.5) * job.seconds / job.requests,
                start[at] + before - before[at],
                size,
                job.op,
            )
        )
    time = np.concatenate([c[0] for c in columns])
    order = np.argsort(time, kind="stable")
    offset = np.concatenate([c[1] for c in columns])[order] // 512
    sizes = np.concatenate([c[2] for c in columns])[order]
    ops = np.concatenate([np.full(len(c[0]), c[3]) for c in columns])[order]
    rows = zip(offset.tolist(), sizes.tolist(), ops.tolist(), time[order].tolist(), strict=True)
    out.write_text("".join(f"0,{block},{size},{'RW'[op]},{when:.9f}\n" for block, size, op, when in rows))


def _shares(weights: list[int]) -> NDArray[np.float64]:
    import numpy as np

    array = np.array(weights, dtype=np.float64)
    shares: NDArray[np.float64] = array / array.sum()
    return shares
