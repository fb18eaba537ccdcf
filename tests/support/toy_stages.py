"""Stages without parameters and questions about few words, for tests of the engine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from leporello.core.records import Chunk, Combination, Document, Example, Hit, Output, Read, Span


@dataclass(frozen=True)
class Words:
    """Chunker with one chunk per word."""

    def chunk(self, document: Document) -> Iterator[Span]:
        start = 0
        for word in document.text.split(" "):
            if word:
                yield Span(start, start + len(word))
            start += len(word) + 1


@dataclass(frozen=True)
class All:
    """Retriever that returns all chunks."""

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        return [[Hit(chunk, 1.0) for chunk in chunks] for _ in questions]


@dataclass(frozen=True)
class TwoRounds:
    """Combiner that reads every hit, then all outputs together."""

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        first = yield [Read((hit.chunk,), example.question) for hit in hits]
        [second] = yield [Read(tuple(output.text for output in first), example.question)]
        return str(second.text)


@dataclass(frozen=True)
class Chain:
    """Combiner that reads one hit after the other, each with the output of the one before."""

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        text = ""
        for hit in hits:
            [output] = yield [Read((hit.chunk, text), example.question)]
            text = output.text
        return text


@dataclass(frozen=True)
class Mates:
    """Reader whose outputs depend on the batch, as the last digits of a network do."""

    batches: list[list[str]] = field(default_factory=list)  # texts of each batch so far

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        if any(read.question == "unreadable" for read in inputs):
            raise RuntimeError("cannot read this")
        texts = [*map(joined, inputs)]
        self.batches.append(texts)
        return [Output(f"{text}/{texts[0]}/{len(texts)}", score=0.5) for text in texts]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]


@dataclass(frozen=True)
class Returning:
    """Reader that answers every input with the same output."""

    output: Output
    generates: bool = False

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        return [self.output for _ in inputs]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [0 for _ in texts]


def joined(read: Read) -> str:
    """Returns the texts of a read's passages."""
    return "+".join(p if isinstance(p, str) else p.text for p in read.passages)


def questions(count: int, documents: int = 7) -> list[Example]:
    """Returns questions about documents of one to four words, ordered by document."""
    texts = [" ".join(f"w{d}x{n}" for n in range(1 + d % 4)) for d in range(documents)]
    small_documents = [Document(f"d{d}", text) for d, text in enumerate(texts)]
    chosen = sorted(range(count), key=lambda n: n % documents)
    return [
        Example(f"e{n}", small_documents[n % documents], question="w", references=("w",))
        for n in chosen
    ]
