"""Text from outside as it is shown: what would move a cursor, or turn the order of letters, is visible."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from loadstone.errors import Error

# Controls of terminals (C0, DEL, C1), and what changes the order or the end of lines.
_HIDDEN = [
    *range(0x20),
    *range(0x7F, 0xA0),
    0x061C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    0xFEFF,
    # Tags, which no font shows.
    *range(0xE0000, 0xE0080),
]


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ONE_LINE = {code: _escape(code) for code in _HIDDEN}
_ONE_LINE |= {ord("\n"): "\\n", ord("\t"): "\\t", ord("\r"): "\\r"}
# Bytes of names of files that are no UTF-8, as Python keeps them, and what else no text can be written with.
_ONE_LINE |= {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)}
_ONE_LINE |= {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}
_LINES = {code: text for code, text in _ONE_LINE.items() if chr(code) not in "\n\t"}


def visible(text: str, lines: bool = True) -> str:
    """``text`` with controls, overrides of direction and what is no UTF-8 as escapes such as ``\\x1b``.

    ``lines``: ends of lines and tabs stay, as texts of several lines have them; a name has none.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_LINES if lines else _ONE_LINE)


def one_line(text: str) -> str:
    """``text`` as a name is shown: on one line, however many it has."""
    return visible(text, lines=False)


_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def without_quotes(text: str) -> str:
    """A text for others than whoever has the input: what it quotes of that is left out."""
    return _QUOTED.sub('"..."', text)


def is_text(name: str) -> bool:
    """Whether a name can be told in UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def refuse_no_text(value: Any, what: str = "as it must be here") -> None:
    """Raises ``Error`` at a name in ``value`` that is no text, as names of files may be; JSON has no such.

    ``what``: how the error goes on after "is no text in UTF-8".
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            name = visible(value, lines=False)
            raise Error(f"{name}: this name is no text in UTF-8, {what}; use another name") from None
    elif isinstance(value, Mapping):
        for one in value.values():
            refuse_no_text(one, what)
    elif isinstance(value, list | tuple):
        for one in value:
            refuse_no_text(one, what)


def meant(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint that names the nearest known word, or else another hint."""
    import difflib

    if word.lower() in (names := list(known)):
        return f"did you mean {word.lower()}?"
    near = difflib.get_close_matches(word, names, 1, 0.7) if len(word) <= 64 else []
    return f"did you mean {near[0]}?" if near else otherwise
