"""Parquet traces whose rows or summary are not what they should be, and that are not in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import arro3.core
import arro3.io
import pytest

from loadstone import Error, trace
from loadstone.plan import RunOptions
from loadstone.workload import execute, plan_replay

CALLS = """\
7 1.0 openat(AT_FDCWD, "/w/f", O_RDWR) = 3 <0.000010>
7 2.0 pread64(3, "", 4096, 0) = 4096 <0.000010>
7 3.0 pread64(3, "", 4096, 4096) = 4096 <0.000010>
7 4.0 close(3) = 0 <0.000010>
"""


@pytest.fixture
def altered(tmp_path: Path) -> Any:
    """Makes a trace in which values are others, with its old summary: ``altered(column={row: value})``."""
    (tmp_path / "t.strace").write_text(CALLS)
    trace.convert(tmp_path / "t.strace", tmp_path / "t.parquet")
    table = arro3.io.read_parquet(str(tmp_path / "t.parquet")).read_all()
    schema = arro3.core.Schema([table.schema.field(i) for i in range(table.num_columns)])
    about = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}

    def make(**changes: dict[int, int]) -> Path:
        columns = {name: [value.as_py() for value in table[name]] for name in table.column_names}
        for name, values in changes.items():
            for row, value in values.items():
                columns[name][row] = value
        arrays = [
            arro3.core.Array(columns[name], type=schema.field(i).type)
            for i, name in enumerate(table.column_names)
        ]
        path = tmp_path / "other.parquet"
        arro3.io.write_parquet(
            arro3.core.Table.from_arrays(arrays, schema=schema),
            str(path),
            key_value_metadata={"loadstone.trace": about["loadstone.trace"]},
        )
        return path

    return make


def test_a_summary_that_tells_less_than_the_rows_fills_no_disk(altered: Any, tmp_path: Path) -> None:
    """The room that is asked for follows from the summary. The files that are made follow from the rows."""
    execute(plan_replay(altered(), tmp_path / "whole", RunOptions(pace="max")))
    plan = plan_replay(altered(size={2: 150_000_000}), tmp_path / "tree", RunOptions(pace="max"))
    with pytest.raises(
        Error, match="its summary ends object 0 at byte 8192, and a request ends at 150004096"
    ):
        execute(plan)
    assert not (tmp_path / "tree").exists() or not list((tmp_path / "tree").rglob("f"))


@pytest.mark.parametrize("time", [-(2**63), -1])
def test_times_before_the_start_are_damage(altered: Any, time: int) -> None:
    with pytest.raises(Error, match=f"time {time} is negative"):
        trace.read(altered(time={0: time}))


def test_what_is_not_in_order_is_sorted_where_that_is_asked_for(altered: Any, tmp_path: Path) -> None:
    path = altered(time={1: 2_500_000_000})
    with pytest.raises(Error, match="time goes back"):
        trace.read(path)
    for how in ({"sort": True}, {"reorder": 10.0}):
        told = trace.convert(path, tmp_path / "sorted.parquet", force=True, **how)
        assert told["counts"]["reordered"] == 1
        times = trace.read(tmp_path / "sorted.parquet")["time"].to_numpy().tolist()
        assert times == sorted(times) and 2_500_000_000 in times


def test_a_column_map_is_refused_where_the_format_has_its_own(loadstone: Any, tmp_path: Path) -> None:
    spc = tmp_path / "t.spc"
    spc.write_text("0,8,4096,R,0.5\n0,16,4096,W,0.7\n")
    words = ["--columns", "time=4:us,offset=1:byte,size=2:byte,op=3", "--read", "R", "--write", "W"]
    for format_ in (["--format", "spc"], ["--format", "delimited"]):
        wrong = format_[1] == "spc"
        done = loadstone("trace", "describe", spc, *format_, *words, "--json", status=2 if wrong else 0)
        if wrong:
            assert "is read as spc, which has columns of its own" in done.stderr
        else:
            assert json.loads(done.stdout)


@pytest.mark.root
def test_files_that_the_kernel_makes_up_are_not_read(loadstone: Any, need_root: None, tmp_path: Path) -> None:
    """A read of kmsg waits, takes the messages from others, and hears no Ctrl-C."""
    for verb in (
        ("trace", "describe", "/proc/kmsg"),
        ("dataset", "scan", "/proc/kmsg", "-o", tmp_path / "x.fst"),
    ):
        assert "lies in procfs or tracefs" in loadstone(*verb, status=1).stderr
