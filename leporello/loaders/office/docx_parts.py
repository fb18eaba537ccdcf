"""Fields, rows and cells, and symbols of Word."""

from collections.abc import Iterator

from leporello.core.records import Loss
from leporello.loaders.flow import Flow
from leporello.loaders.numbering import whole
from leporello.loaders.office.archive import Element
from leporello.loaders.office.docx_styles import is_on
from leporello.loaders.office.parts import attribute, elements

BOXES = {True: "☒", False: "☐"}
_RESULT = "\0"  # in place of the instruction of a field whose result follows


class WordFields:
    """Fields of a document, which may be in each other."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._instructions: list[str] = []  # of open fields, or `_RESULT`

    @property
    def is_reading(self) -> bool:
        """Whether the instruction of a field is being read, so that no text is written."""
        return any(instruction != _RESULT for instruction in self._instructions)

    def end_paragraph(self) -> None:
        """Ends instructions, so that a field without an end does not swallow the document."""
        self._instructions = [_RESULT for _ in self._instructions]

    def write(self, element: Element) -> None:
        """Begins or ends a field, whose instruction is not text."""
        kind = attribute(element, "fldCharType")
        if kind == "begin":
            self._instructions.append("")
            self._write_form(element)
        elif kind == "separate" and self._instructions:
            self._instructions[-1] = _RESULT
        elif kind == "end" and self._instructions:
            instruction = self._instructions.pop()
            if instruction.split()[:1] == ["EQ"]:
                loss = Loss("formula", "is a field that is not read", "", len(instruction))
                self._flow.losses.append(loss)

    def _write_form(self, field: Element) -> None:
        """Writes the value of a field of a form that has no text of its own."""
        if (box := field.find("{*}ffData/{*}checkBox")) is not None:
            state = box.find("{*}checked")
            self._flow.data(BOXES[is_on(box.find("{*}default") if state is None else state)])
        elif (choices := field.find("{*}ffData/{*}ddList")) is not None:
            texts = [attribute(e) or "" for e in choices.iterfind("{*}listEntry")]
            chosen = whole(attribute(choices.find("{*}result")))
            self._flow.data("".join(texts[chosen : chosen + 1]))

    def instruct(self, text: str) -> None:
        """Reads a part of an instruction."""
        if self._instructions and self._instructions[-1] != _RESULT:
            self._instructions[-1] += text


def inside(parent: Element, name: str) -> Iterator[Element]:
    """Yields rows or cells, also those in content controls and tracked insertions."""
    for kind, element in elements(parent):
        if kind == name:
            yield element
        elif kind not in ("tbl", "p", "tr", "tc"):
            yield from inside(element, name)


def covers(cell: Element) -> dict[str, str]:
    """Returns the columns that a cell covers, and whether it continues the cell above."""
    covered = {"colspan": str(max(whole(attribute(cell.find("{*}tcPr/{*}gridSpan")), 1), 1))}
    merge = cell.find("{*}tcPr/{*}vMerge")
    begins = merge is None or attribute(merge) == "restart"
    return covered if begins else {**covered, "continues": ""}


_SYMBOL = dict(
    zip((*range(0x41, 0x5B), *range(0x61, 0x7B), *range(0xA2, 0xE2), 0xE5, 0xF2),
        "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵"
        "ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈∑∫", strict=True)
)  # fmt: skip
_WINGDINGS = {
    0x28: "☎", 0x2A: "✉", 0x4A: "☺", 0x6C: "●", 0x6E: "■", 0x6F: "☐", 0x71: "❑", 0x72: "❒",
    0x76: "❖", 0x78: "☒", 0xA1: "○", 0xA7: "▪", 0xA8: "☐", 0xD8: "➢", 0xDF: "←", 0xE0: "→",
    0xE8: "➔", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
}  # fmt: skip
_WINGDINGS_2 = {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0xA3: "☐"}
_FONTS = {"Symbol": _SYMBOL, "Wingdings": _WINGDINGS, "Wingdings 2": _WINGDINGS_2}


def symbol(font: str, code: str) -> str:
    """Returns the character of a symbol font; empty if it is unknown.

    The code is hexadecimal; `F0A3` is the same as `A3`.
    """
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    is_code = not 0xFF < number < 0xF000  # noqa: PLR2004 -- see above
    return _FONTS.get(font, {}).get(number & 0xFF, "") if is_code else ""
