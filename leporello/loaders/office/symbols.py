"""Characters of symbol fonts that texts use, by their codes."""

from __future__ import annotations

_SYMBOL = dict(
    zip(range(0x61, 0x7B), "αβχδεφγηιϕκλμνοπθρστυϖωξψζ", strict=True)
) | {
    0x44: "Δ", 0x46: "Φ", 0x47: "Γ", 0x4C: "Λ", 0x50: "Π", 0x51: "Θ", 0x53: "Σ", 0x57: "Ω",
    0x58: "Ξ", 0x59: "Ψ", 0xA2: "′", 0xA3: "≤", 0xA5: "∞", 0xAC: "←", 0xAE: "→", 0xB0: "°",
    0xB1: "±", 0xB2: "″", 0xB3: "≥", 0xB4: "×", 0xB5: "∝", 0xB6: "∂", 0xB7: "•", 0xB8: "÷",
    0xB9: "≠", 0xBA: "≡", 0xBB: "≈", 0xBC: "…", 0xC5: "⊕", 0xC7: "∩", 0xC8: "∪", 0xCC: "⊂",
    0xCE: "∈", 0xD1: "∇", 0xD5: "∏", 0xD6: "√", 0xD7: "⋅", 0xD8: "¬", 0xDE: "⇒", 0xE5: "∑",
    0xF2: "∫",
}  # fmt: skip
_WINGDINGS = {
    0x28: "☎", 0x2A: "✉", 0x4A: "☺", 0x6C: "●", 0x6E: "■", 0x6F: "☐", 0x71: "❑", 0x72: "❒",
    0x76: "❖", 0x78: "☒", 0xA1: "○", 0xA7: "▪", 0xA8: "☐", 0xD8: "➢", 0xDF: "←", 0xE0: "→",
    0xE8: "➔", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
}  # fmt: skip
_WINGDINGS_2 = {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0xA3: "☐"}
_FONTS = {"Symbol": _SYMBOL, "Wingdings": _WINGDINGS, "Wingdings 2": _WINGDINGS_2}


def symbol(font: str, code: str) -> str:
    """Returns the character of a symbol font; empty if it is unknown.

    Args:
        font: Name of the font.
        code: Code in the font, in hexadecimal; `F0A3` is the same as `A3`.
    """
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    is_code = not 0xFF < number < 0xF000  # noqa: PLR2004 -- see above
    return _FONTS.get(font, {}).get(number & 0xFF, "") if is_code else ""
