"""What jobs of fio's become: plans, notes, or refusals that say why."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loadstone import Error
from loadstone.fio import (
    ACCEPTED,
    ALIASES,
    ENGINES,
    OTHER_ENGINES,
    REFUSED,
    USED,
    FioError,
    Settings,
    lower,
    parse,
)
from loadstone.fio._keys import BY_NAME, IDLE
from loadstone.plan import RunOptions, check
from loadstone.workload import plan_fio

MB = 1 << 20


def lowered(text, on="null:", **settings):
    """Plans of a text, each of which the engine would take."""
    found = lower(parse(text, "x.fio", None, {}), Settings(on=str(on), options=RunOptions(**settings)))
    for plan in found.plans:
        check(plan)
    return found


def worker(keys, on="null:", **settings):
    """The only worker of a job of these keys, a megabyte large unless they say other."""
    size = "" if re.search(r"^(file)?size=", keys, re.M) else "size=1m\n"
    [plan] = lowered(f"[a]\n{size}{keys}\n", on, **settings).plans
    [one] = plan["workers"]
    return one


def source(keys):
    return worker(keys)["source"]


def notes(keys):
    return "\n".join(lowered(f"[a]\nsize=1m\n{keys}\n").notes)


def test_a_job_without_keys_is_what_it_is_in_fio():
    [plan] = lowered("[a]\nsize=1m\n").plans
    assert plan["workers"] == [
        {
            "group": "a",
            "source": {"kind": "uniform", "reads": 1.0, "size": 4096, "sequential": True, "rate": 0.0},
            "pace": {"kind": "closed"},
            "backend": "null",
            "depth": 1,
            "cpus": [],
            "map": {"objects": [{"object": 0, "target": "t0", "base": 0, "size": MB}]},
            "requests": 256,
            "reads_only": True,
        }
    ]
    assert plan["steps"] == [{"step": "run", "duration_ns": 0}]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("rw=randwrite", {"reads": 0.0, "sequential": False, "once": True, "fit": None}),
        ("rw=randwrite\nnorandommap", {"sequential": False, "once": None}),
        ("rw=randwrite\nnorandommap=0", {"once": True}),
        (
            "rw=randread\nba=16k",
            {"once": None, "size": 16384, "sizes": [{"share": 1, "low": 4096, "high": 4096}]},
        ),
        ("ba=16k", {"size": 4096, "sizes": None}),
        ("readwrite=write", {"reads": 0.0, "sequential": True, "once": None, "apart": None}),
        ("rw=readwrite", {"reads": 0.5, "sequential": True, "apart": True}),
        ("rw=randrw\nrwmixread=70", {"reads": 0.7, "sequential": False}),
        ("rw=randrw\nrwmixread=70\nrwmixwrite=60", {"reads": 0.4}),
        ("bs=8k", {"size": 8192}),
        ("bs=0x1000", {"size": 4096}),
        ("bs=4k,8k", {"size": 4096}),
        ("rw=write\nbs=4k,8k", {"size": 8192}),
        ("rw=write\nbs=8k,", {"size": 4096}),
        ("rw=write\nbs=,8k", {"size": 8192}),
        ("rw=randrw\nbs=8k,8k,1k", {"size": 8192}),
        ("bs=8k\nba=8k", {"size": 8192}),
        ("bsrange=4k-16k", {"size": 4096, "sizes": [{"share": 1, "low": 4096, "high": 16384}]}),
        ("bsrange=16k-4k", {"size": 4096, "sizes": [{"share": 1, "low": 4096, "high": 16384}]}),
        (
            "bsrange=3k-10k",
            {
                "size": 3072,
                "sizes": [
                    {"share": 0.9, "low": 3072, "high": 9216},
                    {"share": 0.1, "low": 10240, "high": 10240},
                ],
                "fit": "redraw",
                "bytes": MB,
            },
        ),
        (
            "bssplit=10k/30:4k/70",
            {
                "sizes": [
                    {"share": 30, "low": 8192, "high": 8192},
                    {"share": 70, "low": 4096, "high": 4096},
                ]
            },
        ),
        ("bs=4k\nbsrange=8k-8k", {"size": 8192}),
        ("bsrange=8k-16k\nbs=2k", {"size": 2048}),
        (
            "bs=1k\nbssplit=4k/60:64k/",
            {
                "size": 4096,
                "sizes": [
                    {"share": 60, "low": 4096, "high": 4096},
                    {"share": 40, "low": 65536, "high": 65536},
                ],
            },
        ),
        ("bssplit=8k/100", {"size": 8192}),
        (
            "rw=randread\nrandom_distribution=zipf:1",
            {"skew": {"kind": "zipf", "exponent": 1.0}, "once": None},
        ),
        ("rw=randread\nrandom_distribution=zipf", {"skew": {"kind": "zipf", "exponent": 1.1}}),
        ("rw=randread\nrandom_distribution=zipf:0.9", {"skew": {"kind": "zipf", "exponent": 0.9}}),
        ("rw=randread\nrandom_distribution=pareto:0.3", {"skew": {"kind": "pareto", "share": 0.3}}),
        ("rw=randread\nrandom_distribution=random", {"reads": 1.0}),
        ("rw=randread\npercentage_random=25", {"follow": 0.75, "sequential": False}),
        ("rw=randread\npercentage_random=0", {"sequential": True}),
        ("percentage_random=25", {"sequential": True}),
        ("rate_iops=500", {"rate": 500.0}),
        ("rate_iops=500\nrate_process=poisson", {"rate": 500.0, "arrival": {"kind": "poisson"}}),
        # fio makes bytes of it, of requests of the smallest size; of what comes by chance requests.
        ("rate_iops=500\nbssplit=4k/50:64k/50", {"rate": 0.0, "byte_rate": 500 * 4096.0}),
        ("rate_iops=500\nbsrange=8k-64k", {"rate": 0.0, "byte_rate": 500 * 8192.0}),
        (
            "rate_iops=500\nbssplit=4k/50:64k/50\nrate_process=poisson",
            {"rate": 500.0, "byte_rate": None, "arrival": {"kind": "poisson"}},
        ),
        (
            "rate=34816000\nbssplit=4k/50:64k/50\nrate_process=poisson",
            {"rate": 8500.0, "arrival": {"kind": "poisson"}},
        ),
        ("rate=34816000\nbssplit=4k/50:64k/50", {"rate": 0.0, "byte_rate": 34816000.0}),
        ("rate=1m\nbs=8k", {"rate": 128.0}),
        ("rate=1m\nbs=2k,8k", {"rate": 512.0}),
        ("rw=write\nrate_iops=10,20", {"rate": 20.0}),
    ],
)
def test_sources(keys, expected):
    found = source(keys)
    assert {key: found.get(key) for key in expected} == expected
    usual = {
        "kind",
        "reads",
        "size",
        "sequential",
        "rate",
        *(["sizes"] if "bss" in keys or "bsr" in keys else []),
    }
    assert found.keys() - expected.keys() <= usual | {"once", "fit", "apart", "bytes"}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("iodepth=16\nioengine=io_uring", {"depth": 16}),
        ("iodepth=16\nioengine=libaio", {"depth": 16}),
        ("iodepth=16", {"depth": 1}),
        ("rate_iops=500", {"pace": {"kind": "open", "speed": 1.0}}),
        ("name=b", {"group": "b"}),
        ("cpus_allowed=0,2-3,2", {"cpus": [0, 2, 3]}),
        ("cpumask=5", {"cpus": [0, 2]}),
        ("size=64k\nio_size=1m", {"requests": 256}),
        ("filesize=64k\nsize=1m", {"requests": 16}),
        ("filesize=1m\nsize=64k", {"requests": 16}),
        ("filesize=1m\noffset=128k", {"requests": 224}),
        ("bs=3000\nsize=10000", {"requests": 3}),
        ("bssplit=4k/50:12k/50", {"requests": 0}),
        ("size=64k\nloops=3", {"requests": 48}),
        ("number_ios=9\nruntime=5\ntime_based", {"requests": 0}),
        ("number_ios=100", {"requests": 100}),
        ("number_ios=1000", {"requests": 256}),
        ("runtime=5", {"requests": 256}),
        ("runtime=5\ntime_based", {"requests": 0}),
        ("runtime=5\ntime_based=0", {"requests": 256}),
        ("size=64k\nnumber_ios=8", {"requests": 8}),
        ("direct=1\nsync=1", {"backend": "null"}),
        ("fsync=0\nthinktime=0\nverify=0\nunlink=0\nramp_time=0s", {"depth": 1}),
    ],
)  # fmt: skip
def test_workers(keys, expected):
    found = worker(keys)
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("1k", 1024), ("1kb", 1024), ("1Ki", 1024), ("1KiB", 1000), ("1kib", 1000), ("2m", 2 << 20),
        ("2MiB", 2_000_000), ("1g", 1 << 30), ("1t", 1 << 40), ("512", 512), ("512b", 512), ("0x400", 1024),
    ],
)  # fmt: skip
def test_sizes_are_read_as_fio_reads_them(text, bytes_, tmp_path):
    assert worker(f"bs=1\nsize={text}")["map"]["objects"][0]["size"] == bytes_
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed; only the expected figure was compared")
    file = tmp_path / "x.fio"
    file.write_text(f"[a]\nsize={text}\n")
    told = subprocess.run(
        ["fio", "--parse-only", "--debug=parse", file], capture_output=True, text=True, check=True
    )
    assert re.search(rf"ret=0, out={bytes_}\b", told.stdout)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("30s", 30), ("2m", 120), ("1h", 3600), ("1d", 86400), ("500ms", 0.5), ("20us", 2e-5)],
)
def test_times(text, seconds):
    [plan] = lowered(f"[a]\nsize=1m\nruntime={text}\n").plans
    assert plan["steps"][-1]["duration_ns"] == seconds * 1e9


def test_jobs_together_and_one_after_the_other():
    text = """
[global]
size=1m
bs=8k
[one]
numjobs=2
[two]
rw=randwrite
[three]
stonewall
runtime=7
time_based
[four]
runtime=7
wait_for_previous=0
time_based
"""
    found = lowered(text)
    groups = [[one["group"] for one in plan["workers"]] for plan in found.plans]
    assert groups == [["one", "one", "two"], ["three", "four"]]
    assert found.names == [["one", "two"], ["three", "four"]]
    assert [plan["steps"][-1]["duration_ns"] for plan in found.plans] == [0, 7_000_000_000]
    # Each of numjobs has a file of its own, as long as none is named.
    assert [target["id"] for target in found.plans[0]["targets"]] == ["t0", "t1", "t2"]


def test_files_lie_below_the_directory_of_the_run(tmp_path):
    (tmp_path / "sub").mkdir()
    text = (
        "[global]\nsize=1m\n[a]\nnumjobs=2\n[b]\ndirectory=sub\n[c]\nfilename=x\\:y\n"
        f"[d]\nfilename={tmp_path}/sub/z\n[e/f]\nfilename_format=$jobname-$jobnum\n"
    )
    [plan] = lowered(text, tmp_path).plans
    names = [os.path.relpath(target["path"], tmp_path) for target in plan["targets"]]
    assert names == ["a.0.0", "a.1.0", "sub/b.0.0", "x:y", "sub/z", "e/f-0"]
    assert {target["prepare"] for target in plan["targets"]} == {"fill"}
    assert plan["steps"][:2] == [{"step": "prepare"}, {"step": "drop_caches"}]
    assert not list(tmp_path.glob("a*"))


def test_jobs_that_share_a_file_share_a_target(tmp_path):
    text = "[global]\nfilename=x\nrw=randrw\n[a]\nsize=1m\n[b]\nsize=2m\noffset=1m\nnumjobs=2\n"
    [plan] = lowered(text + "offset_increment=1m\n", tmp_path).plans
    [target] = plan["targets"]
    assert (target["size"], target["prepare"]) == (4 * MB, "fill")
    assert [one["map"]["objects"][0]["base"] for one in plan["workers"]] == [0, MB, 2 * MB]


def test_one_file_for_all(tmp_path):
    file = tmp_path / "x"
    file.write_bytes(bytes(64 << 10))
    [plan] = lowered("[a]\nsize=50%\noffset=25%\n[b]\n", file).plans
    assert [one["map"]["objects"][0] for one in plan["workers"]] == [
        {"object": 0, "target": "t0", "base": 16 << 10, "size": 32 << 10},
        {"object": 0, "target": "t0", "base": 0, "size": 64 << 10},
    ]
    [target] = plan["targets"]
    assert (target["path"], target["prepare"], target["allow_destroy"]) == (str(file), "none", False)
    # Named in the job, too: the same.
    assert lowered(f"[a]\nfilename={file}\n", file).plans[0]["targets"][0]["path"] == str(file)


def test_flags_of_the_target(tmp_path):
    def target(keys):
        return lowered(f"[a]\nsize=1m\n{keys}\n", tmp_path).plans[0]["targets"][0]

    assert (target("")["direct"], target("")["sync"]) == (False, "none")
    assert target("direct=1")["direct"] and target("buffered=0")["direct"]
    assert not target("direct=1\nbuffered=1")["direct"]
    assert [target(f"sync={x}")["sync"] for x in ("0", "1", "sync", "dsync")] == [
        "none", "sync", "sync", "dsync"
    ]  # fmt: skip
    # What is only written is not written beforehand, as in fio.
    assert target("rw=write")["prepare"] == "none"
    assert target("rw=write\noverwrite=1")["prepare"] == "fill"
    steps = lowered("[a]\nsize=1m\ninvalidate=0\n", tmp_path).plans[0]["steps"]
    assert [step["step"] for step in steps] == ["prepare", "run"]


def test_what_an_earlier_plan_made_is_the_runs_own(tmp_path):
    def prepares(first, second):
        text = f"[global]\nfilename=x\nsize=1m\n[a]\n{first}\n[b]\nstonewall\n{second}\n"
        targets = [plan["targets"][0] for plan in lowered(text, tmp_path).plans]
        assert not any(target["allow_destroy"] for target in targets)
        return [(target["prepare"], target.get("made_before", False)) for target in targets]

    # Written from end to end: nothing is left to fill.
    assert prepares("rw=write", "rw=read") == [("none", False), ("none", True)]
    assert prepares("rw=randwrite", "rw=read") == [("none", False), ("none", True)]
    assert prepares("rw=randwrite\nnorandommap", "rw=read") == [("none", False), ("fill", True)]
    assert prepares("rw=write\nruntime=1", "rw=read") == [("none", False), ("fill", True)]
    assert prepares("rw=write\nbs=3000", "rw=read") == [("none", False), ("fill", True)]
    assert prepares("rw=randwrite", "rw=write") == [("none", False), ("none", True)]
    assert prepares("rw=read", "rw=randwrite\nsize=2m") == [("fill", False), ("fill", True)]


def test_several_files():
    [plan] = lowered("[a]\nfilename=x:y\nsize=1m\nrw=randread\nfile_service_type=random\n").plans
    assert [extent["size"] for extent in plan["workers"][0]["map"]["objects"]] == [MB // 2, MB // 2]
    assert plan["workers"][0]["requests"] == 256
    [plan] = lowered("[a]\nnrfiles=4\nsize=1m\nrw=write\nfile_service_type=sequential\n").plans
    assert len(plan["targets"]) == 4
    assert "not in turn" in notes("nrfiles=2\nrw=randread")


def test_options_stand_above_the_jobs(tmp_path):
    text = "[a]\nsize=1m\nrandseed=7\ncpus_allowed=0\nruntime=5\n"
    assert lowered(text).plans[0]["seed"] == 7
    [plan] = lowered(text, seed=9, duration=2.0, cpus=[1], interval=0.5).plans
    assert (plan["seed"], plan["interval_ns"]) == (9, 500_000_000)
    assert plan["steps"][-1]["duration_ns"] == 2_000_000_000
    assert (plan["workers"][0]["cpus"], plan["workers"][0]["requests"]) == ([1], 0)
    split = lowered("[a]\nsize=1m\nnumjobs=3\ncpus_allowed=0-1\ncpus_allowed_policy=split\n").plans[0]
    assert [one["cpus"] for one in split["workers"]] == [[0], [1], [0]]


@pytest.mark.parametrize("engine", [name for name in ENGINES if ENGINES[name][0] not in IDLE])
def test_engines(engine, tmp_path):
    one = worker(f"ioengine={engine}\niodepth=8", tmp_path)
    backend, alone = ENGINES[engine]
    if backend in BY_NAME:
        backend = "posix"
    assert one["backend"] in ((backend, "sync") if backend == "io_uring" else (backend,))
    assert one["depth"] == (1 if alone else 8)


@pytest.mark.parametrize("engine", OTHER_ENGINES)
def test_other_engines_are_refused_with_what_to_do(engine):
    with pytest.raises(FioError, match=f"ioengine={engine}: fio knows it, Loadstone does not: "):
        worker(f"ioengine={engine}")


@pytest.mark.parametrize("key", REFUSED)
def test_keys_that_cannot_be_honoured_are_refused_with_the_reason(key):
    refused = REFUSED[key]
    with pytest.raises(FioError) as caught:
        worker(f"{key}=7x")
    assert caught.value.what == f"{key}=7x: fio knows it, Loadstone does not: {refused.why}"
    # What asks for nothing is no error.
    for nothing in refused.nothing:
        worker(f"{key}={nothing}")


@pytest.mark.parametrize("sum_", ["crc32c", "md5", "sha3-256", "xxhash", "meta"])
def test_checksums_ask_for_verification(sum_, tmp_path):
    assert lowered(f"[a]\nsize=1m\nrw=write\nverify={sum_}\n", tmp_path).plans[0]["verify"] == {}
    # It is asked of all jobs that run together, and of no others.
    both = f"[a]\nsize=1m\nrw=write\nverify={sum_}\n[b]\nsize=1m\n[c]\nstonewall\nsize=1m\n"
    assert ["verify" in plan for plan in lowered(both, tmp_path).plans] == [True, False]
    assert "verify" not in lowered(f"[a]\nsize=1m\nverify={sum_}\n").plans[0], "goes nowhere"


def test_values_of_verify_that_ask_for_nothing_or_anything_else(tmp_path):
    for nothing in ("0", "none", "null"):
        assert "verify" not in lowered(f"[a]\nsize=1m\nverify={nothing}\n", tmp_path).plans[0]
    assert "verify" in lowered("[a]\nsize=1m\nverify=pattern\n", tmp_path).plans[0]
    for other in ("patterns", "crc32d"):
        with pytest.raises(FioError, match=f"verify={other}: .*is no checksum of blocks"):
            lowered(f"[a]\nsize=1m\nverify={other}\n")


NOTES = [
    ("ignore_error=,ENOSPC", "a failed request is counted and ends no job"),
    ("iodepth_batch=4", "up to 8 requests are handed over at once"),
    ("verify=pattern\nverify_pattern=0xff", "verify_pattern=0xff has no effect: what is read is verified"),
    ("iodepth=4", "iodepth has no effect with psync, in fio either"),
    ("ioengine=libaio", "libaio is performed by io_uring"),
    ("rate_iops=5", "due at times of their own"),
    ("runtime=5\ntime_based\nnumber_ios=9", "number_ios has no effect with time_based, in fio either"),
    ("random_distribution=zipf:1", "has no effect on requests that ascend"),
    ("write_bw_log=x", "write_bw_log=x has no effect: no log of fio's is written; --out keeps"),
    ("randrepeat=0", "randrepeat=0 has no effect: the same seed gives the same requests always"),
]


@pytest.mark.parametrize(("keys", "note"), NOTES)
def test_notes(keys, note):
    assert note in notes(keys)


@pytest.mark.parametrize(
    "keys",
    [
        "rw=randread\nnorandommap",
        "group_reporting",
        "thread\ndescription=x\nrandrepeat=1",
        "fallocate=posix",
        "rw=randread\nrandom_distribution=zipf:1",
        "refill_buffers\nclat_percentiles=0",
    ],
)
def test_what_is_as_in_fio_needs_no_note(keys):
    assert notes(keys) == ""


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        ("dedupe_percentage=50", {"dedupe": 2.0, "compress": 1.0, "unit": 4096}),
        ("buffer_compress_percentage=75\nbs=64k", {"dedupe": 1.0, "compress": 4.0, "unit": 65536}),
        ("buffer_compress_percentage=50\nbuffer_compress_chunk=1k", {"compress": 2.0}),
        ("dedupe_percentage=80\nbuffer_compress_percentage=20\nbs=4m", {"dedupe": 5.0, "compress": 1.25}),
        ("refill_buffers", {"dedupe": 1.0, "compress": 1.0}),
        ("dedupe_percentage=50\nbs=4m\nsize=8m", {"unit": 1 << 20}),
        ("dedupe_percentage=50\nbssplit=8k/50:24k/50", {"unit": 8192}),
        ("dedupe_percentage=50\nbs=1000", {"unit": 4096}),
        ("dedupe_percentage=50\nbs=64k\n[b]\nsize=1m\nbs=16k\ndedupe_percentage=50", {"unit": 16384}),
    ],
)
def test_shares_of_what_is_written_become_ratios(keys, asked, tmp_path):
    size = "" if "size=8m" in keys else "size=4m\n"
    found = lowered(f"[a]\nrw=write\n{size}{keys}\n", tmp_path)
    content = found.plans[0]["content"]
    assert {key: content[key] for key in asked} == pytest.approx(asked)


def test_what_asks_for_no_content_has_none(tmp_path):
    keys = "dedupe_percentage=0\nbuffer_compress_percentage=0\nbuffer_compress_chunk=512"
    assert "content" not in lowered(f"[a]\nrw=write\nsize=1m\n{keys}\n", tmp_path).plans[0]
    text = "[a]\nrw=write\nsize=1m\ndedupe_percentage=50\n[b]\nsize=1m\n"
    [plan] = lowered(text, tmp_path, content={"dedupe": 3.0}).plans
    assert plan["content"] == {"dedupe": 3.0}


# Keys of a job of one megabyte, message.
ERRORS = [
    ("rw=trimwrite", "rw=trimwrite: discards that are followed by writes"),
    ("ioengine=page_fault", "touches memory and no storage"),
    ("ioengine=filestat\nloops=2", "is not for calls on names"),
    ("ioengine=filestat\n[b]\nsize=1m", "runs with jobs that call files by name"),
    ("rw=rw:8k", "needs requests of one op and one size"),
    ("startdelay=1-5", "a delay by chance"),
    ("thinktime=5\nrate_iops=7", "and a rate both space requests out"),
    ("wait_for=b\n[b]\nsize=1m", "is no job that runs with this one and stands above it"),
    ("exitall\nexit_what=all\n[b]\nstonewall\nsize=1m", "jobs that come later cannot be left out"),
    ("rw=randread:8", "several random requests in a row"),
    ("rw=reed", "must be one of: read, write"),
    ("bs=4x", "bs=4x: '4x' is no size; write it like 4096, 4k or 1g"),
    ("bs=4.5k", "is no size"),
    ("bs=4*1024", "is no size; write it like 4096, 4k or 1g; arithmetic is not done"),
    ("bs=", "bs=: has no value; write one, or leave the key out"),
    ("bs=0", "1 to 268435456 bytes, and not 0"),
    ("bs=1g", "1 to 268435456 bytes, and not 1073741824"),
    ("rw=randrw\nbs=4k,8k\nrate=1m", "needs reads and writes of the same sizes; write a job for each"),
    ("rw=randrw\nbs=4k,8k\nrandom_distribution=zipf", "needs reads and writes of the same sizes"),
    ("rw=randrw\nbs=4k,8k\nba=16k", "needs reads and writes of the same sizes"),
    ("bs=1,2,3,4", "has more than three values"),
    ("bs=512\nsize=9999999g\nrw=randread", "8,589,934,592 blocks; write norandommap=1, or larger blocks"),
    ("rw=randread\nbsrange=1-8k\nba=512", "goes with at most 4,096 different sizes; use fewer"),
    ("directory=a::b", "has an empty name"),
    ("io_size=2m\nloops=2", "goes with an io_size above the file's in ways of fio's own"),
    ("rw=randread\noffset=4k\nloops=2", "goes with offset in ways of fio's own"),
    ("bsrange=4k", "write two sizes with - between"),
    ("bssplit=4k/60:8k/30", "the percentages add up to 90, and not to 100"),
    ("bssplit=4k/60:8k/50", "add up to 110"),
    ("bssplit=4k/x", "'x' is no whole number"),
    ("bssplit=4k/50:8k\nbs=1k", "bs=1k: bssplit in line 3 says the sizes already; leave one out"),
    ("rwmixread=101\nrw=rw", "101 must be from 0 to 100"),
    ("percentage_random=200\nrw=randread", "200 must be from 0 to 100"),
    ("random_distribution=normal:5\nrw=randread", "normal cannot be drawn"),
    ("random_distribution=normal:50\nrw=randread", "normal cannot be drawn"),
    ("random_distribution=zoned:50/5\nrw=randread", "do not add up to 100"),
    ("random_distribution=zoned:100\nrw=randread", "is no zone; write ACCESS/SIZE"),
    ("random_distribution=zoned:60/60:40/50\nrw=randread", "more than 100 percent"),
    ("random_distribution=zoned_abs:100/2m\nrw=randread\nsize=1m", "more than the 1048576 bytes there are"),
    ("random_distribution=zoned:50/5,50/5\nrw=randread", "reads and writes have the same zones"),
    ("random_distribution=zipf:1.2/0.5\nrw=randread", "hot blocks have no centre"),
    ("random_distribution=zipf:x\nrw=randread", "'x' is no number"),
    ("random_distribution=pareto:1\nrw=randread", "1 must lie between 0 and 1"),
    ("random_distribution=gamma\nrw=randread", "must be one of: random, zipf:THETA, pareto:H"),
    ("ioengine=fast", "must be one of: sync, psync"),
    ("iodepth=0", "0 must be from 1 to 4096"),
    ("iodepth=many", "'many' is no whole number"),
    ("direct=yes", "write 1 or 0"),
    ("time_based=2\nruntime=1", "write 1 or 0"),
    ("runtime=1.5", "is no time; write a whole number with d, h, m, s, ms or us"),
    ("runtime=99999999d", "is more than 30 years"),
    ("sync=2", "must be one of: none, 0, sync"),
    ("size=0", "is nothing"),
    ("size=120%", "120% is more than the whole"),
    ("size=50%", "is a share of a file that is not there yet; write the bytes"),
    ("size=9999999t", "is more than any file has"),
    ("filesize=1k-2k", "files of a job have one size"),
    ("size=1k", "has 1024 bytes of a file for requests of 4096"),
    ("filename=a::b", "has an empty name"),
    ("filename=-", "standard input and output are no targets"),
    ("filename=a:a\nrw=randread", "has a name twice"),
    ("filename=a:b\nnrfiles=3\nrw=randread", "filename names 2; leave one of both out"),
    ("filename=a\nfilename_format=$jobname", "filename in line 3 names the files; leave one out"),
    ("filename_format=$clientuid", "is made of text, $jobname, $jobnum and $filenum"),
    ("filesize=64k\noffset=64k", "begins at byte 65536 of"),
    ("nrfiles=2", "2 files are taken one after the other; write file_service_type=sequential"),
    ("nrfiles=2\nrw=randread\nfile_service_type=sequential", "are chosen by chance; use file_service_type"),
    ("nrfiles=2\nrw=randread\nrandom_distribution=zipf:1", "hot blocks of several files"),
    ("rate=1m\nrate_iops=5", "is a rate, and so is rate in line 3; leave one out"),
    ("rate_iops=5,\nrw=randrw", "limits reads or writes alone"),
    ("rate_process=bursty", "must be one of: linear, poisson"),
    ("numjobs=0", "0 must be from 1"),
    ("numjobs=65535\n[b]\nsize=1m\n", "makes more than 65,535 workers; use a smaller numjobs"),
    ("numjobs=60000\nnrfiles=9\nbs=1\nrw=randread", "uses more than 262,144 files over all workers"),
    ("numjobs=40000\nnrfiles=2\nrw=randread", "makes more than 65,535 files"),
    ("cpus_allowed=3-1", "3-1 goes down; exchange the numbers"),
    ("cpus_allowed=one", "'one' is no whole number"),
    ("randseed=x", "'x' is no whole number"),
    ("cpumask=0", "0 must be from 1"),
    ("offset=8e\n", "is no size"),
    (
        "ramp_time=5\n[b]\nsize=1m",
        "its ramp_time is not that of [a], which runs with it; make both alike, or use",
    ),
    ("randseed=5\n[b]\nrandseed=6\nsize=1m", "its randseed is not that of [a]"),
    ("invalidate=0\n[b]\nsize=1m", "its invalidate is not that of [a]"),
    ("dedupe_percentage=50\n[b]\nsize=1m", "its dedupe_percentage is not that of [a]"),
    ("refill_buffers\n[b]\nsize=1m", "its refill_buffers is not that of [a]"),
    ("dedupe_percentage=100", "100 must be from 0 to 99"),
    ("buffer_compress_percentage=91", "91 must be from 0 to 90"),
    ("buffer_compress_percentage=4", "is less than codecs need to find anything; write 0, or 5 to 90"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("keys", "message"), ERRORS)
def test_what_cannot_be_had_is_refused(keys, message):
    text = f"[a]\nsize=1m\n{keys}\n"
    with pytest.raises(FioError, match=re.escape(message)):
        lowered(text)


def test_places_that_cannot_be_are_refused(tmp_path):
    there = tmp_path / "there"
    there.write_bytes(b"x" * 8192)
    (tmp_path / "link").symlink_to("/")
    for keys, message in [
        ("filename=../x\nsize=1m", f"does not lie below {tmp_path}; use a name below it, or `rebase`"),
        ("filename=/etc/passwd", f"/etc/passwd does not lie below {tmp_path}"),
        ("directory=/etc\nsize=1m", "does not lie below"),
        ("filename=link/x\nsize=1m", "does not lie below"),
        ("filename=.\nsize=1m", "does not lie below"),
        ("filename=new", "is not there yet; write its size"),
        ("filename=new\nsize=50%", "is a share of a file that is not there yet"),
        ("filename=there\nsize=1m", "reaches byte 1048576 of"),
        ("filename=there\noffset=8k", "begins at byte 8192"),
        ("filename=there\nrw=randwrite", "was there before, and the job would overwrite it"),
        ("filename=x\nsize=1m\n[b]\nfilename=x\nsize=1m\ndirect=1", "job a uses"),
        ("filename=x\nsize=1m\nsync=1\n[b]\nfilename=x\nsize=1m", "with another sync; put stonewall between"),
    ]:
        with pytest.raises(FioError, match=re.escape(message)):
            lowered(f"[a]\n{keys}\n", tmp_path)
    for keys, on, message in [
        ("filename=other", there, "is not what `on` names"),
        ("filename=a:b\nrw=randread", there, "are 2 files, and `on`"),
        ("directory=sub", there, "is no directory that this could lie in"),
    ]:
        with pytest.raises(FioError, match=re.escape(message)):
            lowered(f"[a]\n{keys}\n", on)
    with pytest.raises(Error, match="is no target of this run"):
        lowered("[a]\nsize=1m\n", tmp_path, allow_destroy=["/etc/passwd"])


def test_rebase_and_allow_destroy(tmp_path):
    there = tmp_path / "there"
    there.write_bytes(b"x" * 8192)
    (tmp_path / "mnt").mkdir()
    [plan] = lowered("[a]\nfilename=/mnt/x\nsize=1m\n", tmp_path, rebase=True).plans
    assert plan["targets"][0]["path"] == str(tmp_path / "mnt/x")
    [plan] = lowered("[a]\nfilename=there\nrw=randwrite\n", tmp_path, allow_destroy=[there]).plans
    assert plan["targets"][0]["allow_destroy"] and plan["targets"][0]["prepare"] == "none"
    [plan] = lowered("[a]\nfilename=there\nsize=1m\n", tmp_path, allow_destroy=[there]).plans
    assert (plan["targets"][0]["size"], plan["targets"][0]["prepare"]) == (MB, "fill")


def test_all_files_that_were_there_are_told_at_once(tmp_path):
    jobs = "[w]\nrw=randwrite\nsize=64k\nnumjobs=3\nnrfiles=4\n[r]\nstonewall\nrw=randwrite\nsize=64k\n"
    for name in (*(f"w.{i}.{j}" for i in range(3) for j in range(4)), "r.0.0"):
        (tmp_path / name).write_bytes(b"x" * 65536)
    with pytest.raises(FioError, match="13 files were there before") as told:
        lowered(jobs, tmp_path)
    assert ", and 5 others; name new ones" in str(told.value)
    assert str(told.value).endswith(f"`allow_destroy` {tmp_path} to give up what the jobs write there")


def test_a_directory_gives_up_the_files_of_the_jobs_in_it(tmp_path):
    on, elsewhere = tmp_path / "on", tmp_path / "elsewhere"
    (on / "in").mkdir(parents=True)
    elsewhere.write_bytes(b"x" * 65536)
    jobs = "[w]\nrw=randwrite\nsize=64k\nfilename=in/a\n[v]\nrw=randwrite\nsize=64k\nfilename=b\n"
    # Nothing is there yet, as when a script runs for the first time.
    assert not [
        one for one in lowered(jobs, on, allow_destroy=[on]).plans[0]["targets"] if one["allow_destroy"]
    ]
    for name in ("in/a", "b"):
        (on / name).write_bytes(b"x" * 65536)
    found = lowered(jobs, on, allow_destroy=[on]).plans[0]["targets"]
    assert [one["allow_destroy"] for one in found] == [True, True]
    with pytest.raises(FioError, match=f"{on}/b was there before"):
        lowered(jobs, on, allow_destroy=[on / "in"])
    (on / "b").unlink()
    (on / "b").symlink_to(elsewhere)
    with pytest.raises(FioError, match=f"{on}/b was there before"):
        lowered(jobs, on, allow_destroy=[on])
    (on / "b").unlink()
    os.link(elsewhere, on / "b")
    with pytest.raises(FioError, match=f"{on}/b was there before"):
        lowered(jobs, on, allow_destroy=[on])
    os.link(elsewhere, on / "in/a2")
    with pytest.raises(FioError, match="name each with `allow_destroy`, as these are links or hard links"):
        lowered(jobs.replace("in/a", "in/a2"), on, allow_destroy=[on])
    assert lowered(jobs, on, allow_destroy=[on, on / "b"]).plans[0]["targets"][1]["allow_destroy"]
    for other in (tmp_path, on / "none"):
        with pytest.raises(Error, match=r"were there before|is no target of this run"):
            lowered(jobs, on, allow_destroy=[other])
    (on / "empty").mkdir()
    with pytest.raises(Error, match=f"{on}/empty: is no target of this run"):
        lowered("[n]\nrw=randwrite\nsize=64k\n", on, allow_destroy=[on / "empty"])


@pytest.mark.root
@pytest.mark.parametrize("mounted", ["in", "in/a"])
def test_a_directory_does_not_give_up_what_is_mounted_in_it(tmp_path, need_root, need_tools, mounted):
    need_tools("mount", "umount")
    on, elsewhere = tmp_path / "on", tmp_path / "elsewhere"
    for folder in (on / "in", elsewhere):
        folder.mkdir(parents=True)
        (folder / "a").write_bytes(b"x" * 65536)
    source = elsewhere / "a" if mounted == "in/a" else elsewhere
    subprocess.run(["mount", "--bind", source, on / mounted], check=True)
    try:
        with pytest.raises(FioError, match=f"{on}/in/a was there before"):
            lowered("[w]\nrw=randwrite\nsize=64k\nfilename=in/a\n", on, allow_destroy=[on])
    finally:
        subprocess.run(["umount", on / mounted], check=True)


def test_the_library_says_what_is_missing(tmp_path):
    with pytest.raises(Error, match="No such file"):
        plan_fio(tmp_path / "x.fio", None)
    with pytest.raises(Error, match="more than 0 seconds"):
        plan_fio("x.fio", "null:", RunOptions(duration=0))
    with pytest.raises(FioError, match="has no end on null"):
        lowered("[a]\nrw=read\n")


@pytest.mark.parametrize(
    ("name", "workers"),
    [("four-corners.fio", [1, 1, 4, 4]), ("database.job", [3]), ("tiny.ini", [2])],
)
def test_usual_job_files_become_plans(name, workers):
    found = plan_fio(Path(__file__).parent / "fixtures" / name, "null:")
    assert [len(plan["workers"]) for plan in found.plans] == workers


def test_what_surrounds_a_job(tmp_path):
    """Priorities are those of workers, advice is that of files used in one way, and mmap is a backend."""
    text = "[a]\nsize=1m\nnice=-5\nprio=3\n[b]\nsize=1m\nrw=randwrite\nioengine=mmap\nprioclass=3\n"
    plan = lowered(text, tmp_path).plans[0]
    first, second = plan["workers"]
    assert (first["nice"], first["ioprio"]) == (-5, {"class": "best_effort", "level": 3})
    assert (second["backend"], second["ioprio"]["class"]) == ("mmap", "idle")
    assert [target.get("advice") for target in plan["targets"]] == ["sequential", "random"]
    shared = "[a]\nfilename=f\nsize=1m\n[b]\nfilename=f\nsize=1m\nrw=randread\n"
    assert "advice" not in lowered(shared, tmp_path).plans[0]["targets"][0]
    assert "advice" not in lowered("[a]\nsize=1m\nfadvise_hint=0\n", tmp_path).plans[0]["targets"][0]
    assert "advice" not in lowered("[a]\nsize=1m\ndirect=1\n", tmp_path).plans[0]["targets"][0]
    for wrong, what in [
        ("nice=20", "20 must be from -20 to 19"),
        ("prioclass=4", "4 must be from 1 to 3"),
        ("prioclass=3\nprio=1", "the idle class has no levels"),
        ("fadvise_hint=noreuse", "none, 1, random, sequential"),
    ]:
        with pytest.raises(FioError, match=what):
            lowered(f"[a]\nsize=1m\n{wrong}\n")


def test_the_page_tells_every_key_and_engine(root):
    page = " ".join((root / "docs/reference/fio.md").read_text().split())
    for key in {*USED, *ACCEPTED, *REFUSED, *ALIASES, *ENGINES, *OTHER_ENGINES}:
        assert f"`{key}`" in page, f"docs/reference/fio.md does not tell {key}"
    reasons = {*USED.values(), *(one.why for one in [*ACCEPTED.values(), *REFUSED.values()])}
    for reason in reasons | {*OTHER_ENGINES.values()}:
        assert reason in page, f"docs/reference/fio.md does not say: {reason}"


def test_a_section_names_files_and_its_own_name_is_for_results(tmp_path):
    text = "[global]\nname=bench\nsize=1m\n[alpha]\nrw=write\nname=gamma\n[beta]\nstonewall\n"
    found = lowered(text, tmp_path)
    assert found.names == [["gamma"], ["beta"]]
    names = [os.path.basename(plan["targets"][0]["path"]) for plan in found.plans]
    assert names == ["alpha.0.0", "beta.0.0"]


LINES = st.builds(
    "{}={}\n".format,
    st.sampled_from(sorted({*USED, *ALIASES})),
    st.one_of(
        st.sampled_from(
            ["0", "1", "4k", "1m", "50%", "randrw", "read", "a:b", "4k/50:8k", "zipf:1.5", "-", "1,2"]
        ),
        st.sampled_from(
            ["9" * 18, "8k-64k", "null", "split", "libaio", "0x10", "poisson", "sequential", ".", "/"]
        ),
        st.text(st.characters(exclude_characters="\n\r;#\0"), max_size=6),
    ),
)
SECTIONS = st.sampled_from(["[a]\nsize=1m\n", "[b]\n", "[global]\n", "[c]\nstonewall\nsize=64k\n"])


@given(st.lists(st.one_of(LINES, LINES, SECTIONS), max_size=12))
@example(["numjobs=65535\n", "nrfiles=4096\n", "rw=randread\n"])
def test_any_jobs_become_plans_that_can_run_or_an_error(lines):
    try:
        found = lower(parse("[a]\nsize=1m\n" + "".join(lines), "x.fio", None, {}), Settings(on="null:"))
    except Error:
        return
    for plan in found.plans:
        check(plan)


def test_a_directory_of_calls_is_never_given_up(tmp_path):
    """Whoever gives up a directory means the files that jobs name; what lay in ``x.0`` was deleted."""
    (tmp_path / "x.0").mkdir()
    (tmp_path / "x.0" / "thesis.txt").write_text("precious")
    (tmp_path / "y.dat").write_bytes(bytes(65536))
    jobs = (
        "[x]\nioengine=filestat\nnrfiles=3\nfilesize=4k\n[y]\nstonewall\nrw=write\nfilename=y.dat\nsize=64k\n"
    )
    with pytest.raises(
        Error, match=r"x\.0, which was there before and was not made by Loadstone; move that away"
    ):
        lowered(jobs, tmp_path, allow_destroy=[tmp_path])
    (tmp_path / "x.0" / "thesis.txt").rename(tmp_path / "thesis.txt")
    calls, writes = lowered(jobs, tmp_path, allow_destroy=[tmp_path]).plans
    assert not calls["targets"][0]["allow_destroy"] and writes["targets"][0]["allow_destroy"]
