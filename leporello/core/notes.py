"""Notes: sentences that a stage reports on an example, such as a fallback."""

import warnings
from contextvars import ContextVar, Token

_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def note(text: str) -> None:
    """Reports something that readers of the result should know, in one line.

    A run stores the note with the example, counts it in the summary and shows it in `explain`; a
    chunker's notes are cached with the chunks and reported again with them. Without a run, it
    becomes a warning. Use the same words for the same fact, so that notes can be counted.
    """
    notes = _collected.get()
    if notes is None:
        warnings.warn(text, stacklevel=2)
    elif text not in notes:
        notes.append(text)


class collect_notes:  # noqa: N801 -- used like a function; a generator takes twice as long
    """Collects the notes reported within the block, in order and without duplicates."""

    _token: Token[list[str] | None]

    def __enter__(self) -> list[str]:
        notes: list[str] = []
        self._token = _collected.set(notes)
        return notes

    def __exit__(self, *_: object) -> None:
        _collected.reset(self._token)
