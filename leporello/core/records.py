"""The records that pass between stages: plain, frozen, made of tuples.

Positions are always half-open character offsets into `Document.text`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from leporello.core.calls.memory import (
    TOKENS,
    CacheKey,
    CacheProtocol,
    Codec,
    Fingerprint,
    Index,
    Made,
    Tokenizer,
    memo_key,
    read_only,
    tokens_key,
)
from leporello.core.coverage import Coverage, Loss, Span
from leporello.core.errors import ReadError
from leporello.core.hashing import JSON

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "JSON",
    "Answer",
    "Asking",
    "CacheProtocol",
    "Chunk",
    "Combination",
    "Coverage",
    "Document",
    "DocumentRows",
    "Enrichment",
    "Example",
    "Failure",
    "Fit",
    "Generates",
    "Hit",
    "HitPassage",
    "Index",
    "Loss",
    "Member",
    "Output",
    "Place",
    "Prediction",
    "Read",
    "Reply",
    "Request",
    "Search",
    "Section",
    "Span",
    "Tokenizer",
]


@dataclass(frozen=True, slots=True)
class Section:
    """A titled stretch of a document: a heading's body, a page, a cue.

    Attributes:
        title: Title as it stands in the document, or made by its loader (`page 3`).
        start: First character, half-open like every span.
        end: One past the last character.
        level: Depth, 1 at the top.
    """

    title: str
    start: int
    end: int
    level: int = 1


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of text as a person finds it in the file: a page, a cell, a moment of a film.

    Attributes:
        name: Name of the place: `p. 14`, `Costs!B7`, `00:41:07`.
        start: First character, half-open like every span.
        end: One past the last character.
    """

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a collection, as a stretch of the collection's text.

    Attributes:
        name: Name of the file within the collection.
        start: First character, half-open like every span.
        end: One past the last character.
        title: Title of the file.
        sha256: SHA-256 of its text, as `Document.sha256`.
    """

    name: str
    start: int
    end: int
    title: str
    sha256: str


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A document as extracted text; equal only to itself, since it may be megabytes long.

    What is derived from it (tokens, chunks, indexes) it keeps; a copy or a pickle of it does not.

    Attributes:
        id: Id, unique within the task.
        text: The text that every span counts characters in.
        title: Title; may be empty.
        sections: Sections in document order, where the loader knows pages, cues or headings.
        parts: Ready-made spans where the data has them (reviews, paragraphs, summaries).
        places: Places in document order, an outer one before those inside it.
        losses: What of the file is not in the text.
        notes: What the loader guessed or found odd: an encoding, a wrong suffix.
        members: Files of a collection, in order, with a gap between two; else none.
    """

    id: str
    text: str = field(repr=False)
    title: str = ""
    sections: tuple[Section, ...] = ()
    parts: tuple[Span, ...] = ()
    places: tuple[Place, ...] = ()
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()
    _memo: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)
    _cache: CacheProtocol | None = field(default=None, init=False, repr=False)

    @property
    def cache(self) -> CacheProtocol | None:
        """Where what is derived from the document is kept between runs, if anywhere."""
        return self._cache

    def use_cache(self, cache: CacheProtocol) -> None:
        """Has what is derived from here on looked for in this cache, and put there."""
        object.__setattr__(self, "_cache", cache)  # frozen: no result depends on it

    def __reduce__(self) -> tuple[type[Document], tuple[object, ...]]:
        """Leaves behind what was derived, when a document goes to another process."""
        told = (self.places, self.losses, self.notes, self.members)
        return Document, (self.id, self.text, self.title, self.sections, self.parts, *told)

    def chunk(self, start: int, end: int) -> Chunk:
        """Returns the chunk of these characters.

        Raises:
            ValueError: The span does not lie within the document.
        """
        if not 0 <= start <= end <= len(self.text):
            raise ValueError(
                f"span ({start}, {end}) does not lie within document {self.id!r}"
                f" of {len(self.text)} characters"
            )
        return Chunk(self, int(start), int(end))

    def tokens(self, tokenizer: Tokenizer) -> NDArray[np.int64]:
        """Returns the tokens' offsets, shape (tokens, 2); a document is tokenised once."""
        return self.derived(
            TOKENS,
            memo_key(tokenizer),
            lambda fingerprint: tokens_key(self.sha256, tokenizer, fingerprint),
            lambda: read_only(tokenizer.offsets(self.text)),
        )

    def derived(
        self,
        codec: Codec[Made],
        memo: Hashable,
        key: Callable[[Fingerprint], CacheKey | None],
        make: Callable[[], Made],
    ) -> Made:
        """Returns a value from the document's memory, from its cache, or made now.

        Args:
            codec: Form that the value has in a cache.
            memo: Key of the value in memory, within its kind.
            key: Function that returns its key in a cache; None keeps it out.
            make: Function that makes it.
        """

        def find() -> Made:
            known = key(self.cache.fingerprint) if self.cache else None
            if self.cache is None or known is None:
                return make()
            if (kept := self.cache.get(codec.kind, known)) is not None:
                return codec.unpack(kept)
            value = make()
            if (packed := codec.pack(value)) is not None:
                self.cache.put(codec.kind, known, packed)
            return value

        return self.memo((codec.kind, memo), find)

    def memo(self, key: Hashable, compute: Callable[[], Made]) -> Made:
        """Returns what `compute` gave for this key, computing it at most once a document."""
        if key not in self._memo:
            self._memo[key] = compute()
        made: Made = self._memo[key]
        return made

    @property
    def sha256(self) -> str:
        """SHA-256 of the text in UTF-8 (lone surrogates kept), in hexadecimal."""
        return self.memo(
            "sha256",
            lambda: hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest(),
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """A slice of a document, made by `Document.chunk`; its text cannot differ from the source."""

    document: Document
    start: int
    end: int

    @property
    def text(self) -> str:
        """The document's own characters."""
        return self.document.text[self.start : self.end]

    @property
    def span(self) -> Span:
        """Where the chunk stands."""
        return Span(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found for a question; the score belongs to the pair, higher is better."""

    chunk: Chunk
    score: float


@dataclass(frozen=True, slots=True)
class Example:
    """One question on one document.

    Attributes:
        id: Id, unique within the task.
        document: The document, one object for all examples on it.
        question: The question; empty for summarisation.
        instruction: The task's prompt, put before what is read.
        headers: Names that the task gives to what follows (`Article`, `Question`, `Answer`).
        choices: Allowed answers, where there are any.
        references: Accepted answers; hidden from stages unless they declare `sees_gold = True`.
        evidence: Spans that prove the answer; hidden likewise.
        group: Name under which the example is reported.
        metadata: Values of the task's file that have no other place here.
        fault: Message of what is wrong with its data; such an example fails alone, before any stage
            sees it.
        schema: JSON Schema of its answer, as text; empty for any text.
    """

    id: str
    document: Document
    question: str = ""
    instruction: str = ""
    headers: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    evidence: tuple[Span, ...] = ()
    group: str = ""
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    fault: str = ""
    schema: str = ""

    def without_gold(self) -> Example:
        """Returns the example as a stage may see it: no references, no evidence, no such metadata.

        What a task keeps under `gold` in the metadata tells answers too.
        """
        metadata = {name: value for name, value in self.metadata.items() if name != "gold"}
        return dataclasses.replace(self, references=(), evidence=(), metadata=metadata)


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """Where the examples on one document stand in a task's data.

    Attributes:
        examples: Number of examples on the document.
        bytes: Size of their rows, or of what else they are made from.
        rows: JSON by which the task finds its rows; None if their order alone tells.
    """

    examples: int
    bytes: int
    rows: JSON = None


@dataclass(frozen=True, slots=True)
class Read:
    """One thing to read, in parts; the reader renders it.

    Attributes:
        passages: Chunks, or literal strings (an earlier answer, a summary), first things first.
        question: The question; never cut.
        instruction: The instruction; never cut.
        choices: Allowed answers, never cut; a reader that can scores each of them.
        pair: Two texts to compare, for pair classifiers.
        title: Title of the document.
        role: Role of the reader that is asked; the one of answers if empty.
        schema: JSON Schema of the answer, as text; empty for any text.
    """

    passages: tuple[Chunk | str, ...]
    question: str = ""
    instruction: str = ""
    choices: tuple[str, ...] = ()
    pair: tuple[str, str] | None = None
    title: str = ""
    role: str = ""
    schema: str = ""


@dataclass(frozen=True, slots=True)
class Search:
    """Asks the retriever for more hits in the same document; answered with a tuple of `Hit`.

    Attributes:
        question: The text that is searched for.
        new: Number of hits at most, of those alone that were not found before. None is all hits,
            found before or not.
    """

    question: str
    new: int | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """Asks how many leading passages of `read` fit the reader's window once rendered.

    Attributes:
        read: The passages.
        behind: Text that is to stand behind them. The answer is then how many of their characters
            may stand before it: all, for a reader that slices tokens itself; else -1.
    """

    read: Read
    behind: str | None = None


@dataclass(frozen=True, slots=True)
class Generates:
    """Asks whether a reader writes what it is asked to (`Reader.generates`); told by a bool.

    Attributes:
        role: Role of the reader; the one of answers if empty.
    """

    role: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """What a reader says to one input.

    Attributes:
        text: The answer.
        score: Confidence of the reader (a mean log-probability, a similarity); higher is better.
        scores: Scores, one a choice, where the input had choices.
        read: Spans of the document that the reader saw; None means all that it was given.
        cut: Characters of the passages that it was given and did not see.
        input_tokens: Number of tokens read, as the model counts them; 0 where the reader has none.
        output_tokens: Number of tokens written, likewise.
        span: Characters of the document where the answer stands, if the reader copied it from a
            chunk.
        dollars: Price in dollars, where the reader pays and knows the prices.
        reasoning: What the model wrote to itself before the answer, if it did and shows it.
        reasoning_tokens: Number of tokens written so, of `output_tokens`; None if it did not.
        probability: Probability that the answer is right, calibrated; None where nobody knows.
        seconds: Seconds that it took, where the pipeline has a budget of them.
        over_budget: Whether nothing was read, for want of budget; the engine says it, no reader.
    """

    text: str
    score: float | None = None
    scores: tuple[float, ...] = ()
    read: tuple[Span, ...] | None = None
    cut: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    span: Span | None = None
    dollars: float | None = None
    reasoning: str | None = None
    reasoning_tokens: int | None = None
    probability: float | None = None
    seconds: float | None = None
    over_budget: bool = False


Request: TypeAlias = Read | Search | Fit | Generates
Reply: TypeAlias = "Output | ReadError"
Answer: TypeAlias = "Reply | tuple[Hit, ...] | int"
_Returned = TypeVar("_Returned")
# A generator that yields requests, is sent one answer a request, and returns something.
Asking: TypeAlias = Generator[Sequence[Request], list[Any], _Returned]
# That of a combiner, and that of an enricher, which returns chunks and passages.
Combination: TypeAlias = "Asking[JSON]"
Enrichment: TypeAlias = "Asking[Sequence[Chunk]]"


@dataclass(frozen=True, slots=True)
class HitPassage:
    """A passage that was found, as results keep it.

    Attributes:
        kind: How it came about: `summary`, `context`.
        text: Text that a reader is given of it.
        spans: What it stands for, merged, ascending.
    """

    kind: str
    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """A finished example.

    Attributes:
        id: Id of the example.
        prediction: The answer as it is scored.
        raw: The answer as the combiner returned it.
        hits: (start, end, score) in rank order.
        read: Spans that the reader saw, merged, in document order.
        coverage: The ledger.
        document_sha256: SHA-256 of the text that the spans count in.
        stood_for: Spans that passages stand for which the reader saw in their place, merged.
        passages: Passages by the rank of their hit, from 0; a hit without is a chunk.
        confidence: Probability that the answer is right; None where no reader gives one.
        abstained: Whether the answer was withheld for want of confidence; `raw` has it.
    """

    id: str
    prediction: str
    raw: JSON
    hits: tuple[tuple[int, int, float], ...]
    read: tuple[Span, ...]
    coverage: Coverage
    document_sha256: str
    stood_for: tuple[Span, ...] = ()
    passages: Mapping[int, HitPassage] = field(default_factory=dict)
    confidence: float | None = None
    abstained: bool = False

    @property
    def hit_spans(self) -> tuple[tuple[Span, ...], ...]:
        """What each hit stands for, in rank order."""
        return tuple(
            self.passages[rank].spans if rank in self.passages else (Span(start, end),)
            for rank, (start, end, _) in enumerate(self.hits)
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """An example that could not be finished: a record too, scored as an empty prediction."""

    example_id: str
    stage: str
    error: str
