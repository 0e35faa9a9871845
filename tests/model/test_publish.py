"""What may be published says nothing of where it comes from."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arro3.io
import pytest

from loadstone import model as models

TRACE = Path(__file__).resolve().parents[2] / "examples" / "loop0.parquet"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """MSR: a host of some name at a date, 4 KiB requests, and three of a size that is like no other."""
    draw, now, rows = random.Random(3), 128_166_372_003_061_629, []
    for i in range(3000):
        size = 1_234_944 if i in (500, 501, 2000) else 4096
        now += draw.randrange(1, 200_000)
        rows.append(f"{now},topsecret,{i % 2},Write,{draw.randrange(1 << 18) * 4096},{size},1000\n")
    path = tmp_path / "a.csv"
    path.write_text("".join(rows))
    return path


def everything(path: Path) -> str:
    """All that a model file says: its header, and its cells."""
    table = arro3.io.read_parquet(path).read_all()
    header = json.dumps(models.Model.load(path).header)
    texts = [f"{key!r}: {value!r}" for key, value in table.schema.metadata.items()]
    return header + "".join(texts) + path.read_bytes().decode("latin-1")


def test_no_name_date_or_rare_value_survives(secret: Path, tmp_path: Path) -> None:
    fitted = models.fit(secret)
    fitted.save(tmp_path / "private.mdh")
    public = fitted.published()
    public.save(tmp_path / "public.mdh")
    private, told = everything(tmp_path / "private.mdh"), everything(tmp_path / "public.mdh")
    assert "topsecret" in private and "1234944" in private and fitted.header["source"]["start_unix_ns"]
    assert "topsecret" not in told and "1234944" not in told
    source = public.header["source"]
    assert source["start_unix_ns"] is None and source["warnings"] == [] and source["format"] == ""
    assert source["span_ns"] % public.header["windows"]["length_ns"] == 0
    sizes = public.marginal("size")
    by_size = {(first, last): n for first, last, n in zip(*(c.tolist() for c in sizes[:3]), strict=True)}
    assert by_size[4096, 4096] == 2997
    assert [n for (first, last), n in by_size.items() if first <= 1_234_944 <= last] == [3]
    for item in public.header["objects"]:
        assert item["name"] == "" and item["extent"] % (1 << item["region_shift"]) == 0
        # One request may have reached that far.
        assert item["extent"] % (1 << max(0, item["extent"].bit_length() - 6)) == 0
    for before, after in zip(fitted.header["dimensions"], public.header["dimensions"], strict=True):
        if after["rule"]["kind"] == "exact":
            assert set(after["rule"]["values"]) <= set(before["rule"]["values"])


@pytest.mark.parametrize(
    "rule", ["linear:1", "linear:512", "log2:4096", "category", "exact+linear:1", "exact+log2:64"]
)
@pytest.mark.parametrize("factored", [False, True])
def test_no_rule_is_fine_enough_to_tell_a_rare_value(secret: Path, rule: str, factored: bool) -> None:
    fitted = models.fit(secret, dimensions=[f"size={rule}"])
    fitted = fitted.factored() if factored else fitted
    public = fitted.published()
    sizes = {
        (first, last): n
        for first, last, n in zip(*(c.tolist() for c in public.marginal("size")[:3]), strict=True)
    }
    (rare,) = [(first, last) for (first, last), n in sizes.items() if n == 3 and first <= 1_234_944 <= last]
    assert (rare[1] - rare[0] + 1) * 32 > rare[1]
    assert sum(n for (first, last), n in sizes.items() if first <= 4096 <= last) == 2997
    if rule not in ("linear:512", "exact+log2:64"):
        assert sizes[4096, 4096] == 2997
    drawn = public.sample(seed=1)["size"].to_pylist()
    assert len(drawn) == 3000
    assert sum(rare[0] <= size <= rare[1] for size in drawn) == pytest.approx(3, abs=2)
    # What many have may be told as finely as before.
    assert fitted.published(least=1).marginal("size")[2].tolist() == fitted.marginal("size")[2].tolist()


def test_the_length_is_not_told_to_the_microsecond_nor_are_rare_flags(tmp_path: Path) -> None:
    fitted = models.fit(TRACE, dimensions=["observed:flags"])
    public = fitted.published()
    length = fitted.header["windows"]["length_ns"]
    told = public.header["windows"]["length_ns"]
    assert length < told <= length * 1.01 and told % 10 ** (len(str(told)) - 3) == 0
    # Two requests have flags that no others have.
    before, after = (
        dict(zip(*(c.tolist() for c in m.marginal("flags")[::2]), strict=True)) for m in (fitted, public)
    )
    assert before[8] == 2 and 8 not in after and after[models.NONE] == 2
    (largest,) = [d["largest"] for d in public.header["dimensions"] if d["feature"] == "flags"]
    assert largest == max(flags for flags in after if flags != models.NONE)
    assert {flags: n for flags, n in before.items() if n >= 10} == {f: n for f, n in after.items() if n >= 10}


def test_it_still_draws_the_same_load(secret: Path) -> None:
    fitted = models.fit(secret)
    public = fitted.published()
    assert public.requests == fitted.requests and public.windows()[0].tolist() == fitted.windows()[0].tolist()
    table = public.sample(seed=1)
    sizes = table["size"].to_pylist()
    assert sizes.count(4096) == pytest.approx(2997, abs=30)
    assert models.check(public, secret)["miss_ratio"]["max"] < 0.1


def test_values_seen_often_enough_stay(secret: Path) -> None:
    fitted = models.fit(secret)
    assert fitted.published(least=1).header["dimensions"][0]["rule"] == fitted.header["dimensions"][0]["rule"]
    cells = sum(matrix["cells"] for matrix in fitted.published(least=1).matrices())
    assert cells == sum(matrix["cells"] for matrix in fitted.matrices())
    assert sum(m["cells"] for m in fitted.published(least=10**9).matrices()) <= cells


def test_the_commands(loadstone: Callable[..., Any], secret: Path, tmp_path: Path) -> None:
    loadstone("model", "fit", secret, "-o", tmp_path / "a.mdh", "--public")
    assert "topsecret" not in everything(tmp_path / "a.mdh")
    loadstone("model", "fit", secret, "-o", tmp_path / "b.mdh")
    said = loadstone("model", "publish", tmp_path / "b.mdh", "-o", tmp_path / "c.mdh").stdout
    assert "names left out" in said or "name left out" in said
    assert models.Model.load(tmp_path / "c.mdh").header == models.Model.load(tmp_path / "a.mdh").header
    taken = loadstone("model", "publish", tmp_path / "b.mdh", "-o", tmp_path / "c.mdh", status=1)
    assert "force" in taken.stderr


def test_rare_values_are_counted(loadstone: Callable[..., Any], tmp_path: Path) -> None:
    """Values that fine buckets gave way to were taken from those left out: "-3 of 1 exact values"."""
    sizes = [4096] * 400 + [123 * 512] + [777 * 512] * 5 + [333 * 512] * 20
    lines = (f"0,{i * 64 % 40000},{size},R,{i / 100}\n" for i, size in enumerate(sizes))
    (tmp_path / "rare.spc").write_text("".join(lines))
    fine, public = tmp_path / "fine.mdh", tmp_path / "public.mdh"
    loadstone("model", "fit", tmp_path / "rare.spc", "-o", fine, "--dimension", "size=linear:1")
    for least, values in (("2", 0), ("5", 0), ("30", 1)):
        told = loadstone("model", "publish", fine, "-o", public, "--least", least, "--force", "--json").stdout
        found = json.loads(told)
        assert found["values"] == values and found["joined"] == ["size"]
    said = loadstone("model", "publish", fine, "-o", public, "--least", "5", "--force").stdout
    assert re.search(r" 0 of \d+ exact values were seen", said) and "were joined: size" in said


def test_no_length_of_a_file_survives(tmp_path: Path) -> None:
    """Many requests of one file are no many files: its length would tell it."""
    length, lines, now = 7_654_321, [], 1000.0

    def call(text: str) -> None:
        nonlocal now
        now += 0.001
        lines.append(f"100 {now:.6f} {text} <0.000100>")

    for number in range(200):
        call(f'openat(AT_FDCWD, "/data/{number}", O_RDONLY) = 3')
        call('read(3, "x"..., 4096) = 4096')
        call("close(3) = 0")
    call('openat(AT_FDCWD, "/data/secret", O_RDONLY) = 3')
    for block in range(60):
        call(f'pread64(3, "x"..., 4096, {block * 4096}) = 4096')
    for _ in range(60):
        call(f'pread64(3, "x"..., 21, {length - 21}) = 21')
    call("close(3) = 0")
    (tmp_path / "a.strace").write_text("\n".join(lines) + "\n")
    fitted = models.fit(tmp_path / "a.strace")
    fitted.save(tmp_path / "private.mdh")
    fitted.published().save(tmp_path / "public.mdh")
    assert str(length) in everything(tmp_path / "private.mdh")
    assert str(length) not in everything(tmp_path / "public.mdh")


def test_a_model_quotes_no_line_of_its_trace(tmp_path, loadstone):
    """Neither does the bundle of an evaluation, which has the model."""
    path, out = tmp_path / "t.spc", tmp_path / "b"
    lines = [f"0,{8 * i},4096,{'RW'[i % 2]},{i / 1000:.6f}\n" for i in range(300)]
    path.write_text("".join([*lines[:100], "passwd=HUNTER2SECRET,x,y\n", *lines[100:]]))
    damaged = ("--max-damaged", 3, "--format", "spc")
    loadstone("model", "fit", path, "-o", tmp_path / "m.mdh", *damaged)
    shown = loadstone("model", "show", tmp_path / "m.mdh", "--json").stdout
    assert "line 101" in shown and "HUNTER2SECRET" not in shown
    loadstone("evaluate", path, *damaged, "--on", tmp_path / "t", "--repeat", 2, "--out", out, "--yes")
    for file in [tmp_path / "m.mdh", *(p for p in out.rglob("*") if p.is_file())]:
        assert b"HUNTER2SECRET" not in file.read_bytes(), file


@pytest.mark.slow
def test_who_publishes_single_requests_is_told(tmp_path, loadstone):
    """Windows of microseconds tell when each was made, and a matrix for each what it was."""
    draw, now, rows = random.Random(1), 0.0, []
    for i in range(300):
        now += 0.01 + draw.random() * 0.01
        rows.append(f"0,{draw.randrange(1 << 20) * 8},4096,{'R' if i % 3 else 'W'},{now:.6f}")
    (tmp_path / "r.spc").write_text("\n".join(rows))
    words = ("model", "fit", tmp_path / "r.spc", "--force", "-o", tmp_path / "x.mdh")
    fine = ("--window", "1ms", "--group", 1, "--merge", "none", "--max-matrices", 100_000)
    for options, said in (
        (("--public", "--window", "2us"), "shows when single requests were made"),
        (("--public", *fine), "shows when single requests were made"),
        (
            ("--public", "--window", "100ms", "--group", 1, "--merge", "none"),
            "what single requests were like",
        ),
        (("--window", "2us"), ""),
        (("--public",), ""),
    ):
        told = loadstone(*words, *options).stderr
        assert said in told and ("single requests" in told) == bool(said), (options, told)
    loadstone(*words, "--window", "2us")
    done = loadstone("model", "publish", tmp_path / "x.mdh", "-o", tmp_path / "y.mdh")
    assert "single requests" in done.stderr
