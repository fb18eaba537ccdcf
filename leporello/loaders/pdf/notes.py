"""Form fields and comments of a page."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from leporello.loaders.pdf.pdfium import Handle, Pointer, function

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_TICKED = frozenset(("yes", "on", "true", "1", "x", "oui", "ja", "sí", "si"))
# Kinds of annotations that show something without a comment.
_DRAWINGS = (
    "INK", "STAMP", "LINE", "SQUARE", "CIRCLE", "POLYGON", "POLYLINE", "SOUND", "MOVIE", "SCREEN",
    "THREED", "RICHMEDIA", "WATERMARK",
)  # fmt: skip


class Note(NamedTuple):
    """Form field or comment."""

    text: str = ""  # `field: value`, or text of a comment; empty if it has no text
    hidden: bool = False  # whether it is not shown
    attachment: str = ""  # name of an attached file


def page_notes(pdf: PdfDocument, page: PdfPage) -> list[Note]:
    """Returns filled fields, comments, and drawings and media without text."""
    from pypdfium2 import raw

    notes: list[Note] = []
    annotation_of, kind_of = function("FPDFPage_GetAnnot"), function("FPDFAnnot_GetSubtype")
    hidden = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
    silent = (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP)
    for i in range(raw.FPDFPage_GetAnnotCount(page)):
        item = annotation_of(page.raw, i)
        if (kind := kind_of(item)) not in silent:
            is_hidden = bool(function("FPDFAnnot_GetFlags")(item) & hidden)
            notes += [note._replace(hidden=is_hidden) for note in _notes(pdf, item, kind)]
        function("FPDFPage_CloseAnnot")(item)
    return [*dict.fromkeys(notes)] if len(notes) > 1 else notes  # all buttons of a group are equal


def _notes(pdf: PdfDocument, item: Pointer, kind: int) -> Iterator[Note]:
    """Yields the note of an annotation; marks without a comment have no note."""
    from pypdfium2 import raw

    if kind == raw.FPDF_ANNOT_WIDGET:
        text = _field(pdf.formenv, item) if pdf.formenv else ""
        if text or (pdf.formenv and _is_signed(pdf.formenv, item)):
            yield Note(text)
        return
    if kind == raw.FPDF_ANNOT_FILEATTACHMENT:
        file = function("FPDFAnnot_GetFileAttachment")(item)
        yield Note(attachment=_string("FPDFAttachment_GetName", file) or "file")
    if comment := _string("FPDFAnnot_GetStringValue", item, b"Contents"):
        yield Note(comment)
    elif kind in [getattr(raw, f"FPDF_ANNOT_{name}") for name in _DRAWINGS]:
        yield Note()


def _field(form: Handle, item: Pointer) -> str:
    """Returns `field: value` of a filled field, `field: ☐` of a box without a tick."""
    from pypdfium2 import raw

    name, value = (
        _string(f"FPDFAnnot_GetFormField{part}", form, item) for part in ("Name", "Value")
    )
    if function("FPDFAnnot_GetFormFieldType")(form, item) == raw.FPDF_FORMFIELD_CHECKBOX:
        if not function("FPDFAnnot_IsChecked")(form, item):
            return f"{name}: ☐"
        return f"{name}: ☒" + ("" if value.lower() in _TICKED else f" {value}")
    return f"{name}: {value}" if value not in ("", "Off") else ""


def _is_signed(form: Handle, item: Pointer) -> bool:
    """Returns whether a field is a signature that the page shows."""
    from pypdfium2 import raw

    kind = function("FPDFAnnot_GetFormFieldType")(form, item)
    is_signature: bool = kind == raw.FPDF_FORMFIELD_SIGNATURE
    return is_signature and function("FPDFAnnot_GetObjectCount")(item) > 0


def _string(name: str, *arguments: Handle) -> str:
    """Returns the UTF-16 string that a function of pdfium writes."""
    get = function(name)
    size = get(*arguments, None, ctypes.c_ulong(0))
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    get(*arguments, buffer, ctypes.c_ulong(size))
    text = bytes(buffer)[: max(size - 2, 0)].decode("utf-16-le", "replace")
    return " ".join(text.split())
