"""docs/reference/workloads.md says what the heads of the scripts say."""

from __future__ import annotations

import os
import textwrap

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
    lines = [f"### {found.name}", "", wrapped(f"{found.title[0].upper()}{found.title[1:]}.")]
    for paragraph in found.about:
        lines += ["", wrapped(paragraph)]
    lines += ["", wrapped(f"*From:* {found.source}"), "", wrapped(f"*Mix of one loop:* {mix(found.mix)}")]
    lines += ["", f"*Scale:* `{found.scale}`", "", "*Variables and their defaults:*", ""]
    lines += [wrapped(f"- `{one.name}` (`{one.default}`): {one.about}", "  ") for one in found.variables]
    return "\n".join([*lines, ""])


def item(found: Personality) -> str:
    variables = ", ".join(f"`{one.name}` {one.default}" for one in found.variables)
    scale = f" *Scale:* `{found.scale}`." if found.scale else ""
    said = (
        f"- **`{found.name}`**: {' '.join(found.about)} *Mix of one loop:* {mix(found.mix)}.{scale} "
        f"*Variables:* {variables}. *From:* {found.source}"
    )
    return wrapped(said, "  ")


def wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def rendered() -> str:
    macros = [find(name) for name in names() if not name.startswith("micro-")]
    micros = [find(name) for name in names() if name.startswith("micro-")]
    singles = ["## Single operations", "", *map(item, micros), ""]
    return "\n".join(["## Personalities", "", *map(section, macros), *singles])


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
