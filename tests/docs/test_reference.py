"""The generated pages of the reference say what docstrings and help texts say."""

from __future__ import annotations

import runpy

import pytest


@pytest.mark.golden
@pytest.mark.parametrize("page", ["docs/reference/commands/README.md", "docs/reference/python.md"])
def test_generated_pages_are_up_to_date(page, root, golden):
    made = runpy.run_path(str(root / "scripts/reference.py"))["PAGES"]
    golden(str(root / page), made[page]())


def test_every_help_text_is_of_a_command(root):
    walk = runpy.run_path(str(root / "scripts/reference.py"))["walk"]
    names = {f"{name.replace(' ', '-')}.txt" for name, _ in walk()}
    assert names == {path.name for path in (root / "docs/reference/commands").glob("*.txt")}
