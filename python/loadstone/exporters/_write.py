"""Writing an exported load, and what of the model is left in it."""

from __future__ import annotations

import glob
import math
import os
import runpy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, cast

from loadstone import _entries
from loadstone._files import aside, refuse
from loadstone._scratch import scratch
from loadstone._text import refuse_no_text, visible
from loadstone.errors import Error, OptionError
from loadstone.exporters._load import READ, WRITE, Job, Load, digest
from loadstone.model import Model, Portrait, compare, portrait
from loadstone.model.description import bytes_text
from loadstone.trace import Path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Exporter = Callable[[Load, str], dict[str, str]]
"""The files of a load on a target, by name; the first is the one to begin with."""

GROUP = "loadstone.exporters"
"""Entry points of exporters, those of other packages among them."""

MADE = "Made by Loadstone from"
"""How the comment on top of a file begins."""

UNMEASURED = "What is lost was not measured: the exporter returns no jobs (load.jobs)."
"""Said where nothing can be played through."""

PLAYED = 2_000_000
"""Requests of an exported load that are played through at most, to tell what it lost."""


@dataclass
class Exported:
    """What was written and what was lost."""

    files: list[FilePath]
    losses: list[str]
    """What could not be expressed, a sentence each."""
    needs: list[str]
    """How large the target is and what becomes of it first, a sentence each."""
    content: dict[str, Any] | None
    """How far the exported load is from the model's (:func:`loadstone.model.compare`), where it has jobs."""
    moved: dict[str, tuple[int, int]] | None = None
    """Bytes that are read and written by what was exported and by the model, where it has jobs."""
    stale: list[FilePath] = field(default_factory=list)
    """Files of an earlier export of this name that this one has not: they stay."""


def exporters() -> list[str]:
    """Names of the exporters there are."""
    return _entries.named(GROUP)


def _named(to: str) -> Exporter:
    """The exporter of a name, or that of a Python file."""
    if to.endswith(".py"):
        try:
            found = runpy.run_path(to).get("export")
        except OSError as error:
            raise Error(f"{to}: {error.strerror}") from error
        except (Exception, SystemExit) as error:
            raise Error(
                f"{to}: {type(error).__name__}: {error}; it is run to get its function export"
            ) from error
        if not callable(found):
            raise Error(f"{to}: defines no function export(load, target)")
        return cast(Exporter, found)
    exporter = _entries.load(GROUP, to)
    if exporter is None:
        names = ", ".join(exporters())
        raise OptionError(
            None, None, f"there is no exporter {to!r}; there are {names}; or name a file in Python with one"
        )
    if not callable(exporter):
        raise Error(f"the exporter {to} is {type(exporter).__name__}, not a function export(load, target)")
    return cast(Exporter, exporter)


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
    if not target.strip() or target.startswith("null:"):
        raise Error(f"{target!r}: {to} cannot run on it; name a file or device")
    refuse_no_text(target, f"as what {to} reads is")
    exporter = _named(to)
    load = digest(model, name, pieces)
    if not any(piece.directions for piece in load.pieces):
        raise Error(f"{name}: the model has no reads and writes that could be exported")
    texts = _answered(exporter, to, load, target)
    first = FilePath(os.fspath(out))
    paths = [first if not ending else first.with_name(first.name + ending) for ending in texts]
    for path in paths:
        refuse(path, force)
    for path in paths[1:]:
        # Nobody typed these names.
        if path.is_symlink() or (path.exists() and not _is_export(path)):
            raise Error(f"{path}: is there, and no export made it; move it away, or give another name")
    content = _content(model, load) if load.jobs else None
    moved = _moved(load) if load.jobs else None
    # A name with an end of line would begin a line that is run.
    told = [f"# {visible(line, lines=False)}".rstrip() for line in _words(load, content, moved)]
    # What the others are begun with comes last: whatever ends this leaves nothing that looks whole.
    there: list[FilePath] = []
    if len(paths) > 1 and first.exists():
        # Beside parts of two exports no load generator shall run it.
        with aside(first, force) as hidden:
            hidden.write_text("# This export was ended while it was written. Export the model again.\n")
    try:
        for path, text in reversed([*zip(paths, texts.values(), strict=True)]):
            new = not path.exists()
            with aside(path, force) as hidden:
                hidden.write_text("\n".join([*told, "", text]), encoding="utf-8")
            there += [path] if new else []
    except BaseException:
        for path in there:
            path.unlink(missing_ok=True)
        raise
    return Exported(paths, load.losses, load.needs, content, moved, _stale(first, paths))


def _stale(first: FilePath, paths: list[FilePath]) -> list[FilePath]:
    """Files beside the first one that an export has made whose name began alike, and this one has not."""
    found = []
    for path in first.parent.glob(f"{glob.escape(first.name)}.*"):
        if path not in paths and path.is_file() and _is_export(path):
            found.append(path)
    return sorted(found)


def _is_export(path: FilePath) -> bool:
    with path.open("rb") as file:
        return file.read(len(MADE) + 2) == f"# {MADE}".encode()


def _answered(exporter: Exporter, to: str, load: Load, target: str) -> dict[str, str]:
    """The files that an exporter answers, once they and what it left in the load are what they must be."""
    try:
        texts: Any = exporter(load, target)
    except Error:
        raise
    # SystemExit, too: a plugin may end the program for reasons of its own.
    except (Exception, SystemExit) as error:
        raise Error(f"the exporter {to} failed: {type(error).__name__}: {error}") from error
    wanted = "it must return a dict of the files' texts by the ending of their names, the first one empty"
    if not isinstance(texts, dict):
        raise Error(f"the exporter {to} returned {type(texts).__name__}; {wanted}")
    if not texts:
        raise Error(f"the exporter {to} returned no file; {wanted}")
    for ending, text in texts.items():
        if not isinstance(ending, str) or not isinstance(text, str):
            raise Error(f"the exporter {to} returned {ending!r}: {type(text).__name__}; {wanted}")
        if "/" in ending or "\0" in ending:
            raise Error(f"the exporter {to} returned the ending {ending!r}, which leads elsewhere; {wanted}")
    if "" not in texts:
        raise Error(f"the exporter {to} returned {', '.join(map(repr, texts))}, none empty; {wanted}")
    if not isinstance(load.losses, list) or not all(isinstance(loss, str) for loss in load.losses):
        raise Error(f"the exporter {to} left load.losses with something else than sentences")
    if not isinstance(load.needs, list) or not all(isinstance(need, str) for need in load.needs):
        raise Error(f"the exporter {to} left load.needs with something else than sentences")
    if not isinstance(load.jobs, list):
        raise Error(f"the exporter {to} made load.jobs {type(load.jobs).__name__}; it must stay a list")
    for number, job in enumerate(load.jobs, 1):
        if lack := _lack(job):
            raise Error(
                f"the exporter {to} made a job that cannot be played, number {number} of load.jobs: {lack}"
            )
    return texts


def _lack(job: Any) -> str | None:
    """What is wrong with a job of an exporter, if anything is."""
    if not isinstance(job, Job):
        return f"it is {type(job).__name__}, not loadstone.exporters.Job"
    numbers = (job.start, job.seconds, job.requests, job.sequential, job.align)
    if not all(isinstance(number, Real) and math.isfinite(number) for number in numbers):
        return "start, seconds, requests, sequential and align must be numbers"
    if job.op not in (READ, WRITE):
        return f"its op is {job.op!r}; it must be 0 (reads) or 1 (writes)"
    if job.start < 0 or job.seconds < 0 or job.requests < 1 or job.align < 1:
        return "it must have a request and an align of a byte at least, and begin and last no less than 0 s"
    if not 0 <= job.sequential <= 1:
        return f"its sequential is {job.sequential:g}; it must be a share, 0 to 1"
    try:
        sizes = [(float(size), float(weight)) for size, weight in job.sizes.items()]
        zones = [(float(first), float(last), float(weight)) for first, last, weight in job.zones]
    except (TypeError, ValueError, AttributeError):
        return "sizes must be weights by bytes, zones a list of first byte, one past the last, and weight"
    if not sizes or min(size for size, _ in sizes) < 1 or not _weigh(weight for _, weight in sizes):
        return "sizes must have one of a byte or more at least, with weights above 0"
    if not zones or any(not 0 <= first <= last < 2**63 for first, last, _ in zones):
        return "zones must have one at least, from a byte to one after it"
    if not _weigh(weight for *_, weight in zones):
        return "zones must have weights above 0"
    return None


def _weigh(weights: Iterable[float]) -> bool:
    """Whether weights can be shares."""
    found = list(weights)
    return all(0 <= weight < math.inf for weight in found) and sum(found) > 0


def _moved(load: Load) -> dict[str, tuple[int, int]]:
    """Bytes by direction: what the jobs are to move, and what the model does."""
    found = {}
    for op, name in ((READ, "read"), (WRITE, "write")):
        jobs = [job for job in load.jobs if job.op == op]
        made = sum(job.requests * _mean(job.sizes) for job in jobs)
        asked = sum(piece.directions[op].bytes for piece in load.pieces if op in piece.directions)
        found[name] = (round(made), asked)
    return found


def _mean(sizes: dict[int, int]) -> float:
    return sum(size * weight for size, weight in sizes.items()) / sum(sizes.values())


def moved_text(moved: dict[str, tuple[int, int]]) -> str:
    """``bytes: reads 1.2 MiB, of the model 1.3 MiB (-7.7%); ...``."""
    parts = []
    for name, (made, asked) in moved.items():
        if made or asked:
            apart = f" ({made / asked - 1:+.1%})" if asked else ""
            parts.append(f"{name}s {bytes_text(made)}, of the model {bytes_text(asked)}{apart}")
    return "bytes: " + "; ".join(parts)


def _words(load: Load, content: dict[str, Any] | None, moved: dict[str, tuple[int, int]] | None) -> list[str]:
    """The comment on top of a file."""
    lines = [
        f"{MADE} {load.name}: {load.requests:,} requests in {len(load.pieces)} pieces.",
        "",
    ]
    if load.needs:
        lines += [*load.needs, ""]
    told = [f"- {loss}" for loss in load.losses]
    lines += [f"What this cannot express:{'' if told else ' the exporter does not say.'}", *told]
    if content is None:
        lines += ["", UNMEASURED]
    if content is not None and sum(job.requests for job in load.jobs) > PLAYED:
        lines += ["", f"What follows is of the first requests of each job, {PLAYED:,} together."]
    if content is not None:
        lines += ["", moved_text(moved)] if moved is not None else []
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
    with scratch("export") as folder:
        path = folder / "played.spc"
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
        # In requests of the whole job, as fewer of them take a part of its time.
        done = before * (n / size.sum()) if job.by_bytes else np.arange(n) + 0.5
        columns.append(
            (
                job.start + done * job.seconds / job.requests,
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
