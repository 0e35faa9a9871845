"""Suites: what they plan, what they leave on disk, and their measurements."""

import bz2
import gzip
import hashlib
import io
import itertools
import json
import lzma
import os
import re
import resource
import subprocess
import tarfile
from types import SimpleNamespace

import click
import pytest

from loadstone import Error
from loadstone.cli import _confirm
from loadstone.plan import RunOptions
from loadstone.plan.actions import RunPlan
from loadstone.suites import SUITES, measured, plan_suite, table
from loadstone.suites._archives import make_archive
from loadstone.workload import Job, run

SMALL = {
    "iozone": {"size": "64k", "record": "4k,16k"},
    "bonnie": {"size": "256k", "seeks": "40", "processes": "2", "files": "50", "filesize": "100"},
    "vxbench": {"total": "256k", "processes": "1-4"},
    "mkfile": {"size": "256k"},
    "touch-files": {"directories": "5", "files": "10"},
    "cp-fanout": {"size": "1m"},
    "tar-extract": {"count": "2", "files": "40"},
}


def run_suite(found):
    """Summaries of the runs."""
    runs = [RunPlan(plan) for plan in found.plans]
    done = run(Job(found.suite, "suite", runs, first=found.first, suite=found))
    return [one.summary for one in done.bundles()]


def files_of(path):
    """Sizes of all files below a directory, by their paths, but for marks."""
    return {
        os.path.relpath(os.path.join(folder, name), path): os.path.getsize(os.path.join(folder, name))
        for folder, _, names in os.walk(path)
        for name in names
        if not name.startswith(".")
    }


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", SUITES)
@pytest.mark.parametrize("null", [False, True])
def test_every_suite_runs_and_measures_all_it_promised(name, null, tmp_path):
    variables = SMALL[name]
    if null and name == "tar-extract":
        make_archive(str(tmp_path / "a.tar.gz"), 30, 1)
        variables = {"archives": str(tmp_path / "a.tar.gz")}
    found = plan_suite(name, "null:" if null else tmp_path / "on", RunOptions(variables=variables))
    summaries = run_suite(found)
    assert [summary["errors"] + summary["short"] for summary in summaries] == [0] * len(found.plans)
    rows = measured(found, summaries)
    assert len(rows) == len(found.measures)
    for row in rows:
        assert row["seconds"] > 0 and row["requests"] > 0 and row["cpu_s"] >= 0, row
        assert row["bytes_per_s"] == pytest.approx(row["bytes"] / row["seconds"])
    heads, cells = table(name, rows)
    assert cells and all(len(line) == len(heads) for line in cells)


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_says_what_it_models_and_where_its_numbers_are_from(name):
    suite = SUITES[name]
    assert len(suite.about) > 100 and ("thesis" in suite.source or "study" in suite.source)
    for variable in (suite.size, suite.block, suite.depth):
        assert variable is None or variable in suite.variables
    assert all(one.meaning and one.default for one in suite.variables.values())


FLAGS = {
    "iozone": ("fsync", "close", "osync", "direct"),
    "vxbench": ("fsync", "direct"),
    "mkfile": ("fsync", "zeros"),
    "touch-files": ("sync",),
    "cp-fanout": ("fsync",),
    "tar-extract": ("single",),
}
MORE = {"iozone": {"size": "32k", "record": "4k"}, "vxbench": {"total": "128k", "bs": "8k", "processes": "2"}}
EVERY = [
    (name, dict(zip(flags, values, strict=True)))
    for name, flags in FLAGS.items()
    for values in itertools.product(("no", "yes"), repeat=len(flags))
]


@pytest.mark.parametrize(("name", "flags"), EVERY)
def test_every_combination_of_yes_and_no_runs(name, flags, tmp_path):
    found = plan_suite(
        name, tmp_path / "on", RunOptions(variables={**SMALL[name], **MORE.get(name, {}), **flags})
    )
    summaries = run_suite(found)
    assert [summary["errors"] + summary["short"] for summary in summaries] == [0] * len(found.plans)
    assert len(measured(found, summaries)) == len(found.measures)


def test_every_flag_is_in_some_combination():
    for name, suite in SUITES.items():
        flags = {key for key, one in suite.variables.items() if one.default in ("yes", "no")}
        assert flags - {"every"} <= set(FLAGS.get(name, ())), name


def test_iozone_passes_over_every_record_of_every_file(tmp_path):
    variables = {"size": "64k", "record": "4k", "processes": "2", "fsync": "yes", "close": "yes"}
    found = plan_suite("iozone", tmp_path, RunOptions(variables=variables))
    summaries = run_suite(found)
    rows = {row["test"]: row for row in measured(found, summaries)}
    assert list(rows) == list(
        SUITES["iozone"].variables["tests"].meaning.removeprefix("passes: ").split(", ")
    )
    # 16 records of each of two files, and where a pass writes a sync; each closes its file.
    assert {name: row["requests"] for name, row in rows.items()} == {
        name: 2 * (16 + ("write" in name) + 1) for name in rows
    }
    assert {row["bytes"] for row in rows.values()} == {128 << 10}
    assert sorted(files_of(tmp_path).values()) == [65536, 65536]


def test_caches_are_looked_after_before_each_pass_if_asked(tmp_path):
    variables = {"size": "64k", "record": "64k", "tests": "write,reread,fread"}
    found = plan_suite("iozone", tmp_path, RunOptions(variables=variables, cache="drop"))
    assert [[step["step"] for step in plan["steps"]] for plan in found.plans] == [
        ["prepare", "drop_caches", "run"]
    ] * 3
    rows = measured(found, run_suite(found))
    assert [(row["test"], row["bytes"]) for row in rows] == [
        ("write", 65536),
        ("reread", 65536),
        ("fread", 65536),
    ]


def test_records_larger_than_files_and_small_ones_of_large_files_are_left_out(tmp_path):
    found = plan_suite("iozone", tmp_path, RunOptions(variables={"size": "64k-128k", "record": "64k-256k"}))
    assert [row.key["record"] for row in found.measures[::13]] == [65536, 65536, 131072]
    assert "3 pairs of file and record are left out" in found.notes[0]
    every = {"size": "64m", "record": "32k,64k", "tests": "write"}
    assert len(plan_suite("iozone", tmp_path, RunOptions(variables=every)).plans) == 1
    assert len(plan_suite("iozone", tmp_path, RunOptions(variables=every | {"every": "yes"})).plans) == 2


def test_rewriting_reads_each_block_and_writes_the_same_back(tmp_path):
    one = {"size": "96k", "block": "8k"}
    run_suite(plan_suite("bonnie", tmp_path, RunOptions(variables=one | {"tests": "write"})))
    (file,) = [tmp_path / name for name in files_of(tmp_path)]
    before = digest(file)
    found = plan_suite(
        "bonnie", tmp_path, RunOptions(variables=one | {"tests": "rewrite,seeks", "seeks": "100"})
    )
    # The files are to stay for this.
    for plan in found.plans:
        plan["sets"][0]["reuse"] = True
    rows = measured(found, run_suite(found))
    assert (rows[0]["bytes"], rows[0]["requests"]) == (96 << 10, 2 * 12 + 2)
    # Four processes of 25 seeks write back the first, the eleventh and the twenty-first.
    assert (rows[1]["count"], rows[1]["requests"]) == (100, 100 + 4 * 3)
    assert digest(file) == before


def test_characters_and_streams_move_what_blocks_do(tmp_path):
    found = plan_suite("bonnie", tmp_path, RunOptions(variables={"size": "96k", "tests": "putc,getc"}))
    summaries = run_suite(found)
    steps = summaries[0]["steps"]
    assert (steps["putc"]["bytes"], steps["getc"]["bytes"]) == (96 << 10, 96 << 10)
    (size,) = files_of(tmp_path).values()
    assert size == 96 << 10
    content = (tmp_path / next(iter(files_of(tmp_path)))).read_bytes()
    assert len(set(content)) == 256


def test_files_are_made_in_order_and_by_chance_and_none_is_left(tmp_path):
    few = {"files": "64", "tests": "files in order,files by chance"}
    found = plan_suite("bonnie", tmp_path, RunOptions(variables=few))
    rows = measured(found, run_suite(found))
    assert [row["test"] for row in rows] == [
        f"{part} {order}" for order in ("in order", "by chance") for part in ("create", "stat", "delete")
    ]
    assert all(row["count"] == 64 for row in rows)
    assert files_of(tmp_path) == {}


def test_touched_files_lie_in_their_directories(tmp_path):
    found = plan_suite(
        "touch-files", tmp_path, RunOptions(variables=SMALL["touch-files"] | {"tests": "multi"})
    )
    assert len(found.plans[0]["workers"]) == 5
    (row,) = measured(found, run_suite(found))
    assert (row["processes"], row["count"], row["requests"]) == (5, 50, 150)
    names = files_of(tmp_path)
    assert set(names.values()) == {6144} and len(names) == 50
    folders = [os.path.dirname(name) for name in names]
    assert sorted(folders.count(one) for one in set(folders)) == [10] * 5


@pytest.mark.parametrize("method", ["read", "range"])
def test_copies_are_like_their_source(method, tmp_path):
    found = plan_suite(
        "cp-fanout", tmp_path, RunOptions(variables={"size": "1m", "copies": "3", "method": method})
    )
    (row,) = measured(found, run_suite(found))
    assert (row["bytes"], row["processes"]) == (3 << 20, 3)
    digests = {digest(tmp_path / name) for name in files_of(tmp_path)}
    assert len(files_of(tmp_path)) == 4 and len(digests) == 1


def packed(path, entries, mode="w"):
    """A tar archive of names, contents and types."""
    with tarfile.open(path, mode) as archive:
        for name, content, kind in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size = kind, len(content)
            entry.linkname = "elsewhere"
            archive.addfile(entry, io.BytesIO(content))


@pytest.mark.parametrize("mode", ["w", "w:gz", "zst"])
def test_archives_are_unpacked_as_tar_does(mode, tmp_path):
    long = "d/" * 60 + "x" * 120
    entries = [("a", b"one", tarfile.REGTYPE), ("b/c", bytes(300_000), tarfile.REGTYPE)]
    entries += [("e", b"", tarfile.DIRTYPE), (long, b"deep", tarfile.REGTYPE), ("./f", b"", tarfile.REGTYPE)]
    path = tmp_path / "it.tar"
    packed(path, entries, "w" if mode == "zst" else mode)
    if mode == "zst":
        subprocess.run(["zstd", "-q", "--rm", path], check=True)
        path = tmp_path / "it.tar.zst"
    variables = {"archives": f"{path},{path}", "single": "no"}
    found = plan_suite("tar-extract", tmp_path / "on", RunOptions(variables=variables))
    for _ in range(2):
        # The second time takes the place of the first.
        (row,) = measured(found, run_suite(found))
    assert (row["archives"], row["requests"], row["bytes"]) == (2, 8, 2 * 300_007)
    wanted = {name.removeprefix("./"): content for name, content, kind in entries if kind == tarfile.REGTYPE}
    for number in ("00000000", "00000001"):
        root = tmp_path / "on/unpacked" / number
        assert {name: (root / name).read_bytes() for name in files_of(root)} == wanted


def test_archives_that_are_made_are_unpacked_again_and_again(tmp_path):
    """The mark knew the numbers of one archive, and five had been unpacked."""
    found = plan_suite("tar-extract", tmp_path / "on", RunOptions(variables={"files": "20", "count": "3"}))
    for _ in range(2):
        rows = measured(found, run_suite(found))
        assert [(row["archives"], row["requests"]) for row in rows] == [(1, 20), (3, 60)]
    assert [p.name for p in sorted((tmp_path / "on/unpacked").iterdir())][1:] == [f"{i:08}" for i in range(3)]
    (tmp_path / "on/unpacked/00000009").mkdir()
    with pytest.raises(Error, match="unpacked/00000009"):
        run_suite(found)


def test_nothing_in_an_archive_leads_out_of_its_directory(tmp_path):
    outside = tmp_path / "outside"
    entries = [("../../../outside", b"x", tarfile.REGTYPE), (str(outside), b"x", tarfile.REGTYPE)]
    entries += [("link", b"", tarfile.SYMTYPE), ("hard", b"", tarfile.LNKTYPE), ("in", b"x", tarfile.REGTYPE)]
    packed(tmp_path / "bad.tar", entries)
    variables = {"archives": str(tmp_path / "bad.tar")}
    found = plan_suite("tar-extract", tmp_path / "on", RunOptions(variables=variables))
    (summary,) = run_suite(found)
    told = "4 entries of archives are no files or directories, or lead elsewhere, and were left out"
    assert told in summary["notes"]
    assert measured(found, [summary])[0]["left_out"] == 4
    assert not outside.exists()
    assert list(files_of(tmp_path / "on/unpacked")) == ["00000000/in"]


def test_an_archive_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "no").write_text("a file")
    with pytest.raises(Error, match=r"a.tar.gz: cannot create"):
        make_archive(str(tmp_path / "no/a.tar.gz"), 1, 1)
    (tmp_path / "b.tar.gz").mkdir()
    with pytest.raises(Error, match=r"b.tar.gz: is a directory"):
        make_archive(str(tmp_path / "b.tar.gz"), 1, 1)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["b.tar.gz", "no"]


def test_a_damaged_archive_ends_the_run_with_its_name(tmp_path):
    make_archive(str(tmp_path / "it.tar.gz"), 50, 1)
    content = (tmp_path / "it.tar.gz").read_bytes()
    (tmp_path / "it.tar.gz").write_bytes(content[: len(content) // 2])
    found = plan_suite(
        "tar-extract", tmp_path / "on", RunOptions(variables={"archives": str(tmp_path / "it.tar.gz")})
    )
    (summary,) = run_suite(found)
    assert summary["partial"] and "it.tar.gz: " in summary["failure"]
    assert measured(found, [summary])[0]["seconds"] is None


def test_an_archive_whose_checksum_is_wrong_ends_the_run(tmp_path):
    """Its bytes were unpacked as they came, and nothing was said."""
    make_archive(str(tmp_path / "it.tar.gz"), 50, 1)
    content = bytearray((tmp_path / "it.tar.gz").read_bytes())
    content[-8] ^= 1
    (tmp_path / "it.tar.gz").write_bytes(content)
    found = plan_suite(
        "tar-extract", tmp_path / "on", RunOptions(variables={"archives": str(tmp_path / "it.tar.gz")})
    )
    (summary,) = run_suite(found)
    assert summary["partial"] and "checksum" in summary["failure"]


@pytest.mark.slow
def test_the_end_of_a_run_is_noticed_within_a_file(tmp_path):
    # More than a fast host unpacks in the time of the run.
    whole = 2 << 30
    head = tarfile.TarInfo("large")
    head.size = whole
    with gzip.open(tmp_path / "it.tar.gz", "wb", compresslevel=1) as file:
        file.write(head.tobuf())
        for _ in range(whole >> 20):
            file.write(bytes(1 << 20))
    found = plan_suite(
        "tar-extract", tmp_path / "on", RunOptions(variables={"archives": str(tmp_path / "it.tar.gz")})
    )
    found.plans[0]["steps"][-1]["duration_ns"] = 150_000_000
    (summary,) = run_suite(found)
    assert summary["failure"] is None and summary["requests"] == 0
    assert 0 < (tmp_path / "on/unpacked/00000000/large").stat().st_size < whole
    assert measured(found, [summary])[0]["seconds"] is None


@pytest.mark.parametrize(("cut", "what"), [(True, "ends without the blocks"), (False, "goes on behind")])
def test_a_part_of_an_archive_is_told(tmp_path, cut, what):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(os.urandom(5000))
        with tarfile.open(tmp_path / f"{name}.tar", "w", format=tarfile.GNU_FORMAT) as archive:
            archive.add(tmp_path / name, name)
    whole = (tmp_path / "a.tar").read_bytes()
    # A header and ten blocks of content, or all of both archives.
    part = whole[: 11 * 512] if cut else whole + (tmp_path / "b.tar").read_bytes()
    (tmp_path / "it.tar").write_bytes(part)
    options = RunOptions(variables={"archives": str(tmp_path / "it.tar")})
    found = plan_suite("tar-extract", tmp_path / "on", options)
    (summary,) = run_suite(found)
    assert summary["requests"] == 1
    assert [note for note in summary["notes"] if what in note and "it.tar" in note]


def test_own_archives_are_those_of_the_study_and_the_same_again(tmp_path):
    contents = []
    for number, (files, seed) in enumerate([(4000, 1), (300, 1), (300, 1), (300, 2)]):
        path = tmp_path / f"{number}.tar.gz"
        make_archive(str(path), files, seed)
        with tarfile.open(path) as archive:
            contents.append([(one.name, one.size) for one in archive])
    assert contents[1] == contents[2] != contents[3]
    sizes = [size for _, size in contents[0]]
    # 69 % of 2,870,713 files have up to 4 KiB, four binomial deviations either way.
    small = sum(size <= 4096 for size in sizes) / len(sizes)
    assert abs(small - 1_990_612 / 2_870_708) < 4 * (0.69 * 0.31 / 4000) ** 0.5


@pytest.mark.parametrize(
    ("name", "variables", "what"),
    [
        (
            "iozone",
            {"size": "4k", "record": "64k"},
            "the record of 65,536 bytes is larger than the file of 4,096",
        ),
        ("iozone", {"size": "64m", "record": "4k,8k"}, "`variables` every=yes brings them back"),
        ("iozone", {"record": "4q"}, "'4q' is not a size"),
        ("iozone", {"tests": "wite"}, "'wite' must be one of: write, rewrite"),
        ("iozone", {"direct": "yes", "record": "1000"}, "must be multiples of 4096, not 1000"),
        ("iozone", {"bs": "4k"}, "iozone has no such variable; it has size, record"),
        ("bonnie", {"size": "4k"}, "is less than a block of 8,192 bytes"),
        ("bonnie", {"seeks": "many"}, "wants a whole number of 1 or more"),
        (
            "vxbench",
            {"total": "64k", "bs": "64k"},
            "is less than a request of 65,536 bytes for each of 2 processes",
        ),
        ("mkfile", {"zeros": "maybe"}, "write yes or no"),
        ("cp-fanout", {"method": "cat"}, "write read or range"),
        ("iozone", {"size": "4e"}, "'4e' is not a size"),
        ("tar-extract", {"archives": "{tmp_path}/none.tar"}, "none.tar is no file"),
        ("bonnie", {"size": "1000t"}, "bytes there, and [0-9,]+ are free"),
        ("bonnie", {"size": "1m", "files": "9999999999"}, "inodes there, and [0-9,]+ are free"),
        ("touch-files", {"files": "9999999999", "bs": "1"}, "bytes there, and [0-9,]+ are free"),
        ("tar-extract", {"files": "9999999999"}, "bytes there, and [0-9,]+ are free"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_made(name, variables, what, tmp_path):
    given = {key: value.replace("{tmp_path}", str(tmp_path)) for key, value in variables.items()}
    with pytest.raises(Error, match=what):
        plan_suite(name, tmp_path, RunOptions(variables=given))
    assert files_of(tmp_path) == {}


@pytest.mark.parametrize("name", ["gz", "bz2", "xz", "txt", "none", "cut"])
def test_what_is_no_archive_is_refused_before_anything_is_made(name, tmp_path):
    path = tmp_path / f"it.{name}"
    text = b"root:x:0:0:root:/root:/bin/bash\n" * 100
    packed(tmp_path / "it.tar", [("a", b"one", tarfile.REGTYPE)])
    content = {
        "gz": lambda: gzip.compress(text),
        "bz2": lambda: bz2.compress((tmp_path / "it.tar").read_bytes()),
        "xz": lambda: lzma.compress((tmp_path / "it.tar").read_bytes()),
        "txt": lambda: text,
        "none": lambda: b"",
        "cut": lambda: (tmp_path / "it.tar").read_bytes()[:300],
    }
    path.write_bytes(content[name]())
    found = plan_suite("tar-extract", tmp_path / "on", RunOptions(variables={"archives": str(path)}))
    with pytest.raises(Error, match=rf"it\.{name} is no tar archive \(plain, gzip or zstd\)"):
        run_suite(found)
    assert not (tmp_path / "on").exists()


@pytest.mark.parametrize(
    ("name", "variables", "blocks", "needed"),
    [
        # Files of 512 bytes take a block of 1 KiB each, as do two directories and the mark.
        ("touch-files", {"directories": "1", "files": "100", "bs": "512"}, 102, "105,472 bytes there"),
        ("touch-files", {"directories": "1", "files": "100", "bs": "512"}, 103, None),
        ("touch-files", {"directories": "5", "files": "40"}, 1 << 20, "207 inodes there"),
        ("bonnie", {"size": "8k", "files": "300", "seeks": "1"}, 1 << 20, "307 inodes there"),
        ("bonnie", {"size": "1m", "files": "100", "filesize": "8k"}, 1500, "bytes there"),
        ("bonnie", {"size": "1m", "files": "100", "filesize": "8k"}, 1900, None),
        ("tar-extract", {"count": "2", "files": "20"}, 1000, "bytes there"),
        ("tar-extract", {"count": "2", "files": "90"}, 1 << 20, "193 inodes there"),
    ],
)
def test_files_need_whole_blocks_and_inodes(name, variables, blocks, needed, monkeypatch, tmp_path):
    room = os.statvfs_result((1024, 1024, blocks, blocks, blocks, 192, 181, 181, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _path: room)
    if needed is None:
        plan_suite(name, tmp_path, RunOptions(variables=variables))
    else:
        with pytest.raises(Error, match=needed):
            plan_suite(name, tmp_path, RunOptions(variables=variables))
    assert files_of(tmp_path) == {}


def test_what_archives_hold_is_neither_asked_for_nor_verified(tmp_path):
    with pytest.raises(Error, match="writes what its archives hold; leave out `content`"):
        plan_suite("tar-extract", tmp_path / "on", RunOptions(content={"dedupe": 2.0}))
    with pytest.raises(Error, match="nothing is known to verify; leave out `verify`"):
        plan_suite("tar-extract", tmp_path / "on", RunOptions(verify={}))
    assert not (tmp_path / "on").exists()


def test_directories_and_heads_of_archives_are_no_entries_that_are_left_out(tmp_path):
    with tarfile.open(tmp_path / "it.tar", "w", pax_headers={"comment": "of all"}) as archive:
        for name in (".", "a"):
            entry = tarfile.TarInfo(name)
            entry.type = tarfile.DIRTYPE
            archive.addfile(entry)
        archive.addfile(tarfile.TarInfo("a/b"))
    found = plan_suite(
        "tar-extract", tmp_path / "on", RunOptions(variables={"archives": str(tmp_path / "it.tar")})
    )
    (row,) = measured(found, run_suite(found))
    assert (row["count"], row["left_out"]) == (1, 0)


def test_an_archive_of_which_nothing_is_unpacked_is_told_of(loadstone, tmp_path):
    entries = [("../evil", b"x", tarfile.REGTYPE), ("link", b"", tarfile.SYMTYPE)]
    packed(tmp_path / "it.tar", entries)
    words = ["run", "tar-extract", "--on", tmp_path / "on", "-D", f"archives={tmp_path / 'it.tar'}"]
    done = loadstone(*words)
    heads, cells = table("tar-extract", json.loads(loadstone(*words, "--json").stdout)["measurements"])
    assert (heads[-1], cells[0][-1]) == ("left out", "2")
    assert done.stdout.splitlines()[-1].split()[-1] == "2"
    assert "note: 1 archive: not one file or seek succeeded" in done.stderr
    assert "note: 2 entries of archives are no files or directories" in done.stderr


def test_files_that_failed_are_not_counted(tmp_path):
    found = plan_suite(
        "touch-files", tmp_path, RunOptions(variables=SMALL["touch-files"] | {"tests": "single"})
    )
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        (summary,) = run_suite(found)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (row,) = measured(found, [summary])
    assert summary["short"] == 50
    assert (row["count"], row["per_s"], row["bytes"], row["requests"]) == (0, 0, 0, 100)
    # As many as the step that failed most: 19 files could not be made, and their bytes went elsewhere.
    steps = {"create": (50, 19), "write": (50, 0), "close": (50, 19)}
    told = {name: {"count": n, "errors": {"ENOSPC": failed}} for name, (n, failed) in steps.items()}
    (row,) = measured(found, [{**summary, "steps": told}])
    assert (row["count"], row["bytes"]) == (31, 31 * 6144)


@pytest.mark.parametrize("size", [1_000_001, 65_536, 1000])
@pytest.mark.parametrize("method", ["read", "range"])
def test_files_of_commands_have_the_very_size(size, method, tmp_path):
    for name, more in (("mkfile", {}), ("cp-fanout", {"copies": "2", "method": method})):
        found = plan_suite(name, tmp_path, RunOptions(variables={"size": str(size), **more}))
        summaries = run_suite(found)
        (row,) = measured(found, summaries)
        assert summaries[0]["errors"] + summaries[0]["short"] == 0
        assert (row["file"], row["bytes"]) == (size, size * row["processes"])
    assert set(files_of(tmp_path).values()) == {size} and len(files_of(tmp_path)) == 4


def test_files_of_whole_records_say_how_large_they_are(tmp_path):
    wanted = "a file of 10,485,760 bytes has 9,437,184: whole records of 3,145,728"
    variables = {"size": "10m", "record": "3m,5m", "tests": "write"}
    assert plan_suite("iozone", tmp_path, RunOptions(variables=variables)).notes == [wanted]
    found = plan_suite(
        "bonnie", tmp_path, RunOptions(variables={"size": "10m", "block": "3m", "tests": "write"})
    )
    assert found.notes == [wanted.replace("records", "blocks")]


@pytest.mark.slow
def test_time_is_told_from_requests_too(tmp_path):
    def hours(name, on, **variables):
        return plan_suite(name, on, RunOptions(variables=variables)).work.seconds / 3600

    passes = {"size": "64m", "record": "1k", "every": "yes", "processes": "4"}
    # 65,536 synchronous writes in each of four files, in six of the passes, and so many requests in 13.
    assert hours("iozone", tmp_path, **passes, osync="yes") == pytest.approx(
        (24 * 65_536 * 1e-3 + 52 * 65_536 * 2e-6 + 52 * (64 << 20) / 1e8) / 3600, rel=0.01
    )
    assert hours("iozone", tmp_path, **passes) < 0.02
    assert hours("iozone", "null:", size="1g-4t", record="4k") > 1
    assert hours("touch-files", "null:", directories="100", files="2000000") < 1


def test_files_without_content_ask_for_none(tmp_path):
    content = {"dedupe": 2.0, "compress": 2.0, "unit": 4096}
    found = plan_suite(
        "bonnie", tmp_path, RunOptions(variables=SMALL["bonnie"] | {"filesize": "0"}, content=content)
    )
    assert [plan.get("content") is None for plan in found.plans] == [False, False, True, True]
    assert all(one["spans"] for one in run_suite(found))
    with pytest.raises(Error, match=r"files in order: a dedupe ratio of 20: 10 blocks cannot have it"):
        plan_suite(
            "bonnie",
            tmp_path,
            RunOptions(variables=SMALL["bonnie"] | {"files": "10"}, content={"dedupe": 20.0, "unit": 4096}),
        )


def test_files_of_somebody_else_are_not_removed(tmp_path):
    (tmp_path / "mkfile").mkdir()
    (tmp_path / "mkfile" / "mine").write_text("kept")
    with pytest.raises(Error, match="was not made by Loadstone"):
        run_suite(plan_suite("mkfile", tmp_path, RunOptions(variables={"size": "64k"})))
    assert (tmp_path / "mkfile" / "mine").read_text() == "kept"


def test_the_command_prints_the_table_and_keeps_the_measurements(loadstone, tmp_path):
    words = ["run", "iozone", "--on", str(tmp_path / "on"), "--size", "128k", "--bs", "64k"]
    done = loadstone(*words, "-D", "tests=write,read", "--out", str(tmp_path / "out.bundle"))
    lines = done.stdout.splitlines()
    assert lines[1].split() == ["KiB", "record", "write", "read"]
    assert lines[2].split()[:2] == ["128", "64"]
    summary = json.loads((tmp_path / "out.bundle/summary.json").read_text())
    assert [row["test"] for row in summary["measurements"]] == ["write", "read"]
    done = loadstone(*words, "-D", "tests=write", "--json")
    told = json.loads(done.stdout)
    assert (told["suite"], told["partial"], told["measurements"][0]["bytes"]) == ("iozone", False, 128 << 10)


def test_what_is_written_is_as_asked_and_said_so(loadstone, tmp_path):
    words = [
        "run",
        "iozone",
        "--on",
        tmp_path / "on",
        "--size",
        "16m",
        "--bs",
        "64k",
        "-D",
        "tests=write,rewrite",
    ]
    done = loadstone(*words, "--dedupe", "2", "--compress", "2")
    asked, found = done.stdout.splitlines()[-2:]
    assert asked.startswith("content asked: dedupe 2, compress 2, in blocks of 4.0 KiB")
    values = dict(re.findall(r"(dedupe|lz4|zstd) ([0-9.]+)", found.split("; in pieces")[0]))
    # 4,096 blocks of which half are unique: three deviations of their ratio are 0.03.
    assert float(values["dedupe"]) == pytest.approx(2, abs=0.06)
    assert float(values["zstd"]) == pytest.approx(2, rel=0.02)
    assert float(values["lz4"]) == pytest.approx(2, rel=0.02)


def test_what_was_found_of_each_run_is_told_for_machines(loadstone, tmp_path):
    words = ["run", "iozone", "--on", str(tmp_path / "on"), "--size", "1m", "-D", "tests=write,read"]
    words += ["--dedupe", "2", "--verify"]
    loadstone(*words, "--out", str(tmp_path / "out.bundle"))
    kept = json.loads((tmp_path / "out.bundle/summary.json").read_text())["figures"]
    of_run = json.loads((tmp_path / "out.bundle/01-run1/summary.json").read_text())
    printed = json.loads(loadstone(*words, "--json").stdout)["figures"]
    for (one,) in (kept, printed):
        assert one["name"] == "run1" and one["requests"] == of_run["requests"]
        assert one["content"] == of_run["content"]
        assert one["verified"]["checked"] > 0 and one["verified"]["wrong"] == {}


def test_each_run_tells_what_it_left(loadstone, tmp_path):
    words = ["run", "bonnie", "--on", tmp_path / "on", "--size", "1m", "-D", "files=10", "-D", "seeks=4"]
    lines = [line for line in loadstone(*words, "--compress", "2").stdout.splitlines() if "content" in line]
    assert [line.split(" in ")[0] for line in lines] == [
        "content asked: dedupe 1, compress 2,",
        "file: content found",
        "seeks: content found",
    ]


def test_size_takes_several_as_its_variable_does(loadstone, tmp_path):
    words = ["run", "iozone", "--on", tmp_path / "on", "-D", "tests=write", "--json"]
    for text, sizes in (("64k,1m", [64, 1024]), ("64k-256k", [64, 128, 256])):
        rows = json.loads(loadstone(*words, "--size", text).stdout)["measurements"]
        assert [row["file"] >> 10 for row in rows] == sizes
    assert "'4m-1m' goes down" in loadstone(*words, "--size", "4m-1m", status=2).stderr
    done = loadstone("run", "randread", "--on", tmp_path / "on/x", "--size", "64k,1m", status=2)
    assert "--size 64k,1m: one size is wanted" in done.stderr


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["varmail", "--verify-state", "f"], "varmail runs in a directory, and a state is that of files"),
        (["iozone", "--source"], "iozone is no script"),
        (["mkfile", "--duration", "1s"], "mkfile ends when all of it is done"),
        (["iozone", "--backend", "sync"], "there is no back end to choose"),
        (["iozone", "--nice", "3"], "its own are variables, set with -D"),
        (["mkfile", "--dedupe", "nan"], "--dedupe"),
        (["mkfile", "--dedupe", "inf"], "--dedupe"),
        (["mkfile", "--compress", "nan"], "--compress"),
        (["randread", "--rate", "nan"], "--rate"),
        (["varmial", "--help"], "varmial: is not a workload; did you mean varmail?"),
    ],
)
def test_options_that_mean_nothing_say_why(words, what, loadstone):
    assert what in loadstone("run", *words, status=2).stderr


def test_who_does_not_begin_is_told_that_nothing_was_done(monkeypatch, tmp_path):
    monkeypatch.setattr(_confirm.sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(_confirm.click, "confirm", lambda *_, **__: False)
    found = plan_suite("iozone", "null:", RunOptions(variables={"size": "1g-4t", "record": "4k"}))
    with pytest.raises(click.exceptions.Exit):
        _confirm.confirm_long(found, False)
    _confirm.confirm_long(found, True)


def test_what_cannot_run_is_told_before_archives_are_made(tmp_path):
    with pytest.raises(Error, match=r"tar-extract: .* archive"):
        plan_suite("tar-extract", tmp_path / "on", RunOptions(variables={"files": "20"}, cache="remount"))
    assert not (tmp_path / "on").exists()


@pytest.mark.slow
def test_a_sweep_of_hours_asks_before_it_begins(loadstone, tmp_path):
    words = ["run", "iozone", "--sweep", "-D", "processes=1-8", "--on", str(tmp_path / "on")]
    done = loadstone(*words, status=1)
    assert re.search(r"of about [0-9,]+ requests, .* hours .*; give --yes to begin", done.stderr)
    assert not (tmp_path / "on").exists()


def test_help_of_a_suite_tells_what_it_is_about(loadstone):
    done = loadstone("run", "vxbench", "--help")
    for part in ("VxFS study", "-D NAME=VALUE", "processes", "-D processes="):
        assert part in done.stdout


def test_archives_are_made_through_no_link(tmp_path, loadstone):
    on, outside = tmp_path / "on", tmp_path / "outside"
    for folder in (on, outside):
        folder.mkdir()
    (on / "archives").symlink_to(outside)
    done = loadstone("run", "tar-extract", "--on", on, "-D", "count=1", "-D", "files=5", status=1)
    assert f"{on}/archives: is a link" in done.stderr and not list(outside.iterdir())
