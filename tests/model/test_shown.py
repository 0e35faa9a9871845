"""What a Python session shows of a model: its line, and its table in a notebook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadstone import model as models
from loadstone.trace import read


@pytest.fixture
def small(tmp_path: Path) -> models.Model:
    """A model of 3,001 requests in 3 s: every third is a write of 8 KiB, the others read 4 KiB."""
    lines = [
        f"0,{8 * (i % 64)},{8192 if i % 3 == 2 else 4096},{'W' if i % 3 == 2 else 'R'},{i / 1000:.6f}\n"
        for i in range(3001)
    ]
    path = tmp_path / "small.spc"
    path.write_text("".join(lines))
    return models.fit(path)


def rows(model: models.Model) -> dict[str, str]:
    """The table by the names of its rows."""
    return dict(re.findall("<tr><th>([^<]*)</th><td>([^<]*)</td></tr>", model._repr_html_()))


def test_a_line_says_what_a_model_draws(small: models.Model, tmp_path: Path) -> None:
    load = "3,001 block requests in 3 s, 1,000 requests/s, 66.7% reads"
    assert repr(small) == f"<Model {load}>"
    file = tmp_path / "a <b>.mdh"
    small.save(file)
    stored = file.stat().st_size / 1024
    assert repr(small) == repr(models.Model.load(file)) == f"<Model {file}: {load}, {stored:.3g} KiB on disk>"
    assert "a &lt;b&gt;.mdh" in small._repr_html_()
    file.unlink()
    assert repr(small) == f"<Model {file}: {load}>"


def test_a_table_has_sizes_extent_dimensions_and_the_file(small: models.Model) -> None:
    found = rows(small)
    assert found["requests/s"] == "1,000" and found["reads"] == "66.7% of reads and writes"
    assert found["common sizes"] == "4 KiB 66.7%, 8 KiB 33.3%"
    # The last block that is used is the 65th of 4 KiB: writes have two.
    assert found["blocks"] == "1 object, 260 KiB altogether"
    dimensions = [name for row in ("draws", "given", "observes") for name in found.get(row, "").split(", ")]
    assert sorted(filter(None, dimensions)) == sorted(small.dimensions)
    assert found["on disk"] == "not saved"


def test_a_model_of_files_says_how_many_it_makes(root: Path) -> None:
    trace = root / "tests/data/mixed.strace.xz"
    found = rows(models.fit(trace))
    counts = [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?= )", found["files"])]
    assert sum(counts) == len(set(read(trace)["object"].to_pylist()))
    assert re.fullmatch(r"[\d,]+ files, [\d,]+ directories, 1 link", found["files"])
