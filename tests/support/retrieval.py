"""Chunks and questions for tests of stages."""

from collections.abc import Sequence
from itertools import accumulate

from leporello import Chunk, Document, Example, Hit
from leporello.chunkers import Parts
from leporello.core.calls.stage_calls import divide


def chunked(text: str, mark: str = ". ", name: str = "d") -> list[Chunk]:
    """Returns the chunks of a text that ends each chunk with a mark."""
    *pieces, last = text.split(mark)
    texts = [*(piece + mark for piece in pieces), *filter(None, [last])]
    return joined(texts, "", name)


def joined(texts: Sequence[str], gap: str = "\t", name: str = "d", title: str = "") -> list[Chunk]:
    """Returns chunks with these texts, of a document with a gap between them."""
    document = Document(name, gap.join(texts), title)
    ends = [*accumulate(len(text) + len(gap) for text in texts)]
    starts = [end - len(text) - len(gap) for text, end in zip(texts, ends, strict=True)]
    return [document.chunk(n, n + len(text)) for text, n in zip(texts, starts, strict=True)]


def examples_of(questions: Sequence[str], chunks: Sequence[Chunk]) -> list[Example]:
    """Returns examples that ask questions about the chunks' document."""
    document = chunks[0].document if chunks else Document("empty", "")
    return [Example(str(i), document, question) for i, question in enumerate(questions)]


def reversed_parts(example: Example) -> list[Hit]:
    """Returns the parts of a document in reverse order, for combiners that ignore ranks."""
    return [Hit(chunk, 0.0) for chunk in reversed(divide(Parts(), example.document))]
