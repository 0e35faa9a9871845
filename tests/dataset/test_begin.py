"""First trees from distributions alone, and the presets: what comes out has the laws that were asked for."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from loadstone import Error, dataset

# Chance of a test to fail though all is well; seeds are fixed, so none does by chance twice.
ALPHA = 0.001

ZDB = """
Simulated DDT histogram:

bucket              allocated                       referenced
______   ______________________________   ______________________________
refcnt   blocks   LSIZE   PSIZE   DSIZE   blocks   LSIZE   PSIZE   DSIZE
------   ------   -----   -----   -----   ------   -----   -----   -----
     1       8K      1G      1G      1G       8K      1G      1G      1G
     2     1000    125M    125M    125M     2.20K    275M    275M    275M
    16        4    512K    512K    512K       80     10M     10M     10M
 Total    8.98K   1.12G   1.12G   1.12G    10.3K   1.28G   1.28G   1.28G

dedup = 1.14, compress = 1.00, copies = 1.00, dedup * compress / copies = 1.14
"""


def tree_of(path, tmp_path) -> dataset.Tree:
    """The columns of the last snapshot."""
    seen = []

    def look(tree, rng):
        seen.append(tree)
        return dataset.Changes()

    dataset.mutate(path, tmp_path / "looked.fst", mutator=look, force=True)
    return seen[0]


def made(tmp_path, **options) -> dataset.Tree:
    dataset.populate(tmp_path / "first.fst", force=True, **options)
    return tree_of(tmp_path / "first.fst", tmp_path)


def impressions(size):
    """Distribution function of table 2 of the FAST 2009 paper."""
    body = stats.lognorm.cdf(size, 2.46, scale=math.exp(9.48))
    tail = stats.pareto.cdf(size, 0.91, scale=512 * 2**20)
    return 0.99994 * body + 0.00006 * tail


def lognormal(size):
    return stats.lognorm.cdf(size, 1.5, scale=math.exp(9.5))


@pytest.mark.parametrize(
    ("sizes", "law"),
    [("impressions", impressions), ("lognormal:9.5,1.5", lognormal)],
    ids=["impressions", "plain"],
)
@pytest.mark.parametrize("duplicates", ["1=1", "1=80,2=15,5=5"])
def test_sizes_are_those_of_the_law(sizes, law, duplicates, tmp_path):
    tree = made(tmp_path, files=5000, sizes=sizes, duplicates=duplicates, seed=3)
    distance = stats.kstest(tree.size, law).statistic
    # A file of one chunk that is there twice has one size twice: not all sizes are drawn by themselves.
    single = np.diff(tree.start.astype(int)) == 1
    alike = single.sum() - len(np.unique(tree.chunks[tree.start[:-1].astype(int)[single]]))
    assert stats.kstwo.sf(distance, len(tree) - alike) > ALPHA, distance
    for file in (0, 17, 4999):
        assert tree.size[file] == tree.chunk_size[tree.chunks_of(file)].sum()


def test_other_sizes_are_not_those_of_the_law(tmp_path):
    tree = made(tmp_path, files=5000, sizes="lognormal:9.5,1.4", seed=3)
    assert stats.kstest(tree.size, lognormal).pvalue < ALPHA


def test_the_two_file_sets_have_their_tables(tmp_path):
    edges = np.array([0, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 1.35 * 2**20, 2.0**40])
    for name, counts, mean in (
        (
            "specsfs-69g",
            (1_990_612, 473_044, 242_107, 135_901, 28_063, 981, 5),
            72_641_776 * 1024 / 2_870_713,
        ),
        (
            "specsfs-768g",
            (21_896_732, 5_203_484, 2_663_177, 1_494_911, 308_693, 10_791, 11),
            768 * 2**30 / 31.58e6,
        ),
    ):
        sizes = made(tmp_path, files=30_000, sizes=name, seed=5).size.astype(float)
        found, _ = np.histogram(sizes, bins=edges + 0.5)
        # Cells that are expected to be nearly empty are taken together.
        asked = np.array(counts) * len(sizes) / sum(counts)
        found, asked = np.append(found[:5], found[5:].sum()), np.append(asked[:5], asked[5:].sum())
        assert stats.chisquare(found, asked).pvalue > ALPHA, name
        error = sizes[sizes < 2**21].std() / math.sqrt(len(sizes))
        assert abs(sizes[sizes < 2**21].mean() - mean) < 4 * error, name


def test_depths_and_extensions_are_those_asked_for(tmp_path):
    tree = made(tmp_path, files=20_000, directories=3000, extensions="c=30,h=20,=50", seed=1)
    depths = tree.depth[tree.dir]
    found = np.bincount(depths, minlength=16)[:16]
    asked = stats.poisson.pmf(np.arange(16), 6.49)
    asked = asked / asked.sum() * found.sum()
    assert stats.chisquare(found, asked).pvalue > ALPHA
    named = [tree.extensions[number] for number in tree.extension]
    counts = [named.count(name) for name in ("c", "h", "")]
    assert stats.chisquare(counts, np.array([0.3, 0.2, 0.5]) * len(named)).pvalue > ALPHA
    # A new directory is in one of C subdirectories with a chance in proportion to C + 2, so many have none.
    children = np.bincount(tree.parent[1:], minlength=len(tree.parent))
    assert abs((children == 0).mean() - 0.6) < 0.04
    other = made(tmp_path, files=2000, depths="0,1,3", seed=1)
    shares = np.bincount(other.depth[other.dir]) / 2000
    assert shares[0] == 0
    assert abs(shares[1] - 0.25) < 0.04


def test_duplicates_are_those_of_other_tools_files(tmp_path):
    dedis, zdb = tmp_path / "dist", tmp_path / "zdb.txt"
    dedis.write_text("0 1000\n1 500\n5 10\n")
    zdb.write_text(ZDB)
    from loadstone.dataset._laws import parse_duplicates

    assert parse_duplicates(dedis) == [(1, 1000), (2, 500), (6, 10)]
    rows = dict(parse_duplicates(zdb))
    # 2.2 K of 1000: 2.2528 each; 80 of 4: 20 each.
    assert rows[1] == 8192
    assert rows[2] == pytest.approx(1000 * 0.7472)
    assert rows[3] == pytest.approx(1000 * 0.2528)
    assert rows[20] == 4
    for source, wanted in ((dedis, {1: 1000, 2: 500, 6: 10}), (zdb, rows)):
        tree = made(tmp_path, files=10_000, sizes="lognormal:10.5,1.2", duplicates=source, seed=2)
        occurs = np.bincount(np.bincount(tree.chunks))
        shares = occurs / occurs[1:].sum()
        for times, blocks in wanted.items():
            assert shares[times] == pytest.approx(blocks / sum(wanted.values()), abs=0.006), times


@pytest.mark.parametrize(
    ("name", "scale"), [("kernels", 0.4), ("centos", 0.1), ("home", 0.01), ("macos", 0.03)]
)
def test_presets_have_their_tables(name, scale, tmp_path):
    check_preset(name, scale, tmp_path)


@pytest.mark.parametrize(("name", "scale"), [("system-logs", 0.03), ("sources", 0.03)])
def test_presets_of_large_files_have_their_tables(name, scale, tmp_path):
    check_preset(name, scale, tmp_path)


def check_preset(name, scale, tmp_path):
    """Numbers of files are rounded to whole ones at every step; patterns are drawn."""
    preset = dataset.PRESETS[name]
    made = dataset.create(f"preset:{name}", tmp_path / "x.fst", generations=8, scale=scale, seed=1)
    assert sum(one["best_match"] for one in made["generations"]) == 0
    told = dataset.profile(tmp_path / "x.fst")
    markov, steps = told["markov"], told["steps"]
    assert markov is not None
    files = [step["before"] for step in steps]
    new = sum(step["new"] for step in steps[1:-1])
    modified = sum(step["modified"] for step in steps[1:-1])
    unmodified = sum(files[2:]) - new - modified
    for of, count, asked in (
        ("n", sum(files[1:]), (preset.n,)),
        ("n", new, preset.new),
        ("m", modified, preset.modified),
        ("u", unmodified, (preset.unmodified[0], preset.unmodified[1])),
        ("d", sum(step["deleted"] for step in steps[1:-1]), (preset.dn,)),
    ):
        names = {"n": ("nm", "nu", "nd"), "m": ("mu", "md", "mm"), "u": ("um", "ud"), "d": ("dn",)}[of]
        for key, percent in zip(("n",) if len(asked) == 1 and of == "n" else names, asked, strict=True):
            if count:
                assert abs(markov[key] - percent) <= 100 * 8 / count, (key, percent, markov[key])
    changed = sum(step["modified"] for step in steps[1:])
    for pattern, asked, found in zip(dataset.PATTERNS, preset.patterns, told["patterns"], strict=True):
        share = asked / sum(preset.patterns)
        error = math.sqrt(share * (1 - share) / changed)
        assert abs(found / 100 - share) <= 4.5 * error, (pattern, asked, found)
    mean = sum(one["alone"]["files"] for one in made["snapshots"]) / len(made["snapshots"])
    growth = preset.steady()[2] / 100
    expected = preset.first_files() * scale * sum(growth**i for i in range(8)) / 8
    assert mean == pytest.approx(expected, rel=0.01)


def test_tables_of_the_thesis_sum_to_100_but_two():
    """Rows of tables 4.2 and 4.3, so that a slip of the pen is found."""
    for preset in dataset.PRESETS.values():
        assert sum(preset.new) == pytest.approx(100)
        assert sum(preset.modified) == pytest.approx(100)
        assert sum(preset.unmodified) == pytest.approx(99.1 if preset.name == "system-logs" else 100)
        assert sum(preset.patterns) == (98 if preset.name == "system-logs" else 100)
    names = {
        "kernels": 903,
        "centos": 1559,
        "home": 15_352,
        "macos": 83_220,
        "system-logs": 2672,
        "sources": 1112,
    }
    for name, total in names.items():
        preset = dataset.PRESETS[name]
        assert preset.snapshots * preset.thousands == pytest.approx(total, rel=0.02)


def test_users_share_ever_less(tmp_path):
    made = dataset.create(
        "preset:kernels",
        tmp_path / "x.fst",
        users=4,
        generations=4,
        scale=0.02,
        duplicates="1=9,2=1",
        compress=2.0,
    )
    ratios = [one["alone"]["dedup_ratio"] for one in made["snapshots"]]
    assert 4 < ratios[0] < 4.6
    assert ratios == sorted(ratios, reverse=True)
    assert made["snapshots"][0]["alone"]["compress_ratio"] == pytest.approx(2, rel=0.05)


def test_what_was_populated_is_written_and_scanned(tmp_path, loadstone):
    """By the command line: the chunks that a scan finds are those that were asked for."""
    first, out = tmp_path / "first.fst", tmp_path / "out"
    options = (
        "--files",
        "300",
        "--sizes",
        "lognormal:10,1",
        "--duplicates",
        "1=8,2=1,3=1",
        "--compress",
        "2",
    )
    told = json.loads(loadstone("dataset", "populate", *options, "-o", first, "--json").stdout)
    loadstone("dataset", "write", first, "--to", out)
    found = dataset.scan(out, tmp_path / "found.fst")["snapshots"][0]["alone"]
    for name in ("files", "bytes", "chunks", "distinct", "unique", "dup1", "dup2"):
        assert found[name] == told["snapshots"][0]["alone"][name], name
    assert found["compress_ratio"] == pytest.approx(2, rel=0.05)
    assert "kernels" in loadstone("dataset", "presets").stdout
    assert json.loads(loadstone("dataset", "presets", "--json").stdout)["presets"]["home"]["dn"] == 6


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"sizes": "normal:1"}, "is no law of file sizes"),
        ({"sizes": "lognormal:1"}, "mean and deviation"),
        ({"depths": "deep"}, "are no depths"),
        ({"extensions": "c"}, "a name and a share"),
        ({"extensions": "c=-1"}, "extensions: use"),
        ({"duplicates": "1.5=3"}, "whole numbers"),
        ({"duplicates": "0=3"}, "duplicates: use 1"),
        ({"compress": 0.5}, "a compress ratio"),
        ({"compress": float("nan")}, "a compress ratio of nan: use 1 to 250"),
        ({"sizes": "lognormal:nan,1"}, "mean and deviation"),
        ({"sizes": "lognormal:9,inf"}, "mean and deviation"),
        ({"depths": "poisson:nan"}, "are no depths"),
        ({"depths": "1,nan"}, "are no depths"),
        ({"extensions": "c=nan"}, "a name and a share"),
        ({"duplicates": "1=inf"}, "a name and a share"),
        ({"files": 0}, "0 files"),
        ({"chunking": "rabin"}, "is not a chunking"),
        ({"memory_limit": 1 << 20, "files": 1 << 20}, "would take about"),
        ({"files": 2**32 - 1}, "would take about"),
        ({"directories": 2**32 - 1}, "would take about"),
        ({"files": 1 << 20, "sizes": "lognormal:22,1"}, "would take about .* make fewer"),
    ],
)
def test_what_cannot_be_made_is_told(options, what, tmp_path):
    with pytest.raises(Error, match=what):
        dataset.populate(tmp_path / "x.fst", **options)
    assert list(tmp_path.iterdir()) == []


def test_files_of_other_tools_that_are_damaged_are_told(tmp_path):
    bad = tmp_path / "bad"
    for text, what in (
        ("1 2 3\n", "bad:1: '1 2 3': a line has 2 numbers"),
        ("", "has no line"),
        ("0.5 3\n", "0.5 duplicates"),
        ("refcnt blocks\n", "no row of a table"),
    ):
        bad.write_text(text)
        with pytest.raises(Error, match=what):
            dataset.populate(tmp_path / "x.fst", duplicates=bad)
    dataset.create("preset:kernels", tmp_path / "few.fst", generations=3, scale=0.001)
    with pytest.raises(Error, match="would take about"):
        dataset.mutate(
            tmp_path / "few.fst", tmp_path / "x.fst", profile="preset:kernels", generations=2**32 - 1
        )
    with pytest.raises(Error, match="is no preset"):
        dataset.create("preset:windows", tmp_path / "x.fst")


def test_making_tells_how_far_it_is_and_can_be_ended(tmp_path):
    told = []

    def end(done, of):
        told.append((done, of))
        raise KeyboardInterrupt

    out = tmp_path / "x.fst"
    with pytest.raises(KeyboardInterrupt):
        dataset.populate(out, files=400_000, progress=end)
    with pytest.raises(KeyboardInterrupt):
        dataset.create("preset:home", out, generations=2, progress=end)
    assert not out.exists()
    assert told[0][1] == 400_000
    assert all(0 < done < of for done, of in told) and len(told) == 2, told
