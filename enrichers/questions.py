"""Chunks that are found by the questions they answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from leporello.core.notes import note
from leporello.core.passages import Passage
from leporello.core.protocols import ANSWER, Positive, Role
from leporello.core.records import Chunk, Document, Enrichment, Generates, Read
from leporello.text.english.content_terms import EMPTY_TERMS
from leporello.text.sentences import sentence_spans

# A name of one to four words, then what is said of it: no question, and no speech.
_SAID = re.compile(r"((?:[^\W\d_a-z][\w.-]+ ){1,4})([a-z][^?!\"“”]{5,})")


@dataclass(frozen=True)
class Questions:
    """Adds questions to what a chunk is searched by; it is read as it stands.

    doc2query (Nogueira et al., 2019). A reader that writes is asked for questions; else they are
    made by rule, of sentences that begin with a name, in English.

    Attributes:
        role: Role of the reader that asks.
        count: Number of questions a chunk at most.
        instruction: Instruction for the reader.
    """

    role: Role = ANSWER
    count: Positive = 5
    instruction: str = "Write questions that this text answers, each in a line of its own."

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:
        """Yields a read a chunk, if a reader writes; returns a passage a chunk."""
        [writes] = yield [Generates()]
        small = {*re.findall(r"\b[a-z]\w*", document.text), *EMPTY_TERMS}
        asked = [[*_by_rule(chunk.text, small)] for chunk in chunks]
        if writes:
            reads = [Read((c,), instruction=self.instruction, title=document.title) for c in chunks]
            asked = [_lines(output.text) for output in (yield reads)]
        else:
            note("the reader writes no questions: they were made by rule")
        return [
            Passage.of("question", [chunk], [chunk], "\n".join((*few[: self.count], chunk.text)))
            if few and chunk.text.strip()
            else chunk
            for few, chunk in zip(asked, chunks, strict=True)
        ]


def _lines(text: str) -> list[str]:
    """Returns the questions of a text, without numbers before them."""
    lines = (re.sub(r"^[\W\d]+", "", line).strip() for line in text.splitlines())
    return [*dict.fromkeys(line for line in lines if line.endswith("?"))]


def _by_rule(text: str, small: Collection[str]) -> Iterator[str]:
    """Yields questions about names: of words that are not written small anywhere."""
    for start, end in sentence_spans(text):
        sentence = " ".join(text[start:end].rstrip(".! \n").split())
        found = _SAID.fullmatch(sentence)
        if found and not any(word.casefold() in small for word in found[1].split()):
            yield f"Who {found[2]}?"
            yield f"What about {found[1].strip()}?"
