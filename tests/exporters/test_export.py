"""Models as input of other load generators, run with the real ones."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loadstone
from loadstone import exporters, wml
from loadstone import model as models
from loadstone._files import aside
from loadstone.exporters import _load as gathered
from loadstone.exporters import filebench, fio, iozone
from loadstone.exporters._write import play
from loadstone.fio import Settings, lower, parse
from loadstone.model._check import Numbers, apart
from loadstone.trace import read

TRACE = Path(__file__).resolve().parents[2] / "examples" / "loop0.parquet"


@pytest.fixture(scope="module")
def fitted() -> models.Model:
    return models.fit(TRACE)


def test_percents_are_whole_and_all_there_is() -> None:
    assert exporters.percents({512: 1, 4096: 1, 8192: 1}) == {512: 34, 4096: 33, 8192: 33}
    assert exporters.percents({512: 1, 4096: 999}) == {4096: 100}


def test_percents_of_sizes_keep_the_bytes() -> None:
    """Large sizes below half a percent were dropped, and a quarter of the bytes with them."""
    part = exporters.Direction(1000, {4096: 952, **{65536 * n: 4 for n in range(1, 13)}}, [0, 1 << 30], 0.0)
    plain = exporters.percents(part.sizes)
    assert sum(size * n for size, n in plain.items()) < 0.6 * part.bytes / 10
    found = exporters.size_percents(part)
    assert sum(found.values()) == 100 and min(found.values()) >= 1 and set(found) <= set(part.sizes)
    assert sum(size * n for size, n in found.items()) == pytest.approx(part.bytes / 10, rel=0.01)
    # Each is its share rounded up or down.
    assert all(abs(found.get(size, 0) - n / 10) < 1 for size, n in part.sizes.items())
    # Sizes that joined others count with their own bytes; what is exact already stays.
    joined = exporters.Direction(100, {4096: 90, 65536: 10}, [0, 1 << 30], 0.0, 90 * 4096 + 10 * 65536)
    assert exporters.size_percents(joined) == joined.sizes
    assert exporters.Direction(2, {4096: 2}, [0, 1], 0.0, 9000).bytes == 9000


@pytest.mark.slow
@pytest.mark.parametrize("to", ["fio", "filebench"])
def test_bytes_are_told_and_near(fitted: models.Model, tmp_path: Path, to: str) -> None:
    done = exporters.export(fitted, to, tmp_path / "out", target="/mnt/x/file")
    assert done.moved is not None
    load = exporters.digest(fitted, "loop0", pieces=20)
    drawn = fitted.sample(seed=1)
    op, size = drawn["op"].to_numpy(), np.array([of or 0 for of in drawn["size"].to_pylist()])
    for code, name in ((0, "read"), (1, "write")):
        made, asked = done.moved[name]
        assert asked == size[op == code].sum()
        assert asked == sum(p.directions[code].bytes for p in load.pieces if code in p.directions)
        # One piece has a few requests of 8 MiB, of which a percent is too many.
        assert made == pytest.approx(asked, rel=0.06)
    assert exporters.moved_text(done.moved) in done.files[0].read_text()


def test_pieces_have_every_request(fitted: models.Model) -> None:
    load = exporters.digest(fitted, "loop0", pieces=5)
    assert 1 <= len(load.pieces) <= 5
    moved = sum(d.requests for piece in load.pieces for d in piece.directions.values())
    assert moved + sum(p.flushes + p.discards for p in load.pieces) == load.requests == fitted.requests
    for piece, after in zip(load.pieces, load.pieces[1:], strict=False):
        assert piece.start + piece.seconds == pytest.approx(after.start)
    for piece in load.pieces:
        for direction in piece.directions.values():
            assert sum(direction.sizes.values()) == direction.requests and len(direction.sizes) <= 64
            assert direction.edges == sorted(direction.edges) and direction.edges[-1] == load.extent


def test_what_moves_nothing_is_told_and_not_dropped() -> None:
    part = exporters.Direction(90, {4096: 90}, [0, *[1 << 20] * 99, 1 << 21], 0.0)
    pieces = [exporters.Piece(0.0, 5.0, {1: part}, 1, 0), exporters.Piece(5.0, 2.0, {}, 7, 0)]
    load = exporters.Load("a.mdh", pieces, 1 << 21, 100)
    text = fio.export(load, "/x")[""]
    assert text.count("[piece") == 1
    told = " ".join(load.losses)
    assert "8 flushes" in told and "2 s of pieces without" in told and "2 requests that move nothing" in told


def test_what_is_played_is_what_the_jobs_say(tmp_path: Path) -> None:
    job = exporters.Job(
        1, 2.0, 10.0, 5000, {4096: 1, 8192: 3}, [(0, 1 << 20, 1), (1 << 20, 1 << 24, 3)], 0.5, 4096
    )
    play([job], tmp_path / "a.spc")
    rows = np.array([line.split(",") for line in (tmp_path / "a.spc").read_text().splitlines()])
    offset, size, time = rows[:, 1].astype(int) * 512, rows[:, 2].astype(int), rows[:, 4].astype(float)
    assert set(rows[:, 3]) == {"W"} and 2 < time[0] < time[-1] < 12
    assert np.mean(size == 8192) == pytest.approx(0.75, abs=0.05)
    follows = offset[1:] == (offset + size)[:-1]
    assert np.mean(follows) == pytest.approx(0.5, abs=0.05)
    fresh = offset[1:][~follows]
    assert np.mean(fresh < 1 << 20) == pytest.approx(0.25, abs=0.05)


def _load() -> exporters.Load:
    """Two busy pieces with a pause between."""
    even = [0, *[1 << 20] * 99, 1 << 21]
    reads = exporters.Direction(300, {4096: 200, 65536: 100}, even, 0.5)
    writes = exporters.Direction(100, {512: 100}, even, 0.0)
    flood = exporters.Direction(50_000, {8192: 50_000}, even, 0.9)
    pieces = [
        exporters.Piece(0.0, 40.0, {0: reads, 1: writes}, 1, 0),
        exporters.Piece(40.0, 2.5, {}, 0, 0),
        exporters.Piece(42.5, 10.0, {1: flood}, 0, 2),
    ]
    return exporters.Load("a.mdh", pieces, 1 << 21, 50_403)


def test_filebench_gets_mix_rate_and_sizes() -> None:
    load = _load()
    files = filebench.export(load, "/mnt/x/file")
    assert list(files) == ["", ".1.f", ".3.f"]
    assert "sleep 2.500" in files[""] and files[""].count("filebench -f") == 2
    text = files[".1.f"]
    flowops = re.findall(
        r"flowop (read|write) name=\w+,filename=\"file\",fd=(\d),iosize=(\$\w+)(,random)?,directio", text
    )
    kinds = {(op, fd): 0 for op, fd, *_ in flowops}
    for op, fd, size, random in flowops:
        kinds[op, fd] += 1
        assert size == f"${op}size" and bool(random) == (fd != "2")
    # 150 random reads, 150 that go on and 100 writes, in percents.
    assert sorted(kinds.values()) == [25, 37, 38]
    # Spread: never more than two of the rarest next to each other.
    assert "write write" not in " ".join(op for op, *_ in flowops)
    # Ten a second: ten tokens each of a hundred a second.
    assert text.count("flowop eventlimit") == 100 == text.count(",iters=10")
    assert "eventgen rate=100\n" in text and "run 40\n" in text
    assert "randtable={{67,4096,4096},{33,65536,65536}}" in text and "memsize=65536" in text
    assert "eventgen rate=5000\n" in files[".3.f"] and "iters=" not in files[".3.f"]
    assert sum(job.requests for job in load.jobs) == pytest.approx(50_400, rel=0.01)
    told = " ".join(load.losses)
    assert "1 flushes" in told and "2 discards" in told


def test_filebench_files_are_scripts_of_1_5() -> None:
    for name, text in filebench.export(_load(), "/mnt/x/file").items():
        if name:
            script = wml.parse(text, name)
            assert script.dialect == "1.5" and not script.warnings


@pytest.mark.parametrize("target", ["file", "/", '/mnt/a"b', "/mnt/$x/file"])
def test_what_filebench_cannot_name_is_refused(target: str) -> None:
    with pytest.raises(loadstone.Error):
        filebench.export(_load(), target)


def test_iozone_gets_one_size_and_the_share_of_reads() -> None:
    load = _load()
    text = iozone.export(load, "/mnt/a b")[""]
    lines = [line for line in text.splitlines() if line.startswith("iozone")]
    assert all("-F '/mnt/a b" in line for line in lines) and "sleep 2.500" in text
    # 400 records of 18.1 KiB on average, 100 ms apart, three of four processes read; then sequential writes.
    assert lines[4].endswith(
        "-t 4 -F '/mnt/a b' '/mnt/a b.2' '/mnt/a b.3' '/mnt/a b.4' -i 8 -+p 75 -s 2000k -r 20k -J 400"
    )
    assert lines[5].endswith("-t 1 -F '/mnt/a b' -i 0 -s 400000k -r 8k")
    # Every file is there before, as large as it is read.
    assert lines[0].endswith("-F '/mnt/a b' -s 400384k -r 1024k")
    assert lines[3].endswith("-F '/mnt/a b.4' -s 2048k -r 1024k")
    assert [(job.op, job.requests) for job in load.jobs] == [(0, 300), (1, 100), (1, 50_000)]


def test_iozone_s_jobs_are_what_it_does() -> None:
    """Files were rounded up to MiB, 512 records and 42 s in place of one request, and the loss hid it."""
    even = [0, *[1 << 20] * 99, 1 << 21]

    def piece(start: float, seconds: float, requests: int, size: int) -> exporters.Piece:
        return exporters.Piece(
            start, seconds, {0: exporters.Direction(requests, {size: requests}, even, 0.0)}, 0, 0
        )

    pieces = [piece(0.0, 0.083, 1, 1536), piece(0.083, 10.0, 7_000, 4096), piece(10.083, 1.0, 9_000, 8192)]
    load = exporters.Load("a.mdh", pieces, 1 << 21, 16_001)
    runs = [line for line in iozone.export(load, "/mnt/a")[""].splitlines() if " -x " in line]
    # IOzone does every record of -s / -r, and computes -J before each.
    for line, job in zip(runs, load.jobs, strict=True):
        size, record = (int(re.search(rf"-{option} (\d+)k", line)[1]) for option in "sr")  # type: ignore[index]
        delay = re.search(r"-J (\d+)", line)
        assert (size // record, size % record, record % 4) == (job.requests, 0, 0)
        assert delay is None or job.seconds == job.requests * int(delay[1]) / 1000
    assert [(job.requests, job.seconds) for job in load.jobs] == [(1, 0.083), (7_000, 7.0), (9_000, 1.0)]
    assert [job.start for job in load.jobs] == pytest.approx([0.0, 6.083, 19.083])
    assert "rests about 6 s around each of 3 tests" in " ".join(load.losses)


def test_iozone_makes_no_files_beside_a_device() -> None:
    load = _load()
    text = iozone.export(load, "/dev/loop9")[""]
    assert "/dev/loop9.2" not in text and text.count("-F /dev/loop9 ") == 3
    # Three quarters are reads, and one process does one kind.
    assert "-i 8 -+p 100 " in text and [job.op for job in load.jobs] == [0, 1]


@pytest.mark.parametrize("reads", [0.0, 0.04, 0.11, 1 / 3, 0.46, 0.5, 0.66, 0.9, 0.97, 1.0])
def test_iozone_reads_with_a_share_of_its_processes(reads: float) -> None:
    processes, readers = iozone.share_of(reads)
    assert 1 <= processes <= iozone.PROCESSES and abs(readers / processes - reads) <= 0.05
    # Counted with strace: IOzone 3.489 lets so many of them read.
    percent = -(-100 * readers // processes)
    assert percent * processes // 100 == readers


@pytest.mark.parametrize("to", ["filebench", "iozone"])
def test_what_is_lost_is_measured_and_told(fitted: models.Model, tmp_path: Path, to: str) -> None:
    done = exporters.export(fitted, to, tmp_path / "out", target="/mnt/x/file", pieces=3)
    assert done.content is not None and done.losses
    for file in done.files:
        assert "joint total variation" in file.read_text()
        assert all(line.startswith("#") or not line for line in file.read_text().splitlines()[:5])
    assert subprocess.run(["sh", "-n", str(tmp_path / "out")], check=False).returncode == 0


@pytest.mark.slow
def test_fio_runs_the_export_and_does_what_it_says(
    fitted: models.Model, need_tools: Callable[..., None], tmp_path: Path
) -> None:
    need_tools("fio")
    target, job = tmp_path / "target", tmp_path / "loop0.fio"
    done = exporters.export(fitted, "fio", job, target=str(target), name="loop0.mdh", pieces=3)
    text = job.read_text()
    assert done.losses and all(loss in text for loss in done.losses)
    assert done.content is not None and "joint total variation" in text
    with pytest.raises(loadstone.Error, match="exists; choose another name"):
        exporters.export(fitted, "fio", job, target=str(target))
    # The rates would take as long as the trace; how fast it goes changes nothing of what is asked for.
    lines = []
    for line in text.splitlines():
        lines += [] if line.startswith("rate=") else [line]
        if section := re.fullmatch(r"\[(piece.*)\]", line):
            lines.append(f"write_iolog={tmp_path / section[1]}.iolog")
    quick = tmp_path / "quick.fio"
    quick.write_text("\n".join(lines).replace("ioengine=libaio", "ioengine=null"))
    subprocess.run(["fio", quick], capture_output=True, text=True, check=True)
    # What fio did, by its own logs, is what was said to be left of the model.
    logs = [read(log, format="iolog") for log in tmp_path.glob("*.iolog")]
    # fio 3.33 writes every request but the first of a job twice.
    did = {
        name: np.concatenate([log[name].to_numpy()[::2] for log in logs]) for name in ("op", "size", "offset")
    }
    load = exporters.digest(fitted, "loop0", pieces=3)
    for op in (0, 1):
        parts = [piece.directions[op] for piece in load.pieces if op in piece.directions]
        # The last request of a job reaches over its bytes.
        over = sum(max(part.sizes) for part in parts)
        moved = did["size"][did["op"] == op].sum()
        assert 0 <= moved - sum(part.bytes for part in parts) < over
        assert (did["op"] == op).sum() == pytest.approx(sum(part.requests for part in parts), rel=0.1)
    drawn = models.portrait(fitted, seed=1)
    said = {row["dimension"]: row["ks"] for row in done.content["dimensions"]}
    sizes, counts = np.unique(did["size"], return_counts=True)
    ks, *_ = apart(drawn.dimensions["size"], Numbers(0, sizes, sizes, counts), names=False)
    assert ks == pytest.approx(said["size"], abs=0.02)
    assert did["offset"].max() < load.extent


def test_fio_takes_the_time_of_each_piece_and_moves_its_bytes(
    need_tools: Callable[..., None], tmp_path: Path
) -> None:
    """fio took a rate of requests for one of the smallest size, and eight times as long."""
    need_tools("fio")
    even = [0, *[1 << 20] * 99, 1 << 28]
    mixed = exporters.Direction(2000, {4096: 1000, 65536: 1000}, even, 0.0)
    small = exporters.Direction(500, {8192: 500}, even, 0.5)
    rare = exporters.Direction(4, {512: 4}, even, 0.0)
    pieces = [
        exporters.Piece(0.0, 1.0, {0: mixed, 1: small}, 0, 0),
        exporters.Piece(1.0, 0.6, {1: rare}, 0, 0),
    ]
    load = exporters.Load("a.mdh", pieces, 1 << 28, 2504)
    job = tmp_path / "a.fio"
    text = fio.export(load, str(tmp_path / "target"))[""]
    job.write_text(text.replace("libaio", "null").replace("group_reporting=1\n", ""))
    words = ["fio", job, "--output-format=json"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    found = {one["jobname"]: one for one in json.loads(ran.stdout[ran.stdout.index("{\n") :])["jobs"]}
    asked = [
        ("piece1-read", "read", mixed),
        ("piece1-write", "write", small),
        ("piece2-write", "write", rare),
    ]
    for name, way, part in asked:
        did, seconds = found[name][way], 0.6 if part is rare else 1.0
        assert 0 <= did["io_bytes"] - part.bytes < max(part.sizes)
        # Five standard deviations; one size leaves nothing to chance.
        spread = 5 * 0.88 / 2000**0.5 if part is mixed else 0
        assert did["total_ios"] == pytest.approx(part.requests, rel=spread)
        assert did["runtime"] / 1e3 == pytest.approx(seconds, rel=0.1)
    # What is played through is paced so, too.
    play(load.jobs[:1], tmp_path / "a.spc")
    rows = np.array([line.split(",") for line in (tmp_path / "a.spc").read_text().splitlines()])
    size, time = rows[:, 2].astype(int), rows[:, 4].astype(float)
    assert time == pytest.approx(np.concatenate([[0], np.cumsum(size)[:-1]]) / size.sum(), abs=1e-6)
    # And so does what reads the file again.
    plans = lower(parse(job.read_text(), "a.fio", None, {}), Settings(on="null:")).plans
    source = plans[0]["workers"][0]["source"]
    assert source["bytes"] / source["byte_rate"] == pytest.approx(1.0, rel=0.01)


def test_fio_reads_no_holes(need_tools: Callable[..., None], tmp_path: Path) -> None:
    need_tools("fio")
    even = [i * (16 << 20) // 100 for i in range(101)]
    few = exporters.Direction(4, {4096: 4}, even, 0.0, 16384)
    pieces = [exporters.Piece(0.0, 0.1, {1: few}, 0, 0), exporters.Piece(0.1, 0.1, {0: few}, 0, 0)]
    target, job = tmp_path / "target", tmp_path / "a.fio"
    load = exporters.Load("a.mdh", pieces, 16 << 20, 8)
    job.write_text(fio.export(load, str(target))[""].replace("direct=1\n", ""))
    subprocess.run(["fio", job], capture_output=True, check=True)
    # Where fio only reserves blocks, a read finds zeros that no device was asked for.
    data = target.read_bytes()
    assert len(data) == 16 << 20 and all(any(data[at : at + 4096]) for at in range(0, len(data), 4096))
    assert load.needs[0] == f"The target {target} has 16 MiB (16,777,216 bytes)."
    assert f"dd if=/dev/urandom of={target} bs=1M count=16 " in load.needs[2]


def test_what_of_several_objects_is_lost_is_told(tmp_path: Path) -> None:
    rows = [f"{i % 3},{i * 8},4096,{'RW'[i % 2]},{i * 0.01:.6f}" for i in range(300)]
    (tmp_path / "t.spc").write_text("\n".join(rows) + "\n")
    done = exporters.export(models.fit(tmp_path / "t.spc"), "fio", tmp_path / "out", target="/mnt/x/file")
    told = "which of 3 objects is asked: they lie end to end on one target;"
    assert told in done.losses and f"# - {told}\n" in (tmp_path / "out").read_text()


@pytest.mark.slow
def test_fio_s_own_logs_are_compared_with_the_model(
    fitted: models.Model, need_tools: Callable[..., None], tmp_path: Path
) -> None:
    need_tools("fio")
    done = exporters.export(fitted, "fio", tmp_path / "a.fio", target=str(tmp_path / "t"), pieces=2)
    text = re.sub("rate=.*\n", "", (tmp_path / "a.fio").read_text()).replace("libaio", "null")
    (tmp_path / "a.fio").write_text(text)
    words = ["fio", "--write_lat_log=run", "--log_offset=1", "--log_unix_epoch=1", "a.fio"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    logs = sorted(tmp_path.glob("run_lat.*.log"))
    assert len(logs) == text.count("[piece")
    found = models.check(fitted, logs)
    assert done.content is not None
    told, logged = (
        {row["dimension"]: row["ks"] for row in one["dimensions"]} for one in (done.content, found)
    )
    for dimension in ("size", "op", "region"):
        assert logged[dimension] == pytest.approx(told[dimension], abs=0.03)
    with pytest.raises(loadstone.Error, match="name those of one kind"):
        models.check(fitted, [*logs, tmp_path / "run_clat.1.log"])
    bare = tmp_path / "bare_lat.1.log"
    bare.write_text("5, 900, 1, 4096, 0\n")
    with pytest.raises(loadstone.Error, match="let fio write it with log_offset=1"):
        models.check(fitted, [bare])


@pytest.mark.parametrize("name", ["a:b", ":a", "a\\:b", "a b", "a\\b"])
def test_fio_goes_to_the_one_file_that_was_named(
    need_tools: Callable[..., None], tmp_path: Path, name: str
) -> None:
    """A colon made two files of one; Loadstone reads the name as fio does."""
    need_tools("fio")
    (tmp_path / "in").mkdir()
    target = tmp_path / "in" / name
    part = exporters.Direction(4, {4096: 4}, [0, *[4096 * i for i in range(1, 100)], 1 << 20], 0.0)
    load = exporters.Load("a.mdh", [exporters.Piece(0.0, 0.1, {1: part}, 0, 0)], 1 << 20, 4)
    job = tmp_path / "a.fio"
    text = fio.export(load, str(target))[""]
    job.write_text(text.replace("libaio", "psync").replace("direct=1", "direct=0"))
    subprocess.run(["fio", job], capture_output=True, check=True, cwd=tmp_path)
    assert [path.name for path in (tmp_path / "in").iterdir()] == [name]
    target.unlink()
    [plan] = lower(parse(job.read_text(), "a.fio", None, {}), Settings(on=str(target))).plans
    assert [one["path"] for one in plan["targets"]] == [str(target)]


@pytest.mark.parametrize("target", ["/mnt/a#b", "/mnt/a;b", "/mnt/a\nb", "/mnt/${HOME}", "/mnt/a "])
def test_what_fio_cannot_name_is_refused(target: str) -> None:
    with pytest.raises(loadstone.Error, match="a job file of fio cannot name it"):
        fio.export(_load(), target)


@pytest.mark.slow
def test_of_several_files_all_are_there_or_none(
    fitted: models.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    write = Path.write_text

    def limited(path: Path, text: str, **how: Any) -> int:
        if not text.startswith("# Made by"):
            return write(path, text, **how)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        written.append(text)
        return write(path, text, **how)

    monkeypatch.setattr(Path, "write_text", limited)
    with pytest.raises(loadstone.Error, match="No space left"):
        exporters.export(fitted, "filebench", tmp_path / "a.f", target="/x", pieces=6)
    assert len(written) == 3 and list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    done = exporters.export(fitted, "filebench", tmp_path / "a.f", target="/x", pieces=6)
    times = [path.stat().st_mtime_ns for path in done.files]
    assert len(times) > 4 and times[0] == max(times), "what begins the others is written last"


@pytest.mark.slow
@pytest.mark.parametrize("to", ["fio", "filebench", "iozone"])
def test_a_name_begins_no_line(fitted: models.Model, tmp_path: Path, to: str) -> None:
    """A model called a, end of line, 'touch pwned' was a command of the script."""
    name = "a\ntouch pwned\r\x0b\u2028exec_prerun=x"
    done = exporters.export(fitted, to, tmp_path / "a", target="/x", pieces=2, name=name)
    for path in done.files:
        text = path.read_bytes().decode()
        assert r"a\ntouch pwned\r\x0b\u2028exec_prerun=x" in text
        told = [line for line in text.splitlines() if "pwned" in line]
        assert not [line for line in told if not line.startswith("# Made by")]


def test_the_exporter_of_the_page_works_when_pasted(fitted: models.Model, root: Path, tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", (root / "docs/reference/exporters.md").read_text(), re.S)
    assert code
    (tmp_path / "plain.py").write_text(code[1])
    done = exporters.export(fitted, str(tmp_path / "plain.py"), tmp_path / "a.sh", target="/x", pieces=2)
    assert "dd if=/x of=/dev/null bs=" in (tmp_path / "a.sh").read_text()
    assert done.content is not None and done.losses[0].startswith("writes")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("x = 1", "defines no function export"),
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("def export(load, target):\n    return load.of_no_such_name", "AttributeError"),
        ("def export(load, target):\n    raise SystemExit(3)", "SystemExit: 3"),
        ("def export(load, target):\n    return 7", "bad.py returned int; it must return a dict"),
        ("def export(load, target):\n    return {}", "bad.py returned no file; it must return a dict"),
        ("def export(load, target):\n    return {'.a': ''}", "bad.py returned '.a', none empty; it must"),
        ("def export(load, target):\n    return {'': 7}", "bad.py returned '': int; it must return a dict"),
        ("def export(load, target):\n    return {'/../x': ''}", "leads elsewhere"),
        ("def export(load, target):\n    load.losses = [7]\n    return {'': ''}", "else than sentences"),
        ("def export(load, target):\n    load.jobs.append(7)\n    return {'': ''}", "number 1 .*: it is int"),
        *(
            (
                "from loadstone.exporters import Job\ndef export(load, target):\n"
                f"    load.jobs.append(Job({job}))\n    return {{'': ''}}",
                f"bad.py made a job that cannot be played, number 1 of load.jobs: {says}",
            )
            for job, says in [
                ("0, 0.0, 1.0, 9, {}, [(0, 4096, 1)], 0.0, 512", "sizes must have one"),
                ("0, 0.0, 1.0, 9, {4096: 0}, [(0, 4096, 1)], 0.0, 512", "sizes must have one"),
                ("0, 0.0, 1.0, 9, [4096], [(0, 4096, 1)], 0.0, 512", "sizes must be weights"),
                ("0, 0.0, 1.0, 9, {4096: 1}, [], 0.0, 512", "zones must have one"),
                ("0, 0.0, 1.0, 9, {4096: 1}, [(0, 4096)], 0.0, 512", "sizes must be weights"),
                ("0, 0.0, 1.0, 0, {4096: 1}, [(0, 4096, 1)], 0.0, 512", "it must have a request"),
                ("7, 0.0, 1.0, 9, {4096: 1}, [(0, 4096, 1)], 0.0, 512", "its op is 7"),
                ("0, None, 1.0, 9, {4096: 1}, [(0, 4096, 1)], 0.0, 512", "start, seconds"),
            ]
        ),
    ],
)
def test_an_exporter_that_fails_is_one_error(
    fitted: models.Model, tmp_path: Path, code: str, says: str
) -> None:
    (tmp_path / "bad.py").write_text(code)
    with pytest.raises(loadstone.Error, match=says):
        exporters.export(fitted, str(tmp_path / "bad.py"), tmp_path / "out", target="/x")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_command_tells_what_is_lost(
    loadstone: Callable[..., Any], fitted: models.Model, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "a.mdh")
    out = loadstone(
        "model", "export", tmp_path / "a.mdh", "--to", "fio", "-o", tmp_path / "a.fio", "--on", "/x"
    ).stdout
    assert "what it cannot express" in out and "joint total variation" in out
    assert re.search(r"^bytes: reads .* of the model .* \([+-]\d+\.\d%\); writes ", out, re.M)
    bad = loadstone(
        "model", "export", tmp_path / "a.mdh", "--to", "none", "-o", tmp_path / "b", "--on", "/x", status=2
    )
    assert "no exporter" in bad.stderr and "fio" in bad.stderr
    nowhere = ("-o", tmp_path / "no" / "b", "--on", "/x")
    done = loadstone("model", "export", tmp_path / "a.mdh", "--to", "fio", *nowhere, status=1)
    assert "no/b: cannot create: No such file or directory" in done.stderr


@pytest.mark.parametrize("to", ["fio", "iozone", "filebench"])
@pytest.mark.parametrize("target", ["", " ", "null:"])
def test_an_export_needs_a_place_to_run_on(
    fitted: models.Model, tmp_path: Path, to: str, target: str
) -> None:
    with pytest.raises(loadstone.Error, match=f"{to} cannot run on it; name a file or device"):
        exporters.export(fitted, to, tmp_path / "a", target=target)


def test_an_exporter_without_jobs_is_said_to_be_unmeasured(
    loadstone: Callable[..., Any], fitted: models.Model, tmp_path: Path
) -> None:
    """The list of losses was empty, as if nothing were lost."""
    fitted.save(tmp_path / "a.mdh")
    (tmp_path / "plain.py").write_text("def export(load, target):\n    return {'': 'x'}")
    words = ("model", "export", tmp_path / "a.mdh", "--to", tmp_path / "plain.py", "-o", tmp_path / "b")
    out = loadstone(*words, "--on", "/x").stdout
    for text in (out, (tmp_path / "b").read_text()):
        assert "cannot express: the exporter does not say" in text and exporters.UNMEASURED in text


@pytest.mark.slow
def test_files_of_an_earlier_export_are_told(fitted: models.Model, tmp_path: Path) -> None:
    """The script of two pieces lay beside the workloads of three."""
    (tmp_path / "e.sh.notes").write_text("mine")
    first = exporters.export(fitted, "filebench", tmp_path / "e.sh", target="/mnt/x", pieces=3)
    again = exporters.export(fitted, "filebench", tmp_path / "e.sh", target="/mnt/x", pieces=2, force=True)
    assert first.stale == [] and again.stale == [tmp_path / "e.sh.3.f"]


def test_an_export_that_is_ended_runs_no_parts_of_two(tmp_path, monkeypatch):
    """The first file says so, and keeps its permissions and the link that leads to it."""
    code = "def export(load, target):\n    return {'': target, '.1': target}\n"
    (tmp_path / "mine.py").write_text(code)
    model, out, link = models.fit(TRACE), tmp_path / "real", tmp_path / "out"
    link.symlink_to(out)
    exporters.export(model, str(tmp_path / "mine.py"), link, target="/a")
    out.chmod(0o600)

    def ended(path, force=True):
        if path.name.endswith(".1"):
            raise KeyboardInterrupt
        return aside(path, force)

    monkeypatch.setattr("loadstone.exporters._write.aside", ended)
    with pytest.raises(KeyboardInterrupt):
        exporters.export(model, str(tmp_path / "mine.py"), link, target="/b", force=True)
    assert out.read_text() == "# This export was ended while it was written. Export the model again.\n"
    assert link.is_symlink() and out.stat().st_mode & 0o777 == 0o600
    assert "/a" in (tmp_path / "out.1").read_text()


def test_of_many_requests_some_tell_places_and_sizes():
    """Memory is bounded by what is kept, and what is counted is exact."""
    random = np.random.default_rng(1)
    part, counted, moved = gathered._Part(), 0, 0
    for _ in range(200):
        size = random.choice([4096, 65536], 10_000, p=[0.75, 0.25])
        part.add(random.integers(0, 1 << 20, 10_000) * 4096, size)
        counted, moved = counted + 10_000, moved + int(size.sum())
        assert part.kept.shape[1] <= gathered._KEPT
    found = part.direction(1 << 32)
    assert (found.requests, found.bytes) == (counted, moved)
    assert abs(found.sizes[4096] / counted - 0.75) < 0.005 and sum(found.sizes.values()) == counted
    assert np.abs(np.diff(found.edges) / 2**32 - 0.01).max() < 0.001
