"""Calls a loader and checks the document that it returns."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from numbers import Integral
from pathlib import Path

from leporello.core.errors import UserError
from leporello.core.protocols import Loader
from leporello.core.records import Document, Loss, Member, Place, Section, Span

_KINDS = {"sections": Section, "parts": Span, "places": Place, "losses": Loss, "members": Member}


def load_with(loader: Loader, path: Path) -> Document:
    """Returns a file as a document, read by a plug-in's loader.

    Raises:
        UserError: The file is invalid, the loader fails, or it returns an invalid document.
    """
    name = f"{type(loader).__name__}.load"
    try:
        document = loader.load(path)
    except (UserError, MemoryError, TimeoutError, KeyboardInterrupt):
        raise
    except BaseException as error:  # SystemExit too
        last = traceback.extract_tb(error.__traceback__)[-1]
        line = f"{Path(last.filename).name}:{last.lineno}"
        raise UserError(
            f"{path}: {name} failed ({line}): {type(error).__name__}: {error}"
        ) from error
    # Checked like the results of stages: a wrong span would fail only in a later stage.
    if problem := next(_problems(document), ""):
        raise UserError(f"{path}: {name} returned {problem}")
    return document


def _problems(document: object) -> Iterator[str]:
    """Yields the faults of a value that a loader returned."""
    if not isinstance(document, Document):
        yield f"{document!r:.80}; it must return a Document"
        return
    for field in ("id", "text", "title"):
        if not isinstance(value := getattr(document, field), str):
            yield f"a Document whose {field} is {value!r:.80}; it must be text"
    for field, kind in _KINDS.items():
        values = getattr(document, field)
        if not isinstance(values, tuple) or not all(isinstance(value, kind) for value in values):
            yield f"a Document whose {field} is not a tuple of {kind.__name__}"
        for value in values if kind is not Loss else ():
            numbers = all(isinstance(n, Integral) for n in (value.start, value.end))
            if not (numbers and 0 <= value.start <= value.end <= len(document.text)):
                yield (
                    f"a Document with {value!r:.120} among its {field}, which is outside its text"
                    f" of {len(document.text)} characters"
                )
