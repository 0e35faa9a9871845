"""Names that are no UTF-8: shown as they are, or refused by name before the work."""

import os

import pytest

from loadstone import Error, _text, dataset, trace

NAME, SHOWN = os.fsdecode(b"n\xff\xfe"), r"n\xff\xfe"


def test_bytes_that_are_no_text_are_visible():
    assert _text.visible(f"a\n{NAME}") == f"a\n{SHOWN}"
    assert _text.visible("\ud800\n", lines=False) == r"\ud800\n"


@pytest.mark.parametrize("to", ["iozone", "fio"])
def test_an_exported_target_is_refused_by_its_name(to, tmp_path, root, loadstone):
    loadstone("model", "fit", root / "examples/loop0.parquet", "-o", tmp_path / "m.mdh", "--small")
    words = ("model", "export", tmp_path / "m.mdh", "--to", to, "-o", tmp_path / "out")
    said = loadstone(*words, "--on", tmp_path / NAME, status=1).stderr
    assert said == (
        f"error: {tmp_path}/{SHOWN}: this name is no text in UTF-8, as what {to} reads is; use another name\n"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_names_are_shown_in_pages_and_pictures(tmp_path, root, loadstone):
    model, page = tmp_path / f"{NAME}.mdh", tmp_path / "r.html"
    loadstone("model", "fit", root / "examples/loop0.parquet", "-o", model, "--small")
    loadstone("model", "export", model, "--to", "fio", "-o", tmp_path / "out", "--on", "/mnt/file")
    assert (tmp_path / "out").read_text().startswith(rf"# Made by Loadstone from {SHOWN}")
    loadstone("model", "show", model, "--plot", tmp_path / "show.png")
    loadstone("model", "plot", model, "-o", tmp_path / "plot.png")
    bundle = tmp_path / f"{NAME}.bundle"
    loadstone("run", "randread", "--on", "null:", "--size", "1m", "--requests", "5", "--out", bundle)
    loadstone("report", bundle, "-o", page)
    assert SHOWN in page.read_text()
    loadstone("report", bundle, "-o", page, "--force", "--title", NAME)
    assert f"<title>{SHOWN}" in page.read_text()


def test_a_page_of_datasets_shows_them(tmp_path, loadstone):
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "file").write_bytes(b"x" * 5000)
    words = ("dataset", "verify", tmp_path / NAME, "--against", tmp_path / NAME)
    loadstone(*words, "--report", tmp_path / "r.html")
    assert SHOWN in (tmp_path / "r.html").read_text()


def test_what_json_cannot_tell_is_refused_by_its_name(tmp_path, root):
    (tmp_path / NAME).mkdir()
    says = r"n\\xff\\xfe: this name is no text in UTF-8"
    with pytest.raises(Error, match=says):
        trace.convert(root / "examples/loop0.parquet", tmp_path / "o", sort=True, temp_dir=tmp_path / NAME)
    with pytest.raises(Error, match=says):
        dataset.create(tmp_path / NAME, tmp_path / "o")
