"""The same jobs by fio: how many requests there are, of which sizes, and where they begin and end."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter

import numpy as np
import pytest

import loadstone
from loadstone.bundle import table
from loadstone.plan import RunOptions
from loadstone.workload import execute, plan_fio


@pytest.fixture(autouse=True)
def fio(need_tools):
    need_tools("fio")


NEW = [
    "rw=read:8k\nsize=64k",
    "rw=read:8k\nsize=64k\nio_size=128k",
    "rw=read:-8k\nsize=64k",
    "rw=read:-16k\nsize=64k",
    "rw=write:12k\nsize=64k",
    "rw=read:6k\nsize=60k\nloops=2",
    "rw=write\nfilesize=64k\nio_size=32k\nloops=2",
    "rw=write:12k\nfilesize=64k\nio_size=16k\nloops=3",
    "rw=read\nsize=128k\nzonemode=strided\nzonesize=8k\nzoneskip=16k",
    "rw=read\nsize=128k\nzonemode=strided\nzonesize=8k\nzonerange=16k\nzoneskip=16k",
    "rw=write\nsize=100k\nio_size=200k\nzonemode=strided\nzonesize=8k\nzoneskip=16k",
    "rw=write\nioengine=falloc\nsize=64k",
    "rw=write\nioengine=ftruncate\nsize=64k",
    "size=64k",
    "size=64k\nbs=8k",
    "size=1m\nio_size=64k",
    "size=64k\nio_size=256k",
    "filesize=1m\nsize=64k",
    "filesize=64k\nsize=1m",
    "filesize=256k\noffset=128k",
    "size=256k\nfilesize=256k\noffset=192k",
    "size=64k\noffset=128k",
    "size=64kib\nbs=1000",
    "size=1m\nnumber_ios=7",
    "size=64k\nnumber_ios=100",
    "size=64k\nbs=4k,8k",
    "size=64k\nrw=write\nbs=4k,8k",
    "size=64k\nrw=write\nbs=8k,",
    "size=64k\nbsrange=4k-4k",
    "size=64k\nbs=1k\nbssplit=8k/100",
    "size=64k\nblocksize=16k\nreadwrite=write",
    "size=64k\nnrfiles=2\nfile_service_type=sequential",
    # What is left of a file and fills no block is no request.
    "size=30k",
    "size=30k\nrw=write",
    "size=30k\nio_size=100k",
    "size=100k\nio_size=102k",
    "size=100k\nio_size=30k",
    "size=100k\nnrfiles=3\nfile_service_type=sequential",
    "size=30k\nloops=2\nrw=write",
    "size=32k\nnumber_ios=3\nloops=2",
    "size=64k\nba=16k",
    # Shares of what is not there yet.
    "size=64k\noffset=50%\nrw=write",
    "filesize=100k\nsize=50%\nrw=write",
    "filesize=100k\nsize=50%\noffset=8k\nrw=write",
    "size=100k\nio_size=50%\nrw=write",
    "size=64k\nrw=write\nfilename=a/b/c",
    "size=64k\nrw=write\nfilename_format=$jobname/$jobnum/$filenum",
]
"""Keys of a job that ascends through new files, so that nothing is left to chance."""

THERE = [
    "size=100%\noffset=32k",
    "size=100%",
    "size=99%",
    "size=60%\noffset=50%",
    "size=47%\nbs=8k",
    "offset=30%",
    "offset=10k",
    "offset=10k\nsize=50%",
    "io_size=50%",
    "io_size=50%\nsize=50%",
    "size=30k",
    "size=30k\noffset=2k",
    "filesize=30k",
    "size=30k\nio_size=60k",
    "size=30k\nloops=2",
    "size=20%\noffset_increment=40%",
    "size=47%\nbs=3000",
    "zonemode=strided\nzonesize=8k\nzoneskip=12k\noffset=4k",
]
"""Likewise in a file of 65,000 bytes that is there."""


def both(keys, folder, there=None, writes=False):
    """Requests of both: name of the file, offset, size and direction; and fio's summary of its only job."""
    log = folder / "iolog"
    for name, more in (("ours", ""), ("fio", f"write_iolog={log}\n")):
        (folder / name).mkdir(exist_ok=True)
        (folder / f"{name}.fio").write_text(f"[a]\n{keys}\n{more}")
        if there is not None:
            (folder / name / "f").write_bytes(os.urandom(there))
    words = ["fio", folder / "fio.fio", "--output-format=json"]
    ran = subprocess.run(words, cwd=folder / "fio", check=True, capture_output=True, text=True)
    [job] = json.loads(ran.stdout[ran.stdout.index("{\n") :])["jobs"]
    rows = [line.split() for line in log.read_text().splitlines()]
    theirs = [
        (os.path.relpath(row[1], folder / "fio") if row[1][0] == "/" else row[1], *map(int, row[3:5]), row[2])
        for row in rows
        if row[2:3] in (["read"], ["write"])
    ]
    allowed = [folder / "ours" / "f"] if there is not None and writes else []
    found = plan_fio(folder / "ours.fio", folder / "ours", RunOptions(allow_destroy=allowed))
    found.begin()
    [plan] = found.plans
    execute({**plan, "log": str(folder / "log.parquet")})
    ours = table.read(folder / "log.parquet", ["object", "offset", "size", "op"])
    names = [os.path.relpath(target["path"], folder / "ours") for target in plan["targets"]]
    rows = zip(ours["object"], ours["offset"], ours["size"], ours["op"], strict=True)
    return [(names[o], int(at), int(size), ("read", "write")[op]) for o, at, size, op in rows], theirs, job


@pytest.mark.parametrize("keys", NEW)
def test_requests_are_those_of_fio(keys, tmp_path):
    ours, theirs, _ = both(keys, tmp_path)
    assert theirs
    assert ours == theirs
    sizes = [
        {path.relative_to(top): path.stat().st_size for path in top.rglob("*") if path.is_file()}
        for top in (tmp_path / "ours", tmp_path / "fio")
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.slow
@pytest.mark.parametrize("keys", THERE)
@pytest.mark.parametrize("rw", ["read", "write"])
def test_parts_of_a_file_that_is_there_are_those_of_fio(keys, rw, tmp_path):
    ours, theirs, _ = both(f"filename=f\nrw={rw}\n{keys}", tmp_path, 65_000, rw == "write")
    assert theirs
    assert ours == theirs
    assert (tmp_path / "ours" / "f").stat().st_size == (tmp_path / "fio" / "f").stat().st_size


DRAWN = [
    "size=30k",
    "size=30k\nnorandommap",
    "size=30k\nio_size=100k",
    "size=100k\nio_size=102k\nnorandommap",
    "size=100k\nnrfiles=3",
    "size=1m\nba=16k",
    "size=1m\nrw=randrw",
    "size=16m\nbssplit=4k/60:64k/40",
    "size=16m\nbssplit=4k/60:64k/40\nnorandommap",
    "size=16m\nbssplit=4k/60:64k/40\nnumber_ios=200",
    "size=16m\nbssplit=4k/50:10k/50",
    "size=16m\nbssplit=10k/50:4k/50\nrw=read",
    "size=16m\nbsrange=4k-16k",
    "size=16m\nbsrange=4k-10k\nrw=read",
    "size=16m\nbsrange=3k-10k\nnorandommap",
    "size=16m\nbssplit=4k/50:64k/50\nio_size=40m",
    "size=70k\nnorandommap\nio_size=40m\nbssplit=4k/50:64k/50",
    "size=99k\nbssplit=4k/50:32k/50\nio_size=9m\nnorandommap",
    "size=1m\nba=1k\nbssplit=4k/50:64k/50\nio_size=40m",
    "size=16m\nnrfiles=3\nbssplit=4k/50:64k/50",
]
"""Jobs that draw: alike are how many requests there are, their bytes, sizes and how much they cover."""


@pytest.mark.slow
@pytest.mark.parametrize("keys", DRAWN)
def test_what_is_drawn_is_as_in_fio(keys, tmp_path):
    rw = "" if "rw=" in keys else "rw=randread\n"
    ours, theirs, _ = both(f"{rw}{keys}", tmp_path)
    bytes_ = [sum(row[2] for row in rows) for rows in (ours, theirs)]
    if "number_ios" not in keys:
        # The last request may reach further in one of both.
        assert bytes_[0] == pytest.approx(bytes_[1], abs=65_536 if "bs" in keys else 0, rel=1e-9)
    if "bs" not in keys:
        assert len(ours) == len(theirs)
    # Five standard deviations of what is drawn.
    spread = 5 * np.std([row[2] for row in theirs]) / np.mean([row[2] for row in theirs])
    assert len(ours) == pytest.approx(len(theirs), rel=spread / len(theirs) ** 0.5 * 2**0.5 + 1e-9)
    counts = [Counter(row[2] for row in rows) for rows in (ours, theirs)]
    for size in counts[0] | counts[1]:
        shares = [count[size] / sum(count.values()) for count in counts]
        assert shares[0] == pytest.approx(shares[1], abs=5 * (0.5 / len(theirs)) ** 0.5)
    if not any(one in keys for one in ("norandommap", "ba=", "number_ios", "rw=read")):
        assert covered(ours) == covered(theirs)


def covered(rows):
    """Bytes of each file that any request touches."""
    found = {}
    for name, offset, size, _ in rows:
        found.setdefault(name, set()).update(range(offset // 512, (offset + size) // 512))
    return {name: len(blocks) for name, blocks in found.items()}


@pytest.mark.parametrize("keys", ["rw=rw\nsize=64k", "rw=rw\nsize=30k", "rw=rw\nsize=1m\nrwmixread=70"])
def test_reads_and_writes_ascend_apart_as_in_fio(keys, tmp_path):
    ours, theirs, _ = both(keys, tmp_path)
    assert len(ours) == len(theirs)
    for rows in (ours, theirs):
        for way in ("read", "write"):
            offsets = [row[1] for row in rows if row[3] == way]
            assert offsets == [4096 * i for i in range(len(offsets))]


RATES = [
    "rate_iops=1000\nbssplit=4k/50:64k/50",
    "rate=34816000\nbssplit=4k/50:64k/50",
    "rate_iops=1000\nbs=4k",
    "rate_iops=1000\nbsrange=4k-64k",
    "rate_iops=1000\nrate_process=poisson\nbssplit=4k/50:64k/50",
    "rate=34816000\nrate_process=poisson\nbs=4k",
    "rate_iops=1000\nbssplit=4k/50:64k/50\nnorandommap=0",
]


@pytest.mark.parametrize("keys", RATES)
def test_a_rate_lasts_as_long_as_in_fio(keys, tmp_path):
    """When the last request is due: fio's time is told by how long it ran."""
    map_ = "" if "norandommap" in keys else "norandommap=1\n"
    more = f"rw=randread\nioengine=null\nsize=1g\nio_size=10g\nnumber_ios=200\n{map_}{keys}"
    theirs = both_null(more, tmp_path)
    [plan] = plan_fio(tmp_path / "job.fio", "null:").plans
    ours = execute({**plan, "log": str(tmp_path / "log.parquet")})
    assert ours["summary"]["requests"] == theirs["total_ios"] == 200
    log = table.read(tmp_path / "log.parquet", ["time", "size"])
    # Bytes are drawn, so what must agree is how long each takes; or how long all requests take.
    if "poisson" in keys:
        assert log["time"].max() / 1e9 == pytest.approx(theirs["runtime"] / 1e3, rel=0.4)
        return
    # A busy host makes some requests late, and none early.
    again = both_null(more, tmp_path)
    fio = min(one["runtime"] / 1e3 / one["io_bytes"] for one in (theirs, again))
    order = np.argsort(log["time"])
    before = np.cumsum(log["size"][order])[:-1]
    ours_each = (log["time"][order][1:] / 1e9 / before)[100:].min()
    assert ours_each == pytest.approx(fio, rel=0.05)


def both_null(keys, folder):
    (folder / "job.fio").write_text(f"[a]\n{keys}\n")
    ran = subprocess.run(
        ["fio", folder / "job.fio", "--output-format=json"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(ran.stdout[ran.stdout.index("{\n") :])["jobs"][0]["read"]


@pytest.mark.parametrize("engine", ["filecreate", "filestat", "filedelete"])
def test_names_are_called_as_often_as_by_fio(engine, tmp_path):
    keys = f"ioengine={engine}\nnrfiles=40\nfilesize=4k\nnumjobs=3\nopenfiles=1\nfallocate=none\n"
    keys += "create_on_open=1\n" if engine == "filecreate" else "unlink=0\n"
    (tmp_path / "job.fio").write_text(f"[a]\n{keys}")
    for name in ("fio", "ours"):
        (tmp_path / name).mkdir()
    words = ["fio", tmp_path / "job.fio", "--output-format=json"]
    ran = subprocess.run(words, cwd=tmp_path / "fio", check=True, capture_output=True, text=True)
    jobs = json.loads(ran.stdout[ran.stdout.index("{\n") :])["jobs"]
    theirs = sum(job[way]["total_ios"] for job in jobs for way in ("read", "write"))
    bundle = loadstone.run(loadstone.job(tmp_path / "job.fio", tmp_path / "ours"))
    step = {"filecreate": "create", "filestat": "stat", "filedelete": "remove"}[engine]
    assert bundle.summary["steps"][step]["count"] == theirs == 120
    assert bundle.summary["errors"] == 0
    left = [
        sum(path.is_file() and path.name != ".loadstone" for path in (tmp_path / name).rglob("*"))
        for name in ("ours", "fio")
    ]
    assert left[0] == left[1] == (0 if engine == "filedelete" else 120)


@pytest.mark.parametrize(
    ("keys", "steps"),
    [
        ("rw=randrw\nbs=4k,16k\nnorandommap", {"read": 4096, "write": 16384}),
        ("rw=randrw\nbs=16k,4k\nrwmixread=80\nnorandommap", {"read": 16384, "write": 4096}),
        ("rw=randrw\nbssplit=4k/50:8k/50,32k/100\nnorandommap", {"read": 4096, "write": 32768}),
        ("rw=randrw\nbsrange=4k-8k,16k-32k\nnorandommap", {"read": 4096, "write": 16384}),
    ],
)
def test_reads_and_writes_have_sizes_and_places_of_their_own(keys, steps, tmp_path):
    ours, theirs, _ = both(f"{keys}\nsize=16m", tmp_path)
    counts = [Counter((way, size) for _, _, size, way in rows) for rows in (ours, theirs)]
    assert set(counts[0]) == set(counts[1])
    for rows in (ours, theirs):
        assert all(at % steps[way] == 0 and at + size <= 16 << 20 for _, at, size, way in rows)
    # Both move what size says, up to the last request.
    total = [sum(size for _, _, size, _ in rows) for rows in (ours, theirs)]
    assert abs(total[0] - total[1]) <= 32768
    for one, mine in counts[0].items():
        # Five standard deviations of the difference of two shares.
        share = [mine / len(ours), counts[1][one] / len(theirs)]
        assert abs(share[0] - share[1]) < 5 * (0.25 / len(ours) + 0.25 / len(theirs)) ** 0.5


def test_reads_and_writes_of_other_sizes_ascend_apart(tmp_path):
    """As in fio, from the beginning on and each where it ended."""
    ours, theirs, _ = both("rw=rw\nbs=4k,16k\nsize=8m", tmp_path)
    for rows in (ours, theirs):
        for way, size in (("read", 4096), ("write", 16384)):
            places = [at for _, at, _, found in rows if found == way]
            assert places == [number * size for number in range(len(places))]
