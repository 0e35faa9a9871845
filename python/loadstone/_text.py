"""Text from outside as it is shown: what would move a cursor, or turn the order of letters, is visible."""

from __future__ import annotations

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
]
_ONE_LINE = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _HIDDEN}
_ONE_LINE |= {ord("\n"): "\\n", ord("\t"): "\\t", ord("\r"): "\\r"}
_LINES = {code: text for code, text in _ONE_LINE.items() if chr(code) not in "\n\t"}


def visible(text: str, lines: bool = True) -> str:
    """``text`` with controls and overrides of direction as escapes such as ``\\x1b``.

    ``lines``: ends of lines and tabs stay, as texts of several lines have them; a name has none.
    """
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_LINES if lines else _ONE_LINE)
