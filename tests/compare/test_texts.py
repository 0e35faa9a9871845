"""A comparison as text, Markdown, plain data, page and picture; conditions, and the command."""

from __future__ import annotations

import json
import re

import pytest
from made import arm, host

from loadstone.compare import compare
from loadstone.compare.conditions import Condition
from loadstone.errors import OptionError

TEN = [100, 101, 99, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100]


@pytest.fixture
def found():
    slower = [0.8 * one for one in TEN]
    ext4 = arm("ext4", TEN, TEN, environment=host(), started=100.0)
    xfs = arm("xfs", slower, TEN, environment=host(targets__t0__mount__type="xfs"), started=200.0)
    return compare([ext4, xfs])


def test_the_text_tells_in_this_order(found):
    text = found.text()
    order = [
        "file system",
        "xfs against ext4: ops_per_s is worse: 0.8 times",
        "metric ",
        "service_p99",
        "note:",
    ]
    assert [text.index(one) for one in order] == sorted(text.index(one) for one in order)
    assert "service_p99  same" in text and "came before those of another" in text
    assert repr(found).startswith("<Comparison xfs against ext4: ops_per_s is worse: 0.8 times (0.7")


def test_colour_is_of_what_is_real(found):
    assert "\x1b" not in found.text()
    coloured = found.text(colour=True)
    assert coloured.count("\x1b[31mworse") == 2 and "\x1b[31msame" not in coloured
    assert re.sub("\x1b\\[[0-9]*m", "", coloured) == found.text()


def test_markdown_has_tables(found):
    text = found.markdown()
    assert text.startswith("❌ **xfs against ext4: ops\\_per\\_s is worse")
    assert "| metric | verdict | ratio | 95 % interval | ext4 | xfs | runs |" in text
    assert "<details><summary>What differs besides</summary>" in text


def test_plain_data_is_json(found):
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    one = told["verdicts"][0]
    assert (one["metric"], one["verdict"], one["primary"], one["runs"]) == (
        "ops_per_s",
        "worse",
        True,
        [10, 10],
    )
    assert one["ratio"]["low"] < 0.8 < one["ratio"]["high"] and one["change"] == pytest.approx(-0.2)
    single = compare([arm("a", [1]), arm("b", [2])]).to_json()
    assert single["verdicts"][0]["ratio"]["high"] is None


def test_page_and_picture(found, tmp_path):
    found.report(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    assert "ops_per_s is worse" in page and "What differs between the arms" in page and '"ratios"' in page
    assert "<table>" in found._repr_html_()
    found.plot().savefig(tmp_path / "c.png")
    assert (tmp_path / "c.png").stat().st_size > 10_000
    zero = compare([arm("a", [0, 0, 0.0]), arm("b", [5, 5.1, 4.9])])
    zero.report(tmp_path / "z.html")
    zero.plot().savefig(tmp_path / "z.png")


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("worse", 1),
        ("worse by 5%", 1),
        ("worse by 0.19", 1),
        ("worse by 30%", 0),
        ("better", 0),
        ("different", 1),
        ("different by 10 %", 1),
        ("not same", 1),
        ("undecided", 0),
        ("ops_per_s worse by 10%", 1),
        ("service_p99 not same", 0),
        ("any worse", 1),
    ],
)
def test_conditions(found, text, fails):
    assert len(found.failing([text])) == fails


@pytest.mark.parametrize(
    "text", ["", "bad", "worse by", "worse by x", "worse by -1", "undecided by 5%", "nothing worse", "by 5%"]
)
def test_what_is_no_condition(found, text):
    with pytest.raises(OptionError, match="fail_if"):
        found.failing([text])


def test_a_condition_is_read():
    one = Condition.parse("read.service_p99 not same")
    assert (one.metric, one.word, one.by) == ("read.service_p99", "not same", 0.0)


def test_the_command(loadstone, tmp_path):
    for name in "ab":
        words = ("--size", "1m", "--requests", 300, "--repeat", 4, "--out", tmp_path / name)
        loadstone("run", "randread", "--on", "null:", *words)
    both = (tmp_path / "a", f"new={tmp_path / 'b'}")
    assert "new against a: ops_per_s" in loadstone("compare", *both).stdout
    assert json.loads(loadstone("compare", *both, "--json").stdout)["failing"] == []
    page = tmp_path / "c.html"
    told = loadstone("compare", *both, "--markdown", "--html", page).stdout
    assert told.startswith(("**", "✅", "❌", "❔")) and page.exists()
    assert "--force" in loadstone("compare", *both, "--html", page, status=1).stderr
    failed = loadstone("compare", *both, "--fail-if", "any not same", "--fail-if", "worse by 99%", status=3)
    assert "fails: any not same: " in failed.stderr and "worse by 99%" not in failed.stderr
    assert "floor" in loadstone("compare", tmp_path / "a", "--self").stdout
    assert "is alone" in loadstone("compare", tmp_path / "a", status=2).stderr
    assert "--self" in loadstone("compare", *both, "--self", status=2).stderr
    assert "--fail-if" in loadstone("compare", *both, "--fail-if", "slow", status=2).stderr
    assert "--metric" in loadstone("compare", *both, "--metric", "x", status=2).stderr
