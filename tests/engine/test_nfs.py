"""Traces of NFS, replayed on files."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.test_tree import listing

from loadstone import trace

# What the session left (tests/data/README.md): kind and size.
LEFT = {
    "gone": ("folder", 0),
    "gone/again": ("file", 50),
    "home": ("folder", 0),
    "home/hard": ("file", 15000),
    "home/new": ("folder", 0),
    "home/new/c": ("file", 10000),
    "home/notes": ("file", 1234),
    "home/soft": ("link", 0),
    "home/was": ("folder", 0),
    "home/was/0": ("file", 300),
    "home/was/1": ("file", 12000),
    "lead": ("link", 0),
    "o-d d\u00e9": ("file", 10),
}


@pytest.fixture
def session(root: Path) -> Path:
    """A capture of a client's session."""
    return root / "tests/data/nfs-session.pcap.gz"


@pytest.mark.parametrize("options", [["--pace", "max"], ["--pace", "x20"], ["--pace", "max", "--depth", "1"]])
def test_a_session_leaves_the_files_it_left(
    session: Path, loadstone: Callable[..., Any], tmp_path: Path, options: list[str]
) -> None:
    done = loadstone("replay", session, "--on", tmp_path / "tree", *options, "--json")
    summary = json.loads(done.stdout)
    assert summary["requests"] > 100 and summary["errors"] == 0
    assert listing(tmp_path / "tree" / "export") == LEFT
    assert (tmp_path / "tree/export/home/soft").resolve() == tmp_path / "tree/export/home/hard"


def test_from_parquet_as_from_the_capture(
    session: Path, loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    stored = tmp_path / "a.parquet"
    trace.convert(session, stored)
    described, again = (
        json.loads(loadstone("trace", "describe", p, "--json").stdout) for p in (session, stored)
    )
    assert described["ops"] == again["ops"] and described["info"]["layer"] == "nfs"
    assert {"op": "rename", "requests": 3} in [
        {k: o[k] for k in ("op", "requests")} for o in described["ops"]
    ]
    summary = json.loads(
        loadstone("replay", stored, "--on", tmp_path / "tree", "--pace", "max", "--json").stdout
    )
    assert summary["errors"] == 0
    assert listing(tmp_path / "tree/export") == LEFT


def test_without_the_mount_and_cut_short(
    session: Path, loadstone: Callable[..., Any], tmp_path: Path
) -> None:
    whole = gzip.decompress(session.read_bytes())
    packets, at = [], 24
    while at < len(whole):
        length = struct.unpack_from("<I", whole, at + 8)[0]
        packets.append((whole[at : at + 16], whole[at + 16 : at + 16 + length]))
        at += 16 + length
    # The client that mounted long ago: its root has no name.
    late = tmp_path / "late.pcap"
    rest = [p for p in packets if b"\x2f\x12" not in p[1][34:38]]
    assert len(rest) < len(packets)
    late.write_bytes(whole[:24] + b"".join(head + data for head, data in rest))
    loadstone("replay", late, "--on", tmp_path / "late", "--pace", "max")
    (folder,) = (tmp_path / "late/.handles").iterdir()
    assert listing(folder) == LEFT
    # Heads only, as captures are often taken: what is not there is not known, and nothing fails for it.
    cut = tmp_path / "cut.pcap"
    short = [
        head[:8] + struct.pack("<I", min(len(data), 300)) + head[12:] + data[:300] for head, data in packets
    ]
    cut.write_bytes(whole[:24] + b"".join(short))
    loadstone("replay", cut, "--on", tmp_path / "cut", "--pace", "max")
    assert listing(tmp_path / "cut/export").items() >= {"home/new/c": ("file", 10000)}.items()


def test_no_name_leads_out_of_its_tree(loadstone: Callable[..., Any], tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    up = "../" * 20 + str(outside)
    calls = [
        (f'create fh aa name "{up}" how U', "OK fh bb"),
        ("write fh bb off 0 count 4 stable F", "OK count 4"),
        ('mkdir fh aa name ".." mode 1ff', "11"),
        ('lookup fh aa name ".."', "OK fh aa"),
        (f'symlink fh aa name "l" sdata "{up}"', "OK fh dd"),
        (f'rename fh aa name "l" fh2 aa name2 "{up}2"', "OK"),
        (f'mkdir fh aa name "{"n" * 300}"', "3f"),
        ('read fh "" off 0 count 4', "OK count 0"),
    ]
    lines = []
    for i, (asked, told) in enumerate(calls):
        name = asked.split()[0]
        lines.append(f"{100 + i}.000001 31.03f7 30.0801 T C3 {i:x} 1 {asked} con = 1 len = 1\n")
        told = f"{told} status=0 pl = 1 con = 1 len = 1"
        lines.append(f"{100 + i}.000501 30.0801 31.03f7 T R3 {i:x} 1 {name} {told}\n")
    (tmp_path / "a.nfsdump").write_text("".join(lines))
    loadstone("replay", tmp_path / "a.nfsdump", "--on", tmp_path / "tree", "--pace", "max")
    assert outside.read_text() == "untouched"
    assert {path.name for path in tmp_path.iterdir()} == {"a.nfsdump", "outside", "tree"}


@pytest.mark.slow
def test_many_files_need_few_descriptors(loadstone: Callable[..., Any], tmp_path: Path) -> None:
    lines = []
    for i in range(20000):
        time, end = f"{100 + i / 1e4:.6f}", "count 10 con = 1 len = 1\n"
        lines.append(f"{time} 31.03f7 30.0801 T C3 {i:x} 6 read fh {i:08x} off 0 {end}")
        lines.append(f"{time} 30.0801 31.03f7 T R3 {i:x} 6 read OK {end}")
    (tmp_path / "a.nfsdump").write_text("".join(lines))
    done = loadstone("replay", tmp_path / "a.nfsdump", "--on", tmp_path / "tree", "--pace", "max", "--json")
    summary = json.loads(done.stdout)
    assert (summary["requests"], summary["errors"]) == (20000, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["session", "pcap", "nfsdump", "dataseries"])
def test_real_captures(
    name: str, request: pytest.FixtureRequest, loadstone: Callable[..., Any], session: Path, tmp_path: Path
) -> None:
    paths = {
        "pcap": "nfs-pcap/eth-ipv6-tcp-nfsv3-bad_alloc.pcap",
        "nfsdump": "nfsdump/ellard-raw-data.txt",
        "dataseries": "dataseries/nfs.set6.20k.ds",
    }
    stored = tmp_path / "a.parquet"
    source = session if name == "session" else request.getfixturevalue("shared_traces") / paths[name]
    trace.convert(source, stored, sort=True)
    done = loadstone("replay", stored, "--on", tmp_path / "tree", "--pace", "max", "--json")
    summary = json.loads(done.stdout)
    assert summary["errors"] == 0
    # The lines of nfsdump are pieces of several traces: a few calls need what was done between them.
    made_up = [note for note in summary["notes"] if "nothing in the trace tells" in note]
    assert [note.split()[0] for note in made_up] == (["4"] if name == "nfsdump" else [])
    # What is drawn has renames without a second name, too, where the trace has them.
    loadstone("model", "fit", stored, "-o", tmp_path / "a.mdh")
    done = loadstone("run", tmp_path / "a.mdh", "--on", tmp_path / "drawn", "--pace", "max", "--json")
    assert json.loads(done.stdout)["errors"] == 0


@pytest.mark.slow
def test_what_the_capture_lacks_is_put_right(loadstone: Callable[..., Any], tmp_path: Path) -> None:
    calls = [
        ('lookup fh aa name "lock"', "2"),
        ('remove fh aa name "lock"', "OK"),
        ('create fh aa name "own" how U', "OK fh bb"),
        ('link fh bb fh2 aa name "lock"', "OK"),
        ('link fh bb fh2 aa name "lock"', "OK"),
        ('rename fh aa name "mail" fh2 aa name2 "sent"', "OK"),
        ('rename fh aa name "mail" fh2 aa name2 "again"', "OK"),
        # Cut off by the capture: neither names nor handles.
        ("rename SHORT PACKET", "OK"),
        ("link SHORT PACKET", "OK"),
        ("symlink SHORT PACKET", "OK"),
        # It fails as it failed.
        ('remove fh aa name "nothing"', "2"),
    ]
    lines = []
    for i, (asked, told) in enumerate(calls):
        name = asked.split()[0]
        lines.append(f"{100 + i}.000001 31.03f7 30.0801 T C3 {i:x} 1 {asked} con = 1 len = 1\n")
        lines.append(f"{100 + i}.000501 30.0801 31.03f7 T R3 {i:x} 1 {name} {told} con = 1 len = 1\n")
    (tmp_path / "a.nfsdump").write_text("".join(lines))
    orders = ["--pace", "max"], ["--order", "dependency", "--independent", "max"]
    for i, order in enumerate(orders):
        tree = tmp_path / f"tree{i}"
        done = loadstone("replay", tmp_path / "a.nfsdump", "--on", tree, *order, "--json")
        summary = json.loads(done.stdout)
        assert summary["errors"] == 0
        assert any(note.startswith("5 changes that nothing in the trace tells") for note in summary["notes"])
        assert {path.name for path in (tree / ".handles/aa").iterdir()} == {"own", "lock", "sent", "again"}
