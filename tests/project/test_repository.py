"""What the tracked files must keep to."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:root|work|home/\w+|Users/\w+)/")


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    top = Path(__file__).resolve().parents[2]
    names = subprocess.run(["git", "ls-files", "-z"], cwd=top, capture_output=True, check=True).stdout
    return [top / n for n in names.decode().split("\0") if n and (top / n).is_file()]


def text_of(path: Path) -> str | None:
    data = path.read_bytes()
    return None if b"\0" in data[:8192] else data.decode("utf-8", errors="replace")


def test_no_path_of_a_machine(tracked, root):
    bad = []
    # Of a checkout in /tmp that tells nothing.
    here = f"{root.parent}/" if len(root.parts) > 3 else None
    for path in tracked:
        text = text_of(path)
        if text is None or path == Path(__file__).resolve():
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line) or (here is not None and here in line):
                bad.append(f"{path.relative_to(root)}:{number}: {line.strip()[:100]}")
    assert not bad, "\n".join(bad)


def test_modules_stay_readable(tracked, root):
    long = []
    for path in tracked:
        if path.suffix in (".py", ".rs", ".pyi") and len(path.read_text().splitlines()) > 800:
            long.append(str(path.relative_to(root)))
    assert not long, f"past 800 lines: {long}"


def test_lock_has_one_pyo3(root):
    lock = tomllib.loads((root / "Cargo.lock").read_text())
    versions = Counter(package["name"] for package in lock["package"])
    for name in ("pyo3", "pyo3-ffi", "parquet", "zstd-sys"):
        assert versions[name] == 1, f"{versions[name]} versions of {name} in Cargo.lock"


def test_crates_have_one_version_and_licence(root):
    workspace = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]
    for member in workspace["members"]:
        package = tomllib.loads((root / member / "Cargo.toml").read_text())["package"]
        for key in ("version", "license", "rust-version"):
            assert package[key] == {"workspace": True}, f"{member}: {key}"


def test_minimum_rust_is_stated_alike(root):
    minimum = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    assert f"min_rust={minimum}\n" in (root / "scripts/check-tools.sh").read_text()
    assert f"Rust {minimum} or newer" in (root / "README.md").read_text()


def test_crates_are_listed_after_those_they_depend_on(root):
    page = (root / "crates/README.md").read_text()
    listed = {
        row[0]: set(re.findall(r"`(\w+)`", row[1]))
        for row in re.findall(r"^\| `(\w+)` .*\|(.*)\|$", page, re.M)
    }
    assert set(listed) == {manifest.parent.name for manifest in (root / "crates").glob("*/Cargo.toml")}
    for at, (name, stated) in enumerate(listed.items()):
        needs = tomllib.loads((root / "crates" / name / "Cargo.toml").read_text()).get("dependencies", {})
        own = {need.removeprefix("loadstone-") for need in needs if need.startswith("loadstone-")}
        assert own == stated and own <= set(list(listed)[:at]), f"{name} depends on {sorted(own)}"


@pytest.mark.parametrize("name", ["runtime", "build", "dev"])
def test_python_lock_pins_with_hashes(name, root):
    lines = (root / f"requirements/{name}.lock").read_text().splitlines()
    assert not [line for line in lines if "://" in line or line.startswith("--")]
    pinned = [i for i, line in enumerate(lines) if "==" in line and not line.startswith((" ", "#"))]
    assert pinned
    for i in pinned:
        assert lines[i].endswith("\\") and "--hash=sha256:" in lines[i + 1], lines[i]


def test_python_lock_matches_the_manifest(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    lock = (root / "requirements/dev.lock").read_text()
    of_extras = [one for extra in project["optional-dependencies"].values() for one in extra]
    for wanted in project["dependencies"] + of_extras:
        name, least = re.match(r"([a-z0-9-]+)>=([0-9.]+)", wanted).groups()
        found = re.search(rf"^{name}==([0-9.]+) ", lock, re.M)
        assert found and found[1].startswith(least), f"{wanted} is not in the lock: make lock"


def test_makefile_documents_its_targets(root):
    makefile = (root / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split()) - {"FORCE"}
    shown = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True, check=True).stdout
    for target in targets:
        assert f"make {target} " in shown, f"{target} has no comment"
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\bmake ([a-z][a-z-]*)\b", (root / page).read_text()):
            if f"`make {target}" in (root / page).read_text():
                assert target in targets, f"{page} names make {target}"


def anchors(page: str) -> set[str]:
    """What links to headings of a page may name, as GitHub makes it."""
    names: Counter[str] = Counter()
    found = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", page))
    for heading in re.findall(r"^#+ +(.*?) *$", re.sub(r"^```.*?^```", "", page, flags=re.S | re.M), re.M):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.add(f"{name}-{names[name]}" if names[name] else name)
        names[name] += 1
    return found


def test_links_between_pages_exist(tracked, root):
    bad = []
    for page in (p for p in tracked if p.suffix == ".md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
        for link in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if not target.exists():
                bad.append(f"{page.relative_to(root)}: {link}: there is no such file")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
                bad.append(f"{page.relative_to(root)}: {link}: there is no such heading")
    assert not bad, "\n".join(bad)


def test_sources_that_pages_name_exist(tracked, root):
    names = [str(p.relative_to(root)) for p in tracked]
    bad = []
    for page in (p for p in tracked if p.suffix == ".md" and root / "docs" in p.parents):
        for named in re.findall(r"`([\w.-]+/[\w/.-]+\.(?:rs|py|sh|lark))`", page.read_text()):
            if not any(name == named or name.endswith(f"/{named}") for name in names):
                bad.append(f"{page.relative_to(root)}: {named}")
    assert not bad, "\n".join(bad)


def test_every_page_of_docs_is_listed(tracked, root):
    index = (root / "docs/README.md").read_text()
    pages = [
        p.relative_to(root / "docs") for p in tracked if p.suffix == ".md" and root / "docs" in p.parents
    ]
    missing = [str(p) for p in pages if f"({p})" not in index and str(p) != "README.md"]
    assert not missing, f"docs/README.md does not list {missing}"


def test_tools_that_are_missing_are_named(root, tmp_path):
    """With only a shell and coreutils on the path, each missing tool is named with its remedy."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for tool in ("bash", "env", "sort", "head", "cut", "uname"):
        found = subprocess.run(
            ["bash", "-c", f"command -v {tool}"], capture_output=True, text=True
        ).stdout.strip()
        (bin_ / tool).symlink_to(found)
    done = subprocess.run(
        [bin_ / "bash", root / "scripts/check-tools.sh"],
        env={"PATH": str(bin_)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    for word in ("git", "C compiler", "Python 3.11", "Rust 1.89", "apt-get install", "rustup"):
        assert word in done.stderr, done.stderr


def test_second_build_does_nothing(root):
    if not (root / ".venv/.built").exists():
        pytest.skip("not built by make build")
    subprocess.run(["make", "build"], cwd=root, check=True, capture_output=True, timeout=1200)
    again = subprocess.run(["make", "build"], cwd=root, check=True, capture_output=True, text=True)
    assert "Nothing to be done" in again.stdout, again.stdout


def test_scripts_parse_and_are_executable(tracked, root):
    scripts = [p for p in tracked if p.suffix == ".sh" or p == root / ".ci/run"]
    assert len(scripts) > 4
    for script in scripts:
        assert script.stat().st_mode & 0o111, f"{script} is not executable"
        subprocess.run(["bash", "-n", script], check=True)


def test_demo_trace_is_small(root):
    assert (root / "examples/loop0.parquet").stat().st_size < 1_000_000


def test_licences_of_crates_may_be_shipped(root):
    """Each crate offers at least one licence that permits shipping it inside the wheel."""
    allowed = {"MIT", "Apache-2.0", "Zlib", "BSD-3-Clause", "BSD-2-Clause", "0BSD", "Unlicense", "ISC"}
    allowed |= {"BSL-1.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception", "bzip2-1.0.6", "CC0-1.0", "MIT-0"}
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    bad = []
    for package in json.loads(done.stdout)["packages"]:
        expression = (package["license"] or "").replace("/", " OR ")
        offers = [part.strip(" ()") for part in re.split(r"\bOR\b", expression)]
        if not any(all(one.strip(" ()") in allowed for one in offer.split(" AND ")) for offer in offers):
            bad.append(f"{package['name']}: {expression}")
    assert not bad, bad


@pytest.mark.parametrize("seconds", ["0", "-1", "1.5", "many", "00"])
def test_fuzzing_for_no_time_is_refused_as_it_would_be_for_ever(seconds, root):
    done = subprocess.run([root / "scripts/fuzz.sh", seconds], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and f"fuzz.sh {seconds}: name whole seconds" in done.stderr
