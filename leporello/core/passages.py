"""Passages: texts for a reader, with the spans of the document that they represent.

A chunk is a verbatim passage. Enrichers make a `Passage` (a summary, a chunk with a sentence of
context, a compressed text) from chunks and other passages; it stores the parts that a reader
receives, and its sources, so that it can be traced to the document.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leporello.core.coverage import Span, merge
from leporello.core.records import JSON, Chunk, Document, Hit, Read

# Limit of passages within passages: a tree with ten branches per node needs five levels for a novel
_DEEPEST = 50
_CONSTANT = 60  # of reciprocal rank fusion; the value of Cormack, Clarke and Buettcher


# A subclass of `Chunk`, so that `Hit`, `Read` and `Fit` hold passages unchanged (decision 46).
@dataclass(frozen=True, slots=True)
class Passage(Chunk):
    """Text made from a document, with the spans that it represents; created by `Passage.of`.

    `start` and `end` enclose all these spans.

    Attributes:
        kind: Kind of the passage: `summary`, `context`, `compressed`, `parent`, `question`.
        parts: Texts and verbatim chunks that a reader receives, in order.
        sources: Chunks and passages that it was made from.
        found_by: Text that is searched; if empty, the text of `parts`.
        spans: Spans that it represents, merged, ascending.
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
        """Returns a passage; raises ValueError if `parts` have no text, or `sources` are empty."""
        if not sources or not any(reading_text(part).strip() for part in parts):
            raise ValueError(f"a passage ({kind}) needs text and source chunks")
        start, end = min(s.start for s in sources), max(s.end for s in sources)
        return cls(sources[0].document, start, end, kind, (*parts,), (*sources,), found_by)

    @property
    def text(self) -> str:
        """Text that is searched."""
        return self.found_by or self.reading

    @property
    def reading(self) -> str:
        """Parts that a reader receives, as one text."""
        return "\n".join(map(reading_text, self.parts))


def reading_text(part: Chunk | str) -> str:
    """Returns the text that a reader receives for a chunk, a passage or a text."""
    if isinstance(part, str):
        return part
    return part.reading if isinstance(part, Passage) else part.text


def spans_of(chunk: Chunk) -> tuple[Span, ...]:
    """Returns the spans that a chunk or passage represents, merged, ascending."""
    return chunk.spans if isinstance(chunk, Passage) else (Span(chunk.start, chunk.end),)


def identity(chunk: Chunk) -> Hashable:
    """Returns a key that is equal for chunks and passages from which a reader receives the same."""
    if isinstance(chunk, Passage):
        return tuple(p if isinstance(p, str) else (p.start, p.end) for p in flat((chunk,)))
    return chunk.start, chunk.end


def flat(passages: Iterable[Chunk | str]) -> tuple[Chunk | str, ...]:
    """Returns the chunks and texts that a reader receives: passages replaced by their parts."""
    parts: list[Chunk | str] = []
    for passage in passages:
        parts.extend(flat(passage.parts) if isinstance(passage, Passage) else (passage,))
    return tuple(parts)


def flat_read(read: Read) -> Read:
    """Returns the read with its passages replaced by their parts."""
    # Readers receive the parts only, so cache keys and rows are as without passages (decision 46).
    return dataclasses.replace(read, passages=flat(read.passages)) if _has_passage(read) else read


def _has_passage(read: Read) -> bool:
    return any(isinstance(passage, Passage) for passage in read.passages)


def whole_passages(read: Read, parts: int) -> int:
    """Returns how many leading passages of a read are complete in its first `parts` parts."""
    end = 0
    for count, passage in enumerate(read.passages):
        end += len(flat((passage,)))
        if end > parts:
            return count
    return len(read.passages)


def stood_for(read: Read, cut: int) -> tuple[Span, ...]:
    """Returns the spans represented by the passages that the reader saw completely.

    The passages of the read are not yet replaced by their parts. `cut` is the number of characters
    at the end that the reader did not see.
    """
    if not _has_passage(read):
        return ()
    remaining = sum(len(reading_text(part)) for part in flat(read.passages)) - cut
    spans: list[Span] = []
    for passage in read.passages:
        # Readers cut at the end, so passages before the cut were seen completely.
        remaining -= sum(len(reading_text(part)) for part in flat((passage,)))
        # A truncated summary represents nothing: the spans of its lost part are unknown.
        if isinstance(passage, Passage) and remaining >= 0:
            spans.extend(spans_of(passage))
    return merge(spans)


def fault_of(chunk: object, document: Document) -> str:
    """Returns the fault of a value that a stage returned as a chunk or passage; empty if valid."""
    level: list[object] = [chunk]
    for _ in range(_DEEPEST + 1):
        if fault := next(filter(None, (_fault(node, document) for node in level)), ""):
            return fault
        passages = (node for node in level if isinstance(node, Passage))
        inner = (child for passage in passages for child in (*passage.sources, *passage.parts))
        # Summaries of a tree share sources, which are checked once per level.
        level = [*{id(child): child for child in inner if not isinstance(child, str)}.values()]
        if not level:
            return ""
    return "a passage that contains itself, or is nested more than fifty levels deep"


def _fault(node: object, document: Document) -> str:
    if not isinstance(node, Chunk):
        return f"{type(node).__name__} instead of a chunk or passage"
    if node.document is not document:
        return f"a chunk of document {node.document.id!r} for document {document.id!r}"
    if not 0 <= node.start <= node.end <= len(document.text):
        where = f"which is outside document {document.id!r} of {len(document.text)} characters"
        return f"the span ({node.start}, {node.end}), {where}"
    if isinstance(node, Passage) and not (node.sources and any(map(_is_text, node.parts))):
        return f"a passage ({node.kind}) without text or without source chunks"
    return ""


def _is_text(part: object) -> bool:
    return isinstance(part, Chunk) or (isinstance(part, str) and bool(part.strip()))


def derivation(passage: Chunk) -> Iterator[tuple[int, Chunk]]:
    """Yields (depth, chunk or passage) from a passage down to the chunks that it was made from."""
    stack: list[tuple[int, Chunk]] = [(0, passage)]
    while stack:
        depth, node = stack.pop()
        yield depth, node
        if isinstance(node, Passage):
            stack += [(depth + 1, source) for source in reversed(node.sources)]


def fused(rankings: Iterable[Sequence[Hit]]) -> list[Hit]:
    """Returns rankings fused by sums of 1 / (60 + rank): each chunk once, best first."""
    shares: defaultdict[Chunk, list[float]] = defaultdict(list)
    for hits in rankings:
        for rank, chunk in enumerate(dict.fromkeys(hit.chunk for hit in hits), start=1):
            shares[chunk].append(1 / (_CONSTANT + rank))
    # fsum: equal summands give equal sums, whatever the order of the rankings.
    fused_hits = [Hit(chunk, math.fsum(summands)) for chunk, summands in shares.items()]
    return sorted(fused_hits, key=lambda hit: (-hit.score, hit.chunk.start, hit.chunk.end))


# -- as JSON ---------------------------------------------------------------------------------------


def to_table(passages: Sequence[Chunk]) -> dict[str, JSON]:
    """Returns passages as JSON that contains each chunk and passage once."""
    nodes: list[JSON] = []
    numbers: dict[int, int] = {}

    def number(chunk: Chunk) -> int:
        # Summaries of a tree share sources, which would otherwise be written many times.
        if id(chunk) not in numbers:
            row: JSON = [chunk.start, chunk.end]
            if isinstance(chunk, Passage):
                row = {
                    "kind": chunk.kind,
                    "parts": [p if isinstance(p, str) else number(p) for p in chunk.parts],
                    "sources": [number(source) for source in chunk.sources],
                    **({"found_by": chunk.found_by} if chunk.found_by else {}),
                }
            numbers[id(chunk)] = len(nodes)
            nodes.append(row)
        return numbers[id(chunk)]

    roots: list[JSON] = [number(passage) for passage in passages]
    return {"nodes": nodes, "of": roots}


def from_table(document: Document, table: Mapping[str, Any]) -> tuple[Chunk, ...]:
    """Returns the passages from which `to_table` made the table."""
    nodes: list[Chunk] = []
    for row in table["nodes"]:
        if isinstance(row, dict):
            parts = [part if isinstance(part, str) else nodes[part] for part in row["parts"]]
            sources = [nodes[number] for number in row["sources"]]
            nodes.append(Passage.of(row["kind"], parts, sources, row.get("found_by", "")))
        else:
            nodes.append(document.chunk(*row))
    return tuple(nodes[number] for number in table["of"])


def content_hash(passages: Sequence[Chunk]) -> str:
    """Returns a hash of the texts that are searched; empty if all passages are chunks."""
    if not any(isinstance(passage, Passage) for passage in passages):
        return ""
    digest = hashlib.sha256()
    for passage in passages:
        text = passage.text.encode("utf-8", "surrogatepass")
        # With lengths, so that `ab`, `c` and `a`, `bc` have different hashes.
        digest.update(b"%d\n%b" % (len(text), text))
    return digest.hexdigest()
