"""What of a PDF's pages is not in its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from leporello.core.records import Loss
from leporello.loaders.pdf.pages import PageText

_NAMED = 5  # stretches of pages that a place names


def losses(pages: Sequence[PageText], names: Sequence[str], unread: str) -> list[Loss]:
    """Returns one loss for each kind of thing, the pages named together.

    Args:
        pages: The pages, their furniture taken out.
        names: Names of the pages.
        unread: Reason why pages without text were not read.
    """
    full = [page.characters for page in pages if page.characters and not page.lacks_text]
    usual = round(fmean(full)) if full else 0
    kinds: dict[str, list[tuple[int, Loss]]] = {}
    for i, page in enumerate(pages):
        for loss in _of_page(page, usual, unread):
            kinds.setdefault(loss.what, []).append((i, loss))
    return [_together(found, names) for found in kinds.values()]


def _of_page(page: PageText, usual: int, unread: str) -> Iterator[Loss]:
    """Yields what a page lacks; a page without text has as many characters as the others."""
    if page.fault:
        yield Loss("broken page", page.fault, characters=usual)
    elif page.undecodable:
        why = "OCR knows no such letters" if page.ocr else "the type does not say which letters"
        yield Loss("undecodable character", why, "", page.undecodable, page.undecodable)
    elif page.lacks_text:
        yield Loss("page without text", unread, characters=usual)
    elif page.ocr and not page.lines:
        yield Loss("page without text", "OCR found none")
    if page.pictures and not page.lacks_text:
        yield Loss("image", "what is drawn in pictures is not read", count=page.pictures)
    for kind, text in page.furniture:
        why = f"stands at the edge of many pages, as this does: {text}"
        yield Loss(kind, why, characters=len(text), furniture=True)


def _together(found: Sequence[tuple[int, Loss]], names: Sequence[str]) -> Loss:
    first = found[0][1]
    characters, count = (
        sum(getattr(loss, name) for _, loss in found) for name in ("characters", "count")
    )
    place = _place(sorted({i for i, _ in found}), names)
    return Loss(first.what, first.why, place, characters, count, first.furniture)


def _place(pages: Sequence[int], names: Sequence[str]) -> str:
    """Returns pages as a person names them: `p. 3, p. 5 to p. 9`."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][-1] + 1:
            runs[-1].append(page)
        else:
            runs.append([page])
    parts = [" to ".join(dict.fromkeys((names[run[0]], names[run[-1]]))) for run in runs]
    more = len(parts) - _NAMED
    return ", ".join(parts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
