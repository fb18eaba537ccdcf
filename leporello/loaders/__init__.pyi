__all__: list[str]

from .html import Html as Html
from .mail import Mail as Mail
from .markup.json_files import Json as Json
from .markup.json_files import Notebook as Notebook
from .markup.latex import Latex as Latex
from .markup.source import Code as Code
from .markup.source import RestructuredText as RestructuredText
from .markup.xml import Xml as Xml
from .office.docx import Docx as Docx
from .office.epub import Epub as Epub
from .office.opendocument import OpenDocument as OpenDocument
from .office.pptx import Pptx as Pptx
from .office.rtf import Rtf as Rtf
from .pdf import Pdf as Pdf
from .subtitles import Subtitles as Subtitles
from .tables.csv import Csv as Csv
from .tables.sheets import Sheets as Sheets
from .text import Markdown as Markdown
from .text import Text as Text
