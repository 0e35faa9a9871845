"""Content: chunks of a dataset are what is written, with the duplicates of the dataset."""

from __future__ import annotations

import hashlib
import json
import os
import random
from pathlib import Path

import pytest

from loadstone import Error, content, dataset
from loadstone.bundle import Bundle
from loadstone.plan import RunOptions
from loadstone.workload import execute, plan_replay, plan_uniform

MIB = 1 << 20


@pytest.fixture(scope="module")
def series(tmp_path_factory) -> Path:
    """Two snapshots of 24 files each with many duplicates, in chunks of FastCDC."""
    return _series(tmp_path_factory.mktemp("cdc"), "fastcdc")


@pytest.fixture(scope="module")
def fixed(tmp_path_factory) -> Path:
    """The same in blocks of 4 KiB."""
    return _series(tmp_path_factory.mktemp("fixed"), "fixed:4k")


def _series(folder: Path, chunking: str) -> Path:
    draw = random.Random(5)
    pieces = [draw.randbytes(16384) for _ in range(40)]
    for snapshot in ("a", "b"):
        (folder / snapshot).mkdir()
        for number in range(24):
            own = draw.randbytes(9000 + 100 * number) if number % 5 == 0 or snapshot == "a" else b""
            text = (f"{number} says the same again and again. " * 300).encode()
            kept = b"".join(pieces[(number * 7 + i) % 40] for i in range(6))
            (folder / snapshot / f"f{number:02}").write_bytes(kept + own + text)
    path = folder / "two.fst"
    dataset.scan([folder / "a", folder / "b"], path, chunking=chunking)
    return path


def written(path: Path) -> bytes:
    """Bytes of a snapshot's files, one after the other, as ``dataset write`` has them."""
    return b"".join(one.read_bytes() for one in sorted(path.iterdir()))


def asked(path: Path, snapshot: int | None = None) -> content.Content:
    return content.of_options(
        f"dataset:{path}" + ("" if snapshot is None else f"@{snapshot}"), None, None, None
    )


def uniform(name: str, on: Path, wish: content.Content, **options):
    given = {"size": 4 * MIB, "requests": 50, "seed": 3, "interval": 10.0, **options}
    return plan_uniform(name, on, RunOptions(content=wish, **given))


def test_what_is_filled_are_the_files_that_dataset_writes(series, tmp_path):
    dataset.write(series, tmp_path / "out", snapshots=1, seed=3)
    files = written(tmp_path / "out")
    told = execute(uniform("randread", tmp_path / "file", asked(series, 1), size=len(files)))["content"]
    assert (tmp_path / "file").read_bytes() == files
    # As many bytes as the snapshot has: what it tells of itself and what is found is one thing.
    assert told["asked"]["bytes"] == len(files) and told["asked"]["chunking"] == "fastcdc"
    assert told["found"]["dedupe_expected"] == pytest.approx(told["asked"]["dedupe"])
    assert told["found"]["dedupe"] == pytest.approx(told["asked"]["dedupe"], rel=0.03)
    assert told["asked"]["dedupe"] > 1.5
    for codec in ("lz4", "zstd", "zlib"):
        assert told["found"]["compress"][codec] == pytest.approx(told["found"]["compress_expected"], rel=0.06)


def test_further_passes_have_the_duplicates_and_other_bytes(fixed, tmp_path):
    once = execute(uniform("randread", tmp_path / "file", asked(fixed)))["content"]
    size = once["asked"]["bytes"]
    plan = uniform("randread", tmp_path / "long", asked(fixed), size=3 * size)
    told = execute(plan)["content"]
    assert told["found"]["dedupe"] == pytest.approx(told["asked"]["dedupe"], rel=1e-9)
    assert told["found"]["examined"]["fixed"]["unique_chunks"] * told["asked"]["dedupe"] == pytest.approx(
        3 * size / 4096
    )


@pytest.mark.parametrize("backend", ["sync", "io_uring", "mmap"])
def test_writes_in_order_have_the_duplicates_of_the_dataset(backend, fixed, tmp_path):
    plan = uniform(
        "write",
        tmp_path / "file",
        asked(fixed),
        fill=False,
        requests=64,
        depth=1 if backend != "io_uring" else 8,
        backend=backend,
        bs=65536,
    )
    told = execute(plan)["content"]
    assert told["found"]["examined"]["bytes"] == 4 * MIB
    # Only where a thread goes on to its next stretch a chunk is cut.
    assert told["found"]["dedupe"] == pytest.approx(told["found"]["dedupe_expected"], rel=0.02)


def test_random_writes_begin_with_chunks(fixed, tmp_path):
    """Blocks as large as the requests are duplicates wherever they go."""
    plan = uniform("randwrite", tmp_path / "file", asked(fixed), requests=4000, size=2 * MIB)
    found = execute(plan)["content"]["found"]
    blocks = [hashlib.sha256(block).digest() for block in _blocks(tmp_path / "file")]
    assert found["dedupe"] == pytest.approx(len(blocks) / len(set(blocks)))
    # Old and new blocks in any mixture: of any 512 of the tape about as many are duplicates.
    assert found["dedupe"] > 1.15
    assert len({bytes(block) for block in _blocks(tmp_path / "file")}) > 200


def _blocks(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return [data[at : at + 4096] for at in range(0, len(data), 4096)]


def test_the_same_seed_fills_alike(series, tmp_path):
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        execute(uniform("randread", tmp_path / name, asked(series), seed=seed))
    one, again, other = ((tmp_path / name).read_bytes() for name in ("one", "again", "other"))
    assert one == again and one != other


def test_plans_and_bundles_say_which(series, tmp_path, loadstone):
    digest = "sha256:" + hashlib.sha256(series.read_bytes()).hexdigest()
    words = ["run", "randrw", "--on", tmp_path / "file", "--size", "4m", "--requests", "100"]
    words += ["--content", f"dataset:{series}@1"]
    plan = json.loads(loadstone(*words, "--dry-run").stdout)
    assert plan["content"]["dataset"] == "dataset" and plan["content"]["snapshot"] == 1
    known = {"id": "dataset", "kind": "dataset", "path": str(series), "digest": digest}
    assert plan["artefacts"] == [known]
    done = loadstone(*words, "--out", tmp_path / "x.bundle")
    assert f"content asked: chunks of {series}, snapshot 1, " in done.stdout
    told = Bundle.read(tmp_path / "x.bundle").summary["content"]
    assert (told["asked"]["digest"], told["asked"]["dataset"]) == (digest, str(series))
    # A plan that is kept is of that file and no other.
    (tmp_path / "plan.json").write_text(json.dumps({**plan, "artefacts": [{**known, "digest": "sha256:0"}]}))
    assert (
        "is not the file this plan was made for" in loadstone("run", tmp_path / "plan.json", status=1).stderr
    )


@pytest.mark.slow
def test_every_kind_of_load_takes_it(series, tmp_path, loadstone, root):
    option = ["--content", f"dataset:{series}", "--json"]
    script = tmp_path / "s.f"
    script.write_text(
        "define fileset name=f,path=$dir,entries=48,dirwidth=20,size=128k,prealloc\n"
        "define process name=p { thread name=t { flowop writewholefile name=w,filesetname=f,iosize=64k\n"
        "flowop closefile name=c } }\nrun 1\n"
    )
    told = json.loads(loadstone("run", script, "--on", tmp_path / "tree", *option).stdout)["content"]
    assert told["asked"]["dataset"] == str(series)
    # Written over and over; each file begins with a whole chunk, and ends within one.
    assert told["found"]["dedupe"] > 1.3
    job = tmp_path / "j.fio"
    job.write_text("[w]\nfilename=data\nsize=4m\nrw=write\nbs=64k\nrefill_buffers\n")
    (tmp_path / "jobs").mkdir()
    told = json.loads(loadstone("run", job, "--on", tmp_path / "jobs", *option).stdout)["content"]
    assert told["found"]["dedupe"] == pytest.approx(told["found"]["dedupe_expected"], rel=0.05)
    suite = ["run", "vxbench", "--on", tmp_path / "suite", "-D", "total=4m", "-D", "processes=2"]
    (tmp_path / "suite").mkdir()
    plans = json.loads(loadstone(*suite, *option[:2], "--dry-run").stdout)
    assert all(plan["content"]["dataset"] == "dataset" for plan in plans.get("plans", [plans]))
    replay = plan_replay(
        root / "examples/loop0.parquet",
        tmp_path / "replayed",
        RunOptions(size=16 * MIB, offsets="wrap", pace="max", requests=500, content=asked(series)),
    )
    assert [one["kind"] for one in replay["artefacts"]] == ["trace", "dataset"]
    assert execute(replay)["content"]["found"]["dedupe"] > 1.3


@pytest.mark.slow
def test_what_cannot_be_had_is_refused_before_anything_is_made(series, tmp_path, loadstone):
    def say(kind: str, *more: str, status: int = 1) -> str:
        words = ["run", "randread", "--on", tmp_path / "file", "--size", "1m", "--content", kind, *more]
        return str(loadstone(*words, "--requests", "1", status=status).stderr)

    whole = series.read_bytes()
    cut, damaged = tmp_path / "cut.fst", tmp_path / "damaged.fst"
    cut.write_bytes(whole[: len(whole) // 2])
    damaged.write_bytes(whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:])
    assert "cut.fst: ends before its last section; it was cut short" in say(f"dataset:{cut}")
    assert "damaged.fst: section" in say(f"dataset:{damaged}")
    assert "no fstree file" in say(f"dataset:{__file__}")
    none = f"dataset:{tmp_path}/none.fst"
    assert "is no file; loadstone dataset scan or create makes one" in say(none, status=2)
    assert "snapshot 2: there are 2, the first is 0" in say(f"dataset:{series}@2")
    assert "use unique or dataset:FILE" in say("data", status=2)
    for more in (["--dedupe", "2"], ["--compress", "2"], ["--dedupe-unit", "8k"]):
        told = say(f"dataset:{series}", *more, status=2)
        assert "a dataset has its own duplicates and compressibility" in told
    assert "leave out the verification" in say(f"dataset:{series}", "--verify", status=2)
    empty = tmp_path / "empty"
    empty.mkdir()
    dataset.scan([empty], tmp_path / "empty.fst")
    assert "has no chunks to write" in say(f"dataset:{tmp_path / 'empty.fst'}")
    assert not (tmp_path / "file").exists()


def test_plans_that_contradict_themselves_are_refused(series, tmp_path):
    plan = uniform("randread", tmp_path / "file", asked(series))
    for change, fault in (
        ({"dedupe": 2.0}, "leave out compress, dedupe and unit"),
        ({"dataset": "nobody"}, 'no dataset has id "nobody"'),
        ({"dataset": None, "snapshot": 1}, "is one of a dataset"),
    ):
        wrong = {**plan, "content": {**plan["content"], **change}}
        with pytest.raises(Error, match=fault):
            execute(wrong)
    assert not os.path.exists(tmp_path / "file")


@pytest.mark.slow
def test_writes_that_cut_chunks_are_told(series, tmp_path, loadstone):
    words = ("--size", "4m", "--requests", "1500", "--seed", "3", "--content", f"dataset:{series}")
    told = loadstone("run", "randwrite", "--on", tmp_path / "small", *words).stdout
    assert "content is cut: writes of 4.0 KiB are smaller than the dataset's chunks of " in told
    for more in (("randwrite", "--bs", "256k"), ("write",)):
        told = loadstone("run", *more, "--on", tmp_path / more[0], *words).stdout
        assert "content found" in told and "is cut" not in told
