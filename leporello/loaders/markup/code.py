"""Source code and settings: the unchanged text, with definitions as sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.loaders.files import Format
from leporello.loaders.text import decoded, line_places
from leporello.text.outline import Extracted, Heading, outline

_STRINGS = r'"(?:\\.|[^"\\\n]){0,999}+"'
# Comments and multi-line strings, whose words define nothing; the end of the file ends them.
_HASHED = rf'"""(?:.*?)(?:"""|\Z)|\'\'\'(?:.*?)(?:\'\'\'|\Z)|{_STRINGS}|#[^\n]*'
_SLASHED = rf"/\*.*?(?:\*/|\Z)|{_STRINGS}|`[^`]*(?:`|\Z)|//[^\n]*"
_MODIFIERS = (
    "export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\\(\\w+\\))?"
    "|unsafe|extern|const|sealed|partial|override|open|data|inline|virtual|declare|case|local"
    "|typedef|constexpr|readonly|suspend|mutable"
)
_KINDS = (
    "class|interface|struct|enum(?: class)?|union|trait|impl(?:<[^>\n]*>)?|fn|fun|func|function"
    "|namespace|module|mod|record|object|protocol|extension|actor|sub|def|defp|defmodule|macro"
)
_KEYWORDS = "if|for|while|switch|catch|return|else|do|new|throw|delete|sizeof|elif|with|match|when"
_BRACED = (
    rf"^([ \t]*)(?:(?:{_MODIFIERS})[ \t]+)*(?:"
    rf"(?:{_KINDS})[ \t]+(?:\([^)\n]*\)[ \t]*)?([\w$][\w$:.!?]*)"  # class A, func (t *T) F
    r"|(?:let|var|const)[ \t]+(\w+)[ \t]*=[ \t]*(?:async[ \t]*)?(?:function\b|[\w(][^=\n;]*=>)"
    rf"|(?!(?:{_KEYWORDS})\b)(?:[\w:<>,\[\].]+[ \t*&]+){{1,5}}(?!(?:{_KEYWORDS})\b)(~?\w[\w:~]*)"
    r"\((?=[^;\n]*$)"  # int f(…
    rf"|(?!(?:{_KEYWORDS})\b)(\w+)[ \t]*\([^;\n]*\{{[ \t]*$)"  # f(…) {
)
_RULES = {
    ".py .pyi .pyx": (r"^([ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", _HASHED),
    ".rb .ex .exs .jl .lua .r .sh .bash .zsh .pl .pm": (
        rf"^([ \t]*)(?:(?:{_MODIFIERS})[ \t]+)*(?:{_KINDS})[ \t]+([\w.:!?]+)"
        r"|^([ \t]*)(\w[\w.]*)[ \t]*(?:\(\)[ \t]*\{|(?:<-|=)[ \t]*function\b)", _HASHED),
    ".js .mjs .cjs .jsx .ts .tsx .java .kt .kts .scala .c .h .cc .cpp .cxx .hpp .hh .cs .go .rs"
    " .swift .php .dart .m .mm .groovy .proto .zig": (_BRACED, _SLASHED),
    ".sql": (
        r"(?i)^([ \t]*)create[ \t]+(?:or[ \t]+replace[ \t]+)?(?:\w+[ \t]+)??(?:table|view|function"
        r"|procedure|trigger|index)[ \t]+(?:if[ \t]+not[ \t]+exists[ \t]+)?([\w.\"`]+)", _SLASHED),
    ".toml .ini .cfg .conf": (r"^()\[++([^\]\n]++)\]+", r"\Z"),
    ".yaml .yml": (r"^()([\w.-]+):(?=\s)", r"\Z"),
    ".hs .ml .clj .lisp .el .f90 .pas .vb .ps1 .css .scss .tcl .asm .s .cmake .vue": (r"\Z", r"\Z"),
}  # fmt: skip
_OF = {
    suffix: tuple(re.compile(rule, flags) for rule, flags in zip(rules, (re.M, re.S), strict=True))
    for suffixes, rules in _RULES.items()
    for suffix in suffixes.split()
}


@dataclass(frozen=True)
class Code(Format):
    """Source code and settings: the unchanged text, with definitions as sections by rules."""

    suffixes: ClassVar[tuple[str, ...]] = (*_OF,)
    begins: ClassVar[re.Pattern[bytes]] = re.compile(rb"#!/")

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text; places are `line 120`, sections are definitions.

        Raises:
            UserError: The file is not text.
        """
        raw = decoded(data, path)
        headings = [*_headings(raw.text, path.suffix.lower())]
        return replace(
            raw,
            title=path.name,
            sections=outline(headings, len(raw.text)),
            places=line_places(raw.text),
        )


def _headings(text: str, suffix: str) -> Iterator[Heading]:
    """Yields definitions; a definition is inside those above it with less indentation."""
    run_by = text.partition("\n")[0] if text.startswith("#!/") else ""
    suffix = (".py" if "python" in run_by else ".sh") if run_by else suffix
    rule, comments = _OF.get(suffix, _OF[".hs"])
    open_: list[int] = []
    for match in rule.finditer(comments.sub(_blanked, text)):
        groups = [group for group in match.groups() if group is not None]
        indent, name = len(groups[0].expandtabs(4)), groups[-1]
        while open_ and open_[-1] >= indent:
            open_.pop()
        open_.append(indent)
        yield Heading(name, match.start(), len(open_))


def _blanked(match: re.Match[str]) -> str:
    # Blanks keep offsets; strings within a line stay, since they rarely begin one like a
    # definition.
    return re.sub(r"[^\n]", " ", match[0]) if "\n" in match[0] else match[0]
