"""Formats of other tools: listed, written, and read by those tools."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest

from loadstone import Error, trace

LOOP0 = "examples/loop0.parquet"


def test_formats_are_listed(loadstone):
    text = loadstone("trace", "formats").stdout
    assert "blkparse text" in text and re.search(r"^spc .*also written$", text, re.MULTILINE)
    found = json.loads(loadstone("trace", "formats", "--json").stdout)
    assert set(found["written"]) == {"blktrace", "iolog", "msr", "parquet", "spc"}
    assert set(found["written"]) <= set(found["read"])


@pytest.mark.slow
def test_stock_blkparse_accepts_what_is_written(loadstone, root, tmp_path, need_tools):
    need_tools("blkparse")
    done = loadstone("trace", "convert", LOOP0, "-o", tmp_path / "t.blktrace", cwd=root)
    assert "t.blktrace.0" in done.stdout
    parsed = subprocess.run(
        ["blkparse", "-i", "t"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert "Skips: 0 forward" in parsed
    requests = len(re.findall(r"^ *\d+,\d+ .* Q ", parsed, re.MULTILINE))
    assert requests == trace.describe(root / LOOP0)["requests"]
    # Its text is the same trace again.
    text = tmp_path / "t.txt"
    text.write_text(parsed)
    again, before = trace.read(text), trace.read(root / LOOP0)
    for column in ("time", "op", "offset", "size", "latency", "flags"):
        assert again[column].to_pylist() == before[column].to_pylist(), column


def test_fio_replays_the_iolog(loadstone, root, tmp_path, need_tools):
    need_tools("fio")
    part, log = tmp_path / "part.parquet", tmp_path / "part.iolog"
    loadstone("trace", "select", root / LOOP0, "-o", part, "--to", "2s")
    found = json.loads(loadstone("trace", "convert", part, "-o", log, "--json").stdout)
    (tmp_path / "target").touch()
    done = subprocess.run(
        [
            *("fio", "--name=replay", f"--read_iolog={log}", f"--replay_redirect={tmp_path}/target"),
            *("--ioengine=null", "--replay_no_stall=1", "--output-format=json"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    issued = job["read"]["total_ios"] + job["write"]["total_ios"] + job["sync"]["total_ios"]
    assert issued == found["losses"]["written"]


def test_what_a_format_cannot_say_is_told(loadstone, root, tmp_path):
    done = loadstone("trace", "convert", LOOP0, "-o", tmp_path / "t.spc", cwd=root)
    assert "left out: the format does not have their op" in done.stderr
    assert "whose latency the format cannot say" in done.stderr
    assert loadstone("trace", "convert", LOOP0, "-o", tmp_path / "t.spc", cwd=root, status=1).stderr.count(
        "--force"
    )
    wrong = loadstone("trace", "convert", LOOP0, "-o", tmp_path / "x", "--to", "qcow", cwd=root, status=2)
    assert "known: parquet, spc" in wrong.stderr


def test_numbers_alone_must_be_named(loadstone, tmp_path):
    path = tmp_path / "t.trace"
    path.write_text("0 0 280605840 2 1\n97900000 0 287641400 128 1\n")
    done = loadstone("trace", "describe", path, status=1)
    assert "--format mqsim" in done.stderr and "--format disksim" in done.stderr
    assert (
        json.loads(loadstone("trace", "describe", path, "--format", "mqsim", "--json").stdout)["requests"]
        == 2
    )


def test_salvage_counts_what_is_lost(tmp_path):
    path = tmp_path / "t.spc"
    path.write_text("0,1,512,R,0.0\n" + "damage\n" * 5 + "0,2,512,W,1.0\n")
    with pytest.raises(Error, match="line 2"):
        trace.describe(path)
    found = trace.describe(path, salvage=True)
    assert (found["requests"], found["info"]["counts"]["damaged"]) == (2, 5)


def test_fingerprints_are_a_column(tmp_path):
    path = tmp_path / "t.fiu"
    path.write_text(
        "1000 4892 syslogd 904265560 8 W 6 0 531e779003bbb1a9ba4a8ae8a5ba3d1a\n"
        "3000 77 my prog 8 16 R 8 2 00000000000000ff00112233445566aa\n"
    )
    out = tmp_path / "t.parquet"
    assert trace.convert(path, out)["output"] == str(out)
    for source in (path, out):
        assert trace.read(source)["content"].to_pylist() == [0x531E779003BBB1A9, 0xFF]


def test_a_table_without_times_needs_a_rate(loadstone, tmp_path):
    path = tmp_path / "blocks.txt"
    path.write_text("8\n16\n24\n")
    mapping = ("--columns", "offset=0:sector", "--every", "read")
    assert "--rate" in loadstone("trace", "describe", path, *mapping, status=2).stderr
    found = json.loads(loadstone("trace", "describe", path, *mapping, "--rate", "10", "--json").stdout)
    assert (found["requests"], found["span_ns"]) == (3, 200_000_000)
    assert any("10 requests per second were assumed" in w for w in found["info"]["warnings"])


def test_ties_are_spread_whatever_the_trace_was_kept_in(tmp_path):
    path, kept = tmp_path / "t.csv", tmp_path / "t.parquet"
    # Two thousand requests in ten seconds of a clock of whole seconds.
    path.write_text("".join(f"{1_538_323_200 + i // 200},{8 * i},8,{i % 2},7\n" for i in range(2000)))
    trace.convert(path, kept, format="tencent")
    from_text = trace.read(path, format="tencent", spread_ties=True)["time"].to_pylist()
    from_parquet = trace.read(kept, spread_ties=True)["time"].to_pylist()
    assert from_text == from_parquet == [5_000_000 * i for i in range(2000)]
    fine = tmp_path / "t.fiu"
    fine.write_text("1000 4 a 8 8 W 6 0 531e779003bbb1a9ba4a8ae8a5ba3d1a\n")
    warnings = trace.describe(fine, spread_ties=True)["info"]["warnings"]
    assert any("no times were spread" in text for text in warnings)


def test_files_of_an_older_capture_do_not_become_part_of_a_new_one(tmp_path, loadstone, root):
    trace, old = root / "examples/loop0.parquet", tmp_path / "old.blktrace.1"
    old.write_bytes(b"of another capture")
    for out in ("old", "old.blktrace", "old.blktrace.0"):
        for force in ([], ["--force"]):
            done = loadstone(
                "trace", "convert", trace, "-o", tmp_path / out, "--to", "blktrace", *force, status=2
            )
            assert f"{old} lies there, and would be read with it" in done.stderr
    assert os.listdir(tmp_path) == [old.name]


def test_latencies_that_blktrace_exchanges_are_counted(tmp_path, loadstone):
    """A completion is taken for that of the oldest request that waits for its sectors."""
    start, rows = 128166372003061629, tmp_path / "o.csv"
    long, short = 100_000_000, 10_000
    places = [(0, 40960, long), (10_000, 40960, short), (20_000, 0, short), (5_000_000, 40960, short)]
    rows.write_text("".join(f"{start + at},h,0,Read,{place},4096,{took}\n" for at, place, took in places))
    out = tmp_path / "o.blktrace.0"
    told = json.loads(loadstone("trace", "convert", rows, "-o", out, "--to", "blktrace", "--json").stdout)
    latencies = [trace.read(path)["latency"].to_numpy().tolist() for path in (rows, out)]
    changed = sum(one != other for one, other in zip(*latencies, strict=True))
    assert told["losses"]["latencies"] == changed == 3


def test_latencies_that_are_not_known_are_told_from_those_that_are(tmp_path, loadstone):
    """A request without a latency takes that of a later one, flushes and places without sectors too."""
    rows, out = tmp_path / "o.csv", tmp_path / "o.blktrace.0"
    lines = ["0,R,4096,4096,", "1000,R,4096,4096,500", "2000,F,0,0,", "3000,F,0,0,500", "4000,W,8192,4096,"]
    lines += ["9000,W,8192,8192,70", "20000,R,65536,4096,", "30000,W,65536,4096,90"]
    rows.write_text("".join(f"{line}\n" for line in lines))
    columns = "time=0:ns,op=1,offset=2:byte,size=3:byte,latency=4:ns"
    values = ["--read", "R", "--write", "W", "--flush", "F"]
    words = ["--format", "delimited", "--columns", columns, *values, "--to", "blktrace", "--json"]
    told = json.loads(loadstone("trace", "convert", rows, "-o", out, *words).stdout)
    read = trace.read(out)["latency"].to_pylist()
    known = [line.rpartition(",")[2] for line in lines]
    changed = sum((None if not one else int(one)) != other for one, other in zip(known, read, strict=True))
    assert told["losses"]["latencies"] == changed > 4


def test_options_that_a_format_does_not_use_are_refused(loadstone, root, tmp_path):
    words = ("trace", "convert", LOOP0, "-o", tmp_path / "t.spc", "--level", 3)
    assert "--level: only Parquet is compressed" in loadstone(*words, cwd=root, status=2).stderr
    for rule in ("jump", "region"):
        words = ("model", "fit", LOOP0, "-o", tmp_path / "m.mdh", "--offset-rule", rule, "--far", "1m")
        assert "no jump is near or far" in loadstone(*words, cwd=root, status=1).stderr
    assert not list(tmp_path.iterdir())


def test_what_is_left_out_is_not_counted_as_written(loadstone, root, tmp_path):
    done = loadstone("trace", "convert", LOOP0, "-o", tmp_path / "t.spc", cwd=root)
    lines = len((tmp_path / "t.spc").read_text().splitlines())
    assert re.match(rf"{lines:,} of [\d,]+ requests from blktrace", done.stdout)
    assert "of further processes" in done.stderr and "1 objects that read back" in done.stderr
