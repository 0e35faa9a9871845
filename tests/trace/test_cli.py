"""The command line of traces, and what it leaves behind when it fails."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys

import pytest
from tests.trace.conftest import SPC


def one_error(done, *parts):
    """Exactly one line, with everything it must name, and nothing on standard output."""
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    for part in parts:
        assert str(part) in lines[0], done.stderr


def test_describe(loadstone, golden, root):
    golden(
        "trace-describe-loop0.txt", loadstone("trace", "describe", "examples/loop0.parquet", cwd=root).stdout
    )


def test_describe_json(loadstone, spc):
    found = json.loads(loadstone("trace", "describe", spc, "--json").stdout)
    assert found["requests"] == 3
    assert found["info"]["format"] == "spc"


def test_convert_select_describe(loadstone, spc, tmp_path):
    out, part, picture = tmp_path / "t.parquet", tmp_path / "u.parquet", tmp_path / "u.svg"
    done = loadstone("trace", "convert", spc, "-o", out)
    assert "3 requests from spc" in done.stdout
    assert loadstone("trace", "convert", spc, "-o", out, status=1).stderr.count("--force") == 1
    found = json.loads(loadstone("trace", "select", out, "-o", part, "--from", "400ms", "--json").stdout)
    assert (found["requests"], found["dropped"]) == (2, 1)
    loadstone("trace", "describe", part, "--plot", picture)
    assert picture.exists()


def test_delimited(loadstone, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("kind,us,lba,bytes\nR,1,8,512\nW,3,9,512\n")
    mapping = ["--columns", "time=us:us,op=kind,offset=lba:sector,size=bytes:byte"]
    done = loadstone("trace", "describe", path, *mapping, "--read", "R", "--write", "W", "--json")
    assert json.loads(done.stdout)["requests"] == 2
    unsaid = loadstone("trace", "describe", path, *mapping, status=2)
    assert "reads and which are writes" in unsaid.stderr and unsaid.stdout == ""
    one_error(loadstone("trace", "describe", path, status=1), path, "--columns")
    done = loadstone("trace", "describe", path, "--read", "R", status=2)
    assert "--read: needs --columns" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("empty.spc", "", ["is empty"]),
        ("cut.spc", SPC + "0,1,51", ["line 4", "cut short"]),
        ("head.spc", "Unit,LBA,Bytes,Op,Time\n" + SPC, ["line 1", "header line"]),
        ("negative.spc", SPC + "0,-8,512,R,1.0\n", ["line 4", "not negative"]),
        ("wild.spc", SPC + "0,8486082789636758048,1404153856,W,1.0\n", ["line 4", "beyond any device"]),
        ("op.spc", SPC + "0,8,512,T,1.0\n", ["line 4", 'unknown op code "T"']),
        ("late.spc", "0,8,512,R,100.0\n" + SPC, ["line 2", "--sort"]),
        (
            "cut.vscsi",
            b"\1\0\0\0" + b"\0\2\0\0" + b"\0" * 4 + b"\x28\0\0\1" + b"\0" * 16 + b"xyz",
            ["byte 32", "truncated"],
        ),
        ("cut.spc.gz", gzip.compress(SPC.encode() * 50, mtime=0)[:60], ["cannot decompress", "cut short"]),
        ("cut.parquet", b"PAR1xxxx", ["damaged Parquet"]),
        ("none.spc", None, ["no such file"]),
    ],
)
def test_bad_input_is_one_clear_error_and_leaves_nothing(loadstone, tmp_path, name, content, parts):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = sorted(os.listdir(tmp_path))
    for verb in (["convert", "-o", tmp_path / "o.parquet"], ["describe"]):
        one_error(loadstone("trace", *verb, path, status=None), path, *parts)
        assert sorted(os.listdir(tmp_path)) == before


def test_damage_among_good_lines(loadstone, tmp_path):
    """Two lines of this DiskMon trace have wild sectors, as in one of p2p downloads; the others are good."""
    path = tmp_path / "diskmon.trace"
    wild = "8486082789636758048\t2742488"
    ops = ("Read", "Write")
    good = [f"{i}\t{i / 100}\t0.00{i % 7}\t0\t{ops[i % 2]}\t{i * 37}\t80\t" for i in range(2, 3000)]
    path.write_text(
        "".join(
            f"{line}\r\n"
            for line in [
                f"0\t0.004\t0.005\t0\tWrite\t{wild}\t",
                f"1\t0.005\t0.004\t0\tWrite\t{wild}\t",
                *good,
            ]
        )
    )
    mapping = ["--columns", "time=1:s,latency=2:s,object=3,op=4,offset=5:sector,size=6:sector"]
    mapping += ["--read", "Read", "--write", "Write", "--separator", "tab", "--sort"]
    done = loadstone("trace", "convert", path, "-o", tmp_path / "o.parquet", *mapping, status=None)
    one_error(done, path, "line 1", "beyond any device", "--max-damaged")
    done = loadstone(
        "trace", "convert", path, "-o", tmp_path / "o.parquet", *mapping, "--max-damaged", "10", "--json"
    )
    info = json.loads(done.stdout)
    assert info["counts"]["damaged"] == 2
    assert info["counts"]["requests"] == len(good)


def long_trace(path, rows):
    with path.open("w") as file:
        for i in range(rows):
            file.write(f"{i % 3},{i * 7919 % 100003},4096,{'RW'[i % 2]},{i / 1000:.6f}\n")


def test_a_full_disk_without_root(loadstone, tmp_path):
    """A limit on the size of files stands for the disk."""
    path, out = tmp_path / "t.spc", tmp_path / "o.parquet"
    long_trace(path, 200_000)

    code = "from loadstone.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "trace", "convert", str(path), "-o", str(out)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )
    one_error(done, out, "cannot write", "File too large")
    assert os.listdir(tmp_path) == ["t.spc"]


def test_a_full_disk(loadstone, need_root, tmp_path):
    path, disk = tmp_path / "t.spc", tmp_path / "disk"
    long_trace(path, 200_000)
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    try:
        done = loadstone("trace", "convert", path, "-o", disk / "o.parquet", status=None)
        one_error(done, disk / "o.parquet", "cannot write", "No space left", "make room")
        assert os.listdir(disk) == []
        done = loadstone("trace", "describe", path, "--sort", "--temp-dir", disk, "--json")
        assert json.loads(done.stdout)["requests"] == 200_000
    finally:
        subprocess.run(["umount", disk], check=True)


def test_memory_does_not_grow_with_the_trace(tmp_path):
    """Four million requests (about 110 MB of text) pass through convert, sorted, in 200 MB."""
    path = tmp_path / "t.spc"
    long_trace(path, 250_000)
    text = path.read_text().splitlines(keepends=True)
    with path.open("w") as file:
        # The same times again and again: only --sort can bring them into order.
        for _ in range(16):
            file.writelines(text)
    code = (
        "import sys\n"
        "from loadstone import trace\n"
        "print(trace.convert(sys.argv[1], sys.argv[2], sort=True, level=1)['counts']['requests'])\n"
        # Not ru_maxrss, which counts what the process had before it was this program.
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(tmp_path / "o.parquet")],
        capture_output=True,
        text=True,
        check=True,
    )
    requests, kilobytes = map(int, done.stdout.split())
    assert requests == 4_000_000
    assert kilobytes < 300_000


@pytest.mark.slow
def test_one_cpus_file_of_a_capture_is_not_replayed_without_a_word(loadstone, root, tmp_path):
    part = (root / "fuzz/seeds/blktrace/little.blktrace").read_bytes()
    for number in (0, 1, 10):
        (tmp_path / f"sda.blktrace.{number}").write_bytes(part)
    (tmp_path / "sdb.blktrace.0").write_bytes(part)
    told = loadstone("replay", tmp_path / "sda.blktrace.1", "--on", "null:", "--dry-run")
    assert "sda.blktrace.0, sda.blktrace.10 lie beside it" in told.stderr
    assert f"name {tmp_path / 'sda'} to have all" in told.stderr
    for whole in ("sda", "sdb.blktrace.0"):
        assert not loadstone("replay", tmp_path / whole, "--on", "null:", "--dry-run").stderr
    told = loadstone("evaluate", tmp_path / "sda.blktrace.1", "--on", "null:", "--dry-run").stderr
    assert "sda.blktrace.0, sda.blktrace.10 lie beside it" in told
    assert "lie beside" not in loadstone("evaluate", tmp_path / "sda", "--on", "null:", "--dry-run").stderr


def test_the_base_of_any_capture_is_a_trace(loadstone, root, tmp_path):
    part = (root / "fuzz/seeds/blktrace/little.blktrace").read_bytes()
    (tmp_path / "sda.blktrace.3.gz").write_bytes(gzip.compress(part))
    for base in ("sda", "sda.blktrace"):
        assert json.loads(loadstone("replay", tmp_path / base, "--on", "null:", "--dry-run").stdout)
    told = loadstone("replay", tmp_path / "sd", "--on", "null:", "--dry-run", status=1).stderr
    assert "there is no such trace" in told
