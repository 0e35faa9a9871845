"""Reading traces from Python: every format, Arrow, and what is wrong with bad ones."""

from __future__ import annotations

import json
import struct
import subprocess

import numpy as np
import pytest
from tests.trace.conftest import SPC

import loadstone
from loadstone import Error, trace


def columns(table):
    return {name: table[name].to_pylist() for name in table.column_names}


def test_read_gives_an_arrow_table_with_nulls(spc):
    table = trace.read(spc)
    assert columns(table) == {
        "time": [0, 500_000_000, 750_000_000],
        "op": [0, 1, 1],
        "object": [0, 1, 0],
        "offset": [4096, 8192, 8192],
        "size": [4096, 512, 8192],
        "latency": [None] * 3,
        "flags": [0] * 3,
        "actor": [0] * 3,
    }
    info = json.loads(table.schema.metadata_str["loadstone.trace"])
    assert info["format"] == "spc"
    assert [o["name"] for o in info["objects"]] == ["0", "1"]


def test_open_streams_batches(spc):
    reader = trace.open(spc)
    assert sum(batch.num_rows for batch in reader) == 3
    done, total = reader.progress()
    assert done == total == len(SPC)
    assert reader.info()["counts"]["requests"] == 3


def test_names_of_codes():
    assert trace.OPS[0] == "read" and trace.OPS[1] == "write" and trace.OPS[3] == "discard"
    assert trace.FLAGS[1] == "sync" and trace.FLAGS[128] == "preflush"
    assert {"spc", "msr", "vscsi", "blktrace", "delimited", "parquet"} <= set(trace.formats())


def test_convert_and_back(spc, tmp_path):
    out = tmp_path / "t.parquet"
    info = trace.convert(spc, out)
    assert info["counts"]["requests"] == 3
    assert columns(trace.read(out)) == columns(trace.read(spc))
    summary = trace.summary(out)
    assert summary == trace.summary(spc)
    assert [(o["object"], o["start"], o["end"]) for o in summary["objects"]] == [
        (0, 4096, 16384),
        (1, 8192, 8704),
    ]
    with pytest.raises(loadstone.Error, match=r"exists.*`force`"):
        trace.convert(spc, out)
    trace.convert(spc, out, force=True)


def test_other_programs_read_the_parquet(spc, tmp_path):
    from arro3.io import read_parquet

    out = tmp_path / "t.parquet"
    trace.convert(spc, out)
    table = read_parquet(out).read_all()
    assert columns(table) == columns(trace.read(spc))


def test_progress_is_called_and_may_stop_the_work(tmp_path):
    path = tmp_path / "long.spc"
    with path.open("w") as file:
        for i in range(400_000):
            file.write(f"0,{i * 7919 % 1000003},4096,R,{i / 1000:.6f}\n")
    seen = []
    trace.convert(path, tmp_path / "t.parquet", progress=lambda *at: seen.append(at), level=1)
    assert seen and all(0 < done <= total == path.stat().st_size for done, total in seen)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trace.convert(path, tmp_path / "u.parquet", progress=stop, level=1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["long.spc", "t.parquet"]


def test_column_map_from_text_and_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("lba;bytes;us;kind\n8;4096;10;r\n16;512;35;w\n24;512;36;?\n")
    columns_ = trace.columns_from_text(
        "time=us:us,offset=lba:sector,size=bytes:byte,op=kind",
        {"read": ["r"], "write": ["w"], "ignore": ["?"]},
        separator=";",
    )
    table = trace.read(path, columns=columns_)
    assert table["time"].to_pylist() == [0, 25_000]
    assert table["offset"].to_pylist() == [4096, 8192]
    toml = tmp_path / "map.toml"
    toml.write_text(
        'separator = ";"\nskip = 1\ntime = {at = 2, unit = "us"}\noffset = {at = 0, unit = "sector"}\n'
        'size = {at = 1, unit = "byte"}\nop = {at = 3}\n'
        '[values]\nread = ["r"]\nwrite = ["w"]\nignore = ["?"]\n'
    )
    again = trace.read(path, columns=trace.columns_from_file(toml))
    assert columns(again) == columns(table)
    (tmp_path / "map.json").write_text(json.dumps(columns_))
    assert trace.columns_from_file(tmp_path / "map.json") == columns_


@pytest.mark.parametrize("name", ["map.json", "map.toml"])
@pytest.mark.parametrize(
    ("text", "message"),
    [("a = " + "[" * 200_000, "nested too deeply"), (" " * (2 << 20), "more than 1024 KiB")],
)
def test_a_file_that_is_no_column_map_is_refused(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text.removeprefix("a = ") if name.endswith(".json") else text)
    with pytest.raises(loadstone.Error, match=f"{name}: is no column map: .*{message}"):
        trace.columns_from_file(path)


def test_a_date_is_no_column(tmp_path):
    path = tmp_path / "map.toml"
    path.write_text("skip = 1979-05-27\n")
    with pytest.raises(loadstone.Error, match=r"map\.toml: is no column map: .*date"):
        trace.columns_from_file(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time=0", "unit of time"),
        ("time=0:us,op=1,offset=2", "unit of offset"),
        ("time=0:parsec,op=1", "parsec"),
        ("tiem=0:us", "tiem"),
        ("time=0:us,time=1:us", "twice"),
        ("time=0:us,op=9", "9"),
    ],
)
def test_a_wrong_column_map_says_what_is_wrong(tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text("1,0,2,3\n")
    with pytest.raises(loadstone.Error, match=message):
        trace.read(path, columns=trace.columns_from_text(text, {"read": ["0"], "write": ["1"]}))


def test_sort_whole_or_within_a_window(tmp_path):
    path = tmp_path / "t.spc"
    path.write_text("0,1,512,R,9.0\n0,2,512,R,1.0\n0,3,512,R,5.0\n")
    with pytest.raises(loadstone.Error, match=r"t\.spc, line 2: .*`sort`"):
        trace.read(path)
    for options in ({"sort": True}, {"reorder": 10}, {"sort": True, "temp_dir": tmp_path}):
        reader = trace.open(path, **options)
        offsets = np.concatenate([b["offset"].to_numpy() for b in reader])
        assert (offsets // 512).tolist() == [2, 3, 1]
        assert reader.info()["counts"]["reordered"] == 2
    assert [p.name for p in tmp_path.iterdir()] == ["t.spc"]


def test_polarity_of_vscsi(tmp_path):
    path = tmp_path / "t.vscsi"
    records = [struct.pack("<IIIHHQQ", n, 512, 1, cmd, 0x100, n, n) for n, cmd in enumerate((0x28, 0x2A))]
    path.write_bytes(b"".join(records))
    assert trace.read(path)["op"].to_pylist() == [0, 1]


def test_unknown_options_are_errors(spc):
    with pytest.raises(loadstone.Error, match="unknown field"):
        trace.read(spc, windou=3)
    with pytest.raises(loadstone.Error, match="no format is called spcc; known: "):
        trace.read(spc, format="spcc")


@pytest.mark.slow
@pytest.mark.parametrize("packer", ["gzip", "bzip2", "xz", "zstd"])
def test_of_compression_that_was_cut_what_can_be_had_is_salvaged(tmp_path, packer):
    text = "".join(f"0,{i * 7919 % 100_000},{512 * (i % 9 + 1)},R,{i / 1000:.6f}\n" for i in range(200_000))
    (tmp_path / "t.spc").write_text(text)
    subprocess.run([packer, "-q", tmp_path / "t.spc"], check=True)
    (packed,) = (p for p in tmp_path.iterdir() if p.suffix != ".spc")
    packed.write_bytes(packed.read_bytes()[: packed.stat().st_size * 2 // 3])
    with pytest.raises(Error, match="cannot decompress"):
        trace.describe(packed)
    for options in ({"salvage": True}, {"max_damaged": 2}):
        found = trace.describe(packed, **options)
        assert 50_000 < found["requests"] < 200_000 and found["info"]["counts"]["damaged"] >= 1
        assert any("cannot decompress" in text for text in found["info"]["warnings"])


@pytest.mark.parametrize("packer", ["gzip", "bzip2", "xz", "zstd"])
def test_what_lies_behind_compressed_text_loses_nothing_of_it(tmp_path, packer):
    (tmp_path / "t.spc").write_text("".join(f"0,{i},512,R,{i / 1000:.6f}\n" for i in range(30_000)))
    subprocess.run([packer, "-q", tmp_path / "t.spc"], check=True)
    (packed,) = (p for p in tmp_path.iterdir() if p.suffix != ".spc")
    packed.write_bytes(packed.read_bytes() + b"garbage" * 100)
    found = trace.describe(packed, salvage=True)["requests"]
    # xz keeps back what it had unpacked in the call that fails, 4 KiB at most.
    assert found == 30_000 if packer != "xz" else 29_800 < found <= 30_000


@pytest.mark.parametrize("cut", ["<0.00001", "<0.", "<"])
def test_a_strace_that_is_cut_within_its_last_time_is_damaged(tmp_path, cut):
    line = '1 1.5 openat(AT_FDCWD, "/d/f", O_RDWR|O_CREAT, 0644) = 3 <0.000010>\n'
    (tmp_path / "t.strace").write_text(f'{line}1 1.6 write(3, "x", 1) = 1 {cut}')
    with pytest.raises(Error, match="cut short within the time that the call took"):
        trace.describe(tmp_path / "t.strace")
    assert trace.describe(tmp_path / "t.strace", max_damaged=1)["requests"] == 1


def test_a_capture_without_one_of_its_files_is_told(tmp_path, root):
    trace.convert(root / "examples/loop0.parquet", tmp_path / "c", to="blktrace")
    assert not any("there is no" in text for text in trace.describe(tmp_path / "c")["info"]["warnings"])
    (tmp_path / "c.blktrace.0").rename(tmp_path / "c.blktrace.1")
    told = trace.describe(tmp_path / "c")["info"]["warnings"]
    assert any("there is no c.blktrace.0: the capture is not whole" in text for text in told)


def test_a_file_that_is_named_twice_does_not_count_twice(tmp_path, root):
    for name in ("a.spc", "b.spc"):
        (tmp_path / name).write_text("0,1,512,R,0.0\n")
    trace.convert(root / "examples/loop0.parquet", tmp_path / "c", to="blktrace")
    part = tmp_path / "c.blktrace.0"
    (tmp_path / "link").symlink_to(part)
    for paths in ([part, part], [tmp_path / "c", part], [part, tmp_path / "link"]):
        with pytest.raises(Error, match="is named twice"):
            trace.describe(paths)
