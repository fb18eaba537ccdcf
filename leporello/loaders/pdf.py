"""PDF: the text of its pages, and which page is where."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from leporello.core.errors import UserError
from leporello.core.records import Place
from leporello.loaders.files import Format
from leporello.text.outline import Extracted, tile

__all__ = ["Pdf"]


@dataclass(frozen=True)
class Pdf(Format):
    """PDF: the text of its pages."""

    suffixes: ClassVar[tuple[str, ...]] = (".pdf",)

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:  # noqa: ARG004 -- the content says it
        """Returns whether the file begins as a PDF does, junk before it allowed."""
        return b"%PDF-" in head[:1024]

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the pages' texts, an empty line between them; places are named `p. 3`.

        Raises:
            UserError: The file is broken or encrypted, or its pages hold no text, only images.
        """
        from pypdf.errors import DependencyError, FileNotDecryptedError

        try:
            texts, title = _read(data)
        except (DependencyError, FileNotDecryptedError):
            raise UserError(
                f"{path}: is encrypted; save an open copy first, for example:"
                f" qpdf --decrypt --password=… {path.name} {path.stem}.open.pdf"
            ) from None
        except Exception as error:  # a broken file makes pypdf raise whatever it trips over
            raise UserError(
                f"{path}: is no PDF, or a broken one ({error or type(error).__name__}); a repair"
                f" may help: qpdf {path.name} {path.stem}.mended.pdf"
            ) from error
        if not any(text.strip() for text in texts):
            raise UserError(
                f"{path}: none of its pages has text ({len(texts)} pages, likely scanned images);"
                f" recognise it first: ocrmypdf {path.name} {path.stem}.ocr.pdf"
            )
        text, spans = tile(texts, "\n\n")
        pages = (Place(f"p. {n}", span.start, span.end) for n, span in enumerate(spans, 1))
        return Extracted(text, title, places=tuple(pages))


def _read(data: bytes) -> tuple[list[str], str]:
    """Returns the pages' texts and the title."""
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(data))
    texts = [_without_surrogates(page.extract_text()) for page in reader.pages]
    title = reader.metadata.title if reader.metadata else None
    return texts, _without_surrogates(title or "")


def _without_surrogates(text: str) -> str:
    """Joins surrogate pairs; a lone half, which no UTF-8 file could hold, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
