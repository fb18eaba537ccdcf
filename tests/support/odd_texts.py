"""Texts that nobody expects, and a task in which they stand beside sound ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from leporello import Document, Example, Span

# Of n characters.
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

QUESTIONS = (
    *("", " \n", "\0", "?" * 900, "why? " * 900, "x" * 900, "猫" * 900, "\u202eyhw\u2066"),
    *("w" + "\u0301" * 900, "\ud800 why", "\r\n\u2028why\x85", "{question} {0} %s \\1 [("),
)

_SOUND = "The lamp hangs in the hall. Rain falls on the street.\n\nThe cat sleeps in the mill. "


@dataclass(frozen=True)
class Odd:
    """Sound examples, and between them odd ones, in documents of their own and in the same one.

    Attributes:
        odd: Whether the odd ones are there.
        characters: Of each odd document.
    """

    odd: bool = True
    characters: int = 300
    metrics: tuple[str, ...] = ("f1", "recall")

    def examples(self) -> Iterator[Example]:
        """Yields the sound examples always, in one order."""
        yield from self._about("sound 1")
        for number, (name, make) in enumerate(TEXTS.items()):
            if self.odd:
                document = Document(name, make(self.characters), title=make(9))
                yield Example(f"asked {number}", document, "Where is the lamp?")
                yield Example(f"chosen {number}", document, "Which?", choices=("x", "\u202e"))
        if self.odd:
            yield Example("faulty", Document("faulty", ""), "Why?", fault="its file is gone")
        yield from self._about("sound 2")

    def fingerprint(self) -> str:
        """Returns what tells the two tasks apart."""
        return repr(self)

    def _about(self, name: str) -> Iterator[Example]:
        document = Document(name, _SOUND * 20)
        gold = (Span(18, 26),)
        yield Example(f"{name} first", document, "Where is the lamp?", evidence=gold)
        if self.odd:
            for number, question in enumerate(QUESTIONS):
                yield Example(f"{name} odd {number}", document, question, instruction=question)
            yield Example(f"{name} faulty", document, "Why?", fault="its evidence is not there")
        yield Example(f"{name} last", document, "Who sleeps?", choices=("the cat", "the rain"))
