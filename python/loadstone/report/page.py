"""The page: sections of tables and figures, rendered to one HTML text that loads nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from loadstone._core import __version__
from loadstone._extras import need
from loadstone._files import aside
from loadstone._text import visible
from loadstone.report.figure import Figure


@dataclass
class Row:
    """A table row of text; ``tone`` is good, warn, bad or empty, and never all that tells it."""

    cells: list[str]
    tone: str = ""


@dataclass
class Table:
    """A table; ``text`` names the columns that are words, ``toned`` the one in its row's tone."""

    columns: list[str]
    rows: list[Row]
    title: str = ""
    note: str = ""
    text: tuple[int, ...] = (0,)
    toned: int = -1

    @property
    def dense(self) -> bool:
        """Whether it has more columns than fit the page in letters of the usual size."""
        return len(self.columns) > 14


@dataclass
class Pairs:
    """Facts by name."""

    title: str
    pairs: list[tuple[str, str]]


@dataclass
class Text:
    """A long text that is folded away, such as a plan."""

    title: str
    text: str


@dataclass
class Section:
    """A part of the page with its heading."""

    id: str
    title: str
    note: str = ""
    tables: list[Table] = field(default_factory=list)
    pairs: list[Pairs] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.tables or self.pairs or self.figures or self.texts)


@dataclass
class Page:
    """The whole report. ``conclusion`` is one sentence; ``tone`` is good, warn, bad or empty."""

    title: str
    subtitle: str
    conclusion: str
    tone: str
    source: str
    sections: list[Section]
    warnings: list[str] = field(default_factory=list)


def _shown(value: Any) -> Any:
    """Text with its controls made visible; the page's own script and style are left as they are."""
    return visible(value) if type(value) is str else value


@cache
def _asset(name: str) -> str:
    return files("loadstone.report").joinpath(name).read_text(encoding="utf-8")


def render(page: Page, script: str | None = None) -> str:
    """The page as HTML.

    ``script`` is plotly's script; without it the one of the installed plotly is put in (5 MB, once).
    """
    need("jinja2", *(["plotly"] if script is None else []))
    from jinja2 import Environment, StrictUndefined

    if script is None:
        from plotly.offline import get_plotlyjs

        script = get_plotlyjs()
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # All text but what is marked as safe passes here, before it is escaped.
        finalize=_shown,
    )
    values: dict[str, Any] = {
        "page": page,
        "css": _asset("page.css"),
        "js": _asset("page.js"),
        # The end tag may stand in a string of the script, where HTML would still see it.
        "plotly": script.replace("</script", "<\\/script"),
        "version": __version__,
    }
    return environment.from_string(_asset("page.html.j2")).render(values)


def save(page: Page, out: str | os.PathLike[str], *, force: bool = False) -> None:
    """Writes a page to a file, which appears only when it is whole."""
    with aside(out, force) as hidden:
        hidden.write_text(render(page), encoding="utf-8")
