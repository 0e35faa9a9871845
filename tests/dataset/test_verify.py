"""Asked against achieved, with a profile and with real data, and the page about it."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from pathlib import Path

import pytest

from loadstone import Error, content, dataset


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Three states of a tree in which some files change and some come and go."""
    seed, folder = random.Random(11), tmp_path_factory.mktemp("real")
    words = [seed.randbytes(seed.randrange(3, 9)).hex().encode() for _ in range(2000)]
    files = {
        f"d{i % 7}/{i}.txt": b" ".join(seed.choices(words, k=seed.randrange(20, 4000))) for i in range(300)
    }
    for snapshot in range(3):
        for name, data in files.items():
            path = folder / f"{snapshot:03}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for _ in range(30):
            name = seed.choice(sorted(files))
            at = seed.randrange(len(files[name]) + 1)
            files[name] = files[name][:at] + b" ".join(seed.choices(words, k=99)) + files[name][at:]
        del files[seed.choice(sorted(files))]
        files[f"new/{snapshot}.txt"] = b" ".join(seed.choices(words, k=3000))
    return folder


@pytest.fixture(scope="module")
def made(real, tmp_path_factory):
    """A profile of them, and what was written from it."""
    folder = tmp_path_factory.mktemp("made")
    dataset.scan(dataset.snapshots(real), folder / "real.fst")
    dataset.profile(folder / "real.fst", folder / "profile")
    dataset.create(folder / "profile", folder / "made.fst", seed=3)
    dataset.write(folder / "made.fst", folder / "out", snapshots="all")
    return folder


def named(found):
    return {one["name"]: one for one in found["parameters"]}


@pytest.mark.slow
def test_real_data_says_what_no_profile_does(real, made, loadstone):
    """Dedup ratios of other chunkings are judged, and codecs told of both, where the real data is there."""
    done = loadstone("dataset", "verify", made / "out", "--against", real, "--json")
    found = json.loads(done.stdout)
    told = named(found)
    assert [one for one in found["parameters"] if not one["ok"]] == []
    for size in (4, 8, 16, 32, 64, 128):
        for kind in ("fixed", "fastcdc"):
            one = told[f"dedup {kind}:{size}k"]
            assert one["judged"]
            assert one["error_percent"] < 10
    for size in ("8k", "128k"):
        for codec in ("zstd", "lz4", "zlib"):
            one = told[f"compress {codec} {size}"]
            assert one["asked"] > 1.05
            assert not one["judged"]
    # In pieces of a chunk's size zstd finds what it found of chunks.
    assert told["compress zstd 8k"]["achieved"] == pytest.approx(told["compress zstd 8k"]["asked"], rel=0.1)
    # Another reader of the same: files compared byte by byte, so that what is alike in all counts once.
    seen = {path.read_bytes(): path for path in real.rglob("*") if path.is_file()}
    assert told["dedup fixed:128k"]["asked"] == pytest.approx(
        sum(path.stat().st_size for path in real.rglob("*") if path.is_file()) / sum(map(len, seen)), rel=1e-6
    )


def test_a_profile_leaves_them_told(made):
    found = dataset.verify(made / "out", made / "profile", chunk_sizes=[4096])
    told = named(found)
    for name in ("dedup fixed:4k", "dedup fastcdc:4k", "compress zstd 8k"):
        assert told[name]["asked"] is None
        assert told[name]["error_percent"] is None
        assert not told[name]["judged"]
    assert "dedup fixed:8k" not in told
    assert found["snapshots"] == {"asked": 3, "achieved": 3, "compared": 3}
    assert sum(found["distributions"]["sizes"][0].values()) == sum(
        found["distributions"]["types"][1].values()
    )


@pytest.mark.slow
def test_what_is_not_like_the_real_data_fails(real, made, tmp_path, loadstone):
    """The same tree, but that the files of later snapshots are all new: what deduplicators feel is lost."""
    shutil.copytree(made / "out", tmp_path / "out")
    for number, path in enumerate(sorted((tmp_path / "out/002").rglob("*.txt"))):
        path.write_bytes(random.Random(number).randbytes(path.stat().st_size))
    done = loadstone("dataset", "verify", tmp_path / "out", "--against", real, "--json", status=1)
    told = named(json.loads(done.stdout))
    assert not told["dedup fixed:64k"]["ok"]
    assert not told["dedup fastcdc:64k"]["ok"]


def test_missing_snapshots_are_told(made, tmp_path, loadstone):
    shutil.copytree(made / "out/000", tmp_path / "out/000")
    done = loadstone(
        "dataset", "verify", tmp_path / "out", "--profile", made / "profile", "--chunk-sizes", "none"
    )
    assert "3 snapshots were expected and 1 found" in done.stdout


@pytest.mark.parametrize("gone", ["000", "001"])
def test_a_snapshot_that_is_gone_is_told(made, tmp_path, loadstone, gone):
    """Those behind it were compared with the numbers of others."""
    shutil.copytree(made / "out", tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / gone)
    done = loadstone("dataset", "verify", tmp_path / "out", "--profile", made / "profile", status=1)
    assert f"has 002, and no snapshot {gone}" in done.stderr
    # No number is so large that it is counted up to.
    (tmp_path / "out/002").rename(tmp_path / f"out/{'9' * 30}")
    done = loadstone("dataset", "verify", tmp_path / "out", "--profile", made / "profile", status=1)
    assert "and no snapshot" in done.stderr


@pytest.mark.slow
def test_what_lies_beside_snapshots_is_told(made, tmp_path, loadstone):
    """With one file more all of them were one snapshot."""
    out = tmp_path / "out"
    shutil.copytree(made / "out", out)
    (out / "notes.txt").write_text("of mine")
    command = ["dataset", "verify", out, "--profile", made / "profile", "--chunk-sizes", "none"]
    done = loadstone(*command, status=1)
    assert "beside 3 snapshots (000 to 002) has 'notes.txt'" in done.stderr
    assert "snapshots were expected" not in done.stdout + done.stderr
    # What file systems and file managers put there is none of the dataset.
    (out / "notes.txt").rename(out / ".notes")
    (out / "lost+found").mkdir()
    assert "snapshots were expected" not in loadstone(*command).stdout
    # A single snapshot may have names like these.
    (out / "002").rename(out / "2002")
    (out / "lost+found").rename(out / "source")
    done = loadstone(*command, status=None)
    assert "3 snapshots were expected and 1 found" in done.stdout


@pytest.mark.parametrize("tolerance", ["nan", "inf", "-1"])
def test_a_tolerance_is_a_number(made, loadstone, tolerance):
    command = ["dataset", "verify", made / "out", "--profile", made / "profile"]
    done = loadstone(*command, f"--tolerance={tolerance}", status=None)
    assert done.returncode > 0
    assert "tolerance" in done.stderr
    with pytest.raises(Error, match="use 0 to 1e"):
        dataset.verify(made / "out", made / "profile", tolerance=float(tolerance))


@pytest.mark.slow
def test_the_page_has_a_figure_of_everything(made, tmp_path, loadstone):
    page = tmp_path / "page.html"
    command = ["dataset", "verify", made / "out", "--profile", made / "profile", "--chunk-sizes", "4k,64k"]
    loadstone(*command, "--report", page)
    text = page.read_text()
    for title in (
        "What deduplicators see",
        "How files change",
        "What files are like",
        "Dedup ratio by chunk size",
    ):
        assert title in text
    assert re.search(r"unique chunks,2,\d+", text), "the CSV has every number that is drawn"
    done = loadstone(*command, "--report", page, status=2)
    assert "--force" in done.stderr
    loadstone(*command, "--report", page, "--force")


def test_wrong_questions_are_told(made, tmp_path, loadstone):
    with pytest.raises(Error, match="nothing to compare with"):
        dataset.verify(made / "out")
    assert "--against" in loadstone("dataset", "verify", made / "out", status=2).stderr
    preset = loadstone("dataset", "verify", made / "out", "--profile", "preset:home", status=1).stderr
    assert "preset:home is a preset" in preset and "loadstone dataset profile" in preset
    command = ["dataset", "verify", made / "out", "--profile", made / "profile", "--chunk-sizes"]
    assert "write it like" in loadstone(*command, "4k,x", status=2).stderr
    assert "write it like" in loadstone(*command, "512", status=2).stderr


def test_as_much_stays_of_chunks_that_change_as_in_real_data(tmp_path):
    words = [f"{number * number % 100_003:05x}" for number in range(3000)]
    real = tmp_path / "real"
    texts = [random.Random(number).choices(words, k=20_000) for number in range(24)]
    for snapshot in range(3):
        (real / f"{snapshot}").mkdir(parents=True)
        for number, text in enumerate(texts):
            (real / f"{snapshot}" / f"{number}.txt").write_text(" ".join(text))
            # Words of one length: what is behind them stays where it is.
            for place in random.Random(f"{snapshot} {number}").sample(range(20_000), 2):
                text[place] = "#####"
    dataset.scan(sorted(real.iterdir()), tmp_path / "real.fst", compress="whole")
    asked = dataset.profile(tmp_path / "real.fst", tmp_path / "profile")["stays"]
    assert asked is not None and 0.3 < asked < 0.95
    dataset.create(tmp_path / "profile", tmp_path / "made.fst", seed=3)
    dataset.write(tmp_path / "made.fst", tmp_path / "made", snapshots="all")
    told = dataset.verify(tmp_path / "made", tmp_path / "profile", chunk_sizes=())
    (row,) = [row for row in told["parameters"] if row["name"] == "stays in changes"]
    assert row["asked"] == pytest.approx(100 * asked) and row["achieved"] == pytest.approx(
        100 * asked, abs=12
    )
    # Blocks tell it, too: of a file that changes few are others.
    blocks = dataset.scan(sorted((tmp_path / "made").iterdir()), tmp_path / "blocks.fst", chunking="fixed:4k")
    found = [one["together"]["dedup_ratio"] for one in blocks["snapshots"]]
    assert found[-1] > 2.5, found


def test_codecs_save_as_much_of_what_is_made_as_of_programs(tmp_path):
    """Of Python's own modules: lz4 finds matches only, zstd and zlib code literals, too."""
    real, size = tmp_path / "real", 0
    real.mkdir()
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        if 16_000 < path.stat().st_size < 200_000:
            shutil.copy(path, real)
            size += path.stat().st_size
    assert size > 1 << 20
    dataset.scan(real, tmp_path / "real.fst", compress="whole")
    dataset.profile(tmp_path / "real.fst", tmp_path / "profile")
    dataset.create(tmp_path / "profile", tmp_path / "made.fst", seed=3)
    dataset.write(tmp_path / "made.fst", tmp_path / "made")
    asked, found = (
        content.examine(tmp_path / folder, unit=8 << 10, piece=128 << 10) for folder in ("real", "made")
    )
    # One ratio for all codecs was 16 to 30 % off. Larger pieces resemble each other less than is asked.
    for pieces, most in (("by_unit", 0.07), ("by_piece", 0.12)):
        for codec in ("lz4", "zstd", "zlib"):
            off = found[pieces][codec] / asked[pieces][codec] - 1
            assert abs(off) < most, (pieces, codec, asked[pieces], found[pieces])


def test_what_is_made_resembles_itself_as_much_as_real_data(tmp_path):
    words = [f"{number * number % 100_003:x}" for number in range(3000)]
    for number in range(24):
        draw = random.Random(number)
        (tmp_path / "real").mkdir(exist_ok=True)
        (tmp_path / "real" / f"{number}.txt").write_text(" ".join(draw.choices(words, k=100_000)))
    dataset.scan(tmp_path / "real", tmp_path / "real.fst", compress="whole")
    wanted = dataset.profile(tmp_path / "real.fst", tmp_path / "profile")["resemblance"]
    assert wanted is not None and wanted["far"] >= wanted["near"] > 0.03
    dataset.create(tmp_path / "profile", tmp_path / "made.fst", seed=3)
    dataset.write(tmp_path / "made.fst", tmp_path / "made")
    told = dataset.verify(tmp_path / "made", tmp_path / "profile", chunk_sizes=())
    rows = {row["name"]: row for row in told["parameters"] if row["name"].startswith("resemblance")}
    assert set(rows) == {"resemblance 128k", "resemblance 1m"}
    assert all(row["error_percent"] < 5 and row["achieved"] > 2 for row in rows.values()), rows
    # Of a sample nothing is known of larger pieces.
    dataset.scan(tmp_path / "real", tmp_path / "sample.fst")
    assert dataset.profile(tmp_path / "sample.fst")["resemblance"] is None


def test_hash_files_are_snapshots_as_archives_are(made, tmp_path):
    names = []
    for form in ({"tar": True}, {"hashes": True}):
        to = tmp_path / next(iter(form))
        written = dataset.write(made / "made.fst", to, snapshots="all", **form)
        found = dataset._verify.snapshots_in(to)
        assert found == [one["path"] for one in written] and len(found) == 3
        names += [os.path.basename(path) for path in found]
    assert names[3:] == ["000.hash", "001.hash", "002.hash"]


def test_as_many_snapshots_are_compared_as_both_have(tmp_path):
    """Dedup ratios of three snapshots were compared with those of two."""
    for number in range(3):
        (tmp_path / f"{number:03}").mkdir()
        (tmp_path / f"{number:03}/same").write_bytes(random.Random(1).randbytes(300_000))
    snapshots = [tmp_path / f"{number:03}" for number in range(3)]
    found = dataset.verify(snapshots, against=snapshots[:2], chunk_sizes=[4096])
    ratios = [one for one in found["parameters"] if one["name"].startswith("dedup ")]
    assert len(ratios) == 2 and {(one["asked"], one["achieved"]) for one in ratios} == {(2.0, 2.0)}
    assert found["ok"] and found["snapshots"] == {"asked": 2, "achieved": 3, "compared": 2}
