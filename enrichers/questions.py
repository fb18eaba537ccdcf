"""Chunks that a search finds by the questions they answer."""

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

# A name of one to four words, then its predicate; neither a question nor direct speech.
_STATEMENT = re.compile(r"((?:[^\W\d_a-z][\w.-]+ ){1,4})([a-z][^?!\"“”]{5,})")


@dataclass(frozen=True)
class Questions:
    """Adds questions to the searched text of a chunk; the text that is read does not change.

    doc2query (Nogueira et al., 2019). A reader that generates text writes the questions. Otherwise
    a rule makes them from English sentences that begin with a name.

    Attributes:
        role: Role of the reader that writes questions.
        count: Maximum number of questions per chunk.
        instruction: Instruction for the reader.
    """

    role: Role = ANSWER
    count: Positive = 5
    instruction: str = "Write questions that this text answers, each in a line of its own."

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:
        """Yields a read per chunk, if the reader generates; returns a passage per chunk."""
        [writes] = yield [Generates()]
        # Words that also occur in lower case are not names, but at the start of a sentence here.
        lowercase = {*re.findall(r"\b[a-z]\w*", document.text), *EMPTY_TERMS}
        questions = [[*_by_rule(chunk.text, lowercase)] for chunk in chunks]
        if writes:
            reads = [Read((c,), instruction=self.instruction, title=document.title) for c in chunks]
            questions = [_lines(output.text) for output in (yield reads)]
        else:
            note("the reader writes no questions: the rule made them")
        return [
            Passage.of("question", [chunk], [chunk], "\n".join((*texts[: self.count], chunk.text)))
            if texts and chunk.text.strip()
            else chunk
            for texts, chunk in zip(questions, chunks, strict=True)
        ]


def _lines(text: str) -> list[str]:
    """Returns the lines that are questions, without numbers before them."""
    lines = (re.sub(r"^[\W\d]+", "", line).strip() for line in text.splitlines())
    return [*dict.fromkeys(line for line in lines if line.endswith("?"))]


def _by_rule(text: str, lowercase: Collection[str]) -> Iterator[str]:
    """Yields questions about names, whose words never occur in lower case in the document."""
    for start, end in sentence_spans(text):
        sentence = " ".join(text[start:end].rstrip(".! \n").split())
        match = _STATEMENT.fullmatch(sentence)
        if match and not any(word.casefold() in lowercase for word in match[1].split()):
            yield f"Who {match[2]}?"
            yield f"What about {match[1].strip()}?"
