"""Jobs that change the space of files, lie in zones, or come in an order of their own."""

from __future__ import annotations

import os
import subprocess

import pytest
from tests.fio.test_lower import lowered
from tests.fio.test_steering import fio

import loadstone
from loadstone.fio import FioError


@pytest.mark.parametrize(
    ("engine", "rw", "blocks"),
    [("falloc", "write", 16), ("falloc", "read", 16), ("ftruncate", "write", 0), ("falloc", "randtrim", 0)],
)
def test_files_are_as_fio_leaves_them(engine, rw, blocks, tmp_path, need_tools):
    """Their sizes and how much space they have, in blocks of 4 KiB."""
    need_tools("fio")
    text = f"[a]\nfilename=f\nioengine={engine}\nrw={rw}\nsize=64k\nbs=4k\n"
    (tmp_path / "ours").mkdir()
    files = [tmp_path / "f", tmp_path / "ours" / "f"]
    for file in files:
        file.write_bytes(os.urandom(65_536))
    [theirs] = fio(text, tmp_path)
    options = loadstone.RunOptions(allow_destroy=[files[1]])
    found = loadstone.run(loadstone.job(tmp_path / "job.fio", tmp_path / "ours", options)).summary
    way = {"randtrim": "trim"}.get(rw, rw)
    assert found["requests"] == theirs[way]["total_ios"] == 16
    assert found["bytes"] == theirs[way]["io_bytes"] == 65_536
    stats = [os.stat(file) for file in files]
    assert stats[0].st_size == stats[1].st_size
    assert [one.st_blocks // 8 for one in stats] == [blocks] * 2


def test_new_files_have_holes_where_no_space_is_reserved(tmp_path):
    for kind, blocks in (("none", 1), ("native", 256)):
        text = f"[{kind}]\nrw=randwrite\nsize=1m\nbs=4k\nnumber_ios=1\nfallocate={kind}\n"
        (tmp_path / "job.fio").write_text(text)
        loadstone.run(loadstone.job(tmp_path / "job.fio", tmp_path))
        assert os.stat(tmp_path / f"{kind}.0.0").st_blocks // 8 == blocks


@pytest.mark.parametrize(("engine", "left"), [("dircreate", 20), ("dirstat", 20), ("dirdelete", 0)])
def test_directories_are_called_once_each(engine, left, tmp_path):
    text = f"[a]\nioengine={engine}\nnrfiles=10\nnumjobs=2\nfilesize=4k\n"
    (tmp_path / "job.fio").write_text(text)
    (tmp_path / "on").mkdir()
    found = loadstone.run(loadstone.job(tmp_path / "job.fio", tmp_path / "on")).summary
    step = {"dircreate": "mkdir", "dirstat": "stat", "dirdelete": "rmdir"}[engine]
    assert (found["steps"][step]["count"], found["errors"]) == (20, 0)
    # Those of the workers hold them.
    below = [path for path in (tmp_path / "on").glob("a.*/**/") if not list(path.iterdir())]
    assert len(below) == left or (left == 0 and len(below) == 2)


def test_failed_requests_are_counted_apart(tmp_path):
    """ftruncate(2) is performed for writes; reads fail."""
    (tmp_path / "job.fio").write_text("[a]\nioengine=ftruncate\nrw=rw\nsize=4m\nbs=4k\n")
    bundle = loadstone.run(loadstone.job(tmp_path / "job.fio", tmp_path))
    summary, seconds = bundle.summary, bundle.summary["elapsed_ns"] / 1e9
    read, write = summary["ops"]["read"], summary["ops"]["write"]
    assert read["errors"] == {"EINVAL": read["count"]} and summary["errors"] == read["count"] > 0
    assert (read["ops_per_s"], read["service_ns"]["count"]) == (0, 0)
    assert write["ops_per_s"] == pytest.approx(write["count"] / seconds)
    assert summary["ops_per_s"] == pytest.approx(write["count"] / seconds)
    assert summary["requests"] == read["count"] + write["count"]


def test_rates_of_a_group_are_of_its_own_time(tmp_path):
    text = "[global]\nioengine=null\nsize=4m\nbs=4k\nrw=randread\nrate_iops=2000\n[a]\n[b]\nstartdelay=1\n"
    (tmp_path / "job.fio").write_text(text)
    bundle = loadstone.run(loadstone.job(tmp_path / "job.fio", "null:"), by="group")
    first, second = bundle.summary["groups"]
    assert first["begin_ns"] == 0 and second["begin_ns"] >= 1e9
    for one in (first, second):
        assert one["count"] == 1024
        assert one["ops_per_s"] == pytest.approx(1024 / ((one["end_ns"] - one["begin_ns"]) / 1e9))
    assert second["end_ns"] <= bundle.summary["elapsed_ns"]


def test_a_file_grows_until_nothing_is_free(tmp_path, need_root):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    try:
        free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
        (tmp_path / "on").mkdir()
        (tmp_path / "job.fio").write_text("[a]\nrw=write\nbs=64k\nfill_device=1\nfilename=f\n")
        job = loadstone.job(tmp_path / "job.fio", tmp_path / "on")
        assert loadstone.run(job).summary["bytes"] == job.plans[0]["targets"][0]["size"] > free - 131_072
        assert os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize < 65_536
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    with pytest.raises(FioError, match="jobs that only write"):
        lowered("[a]\nrw=rw\nfill_device=1\n", tmp_path)


def test_blocks_come_in_the_order_that_is_said(tmp_path):
    text = (
        "[a]\nioengine=null\nrw=randread\nbs=4k\nsize=48k\nio_size=24k\nrandom_distribution=sequence:2,0,1\n"
    )
    for more, blocks in (("", [2, 0, 1]), ("random_sequence_stride=1\n", [2, 0, 1, 3, 1, 2])):
        [plan] = lowered(text + more, tmp_path).plans
        [worker] = plan["workers"]
        assert [one["base"] // 4096 for one in worker["map"]["objects"]][: len(blocks)] == blocks
        assert worker["source"]["sequential"] and worker["requests"] == 6
    for wrong, what in [
        ("random_distribution=sequence:a", "write the numbers of blocks"),
        ("random_distribution=sequence:1\nrw=randrw", "only read or only write"),
    ]:
        with pytest.raises(FioError, match=what):
            lowered(f"[a]\nsize=1m\nrw=randread\n{wrong}\n", tmp_path)


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ("zonemode=zbd", "zoned devices are not known here"),
        ("zonemode=strided", "needs zonesize"),
        ("zonesize=4k", "needs zonemode=strided"),
        ("zonemode=strided\nzonesize=6k", "multiples of the block"),
        ("zonemode=strided\nzonesize=8k\nzonerange=4k", "is less than zonesize"),
        ("zonemode=strided\nzonesize=8k\nrw=randread", "ascend through one file"),
        ("loops=2\nio_size=2m\nfilesize=1m", "an io_size above the file's"),
        ("rw=rw\nrate=300,0", "give both a rate"),
        ("cpuload=50", "cpuload=50: needs ioengine=cpuio"),
    ],
)
def test_what_cannot_be_had_is_refused(keys, what, tmp_path):
    with pytest.raises(FioError, match=what):
        lowered(f"[a]\nsize=1m\n{keys}\n", tmp_path)


def test_rates_of_reads_and_writes_decide_the_mix(tmp_path):
    [plan] = lowered("[a]\nrw=randrw\nsize=1m\nrate=300k,100k\n", tmp_path).plans
    source = plan["workers"][0]["source"]
    assert (source["reads"], source["rate"]) == (0.75, 400 * 1024 / 4096)


def test_trims_share_files_with_jobs_that_bypass_the_page_cache(tmp_path):
    text = "[global]\nfilename=f\nsize=1m\n[a]\nrw=randtrim\n[b]\nrw=randwrite\ndirect=1\n"
    [plan] = lowered(text, tmp_path).plans
    assert [target["direct"] for target in plan["targets"]] == [True]
    swapped = text.replace("randtrim", "randwrite\ndirect=1").replace(
        "[b]\nrw=randwrite\ndirect=1", "[b]\nrw=trim"
    )
    assert lowered(swapped, tmp_path).plans[0]["targets"][0]["direct"]


def test_a_file_that_was_cut_off_is_cut_again_and_filled_before_it_is_read(tmp_path):
    text = "[global]\nfilename=f\nsize=1m\n[a]\nioengine=ftruncate\nrw=randwrite\n[b]\nstonewall\n"
    text += "ioengine=ftruncate\nrw=write\n[c]\nstonewall\nrw=read\n"
    (tmp_path / "job.fio").write_text(text)
    job = loadstone.job(tmp_path / "job.fio", tmp_path)
    assert [plan["targets"][0]["prepare"] for plan in job.plans] == ["none", "none", "fill"]
    figures = loadstone.run(job).summary["figures"]
    assert [(one["requests"], one["errors"]) for one in figures] == [(256, 0)] * 3


def test_what_others_wrote_is_verified_with_a_state(tmp_path):
    text = "[global]\nfilename=f\nsize=256k\nverify=meta\n[a]\nrw=write\n[b]\nstonewall\nrw=read\n"
    (tmp_path / "job.fio").write_text(text)
    with pytest.raises(loadstone.Error, match="before stonewall wrote; give `verify_state`"):
        loadstone.job(tmp_path / "job.fio", tmp_path)
    options = loadstone.RunOptions(verify_state=tmp_path / "state", allow_destroy=())
    figures = loadstone.run(loadstone.job(tmp_path / "job.fio", tmp_path, options)).summary["figures"]
    assert [one["verified"]["wrong"] for one in figures] == [{}, {}]
