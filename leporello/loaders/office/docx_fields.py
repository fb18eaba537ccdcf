"""Fields of Word: results, values of forms, and instructions that are not text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from leporello.core.records import Loss
from leporello.loaders.flow import Flow
from leporello.loaders.numbering import whole
from leporello.loaders.office.docx_styles import is_on
from leporello.loaders.office.parts import attribute

if TYPE_CHECKING:
    from lxml.etree import _Element

BOXES = {True: "☒", False: "☐"}
_RESULT = "\0"  # in place of the instruction of a field whose result follows
_QUOTIENT = re.compile(r"\bEQ\s+\\f\s*\(([^(),;]*)[,;]([^(),;]*)\)", re.I)


class WordFields:
    """Fields of a document, which may be in each other.

    Attributes:
        codes: Number of open fields whose instruction is being read, so that text is not written.
    """

    def __init__(self, flow: Flow) -> None:
        self.codes = 0
        self._flow = flow
        self._instructions: list[str] = []  # of open fields, or `_RESULT`

    def end_paragraph(self) -> None:
        """Ends instructions, so that a field without an end does not swallow the document."""
        if self.codes:
            self._instructions, self.codes = [_RESULT for _ in self._instructions], 0

    def write(self, element: _Element) -> None:
        """Begins or ends a field, whose instruction is not text."""
        kind = attribute(element, "fldCharType")
        if kind == "begin":
            self._instructions.append("")
            self.codes += 1
            self._write_form(element)
        elif kind == "separate" and self._instructions and self._instructions[-1] != _RESULT:
            self.codes -= 1
            self._instructions[-1] = _RESULT
        elif kind == "end" and self._instructions:
            instruction = self._instructions.pop()
            if instruction != _RESULT:
                self.codes -= 1
                self._write_instruction(instruction)

    def _write_form(self, field: _Element) -> None:
        """Writes the value of a field of a form that has no text of its own."""
        if (box := field.find("{*}ffData/{*}checkBox")) is not None:
            state = box.find("{*}checked")
            self._flow.data(BOXES[is_on(box.find("{*}default") if state is None else state)])
        elif (choices := field.find("{*}ffData/{*}ddList")) is not None:
            texts = [attribute(e) or "" for e in choices.iterfind("{*}listEntry")]
            chosen = whole(attribute(choices.find("{*}result")))
            self._flow.data("".join(texts[chosen : chosen + 1]))

    def _write_instruction(self, instruction: str) -> None:
        """Writes a field without a result, if its instruction is a formula."""
        if quotient := _QUOTIENT.search(instruction):
            self._flow.data(f"{quotient[1].strip()}/{quotient[2].strip()}")
        elif instruction.split()[:1] == ["EQ"]:
            loss = Loss("formula", "is a field that is not read", "", len(instruction))
            self._flow.losses.append(loss)

    def instruct(self, text: str) -> None:
        """Reads a part of an instruction."""
        if self._instructions and self._instructions[-1] != _RESULT:
            self._instructions[-1] += text
