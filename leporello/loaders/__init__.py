"""The user's own files as documents.

One file a format, each a class: how it is recognised, and how bytes become text with an outline,
places, and what of the file is lost. `load` finds the format by content and suffix. Spans count
characters of the *extracted* text. A loader may touch the file that it is given, and nothing else.
"""

from __future__ import annotations

from leporello.loaders.files import FORMATS
from leporello.loaders.files import known_suffixes as known_suffixes
from leporello.loaders.files import load as load
from leporello.loaders.files import load_bytes as load_bytes
from leporello.loaders.html import Html
from leporello.loaders.mail import Mail
from leporello.loaders.markdown import Markdown
from leporello.loaders.markup.code import Code
from leporello.loaders.markup.json_values import Json
from leporello.loaders.markup.latex import Latex
from leporello.loaders.markup.notebook import Notebook
from leporello.loaders.markup.restructured import RestructuredText
from leporello.loaders.markup.xml import Xml
from leporello.loaders.office.docx import Docx
from leporello.loaders.office.epub import Epub
from leporello.loaders.office.opendocument import OpenDocument
from leporello.loaders.office.pptx import Pptx
from leporello.loaders.office.rtf import Rtf
from leporello.loaders.pdf import Pdf
from leporello.loaders.subtitles import Subtitles
from leporello.loaders.tables.csv import Csv
from leporello.loaders.tables.sheets import Sheets
from leporello.loaders.text import Text

__all__ = [
    "Code",
    "Csv",
    "Docx",
    "Epub",
    "Html",
    "Json",
    "Latex",
    "Mail",
    "Markdown",
    "Notebook",
    "OpenDocument",
    "Pdf",
    "Pptx",
    "RestructuredText",
    "Rtf",
    "Sheets",
    "Subtitles",
    "Text",
    "Xml",
]

FORMATS[:] = [
    *(
        Pdf,
        Docx,
        Pptx,
        Sheets,
        OpenDocument,
        Epub,
        Rtf,
        Notebook,
        Html,
        Xml,
        Mail,
        Subtitles,
        Latex,
    ),
    *(Markdown, Csv, Json, RestructuredText, Code, Text),
]
