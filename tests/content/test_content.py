"""Content: what is asked for is what is written, as chunkers and codecs of others see it."""

from __future__ import annotations

import hashlib
import json
import os
import random
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from loadstone import Error, content
from loadstone.bundle import Bundle
from loadstone.cli.content import command
from loadstone.plan import RunOptions, check
from loadstone.workload import execute, plan_replay, plan_uniform

MIB = 1 << 20


def blocks(*paths: Path, unit: int = 4096) -> list[bytes]:
    """All whole blocks of files."""
    found = []
    for path in paths:
        data = path.read_bytes()
        found += [data[at : at + unit] for at in range(0, len(data) - unit + 1, unit)]
    return found


def dedupe(found: list[bytes]) -> float:
    return len(found) / len({hashlib.sha256(block).digest() for block in found})


def deflated(found: list[bytes]) -> float:
    """Ratio by the zlib of Python, which is another build than the one in the package."""
    part = found[:: max(len(found) // 1500, 1)]
    return sum(map(len, part)) / sum(len(zlib.compress(block, 6)) for block in part)


def within(found: float, asked: float, share: float = 0.02) -> bool:
    return abs(found / asked - 1) < share


# Examining.


def test_what_is_known_is_found(tmp_path):
    seed = random.Random(1)
    once = seed.randbytes(40 * 4096)
    (tmp_path / "a").write_bytes(once + bytes(8 * 4096) + once)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/b").write_bytes(once + b"x")
    os.link(tmp_path / "a", tmp_path / "sub/again")
    os.mkfifo(tmp_path / "pipe")
    found = content.examine(tmp_path)
    assert (found["files"], found["others"], found["unreadable"], found["zero_blocks"]) == (2, 2, 0, 8)
    assert found["bytes"] == found["read"] == 128 * 4096 + 1
    assert (found["fixed"]["chunks"], found["fixed"]["unique_chunks"]) == (129, 42)
    assert found["fixed"]["ratio"] == pytest.approx((128 * 4096 + 1) / (41 * 4096 + 1))
    # What is shifted is found again by content alone.
    (tmp_path / "a").write_bytes(b"shifted" + once + once)
    shifted = content.examine(tmp_path)
    assert shifted["fixed"]["ratio"] < 1.6 < 2.2 < shifted["fastcdc"]["ratio"]


def test_ratios_are_those_of_other_programs(tmp_path):
    text = " ".join(str(i * i) for i in range(60_000)).encode()
    (tmp_path / "text").write_bytes(text)
    found = content.examine(tmp_path / "text", unit=4096, piece=65536, compress=None)
    whole = [text[at : at + 65536] for at in range(0, len(text), 65536)]
    ours = found["by_piece"]
    assert (ours["bytes"], ours["pieces"]) == (len(text), len(whole))
    assert within(ours["zlib"], len(text) / sum(len(zlib.compress(piece, 6)) for piece in whole), 0.001)
    assert ours["lz4"] < ours["zlib"] and found["by_unit"]["lz4"] < ours["lz4"]


def test_what_cannot_be_read_is_counted(tmp_path, loadstone):
    """Root reads everything, so another user looks."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    (tmp_path / "open").write_bytes(bytes(4096))
    (tmp_path / "closed").write_bytes(bytes(4096))
    (tmp_path / "closed").chmod(0)
    (tmp_path / "shut").mkdir(mode=0)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(0o755)
    # Libraries are loaded while they can be.
    assert CliRunner().invoke(command, ["examine", str(tmp_path / "open")]).exit_code == 0
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setuid(65534)
            found = content.examine(tmp_path)
            wanted = (2, 2, 4096)
            shown = CliRunner().invoke(command, ["examine", str(tmp_path)])
            status = (found["files"], found["unreadable"], found["read"]) != wanted or "closed" not in str(
                found["reason"]
            )
            status |= shown.exit_code != 1 or "2 could not be read" not in shown.output
        finally:
            os._exit(int(status))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_what_is_named_and_holds_no_data_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(Error, match=f"{path}: is a pipe, a socket or a character device"):
            content.examine(path)
    assert content.examine(tmp_path)["others"] == 1


def test_options_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(Error, match="unit of 100 bytes"):
        content.examine(tmp_path, unit=100)
    with pytest.raises(Error, match="none: cannot be looked at"):
        content.examine(tmp_path / "none")


def test_the_verb_shows_tables_and_json(tmp_path, loadstone):
    (tmp_path / "file").write_bytes(random.Random(2).randbytes(MIB) * 2)
    text = loadstone("content", "examine", tmp_path).stdout
    assert "1 files, 2.0 MiB; 0 zero blocks" in text
    assert "blocks of 4.0 KiB     512     256" in text and "FastCDC" in text and "zstd -1" in text
    found = json.loads(loadstone("content", "examine", tmp_path, "--unit", "8k", "--json").stdout)
    assert (found["unit"], found["fixed"]["ratio"]) == (8192, 2.0)


# Runs.


def uniform(target: Path, **options):
    asked = options.pop("content", {"compress": 2.0, "dedupe": 1.5, "unit": 4096})
    # Everything is written again once and a half, on average, so what is left is of both kinds.
    name = options.pop("name", "randwrite")
    more = {"size": 48 * MIB, "requests": 18_000, "depth": 4, **options}
    return plan_uniform(name, target, RunOptions(content=asked, **more))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sync", "io_uring", "mmap"])
def test_a_file_has_what_was_asked_for(backend, tmp_path):
    target = tmp_path / "file"
    outcome = execute(uniform(target, backend=backend))
    assert outcome["summary"]["notes"] == [n for n in outcome["summary"]["notes"] if "inside" not in n]
    found = blocks(target)
    assert len(found) == 12288
    assert within(dedupe(found), 1.5) and within(deflated(found), 2.0)
    told = outcome["content"]
    assert told["asked"] == {"compress": 2.0, "dedupe": 1.5, "unit": 4096}
    assert told["found"]["dedupe"] == pytest.approx(dedupe(found))
    assert told["found"]["dedupe_expected"] == pytest.approx(1.5, rel=1e-3)
    for ratio in told["found"]["compress"].values():
        assert within(ratio, 2.0)


@pytest.mark.slow
def test_filled_and_written_blocks_are_of_one_pool(tmp_path):
    """Before the run, after it, and both together have the ratio: duplicates are found across them."""
    target = tmp_path / "file"
    execute(uniform(target, requests=1))
    before = blocks(target)
    execute(uniform(target, allow_destroy=[str(target)], seed=0, requests=40_000))
    after = blocks(target)
    changed = sum(a != b for a, b in zip(before, after, strict=True))
    assert changed > 11_000
    assert within(dedupe(before), 1.5) and within(dedupe(after), 1.5)
    # Two draws for each place among as many contents: 2 N of u' (1 - e^(-2 N / u')).
    assert set(after) & set(before)


def test_the_same_seed_fills_alike_and_another_does_not(tmp_path):
    digests = []
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        execute(uniform(tmp_path / name, size=MIB, requests=1, name="randread", seed=seed))
        digests.append(hashlib.sha256((tmp_path / name).read_bytes()).digest())
    assert digests[0] == digests[1] != digests[2]


def test_unique_content_has_no_two_blocks_alike(tmp_path):
    target = tmp_path / "file"
    outcome = execute(uniform(target, content={"compress": 1.0}))
    found = blocks(target)
    assert dedupe(found) == 1.0 and 0.99 < deflated(found) <= 1.0
    assert outcome["content"]["found"]["dedupe"] == 1.0


@pytest.mark.slow
def test_large_units_are_found_by_content_defined_chunkers(tmp_path):
    plan = uniform(
        tmp_path / "file", size=256 * MIB, bs=MIB, requests=40, content={"dedupe": 2.0, "unit": MIB}
    )
    told = execute(plan)["content"]["found"]
    assert within(told["examined"]["fastcdc"]["ratio"], told["dedupe"])


def test_requests_that_cut_units_are_told(tmp_path):
    plan = uniform(tmp_path / "file", content={"compress": 2.0, "unit": 65536}, requests=500)
    (note,) = (note for note in execute(plan)["summary"]["notes"] if "inside of blocks" in note)
    assert note.startswith("500 of 500 writes began or ended inside of blocks of 65536 bytes: 0 % of")
    assert note.endswith("; aligned requests or a smaller dedupe unit would raise that share")


def test_verified_requests_that_cut_units_are_told_too(tmp_path):
    """There is no smaller unit than 4096 bytes, so none is advised."""
    plan = uniform(tmp_path / "file", bs=6144, content={"compress": 2.0}, requests=500, verify={"unit": 4096})
    (note,) = (note for note in execute(plan)["summary"]["notes"] if "inside of blocks" in note)
    assert note.startswith("500 of 500 writes") and " 67 % of what was written lies in whole blocks" in note
    assert note.endswith("; aligned requests would raise that share")


def test_unaligned_requests_write_parts_of_blocks(tmp_path):
    """A quarter of each request's first and last block is what a whole one would have there."""
    plan = uniform(tmp_path / "file", bs=1024, requests=8000, content={"dedupe": 1.0, "compress": 1.0})
    outcome = execute(plan)
    found = blocks(tmp_path / "file", unit=1024)
    assert dedupe(found) == 1.0
    assert not [note for note in outcome["summary"]["notes"] if "inside" in note]


def test_nothing_to_write_is_said(tmp_path):
    told = execute(uniform("null:", size=None, requests=10))["content"]
    assert told["found"] is None and "null:" in told["reason"]


@pytest.mark.slow
def test_sets_of_files_have_what_was_asked_for(tmp_path):
    steps = [
        {"name": "w", "act": "write_whole", "set": "s", "size": 65536},
        {"name": "c", "act": "close"},
        {"name": "a", "act": "append", "set": "s", "size": 8192},
        {"name": "c2", "act": "close"},
        {"name": "aio", "act": "aio_write", "set": "s", "size": 4096},
        {"name": "wait", "act": "aio_wait"},
        {"name": "c3", "act": "close"},
    ]
    plan = {
        "version": 1,
        "content": {"compress": 3.0, "dedupe": 2.0},
        "targets": [{"id": "t", "kind": "tree", "path": str(tmp_path / "tree")}],
        "sets": [
            {"id": "s", "target": "t", "path": "files", "entries": 200, "present": 1.0, "size": 262144},
        ],
        "workers": [
            {
                "source": {"kind": "program", "ops": steps},
                "backend": "posix",
                "depth": 3,
                "map": {"objects": []},
            }
        ],
        "steps": [{"step": "prepare"}, {"step": "run", "duration_ns": 400_000_000, "until": "time"}],
    }
    outcome = execute(check(plan))
    assert outcome["summary"]["errors"] == 0 and outcome["summary"]["requests"] > 100
    files = [
        path for path in (tmp_path / "tree/files").rglob("*") if path.is_file() and path.name != ".loadstone"
    ]
    found = blocks(*files)
    told = outcome["content"]["found"]
    # Files have grown, so more blocks draw from as many contents.
    assert told["dedupe_expected"] > 2.05
    assert within(deflated(found), 3.0) and within(dedupe(found), told["dedupe_expected"], 0.04)
    assert told["examined"]["files"] == len(files) == 200, "the mark of the set is no data"
    assert told["dedupe"] == pytest.approx(dedupe(found))


@pytest.mark.slow
def test_scripts_and_job_files_take_it(tmp_path, loadstone):
    script = tmp_path / "s.f"
    script.write_text(
        "define fileset name=f,path=$dir,entries=64,dirwidth=20,size=128k,prealloc\n"
        "define process name=p { thread name=t { flowop writewholefile name=w,filesetname=f,iosize=64k\n"
        "flowop closefile name=c } }\nrun 1\n"
    )
    options = ["--dedupe", "2", "--compress", "1.5", "--json"]
    told = json.loads(loadstone("run", script, "--on", tmp_path / "tree", *options).stdout)["content"]
    assert told["asked"] == {"compress": 1.5, "dedupe": 2.0, "unit": 4096}
    assert within(told["found"]["dedupe"], 2.0, 0.06)
    job = tmp_path / "j.fio"
    job.write_text("[w]\nfilename=data\nsize=8m\nrw=write\nbs=64k\n")
    (tmp_path / "jobs").mkdir()
    told = json.loads(loadstone("run", job, "--on", tmp_path / "jobs", *options).stdout)["content"]
    assert within(told["found"]["dedupe"], 2.0, 0.06)
    assert within(told["found"]["compress"]["lz4"], 1.5)


@pytest.mark.slow
def test_job_files_say_it_themselves(tmp_path, loadstone):
    job = tmp_path / "j.fio"
    job.write_text(
        "[w]\nfilename=data\nsize=32m\nrw=write\nbs=16k\ndedupe_percentage=50\nbuffer_compress_percentage=50\n"
    )
    (tmp_path / "jobs").mkdir()
    told = json.loads(loadstone("run", job, "--on", tmp_path / "jobs", "--json").stdout)["content"]
    assert told["asked"] == {"compress": 2.0, "dedupe": 2.0, "unit": 16384}
    found = blocks(tmp_path / "jobs/data", unit=16384)
    assert within(dedupe(found), 2.0, 0.06) and within(deflated(found), 2.0)


@pytest.mark.slow
def test_replays_take_it_and_bundles_keep_it(tmp_path, loadstone, root):
    bundle = tmp_path / "out.bundle"
    done = loadstone(
        *("replay", root / "examples/loop0.parquet", "--on", tmp_path / "file", "--size", "64m"),
        *("--offsets", "wrap", "--pace", "max", "--requests", "3000", "--content", "unique", "--out", bundle),
    )
    assert "content asked: dedupe 1, compress 1, in blocks of 4.0 KiB" in done.stdout
    assert "content found in 64.0 MiB of 64.0 MiB: dedupe 1.000" in done.stdout
    told = Bundle.read(bundle).summary["content"]
    assert told["found"]["dedupe"] == 1.0


def test_trees_that_start_empty_have_the_ratio_in_the_end(tmp_path):
    """Files are made, written, renamed and removed: what is left then has it."""
    lines, at = [], 0

    def line(call, result):
        nonlocal at
        at += 1000
        lines.append(f"100 1700000{at // 10**6 + 100}.{at % 10**6:06} {call} = {result} <0.000010>\n")

    for number in range(12):
        line(f'openat(AT_FDCWD, "f{number}", O_RDWR|O_CREAT|O_TRUNC, 0644)', 3)
        for piece in range(16):
            line(f'pwrite64(3, ""..., 65536, {65536 * piece})', 65536)
        line("close(3)", 0)
        if number % 3 == 1:
            line(f'unlink("f{number}")', 0)
        elif number % 3 == 2:
            line(f'rename("f{number}", "g{number}")', 0)
    (tmp_path / "app.strace").write_text("".join(lines))
    plan = plan_replay(
        tmp_path / "app.strace", tmp_path / "tree", RunOptions(pace="max", depth=1, content={"dedupe": 2.0})
    )
    outcome = execute(plan)
    assert outcome["summary"]["errors"] == 0 and outcome["summary"]["content_blocks"] == 2048
    found = blocks(
        *[path for path in (tmp_path / "tree").rglob("*") if path.is_file() and path.name != ".loadstone"]
    )
    assert len(found) == 2048 and within(dedupe(found), 2.0, 0.06)
    assert outcome["content"]["found"]["dedupe_expected"] == pytest.approx(2.0, rel=1e-3)


def test_trees_of_traces_have_it(tmp_path):
    trace = tmp_path / "app.strace"
    trace.write_text(
        '100 1700000000.000000 openat(AT_FDCWD, "data", O_RDWR) = 3 <0.000010>\n'
        '100 1700000000.001000 pread64(3, ""..., 1048576, 0) = 1048576 <0.000010>\n'
        '100 1700000000.002000 pwrite64(3, ""..., 524288, 0) = 524288 <0.000010>\n'
        "100 1700000000.003000 close(3) = 0 <0.000010>\n"
    )
    plan = plan_replay(
        trace, tmp_path / "tree", RunOptions(pace="max", content={"compress": 2.0, "dedupe": 1.0})
    )
    outcome = execute(plan)
    assert outcome["summary"]["errors"] == 0
    files = [path for path in (tmp_path / "tree").rglob("*") if path.is_file() and path.name != ".loadstone"]
    found = blocks(*files)
    assert len(found) == 256 and dedupe(found) == 1.0 and within(deflated(found), 2.0)
    assert within(outcome["content"]["found"]["compress"]["zstd"], 2.0)


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ({"compress": 0.5}, "`compress`: is 0.5"),
        ({"compress": 20}, "1.05 to 10"),
        ({"dedupe": 0.9}, "`dedupe`: is 0.9"),
        ({"unit": 1000}, "`dedupe_unit`: is 1000"),
        ({"ratio": 2}, "unknown field"),
    ],
)
def test_what_cannot_be_had_is_refused(asked, fault, tmp_path):
    with pytest.raises(Error, match=fault.replace(".", r"\.")):
        uniform(tmp_path / "file", content=asked)


def test_more_duplicates_than_blocks_are_refused_before_anything_is_made(tmp_path):
    with pytest.raises(Error, match="256 blocks cannot have it"):
        execute(uniform(tmp_path / "file", size=MIB, content={"dedupe": 1000.0}))
    assert not (tmp_path / "file").exists()


def test_a_ratio_of_nothing_known_is_refused(tmp_path):
    ops = [
        {"name": "c", "act": "create", "set": "s"},
        {"name": "a", "act": "append", "set": "s", "size": 8192},
        {"name": "x", "act": "close"},
    ]
    plan = {
        "version": 1,
        "content": {"dedupe": 2.0},
        "targets": [{"id": "t", "kind": "tree", "path": str(tmp_path / "tree")}],
        "sets": [{"id": "s", "target": "t", "path": "f", "entries": 500, "present": 0.0}],
        "workers": [
            # One thread: others would be ended between making a file and filling it.
            {"source": {"kind": "program", "ops": ops}, "backend": "posix", "depth": 1},
        ],
        "steps": [{"step": "prepare"}, {"step": "run", "duration_ns": 10**10, "until": "first_done"}],
    }
    with pytest.raises(Error, match="give the files of sets the size that they come to have"):
        execute(check(plan))
    assert not (tmp_path / "tree").exists()
    # The size that they come to have is enough, though none is there at the start.
    plan["sets"][0]["size"] = 8192
    ops.append({"name": "end", "act": "finish_on_count", "target": "c", "value": 500})
    told = execute(check(plan))["content"]["found"]
    assert told["examined"]["files"] == 500 and within(told["dedupe"], 2.0, 0.06)


def test_how_far_targets_are_read_is_told(tmp_path):
    seen = []
    execute(uniform(tmp_path / "file", requests=1), lambda live: seen.append(dict(live)))
    told = [live["fraction"] for live in seen if live["phase"] == "reading"]
    assert seen[-1]["phase"] == "reading"
    assert told == sorted(told) and 0 < told[0] <= told[-1] <= 1


def test_zeros_and_content_exclude_each_other():
    plan = {
        "version": 1,
        "content": {"dedupe": 2.0},
        "targets": [{"id": "t", "kind": "null", "size": 1 << 40}],
        "sets": [{"id": "s", "target": "t", "path": "f", "entries": 2, "zeros": True}],
        "workers": [
            {
                "source": {"kind": "program", "ops": [{"name": "o", "act": "open", "set": "s"}]},
                "backend": "null",
                "map": {"objects": []},
            }
        ],
        "steps": [{"step": "run", "duration_ns": 1_000_000, "until": "time"}],
    }
    with pytest.raises(Error, match=r"sets\[0\]: writes zeros"):
        check(plan)


def test_a_plan_file_says_it_itself(tmp_path, loadstone):
    (tmp_path / "plan.json").write_text(json.dumps(uniform(tmp_path / "file", size=MIB, requests=5)))
    assert (
        "a plan says that itself"
        in loadstone("run", tmp_path / "plan.json", "--dedupe", "2", status=2).stderr
    )
    assert "content asked: dedupe 1.5" in loadstone("run", tmp_path / "plan.json", "--on", tmp_path).stdout
    unit = loadstone("run", "randread", "--on", "null:", "--dedupe-unit", "8k", "--requests", "1", status=2)
    assert "needs --dedupe or --compress" in unit.stderr
