"""Unusual texts, ordinary texts with questions, and a reader that answers anything."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32

from leporello.core.records import Document, Example, Output, Read, Section, Span
from leporello.text.outline import tile

# Functions that return texts of about n characters.
TEXTS: Mapping[str, Callable[[int], str]] = {
    "one word": lambda n: "x" * n,
    "one line": lambda n: ("Some words, and a stop. " * n)[:n],
    "empty lines": lambda n: "\n" * n,
    "lines of one letter": lambda n: "a\n" * (n // 2),
    "paragraphs of one letter": lambda n: "a\n\n" * (n // 3),
    "windows lines": lambda n: "a b.\r\n" * (n // 6),
    "old mac lines": lambda n: "a b.\r" * (n // 5),
    "byte order marks": lambda n: "\ufeff" * n,
    "NULs": lambda n: "\0" * n,
    "words and NULs": lambda n: "a\0 b. " * (n // 6),
    "bidirectional marks": lambda n: "\u202e\u2066\u200f\u2069" * (n // 4),
    "combining marks": lambda n: "e" + "\u0301" * (n - 1),
    "half characters": lambda n: "\ud800" * n,
    "half characters and words": lambda n: "\udc00a \ud800. " * (n // 6),
    "blanks": lambda n: " " * n,
    "wide blanks": lambda n: "\u3000" * n,
    "ends far apart": lambda n: "x" + " " * (n - 2) + "y",
    "stops": lambda n: "." * n,
    "stops and blanks": lambda n: ". " * (n // 2),
    "list items": lambda n: "1. " * (n // 3),
    "quotes": lambda n: "\"' " * (n // 3),
    "one character, Chinese": lambda n: "猫" * n,
    "sentences, Chinese": lambda n: "猫。" * (n // 2),
    "marks, Thai": lambda n: "ก\u0e49" * (n // 2),
    "no text": lambda n: " "[n:],
}

ODD_QUESTIONS = (
    *("", " \n", "\0", "?" * 900, "why? " * 900, "x" * 900, "猫" * 900, "\u202eyhw\u2066"),
    *("w" + "\u0301" * 900, "\ud800 why", "\r\n\u2028why\x85", "{question} {0} %s \\1 [("),
)

_STORY = (
    "The miller had three sons. When he died, he left them a mill, a donkey and a cat.",
    "The eldest took the mill, the second the donkey. The youngest had nothing but the cat.",
    "“Why,” said the cat, “give me a pair of boots, and you shall see!” The boots were red.",
    "The king loved rabbits. So the cat caught 12 of them, and brought them to the palace.",
    "The ogre lived in a castle. He became a mouse — and the cat ate him. Ça y est.",
)
QUESTIONS = ("Who got the donkey?", "What colour were the boots?")


def _document(name: str, paragraphs: Sequence[str], gap: str) -> Document:
    text, parts = tile(paragraphs, gap)
    sections = tuple(Section("", part.start, part.end) for part in parts)
    return Document(name, text, "Puss in Boots", sections, parts)


DOCUMENTS = (
    _document("windows lines", [f"# {n}\r\n{p}" for n, p in enumerate(_STORY)], "\r\n\r\n"),
    _document("chinese", ("老磨坊主有三个儿子。大儿子得到了磨坊。", "二儿子得到了驴。"), "\n"),
)


def examples_on(documents: Sequence[Document], questions: Sequence[str]) -> Iterator[Example]:
    """Yields examples for each question on each document, with and without choices."""
    for document in documents:
        gold = (Span(0, min(9, len(document.text))),)
        for number, question in enumerate(questions):
            for choices in ((), ("yes", "no"))[: 2 - number]:
                name = f"{document.id}, question {number + 1}, {len(choices)} choices"
                yield Example(
                    name, document, question, "", (), choices, references=("cat",), evidence=gold
                )


def long_text(characters: int, gap: str = "\n\n") -> str:
    """Returns the story, repeated up to a length, with a separator between paragraphs."""
    story = gap.join((*_STORY, ""))
    return (story * (characters // len(story) + 1))[:characters]


# Names, texts and questions.
ODD = (
    *((name, make(60), QUESTIONS[0]) for name, make in TEXTS.items()),
    *((f"the question {question!r:.30}", long_text(300), question) for question in ODD_QUESTIONS),
)


_FITS = 3


@dataclass(frozen=True)
class Echo:
    """Answers with the first words or a choice, and with scores that depend on the text's hash.

    Attributes:
        words: Number of words of an answer.
    """

    depends_on_batch: ClassVar[bool] = False

    words: int = 4

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per read, in order."""
        return [self._answer(read) for read in inputs]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of words of each text."""
        return [len(text.split()) for text in texts]

    def fit(self, read: Read) -> int:
        """Returns the number of leading passages that fit: at most three."""
        return min(_FITS, len(read.passages))

    def render(self, read: Read) -> str:
        """Returns the read as lines: instruction, passages, pair and question."""
        texts = (p if isinstance(p, str) else p.text for p in read.passages)
        return "\n".join([read.instruction, *texts, *(read.pair or ()), read.question])

    def _answer(self, read: Read) -> Output:
        text = self.render(read)
        weights = [crc32(f"{text}{c}".encode("utf-8", "replace")) + 1 for c in read.choices]
        scores = tuple(weight / sum(weights) for weight in weights)
        choice = read.choices[scores.index(max(scores))] if scores else ""
        answer = choice or " ".join(text.split()[: self.words])
        score = max(scores, default=(crc32(text.encode("utf-8", "replace")) % 98 + 1) / 100)
        return Output(answer, score=score, scores=scores)
