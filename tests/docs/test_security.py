"""What SECURITY.md promises is shown by tests that there are."""

from __future__ import annotations

import re


def test_each_test_that_is_named_exists(root):
    text = (root / "SECURITY.md").read_text()
    named = re.findall(r"`((?:tests|crates|fuzz)/[\w/.-]+)(?:::(\w+))?`", text)
    assert len(named) > 10
    for path, name in named:
        source = (root / path).read_text()
        assert not name or re.search(rf"\b(?:def|fn) {name}\(", source), f"{path} has no {name}"


def test_each_promise_names_a_test(root):
    text = (root / "SECURITY.md").read_text()
    promises = text.split("## What Loadstone promises\n")[1].split("\n## ")[0]
    for one in re.split(r"\n(?=\*\*)", promises.strip()):
        assert re.search(r"`(?:tests|crates|fuzz)/", one), f"no test shows: {one.splitlines()[0]}"
