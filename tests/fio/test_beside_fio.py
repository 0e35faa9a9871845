"""The same jobs by fio: how many requests there are, of which sizes, and where they begin and end."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from loadstone.bundle import table
from loadstone.workload import execute, plan_fio

JOBS = [
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
]


@pytest.mark.parametrize("keys", JOBS)
def test_requests_are_those_of_fio(keys, tmp_path):
    """Jobs that ascend, so that nothing is left to chance."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    log = tmp_path / "iolog"
    for name, more in (("ours", ""), ("fio", f"write_iolog={log}\n")):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.fio").write_text(f"[a]\n{keys}\n{more}")
    words = ["fio", tmp_path / "fio.fio", "--output=/dev/null"]
    subprocess.run(words, cwd=tmp_path / "fio", check=True, capture_output=True)
    rows = [line.split() for line in log.read_text().splitlines()]
    theirs = [
        (row[1].rsplit("/")[-1], int(row[3]), int(row[4]))
        for row in rows
        if row[2:3] in (["read"], ["write"])
    ]
    assert theirs
    [plan] = plan_fio(tmp_path / "ours.fio", tmp_path / "ours").plans
    execute({**plan, "log": str(tmp_path / "log.parquet")})
    ours = table.read(tmp_path / "log.parquet", ["object", "offset", "size"])
    names = [target["path"].rsplit("/")[-1] for target in plan["targets"]]
    found = zip(ours["object"], ours["offset"], ours["size"], strict=True)
    assert [(names[o], int(offset), int(size)) for o, offset, size in found] == [
        (name.removeprefix(f"{tmp_path}/fio/"), offset, size) for name, offset, size in theirs
    ]
