"""Passages: text that a reader may be given, and the spans of a document that it stands for.

A chunk is the verbatim case. What enrichers make (a summary, a chunk with a sentence of context, a
compressed text) is a `Passage`: it knows the parts that a reader is given, and the chunks and
passages that it was made of, down to the document.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leporello.core.coverage import Span, merge
from leporello.core.records import JSON, Chunk, Document, Read

_DEEPEST = 50  # passages within passages: a tree of ten a node has five levels for a long novel


@dataclass(frozen=True, slots=True)
class Passage(Chunk):
    """Text made of a document, with what it stands for; made by `Passage.of`.

    `start` and `end` are the first and last character that it stands for.

    Attributes:
        kind: How it came about: `summary`, `context`, `compressed`, `parent`, `question`.
        parts: What a reader is given in its place, in order: texts, and chunks as they stand.
        sources: Chunks and passages that it was made of.
        found_by: Text by which it is searched for; its own where that is empty.
        spans: What it stands for, merged, ascending.
    """

    kind: str
    parts: tuple[Chunk | str, ...]
    sources: tuple[Chunk, ...]
    found_by: str = ""
    spans: tuple[Span, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        spans = merge(span for source in self.sources for span in spans_of(source))
        object.__setattr__(self, "spans", spans)

    @classmethod
    def of(
        cls, kind: str, parts: Sequence[Chunk | str], sources: Sequence[Chunk], found_by: str = ""
    ) -> Passage:
        """Returns the passage of these parts; takes what its attributes are.

        Raises:
            ValueError: There is nothing to read, or nothing that it stands for.
        """
        if not sources or not any(reading_text(part).strip() for part in parts):
            raise ValueError(f"a passage ({kind}) needs text, and chunks that it stands for")
        start, end = min(s.start for s in sources), max(s.end for s in sources)
        return cls(sources[0].document, start, end, kind, (*parts,), (*sources,), found_by)

    @property
    def text(self) -> str:
        """What it is searched for by."""
        return self.found_by or self.reading

    @property
    def reading(self) -> str:
        """What a reader is given, as one text."""
        return "\n".join(map(reading_text, self.parts))


def reading_text(part: Chunk | str) -> str:
    """Returns the text that a reader is given of a chunk, a passage or a text."""
    if isinstance(part, str):
        return part
    return part.reading if isinstance(part, Passage) else part.text


def spans_of(chunk: Chunk) -> tuple[Span, ...]:
    """Returns what a chunk or passage stands for: merged spans, ascending."""
    return chunk.spans if isinstance(chunk, Passage) else (Span(chunk.start, chunk.end),)


def identity(chunk: Chunk) -> Hashable:
    """Returns what is equal for chunks and passages of which a reader is given the same."""
    if isinstance(chunk, Passage):
        return tuple(p if isinstance(p, str) else (p.start, p.end) for p in flat((chunk,)))
    return chunk.start, chunk.end


def flat(passages: Iterable[Chunk | str]) -> tuple[Chunk | str, ...]:
    """Returns what a reader is given: chunks of the document, and texts."""
    parts: list[Chunk | str] = []
    for passage in passages:
        parts.extend(flat(passage.parts) if isinstance(passage, Passage) else (passage,))
    return tuple(parts)


def flat_read(read: Read) -> Read:
    """Returns a read with the parts of its passages."""
    if any(isinstance(passage, Passage) for passage in read.passages):
        return dataclasses.replace(read, passages=flat(read.passages))
    return read


def whole_passages(read: Read, parts: int) -> int:
    """Returns how many leading passages of a read its first so many parts make up."""
    taken = 0
    for count, passage in enumerate(read.passages):
        taken += len(flat((passage,)))
        if taken > parts:
            return count
    return len(read.passages)


def stood_for(read: Read, cut: int) -> tuple[Span, ...]:
    """Returns the spans that what was read stands for.

    Args:
        read: The read, with its passages whole.
        cut: Number of the last characters that the reader did not see; a passage that was not seen
            whole stands for nothing.
    """
    left = sum(len(reading_text(part)) for part in flat(read.passages)) - cut
    spans: list[Span] = []
    for passage in read.passages:
        left -= sum(len(reading_text(part)) for part in flat((passage,)))
        if isinstance(passage, Passage) and left >= 0:
            spans.extend(spans_of(passage))
    return merge(spans)


def fault_of(chunk: object, document: Document) -> str:
    """Returns what is wrong with what a stage gave for a chunk or passage; empty if nothing is."""
    waiting: list[tuple[object, tuple[int, ...]]] = [(chunk, ())]
    seen: set[int] = set()
    while waiting:
        one, above = waiting.pop()
        if id(one) in above or len(above) > _DEEPEST:
            return "a passage that is made of itself, or of others more than fifty deep"
        if fault := _fault(one, document):
            return fault
        if isinstance(one, Passage) and id(one) not in seen:
            seen.add(id(one))
            inner = (*one.sources, *(part for part in one.parts if not isinstance(part, str)))
            waiting += [(each, (*above, id(one))) for each in inner]
    return ""


def _fault(one: object, document: Document) -> str:
    if not isinstance(one, Chunk):
        return f"{type(one).__name__} for a chunk or passage"
    if one.document is not document:
        return f"a chunk of document {one.document.id!r} for document {document.id!r}"
    if not 0 <= one.start <= one.end <= len(document.text):
        where = f"which lies outside document {document.id!r} of {len(document.text)} characters"
        return f"the span ({one.start}, {one.end}), {where}"
    if isinstance(one, Passage) and not (one.sources and any(_is_text(part) for part in one.parts)):
        return f"a passage ({one.kind}) without text, or without chunks that it stands for"
    return ""


def _is_text(part: object) -> bool:
    return isinstance(part, Chunk) or (isinstance(part, str) and bool(part.strip()))


def derivation(passage: Chunk) -> Iterator[tuple[int, Chunk]]:
    """Yields (depth, chunk or passage) from a passage down to the chunks that it was made of."""
    waiting: list[tuple[int, Chunk]] = [(0, passage)]
    while waiting:
        depth, one = waiting.pop()
        yield depth, one
        if isinstance(one, Passage):
            waiting += [(depth + 1, source) for source in reversed(one.sources)]


# -- as JSON ---------------------------------------------------------------------------------------


def to_table(passages: Sequence[Chunk]) -> dict[str, JSON]:
    """Returns passages as JSON in which each chunk and passage stands once."""
    nodes: list[JSON] = []
    known: dict[int, int] = {}

    def number(chunk: Chunk) -> int:
        if id(chunk) not in known:
            row: JSON = [chunk.start, chunk.end]
            if isinstance(chunk, Passage):
                row = {
                    "kind": chunk.kind,
                    "parts": [p if isinstance(p, str) else number(p) for p in chunk.parts],
                    "sources": [number(source) for source in chunk.sources],
                    **({"found_by": chunk.found_by} if chunk.found_by else {}),
                }
            known[id(chunk)] = len(nodes)
            nodes.append(row)
        return known[id(chunk)]

    of: list[JSON] = [number(passage) for passage in passages]
    return {"nodes": nodes, "of": of}


def from_table(document: Document, table: Mapping[str, Any]) -> tuple[Chunk, ...]:
    """Returns the passages that `to_table` was given.

    Raises:
        ValueError: A span lies outside the document.
    """
    made: list[Chunk] = []
    for row in table["nodes"]:
        if isinstance(row, dict):
            parts = [part if isinstance(part, str) else made[part] for part in row["parts"]]
            sources = [made[number] for number in row["sources"]]
            made.append(Passage.of(row["kind"], parts, sources, row.get("found_by", "")))
        else:
            made.append(document.chunk(*row))
    return tuple(made[number] for number in table["of"])


def content_hash(passages: Sequence[Chunk]) -> str:
    """Returns a hash of what passages are searched for by; empty where all are chunks."""
    if not any(isinstance(passage, Passage) for passage in passages):
        return ""
    digest = hashlib.sha256()
    for passage in passages:
        text = passage.text.encode("utf-8", "surrogatepass")
        digest.update(b"%d\n%b" % (len(text), text))
    return digest.hexdigest()
