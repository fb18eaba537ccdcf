"""Enrichers that search other texts than they read: sentences, context, statements, questions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.core.notes import note
from leporello.core.passages import Passage
from leporello.core.protocols import ANSWER, Count, Positive, Role
from leporello.core.records import Asking, Chunk, Document, Enrichment, Generates, Read
from leporello.enrichers.summarising import in_order
from leporello.text.english.terms import EMPTY_TERMS, clause_spans
from leporello.text.outline import heading
from leporello.text.sentences import sentence_spans


@dataclass(frozen=True)
class ParentChunks:
    """Searches sentences; the chunks that contain a hit are read, and those around them.

    If several hits have the same surrounding text, it is read once, with the best score. After
    LangChain's parent documents and LlamaIndex's sentence windows.

    Attributes:
        around: Number of chunks before and after the chunk that are read with it.
    """

    around: Count = 0

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Returns a passage per sentence."""
        ordered = in_order(chunks)
        passages: list[Chunk] = []
        for number, chunk in enumerate(ordered):
            near = ordered[max(0, number - self.around) : number + self.around + 1]
            # The largest end, since chunks may overlap or contain each other.
            parent = document.chunk(near[0].start, max(chunk.end for chunk in near))
            texts = (chunk.text[start:end] for start, end in sentence_spans(chunk.text))
            passages += (Passage.of("parent", [parent], [parent], text) for text in texts)
        # A document without text has no sentences, but a retriever needs something to search.
        return passages or [*chunks]


_SHOWN = 3  # chunks before a chunk that a reader sees
INSTRUCTION = (
    "Say in one sentence what the last passage is about and where in the document it stands, so"
    " that it can be found. Name whom its pronouns mean."
)


@dataclass(frozen=True)
class ContextualChunks:
    """Puts a sentence of context before each chunk, for searching and for reading.

    Anthropic's contextual retrieval (2024). The rule takes the document's title, the headings of
    the chunk and the names last mentioned before it. A reader sees the chunk after those before it.

    Attributes:
        role: Role of the reader that writes context.
        by: Source of the context: a `rule`, or the `reader`. A reader that does not generate text
            is replaced by the rule, with a note.
        instruction: Instruction for the reader.
    """

    role: Role = ANSWER
    by: Literal["rule", "reader"] = "rule"
    instruction: str = INSTRUCTION

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:
        """Yields a read per chunk, if the reader generates; returns a passage per chunk."""
        contexts = [_context_of(document, chunk) for chunk in chunks]
        if self.by == "reader":
            reads = (self._read(document, chunks, n) for n in range(len(chunks)))
            texts = yield from _written(reads, "context: the rule made it")
            # If the reader writes nothing, the headings are still better than no context.
            contexts = [
                text.strip() or rule for text, rule in zip(texts or contexts, contexts, strict=True)
            ]
        return [
            Passage.of("context", [text, chunk], [chunk]) if text and chunk.text.strip() else chunk
            for text, chunk in zip(contexts, chunks, strict=True)
        ]

    def _read(self, document: Document, chunks: Sequence[Chunk], number: int) -> Read:
        shown = chunks[max(0, number - _SHOWN) : number + 1]
        return Read(tuple(shown), instruction=self.instruction, title=document.title)


def _written(reads: Iterable[Read], otherwise: str) -> Asking[list[str] | None]:
    """Yields the reads if the reader generates text; returns its texts, or None with a note."""
    [writes] = yield [Generates()]
    if not writes:
        note(f"the reader writes no {otherwise}")
        return None
    outputs = yield [*reads]
    return [output.text for output in outputs]


def _context_of(document: Document, chunk: Chunk) -> str:
    mentioned = ", ".join(last_names(document, chunk))
    return "; ".join(filter(None, (place(document, chunk), mentioned and f"before: {mentioned}")))


_NAME = re.compile(r"\b[^\W\d_a-z][\w'’-]+(?:\s[^\W\d_a-z][\w'’-]+){0,3}")
# The next word begins a sentence, so its capital does not make it a name.
_SENTENCE_START = re.compile(r"(?:^|[.!?…:\n])(?:[^\S\n]|[\"“'’(])*+$")
_BEFORE = 1500  # characters before a chunk that are searched for names
_NAMES = 2


def place(document: Document, chunk: Chunk) -> str:
    """Returns the document's title and the headings of a chunk; empty without any."""
    return " > ".join(filter(None, (document.title, heading(document, chunk.start))))


def last_names(document: Document, chunk: Chunk) -> list[str]:
    """Returns the names last mentioned before a chunk and not in it, the last one first."""
    before = document.text[max(0, chunk.start - _BEFORE) : chunk.start]
    mentioned = (
        " ".join(match.group().split())
        for match in _NAME.finditer(before)
        if " " in match.group()
        or not _SENTENCE_START.search(before, max(0, match.start() - 9), match.start())
    )
    names = reversed([*mentioned])
    new = (name for name in dict.fromkeys(names) if name.split()[-1] not in chunk.text)
    return [name for name, _ in zip(new, range(_NAMES), strict=False)]


_MAX_WORDS = 30  # per clause


@dataclass(frozen=True)
class Propositions:
    """Searches single statements; their chunks are read.

    Dense X Retrieval (Chen et al., EMNLP 2024). A reader that generates text writes statements.
    Otherwise the clauses of the text are statements, after the title, the headings and the names
    last mentioned before the chunk.

    Attributes:
        role: Role of the reader that writes statements.
        count: Maximum number of statements per chunk.
        instruction: Instruction for the reader.
    """

    role: Role = ANSWER
    count: Positive = 20
    instruction: str = (
        "Write all that this text states as short sentences that can be understood alone, with"
        " names in place of pronouns, each in a line of its own."
    )

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:
        """Yields a read per chunk, if the reader generates; returns passages of statements."""
        reads = (Read((c,), instruction=self.instruction, title=document.title) for c in chunks)
        texts = yield from _written(reads, "statements: clauses of the text are used")
        if texts is None:
            statements = [_clauses(document, chunk) for chunk in chunks]
        else:
            statements = [*map(_statements_of, texts)]
        passages: list[Chunk] = []
        for chunk, candidates in zip(chunks, statements, strict=True):
            shown = candidates[: self.count] if chunk.text.strip() else []
            passages += [Passage.of("proposition", [chunk], [chunk], t) for t in shown] or [chunk]
        return passages


def _statements_of(text: str) -> list[str]:
    lines = (re.sub(r"^(?:[-*•]|\d+[.)])\s*", "", line.strip()) for line in text.splitlines())
    return [*dict.fromkeys(line for line in lines if any(map(str.isalnum, line)))]


def _clauses(document: Document, chunk: Chunk) -> list[str]:
    about = "; ".join(filter(None, (place(document, chunk), *last_names(document, chunk))))
    texts = (chunk.text[start:end] for start, end in clause_spans(chunk.text, _MAX_WORDS))
    return [f"{about}: {text}" if about else text for text in texts]


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
        reads = (Read((c,), instruction=self.instruction, title=document.title) for c in chunks)
        texts = yield from _written(reads, "questions: the rule made them")
        if texts is None:
            # Words that also occur in lower case are not names, but at the start of a sentence.
            lowercase = {*re.findall(r"\b[a-z]\w*", document.text), *EMPTY_TERMS}
            questions = [[*_questions_about(chunk.text, lowercase)] for chunk in chunks]
        else:
            questions = [*map(_questions_of, texts)]
        return [
            Passage.of(
                "question", [chunk], [chunk], "\n".join((*queries[: self.count], chunk.text))
            )
            if queries and chunk.text.strip()
            else chunk
            for queries, chunk in zip(questions, chunks, strict=True)
        ]


def _questions_of(text: str) -> list[str]:
    """Returns the lines that are questions, without numbers before them."""
    lines = (re.sub(r"^[\W\d]+", "", line).strip() for line in text.splitlines())
    return [*dict.fromkeys(line for line in lines if line.endswith("?"))]


def _questions_about(text: str, lowercase: Collection[str]) -> Iterator[str]:
    """Yields questions about names, whose words never occur in lower case in the document."""
    for start, end in sentence_spans(text):
        sentence = " ".join(text[start:end].rstrip(".! \n").split())
        match = _STATEMENT.fullmatch(sentence)
        if match and not any(word.casefold() in lowercase for word in match[1].split()):
            yield f"Who {match[2]}?"
            yield f"What about {match[1].strip()}?"
