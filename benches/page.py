"""Writes the table of benches/README.md from the latest results: ``make bench-page``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from _common import RESULTS

PAGE = Path(__file__).resolve().parent / "README.md"
BEGIN, END = "<!-- results: made by make bench-page -->\n", "<!-- end of results -->\n"
MOST = 60
"""Rows of the table."""
HEAD = ["figure", "unit", "wanted", "median (min to max), n", "beside", "reached", "host, commit, date"]
SIGNS = {"at_least": ">=", "at_most": "<="}
OF = {"median": "", "every": ", each", "ratio": " x the peer"}


def number(value: float) -> str:
    """Three digits, without exponents."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def middle(one: Mapping[str, Any]) -> str:
    """Median and range."""
    return f"{number(one['median'])} ({number(one['min'])} to {number(one['max'])})"


def wanted(target: Mapping[str, Any] | None) -> str:
    """A target in a few signs."""
    if target is None:
        return ""
    bounds = " and ".join(f"{sign} {number(target[name])}" for name, sign in SIGNS.items() if name in target)
    return bounds + OF[target["of"]]


def table(entries: Sequence[Mapping[str, Any]]) -> str:
    """The table, and the hosts that it names by letters."""
    if len(entries) > MOST:
        sys.exit(f"{len(entries)} figures; the page has room for {MOST}: declare fewer")
    hosts: dict[str, str] = {}
    rows = []
    for one in entries:
        host = one["host"]
        text = f"{host['cpu']}, {host['cores']} cores, {host['memory_gib']} GiB, Linux {host['kernel']}"
        letter = hosts.setdefault(text, chr(ord("A") + len(hosts)))
        peer = one["peer"]
        beside = f"{peer['name']} {middle(peer)}; ratio {number(peer['ratio'])}" if peer else ""
        state = {True: "yes", False: "**no**", None: ""}[one["reached"]]
        where = f"{letter}{', busy' if host['busy'] else ''}, {one['commit']}, {one['date']}"
        if "source" in one:
            where += ", old"
        cells = [one["metric"], one["unit"], wanted(one["target"]), f"{middle(one)}, {one['n']}", beside]
        rows.append([*cells, state, where])
    lines = ["| " + " | ".join(row) + " |" for row in [HEAD, ["---"] * len(HEAD), *rows]]
    named = [f"- {letter}: {text}" for text, letter in hosts.items()]
    return "\n".join(["", *lines, "", "Hosts:", "", *named, ""]) + "\n"


def page(text: str, results: Path) -> str:
    """The page with the table anew."""
    entries = [one for path in sorted(results.glob("*.json")) for one in json.loads(path.read_text())]
    before, rest = text.split(BEGIN)
    return before + BEGIN + table(entries) + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), RESULTS))
