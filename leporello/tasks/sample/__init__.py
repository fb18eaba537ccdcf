"""A first task without downloads: a play, a report, and Python's language reference.

The play and the report were written for Leporello.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from leporello.core.records import Document, Example, Section, Span
from leporello.loaders.files import load
from leporello.tasks.jsonl.schema import Row, RowError, decode, located, validated
from leporello.text.outline import tile

__all__ = ["Sample"]

_FOLDER = Path(__file__).parent
_INSTRUCTION = "Answer the question from the text in as few words as you can."
_HEADERS = ("Text", "Question", "Answer")

logger = logging.getLogger("leporello")


@dataclass(frozen=True)
class Sample:
    """Three long documents with about thirty questions, each with evidence.

    The third document is the language reference of the running Python, which differs between
    versions: questions whose evidence is not in it are skipped and listed in a warning.
    """

    metrics: ClassVar[tuple[str, ...]] = ("f1", "exact_match", "recall")

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """Ids of the questions whose evidence is not in this Python's reference."""
        ids = tuple(row.id for row, _, evidence in self._rows if evidence is None)
        if ids:
            logger.warning(
                "task Sample: %d questions are skipped, because this Python's language reference"
                " does not contain their evidence: %s",
                len(ids),
                ", ".join(ids),
            )
        return ids

    def examples(self) -> Iterator[Example]:
        """Yields the examples, grouped by document."""
        _ = self.left_out  # warns once
        for row, document, evidence in self._rows:
            if evidence is not None:
                yield Example(
                    row.id,
                    document,
                    row.question,
                    references=tuple(row.references),
                    evidence=evidence,
                    instruction=_INSTRUCTION,
                    headers=_HEADERS,
                )

    def __len__(self) -> int:
        return sum(evidence is not None for _, _, evidence in self._rows)

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the three documents and their questions."""
        digest = hashlib.sha256()
        for row, document, _ in self._rows:
            digest.update(document.sha256.encode() + row.model_dump_json().encode())
        return digest.hexdigest()

    @cached_property
    def _rows(self) -> list[tuple[Row, Document, tuple[Span, ...] | None]]:
        """Rows with their documents, and their evidence if it is in the document."""
        return [*_read()]


def _read() -> Iterator[tuple[Row, Document, tuple[Span, ...] | None]]:
    for name, read in _DOCUMENTS.items():
        document = read()
        for line in (_FOLDER / f"{name}.questions.jsonl").read_bytes().splitlines():
            row = validated(decode(line))
            try:
                yield row, document, located(row.evidence, document)
            except RowError:
                yield row, document, None


def _story() -> Document:
    document = load(_FOLDER / "story.txt", "story")
    return dataclasses.replace(document, title="The Honest Ten")


def _python() -> Document:
    from pydoc_data.topics import topics

    names = sorted(topics)
    text, spans = tile((f"{name}\n\n{topics[name].strip()}" for name in names), "\n\n")
    sections = (Section(name, s.start, s.end) for name, s in zip(names, spans, strict=True))
    return Document("python", text, "Python language reference", tuple(sections))


_DOCUMENTS: Mapping[str, Callable[[], Document]] = {
    "story": _story,
    "report": lambda: load(_FOLDER / "report.md", "report"),
    "python": _python,
}
