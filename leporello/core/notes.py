"""What a stage tells of an example besides its result: that it fell back, or found nothing."""

from __future__ import annotations

import warnings
from contextvars import ContextVar, Token

_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


def note(text: str) -> None:
    """Tells something that whoever reads the result should know, in one line.

    In a run it is kept with the example, counted in the summary and shown by `explain`; a chunker's
    notes are kept with the chunks, so that a warm cache tells them too. Elsewhere it is a warning.
    What is the same for many examples is best told in the same words.
    """
    heard = _heard.get()
    if heard is None:
        warnings.warn(text, stacklevel=2)
    elif text not in heard:
        heard.append(text)


class collect_notes:  # noqa: N801 -- called like a function; a generator takes twice as long
    """Gives a list of the notes that are told within, each once, in the order they came."""

    _token: Token[list[str] | None]

    def __enter__(self) -> list[str]:
        heard: list[str] = []
        self._token = _heard.set(heard)
        return heard

    def __exit__(self, *_: object) -> None:
        _heard.reset(self._token)
