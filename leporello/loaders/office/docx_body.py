"""Text of Word's elements: paragraphs, runs, fields, tables, notes and text boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import TypeAlias

from leporello.core.records import Loss
from leporello.loaders.figures import formula
from leporello.loaders.flow import Flow
from leporello.loaders.numbering import whole
from leporello.loaders.office.archive import Element
from leporello.loaders.office.docx_parts import (
    BOXES,
    WordFields,
    covers,
    inside,
    symbol,
)
from leporello.loaders.office.docx_styles import WordNumbers, WordStyles, is_on, outline_level
from leporello.loaders.office.parts import OfficeParts, attribute, elements, local_name

_Write: TypeAlias = "Callable[[Body, Element], None]"
_HEIGHTS = {"superscript": "sup", "subscript": "sub"}
_SHIFT = 4  # half points by which raised or lowered text is shifted
_CONTENTS = ("{*}txbxContent", "{*}chart", "{*}relIds")  # of drawings
_NOTES = ("footnote", "endnote", "comment")


class Body:
    """Writes the body of a document, then its notes and comments."""

    def __init__(self, parts: OfficeParts, flow: Flow, part: str) -> None:
        self.flow, self.part = flow, part
        self._parts = parts
        self._styles = WordStyles(parts.root(self._related("styles"), "styles"))
        numbers = parts.root(self._related("numbering"), "numbers of lists")
        self._numbers = WordNumbers(numbers, self._styles)
        self._fields = WordFields(flow)
        self._style = ""  # of the paragraph
        self._after: list[Element] | None = None  # text boxes and charts of the open paragraph
        self._marks: dict[tuple[str, str], int] = {}  # numbers of notes, by kind and id

    def write(self, parent: Element) -> None:
        """Writes the elements in an element; of unknown elements, those in them."""
        for name, element in elements(parent):
            handler = _HANDLERS.get(name, Body.write)
            if handler is not None:
                handler(self, element)

    def write_notes(self) -> None:
        """Writes the notes and comments that the text refers to, and comments without reference."""
        for kind in _NOTES:
            self.part = self._related(f"{kind}s")
            root = self._parts.root(self.part, f"{kind}s")
            bodies = {attribute(e, "id") or "": e for e in root.iterfind(f"{{*}}{kind}")}
            ids = [id_ for of, id_ in self._marks if of == kind]
            ids += [id_ for id_ in bodies if kind == "comment" and id_ not in ids]
            for id_ in ids:
                if (body := bodies.get(id_)) is not None:
                    self._write_note(kind, id_, body)

    def _write_note(self, kind: str, id_: str, body: Element) -> None:
        self.flow.start("p")
        mark = self._mark(kind, id_)
        if kind == "comment":
            mark = f"Comment {mark} {attribute(body, 'author') or ''}".strip() + ":"
        self.flow.label(mark)
        self.write(body)
        self.flow.is_labelled = False
        self.flow.end("p")

    def _mark(self, kind: str, id_: str) -> str:
        """Returns the number of a note, in brackets, or of a comment; both count references."""
        is_comment = kind == "comment"
        others = sum((of == "comment") == is_comment for of, _ in self._marks)
        number = self._marks.setdefault((kind, id_), others + 1)
        return f"[c{number}]" if is_comment else f"[{number}]"

    def _related(self, kind: str) -> str:
        return self._parts.target("word/document.xml", kind) or f"word/{kind}.xml"

    def _write_paragraph(self, paragraph: Element) -> None:
        properties = paragraph.find("{*}pPr")
        if self._after is not None:  # in a text box or note that is in a paragraph
            self._after.append(paragraph)
            return
        tag = self._start_paragraph(properties)
        self._after = []
        self.write(paragraph)
        self.flow.shift("")
        self._fields.end_paragraph()
        after, self._after = self._after, None
        self.flow.is_labelled = False
        self.flow.end(tag)
        for element in after:
            self._write_after(element)

    def _start_paragraph(self, properties: Element | None) -> str:
        """Begins a paragraph with its number; returns the name of its element."""
        style = None if properties is None else attribute(properties.find("{*}pStyle"))
        self._style = style or ""
        level = outline_level(properties)
        level = self._styles.heading(self._style) if level is None else level
        number = self._numbers.number(properties, self._style)
        tag = f"h{min(level, 6)}" if level else "p" if number is None else "li"
        self.flow.start(tag)
        self.flow.label(number or "")
        return tag

    def _write_after(self, element: Element) -> None:
        name = local_name(str(element.tag))
        if name == "p":
            self._write_paragraph(element)
        elif name == "txbxContent":
            self.flow.start("p")
            self.write(element)
            self.flow.end("p")
        else:
            self._parts.write_graphic(element, self.part, self.flow)

    def _write_run(self, run: Element) -> None:
        properties = run.find("{*}rPr")
        height = ""
        if self._style or properties is not None:
            style = None if properties is None else attribute(properties.find("{*}rStyle"))
            if self._is_hidden(properties, style):
                self.flow.conceal("".join(t.text or "" for t in run.iter("{*}t")))
                return
            aligned = None if properties is None else attribute(properties.find("{*}vertAlign"))
            if aligned is None and style:
                aligned = self._styles.text_value(style, "vertAlign")
            shift = 0 if properties is None else whole(attribute(properties.find("{*}position")))
            shifted = "sup" if shift >= _SHIFT else "sub" if shift <= -_SHIFT else ""
            height = _HEIGHTS.get(aligned or "", shifted)
        self.flow.shift(height)
        self.write(run)

    def _is_hidden(self, properties: Element | None, style: str | None) -> bool:
        if properties is not None and (vanish := properties.find("{*}vanish")) is not None:
            return is_on(vanish)
        values = (self._styles.text_value(s, "vanish") for s in (style, self._style) if s)
        value = next((v for v in values if v is not None), "0")
        return value not in ("0", "false", "off")

    def _write_text(self, element: Element) -> None:
        if not self._fields.is_reading:
            self.flow.data(element.text or "")

    def _write_symbol(self, element: Element) -> None:
        font, code = attribute(element, "font") or "", attribute(element, "char") or ""
        if text := symbol(font, code):
            self.flow.data(text)
        else:
            self.flow.losses.append(Loss("symbol", f"{code} of the font {font} is unknown"))

    def _write_control(self, control: Element) -> None:
        """Writes a content control: its content, or a box for one that is ticked or not."""
        properties = control.find("{*}sdtPr")
        box = None if properties is None else properties.find("{*}checkbox")
        content = control.find("{*}sdtContent")
        if box is not None:
            self.flow.data(BOXES[is_on(box.find("{*}checked"))])
        elif content is not None:
            self.write(content)

    def _write_ruby(self, ruby: Element) -> None:
        for name in ("rubyBase", "rt"):
            if (part := ruby.find(f"{{*}}{name}")) is not None:
                self.flow.start(name)
                self.write(part)
                self.flow.end(name)

    def _write_reference(self, element: Element) -> None:
        kind = local_name(str(element.tag)).removesuffix("Reference")
        if (id_ := attribute(element, "id")) is not None:
            self.flow.shift("")
            self.flow.data(self._mark(kind, id_))

    def _write_drawing(self, drawing: Element) -> None:
        """Writes the description of a picture, and later the text, chart or diagram in it."""
        for element in drawing.iter("{*}pic", "{*}imagedata", *_CONTENTS):
            name = local_name(str(element.tag))
            around = takewhile(lambda e: e is not drawing, element.iterancestors())
            outer = [local_name(str(e.tag)) for e in around]
            if "Fallback" in outer or "txbxContent" in outer:
                continue  # repeats its alternative, or is written with the text box
            if f"{{*}}{name}" in _CONTENTS:
                self._postpone(element)
            else:
                about = next(drawing.iter("{*}docPr"), None)
                places = ((about, "descr"), (about, "title"), (element, "title"))
                texts = (attribute(place, attribute_name) for place, attribute_name in places)
                described = next((text for text in texts if text and text.strip()), "")
                self.flow.start("img", {"alt": described} if described else {})

    def _postpone(self, element: Element) -> None:
        if self._after is None:
            self._write_after(element)
        else:
            self._after.append(element)

    def _write_object(self, element: Element) -> None:
        objects = element.iter("{*}OLEObject", "{*}control")
        what = next((attribute(e, "ProgID") for e in objects), "")
        why = f"is not read ({what})" if what else "is not read"
        self.flow.losses.append(Loss("embedded object", f"{why}; save it as a separate file"))

    def _lose(self, element: Element) -> None:
        name = local_name(str(element.tag))
        self.flow.losses.append(Loss("inserted part", f"is not read ({name})"))

    def _write_formula(self, element: Element) -> None:
        before = element.getprevious()
        if before is not None and local_name(str(before.tag)) == "oMath":
            self.flow.data(" ")
        self.flow.data(formula(element))

    def _write_table(self, table: Element) -> None:
        if self._after is not None:  # in a text box
            self._after.append(table)
            return
        self.flow.start("table")
        for row in inside(table, "tr"):
            if row.find("{*}trPr/{*}del") is not None:
                continue
            group = "thead" if is_on(row.find("{*}trPr/{*}tblHeader")) else "tbody"
            self.flow.start(group)
            self.flow.start("tr")
            if before := whole(attribute(row.find("{*}trPr/{*}gridBefore"))):
                self.flow.start("td", {"colspan": str(before)})
            for cell in inside(row, "tc"):
                self.flow.start("td", covers(cell))
                self.write(cell)
                self.flow.end("td")
            self.flow.end("tr")
            self.flow.end(group)
        self.flow.end("table")


_HANDLERS: Mapping[str, _Write | None] = {
    "p": Body._write_paragraph,
    "r": Body._write_run,
    "t": Body._write_text,
    "tbl": Body._write_table,
    "tab": lambda body, _: body.flow.start("tab"),
    "ptab": lambda body, _: body.flow.start("tab"),
    "br": lambda body, _: body.flow.start("br"),  # also of pages and columns
    "cr": lambda body, _: body.flow.start("br"),
    "noBreakHyphen": lambda body, _: body.flow.data("\u2011"),
    "softHyphen": lambda body, _: body.flow.data("\u00ad"),
    "sym": Body._write_symbol,
    "fldChar": lambda body, element: body._fields.write(element),
    "instrText": lambda body, element: body._fields.instruct(element.text or ""),
    "sdt": Body._write_control,
    "ruby": Body._write_ruby,
    "footnoteReference": Body._write_reference,
    "endnoteReference": Body._write_reference,
    "commentReference": Body._write_reference,
    "drawing": Body._write_drawing,
    "pict": Body._write_drawing,
    "object": Body._write_object,
    "oMath": Body._write_formula,
    "altChunk": Body._lose,
    "subDoc": Body._lose,
    "contentPart": Body._lose,
    # Properties, and what is not part of the text.
    **dict.fromkeys(
        (
            *("pPr", "rPr", "sectPr", "tblPr", "tblGrid", "trPr", "tcPr", "tblPrEx", "del"),
            *("moveFrom", "delText", "delInstrText", "footnoteRef", "endnoteRef", "annotationRef"),
            *("fldData", "ffData", "sdtPr", "sdtEndPr", "rubyPr", "oMathParaPr", "customXmlPr"),
            "smartTagPr",
        ),
        None,
    ),
}
