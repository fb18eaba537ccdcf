"""Chunks and questions for tests of retrievers and of their callers."""

from collections.abc import Sequence

import numpy as np

from leporello import Chunk, Document, Example


def chunked(text: str, mark: str = ". ", name: str = "d") -> list[Chunk]:
    """Returns the chunks of a text that ends each chunk with a mark."""
    document = Document(name, text)
    pieces = text.split(mark)
    ends = np.cumsum([len(piece) + len(mark) for piece in pieces]).tolist()
    starts = [0, *ends]
    return [
        document.chunk(start, min(end, len(text)))
        for start, end in zip(starts, ends, strict=False)
        if start < len(text)
    ]


def examples_of(questions: Sequence[str], chunks: Sequence[Chunk]) -> list[Example]:
    """Returns examples that ask questions about the chunks' document."""
    document = chunks[0].document if chunks else Document("empty", "")
    return [Example(str(i), document, question) for i, question in enumerate(questions)]
