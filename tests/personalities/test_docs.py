"""docs/reference/workloads.md says what the heads of the scripts say."""

from __future__ import annotations

import os

from loadstone.personalities import Loop, Personality, find, names

BEGIN = "<!-- personalities: made of the heads of the scripts by make golden -->\n"
END = "<!-- end of personalities -->\n"


def mix(loops: tuple[Loop, ...]) -> str:
    said = []
    for loop in loops:
        shares = loop.shares()
        counts = ", ".join(f"{flowop} {count:g} ({shares[flowop]:.1%})" for flowop, count in loop.counts)
        said.append(f"{loop.process}: {counts}" if loop.process else counts)
    return "; ".join(said)


def section(found: Personality) -> str:
    lines = [f"### {found.name}", "", f"{found.title[0].upper()}{found.title[1:]}."]
    for paragraph in found.about:
        lines += ["", paragraph]
    lines += ["", f"*From:* {found.source}", "", f"*Mix of one loop:* {mix(found.mix)}", ""]
    lines += [f"*Scale:* `{found.scale}`", "", "| variable | default | |", "| --- | --- | --- |"]
    lines += [f"| `{one.name}` | `{one.default}` | {one.about} |" for one in found.variables]
    return "\n".join([*lines, ""])


def row(found: Personality) -> str:
    variables = ", ".join(f"`{one.name}` {one.default}" for one in found.variables)
    about = " ".join(found.about)
    cells = (f"`{found.name}`", about, mix(found.mix), f"`{found.scale}`" if found.scale else "", variables)
    return "| " + " | ".join((*cells, found.source[0].upper() + found.source[1:])) + " |"


def rendered() -> str:
    macros = [find(name) for name in names() if not name.startswith("micro-")]
    micros = [find(name) for name in names() if name.startswith("micro-")]
    head = ["does", "mix of one loop", "scale", "variables and defaults", "from"]
    table = ["| name | " + " | ".join(head) + " |", "|" + " --- |" * 6, *map(row, micros)]
    return "\n".join(["## Personalities", "", *map(section, macros), "## Single operations", "", *table, ""])


def test_the_page_is_that_of_the_heads(root, golden):
    path = root / "docs/reference/workloads.md"
    before, rest = path.read_text().split(BEGIN)
    told, after = rest.split(END)
    if os.environ.get("LOADSTONE_WRITE_GOLDEN") == "1":
        path.write_text(f"{before}{BEGIN}\n{rendered()}\n{END}{after}")
        return
    assert told == f"\n{rendered()}\n", "make golden writes it anew"


def test_the_page_is_linked(root):
    for page in ("README.md", "docs/README.md", "docs/reference/filebench.md"):
        assert "workloads.md" in (root / page).read_text()
