"""RULER's recipes, which write its kinds of texts like the scripts of its repository.

A text depends only on the random generator and on a size: the number of words, sentences or
documents in addition to those that answer the question.
"""

from __future__ import annotations

import math
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from random import Random
from typing import Any, ClassVar, TypeAlias

from leporello.core.coverage import Span
from leporello.tasks.generated.questions import QuestionFile
from leporello.tasks.generated.words import Background, value, word_list
from leporello.text.outline import tile

_DEPTHS = [round(100 * place / 39) for place in range(40)]  # of needles in essays, in per cent
_ZETA_2 = math.pi**2 / 6


@dataclass(frozen=True, slots=True)
class Context:
    """A text and a question on it.

    Attributes:
        text: The context.
        answers: References.
        fields: Values of the template's fields.
        evidence: Spans that prove the answers.
        parts: Spans of the document's parts.
        shot: Worked example; None if the benchmark has none.
    """

    text: str
    answers: tuple[str, ...]
    fields: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[Span, ...] = ()
    parts: tuple[Span, ...] = ()
    shot: Context | None = None


@dataclass(frozen=True)
class Needles:
    """Sentences with keys and values in a haystack; the question asks for the values of some keys.

    Attributes:
        needle: Template of the sentences.
        noise: Sentence of a haystack `repeat`.
        background: Sentences of a haystack `essay`.
        step: Number of which sizes are multiples.
        haystack: Kind of the haystack: `repeat`, `essay`, or `needle` for further needles.
        type_k: Kind of the keys: `numbers`, `words`, `uuids`.
        type_v: Kind of the values.
        keys: Number of keys.
        values: Number of values per key.
        queries: Number of keys in the question.
    """

    needle: str
    noise: str
    background: Background
    step: int
    haystack: str
    type_k: str = "words"
    type_v: str = "numbers"
    keys: int = 1
    values: int = 1
    queries: int = 1
    most: ClassVar[int | None] = None

    def write(self, chance: Random, size: int, number: int) -> Context:  # noqa: ARG002 -- of every recipe
        """Returns the text of an example, by its number from 0."""
        values_of: dict[str, list[str]] = {}
        while len(values_of) < max(self.keys, self.queries):
            values_of[value(chance, self.type_k)] = [
                value(chance, self.type_v) for _ in range(self.values)
            ]
        needles = [(key, item) for key, values in values_of.items() for item in values]
        chance.shuffle(needles)
        queried = chance.sample([*values_of], self.queries)
        haystack, places = self._haystack(chance, size, len(needles), queried)
        sentences = [self._sentence(*needle) for needle in needles]
        parts, indexes = inserted(haystack, sentences, places)
        text, spans = tile(parts, " " if self.haystack == "essay" else "\n")
        proof = [i for i, (key, _) in zip(indexes, needles, strict=True) if key in queried]
        single = self.queries * self.values == 1
        *first, last = queried
        query = f"{', '.join(first)}, and {last}" if first else last
        kind = self.type_v[:-1] if single else self.type_v
        return Context(
            text,
            tuple(chain.from_iterable(values_of[key] for key in queried)),
            {"type_needle_v": kind, "query": query},
            trimmed(parts, spans, proof),
        )

    def _haystack(
        self, chance: Random, size: int, count: int, queried: Collection[str]
    ) -> tuple[list[str], list[int]]:
        """Returns the haystack's sentences, and the indexes at which needles are inserted."""
        if self.haystack == "essay":
            essay, depths = self.background.first(size), sorted(chance.sample(_DEPTHS, count))
            return essay, [len(essay) * depth // 100 for depth in depths]
        places = sorted(chance.sample(range(size), count))
        if self.haystack == "repeat":
            return [self.noise] * size, places
        keys = (key for key in iter(lambda: value(chance, self.type_k), "") if key not in queried)
        pairs = zip(keys, range(size), strict=False)
        return [self._sentence(key, value(chance, self.type_v)) for key, _ in pairs], places

    def _sentence(self, key: str, item: str) -> str:
        return self.needle.format(type_needle_v=self.type_v, key=key, value=item)


@dataclass(frozen=True)
class Variables:
    """A chain of variables, each assigned the previous variable, in repeated noise.

    Attributes:
        noise: Text that is repeated.
        step: Number of which sizes are multiples.
        shots: Size of the worked example; 0 writes no worked example.
        letters: Number of letters in a name.
    """

    noise: str
    shots: int = 0
    letters: int = 5
    step: int = 10
    most: ClassVar[int | None] = None
    hops: ClassVar[int] = 4

    def write(self, chance: Random, size: int, number: int) -> Context:
        """Returns the text of an example, by its number from 0."""
        names: dict[str, None] = {}
        while len(names) <= self.hops:
            names["".join(chance.choices(string.ascii_uppercase, k=self.letters))] = None
        chain_, start = [*names], str(chance.randint(10000, 99998))
        assignments = [f"VAR {chain_[0]} = {start}"]
        assignments += [f"VAR {new} = VAR {old} " for old, new in pairwise(chain_)]
        places = sorted(chance.sample(range(size), len(assignments)))
        parts, indexes = inserted([f"{self.noise}\n"] * size, assignments, places)
        text, spans = tile(parts, " ")
        fields = {"query": start, "num_v": str(len(chain_))}
        shorter = Variables(self.noise, letters=3) if self.shots else None
        shot = shorter.write(chance, self.shots, number) if shorter else None
        return Context(text, tuple(chain_), fields, trimmed(parts, spans, indexes), shot=shot)


@dataclass(frozen=True)
class CommonWords:
    """A numbered list of words, ten of which are more frequent.

    Attributes:
        often: Number of occurrences of the ten words.
        seldom: Number of occurrences of the other words.
        shot: Size of the worked example, and occurrences of its words; empty without an example.
    """

    often: int
    seldom: int
    shot: tuple[int, int, int] | tuple[()] = ()
    step: ClassVar[int] = 10
    common: ClassVar[int] = 10

    @property
    def most(self) -> int | None:
        """Number of words in the vocabulary."""
        return len(self._words)

    @property
    def _words(self) -> list[str]:
        # The order of a set of texts differs between processes.
        return sorted({*word_list("noun"), *word_list("adjective"), *word_list("verb")})

    def write(self, chance: Random, size: int, number: int) -> Context:
        """Returns the text of an example, by its number from 0."""
        chosen = chance.sample(self._words, size)
        common, others = chosen[: self.common], chosen[self.common :]
        listed = common * self.often + others * self.seldom
        chance.shuffle(listed)
        text = numbered(listed)
        if not self.shot:
            return Context(text, tuple(common))
        words, often, seldom = self.shot
        shot = CommonWords(often, seldom).write(chance, words, number)
        return Context(text, tuple(common), shot=shot)


@dataclass(frozen=True)
class FrequentWords:
    """Coded words with frequencies by Zipf's law; the most frequent word is noise, `...`.

    Attributes:
        length: Number of tokens of the prompt, from which the authors derive vocabulary and step.
    """

    length: int
    most: ClassVar[int | None] = None

    @property
    def step(self) -> int:
        """Step of sizes in the authors' script."""
        return max(1, self.length // 32)

    def write(self, chance: Random, size: int, number: int) -> Context:  # noqa: ARG002 -- of every recipe
        """Returns the text of an example, by its number from 0."""
        vocabulary: dict[str, None] = {"...": None}
        while len(vocabulary) < max(4, self.length // 50):
            vocabulary["".join(chance.choices(string.ascii_lowercase, k=6))] = None
        words = self.length // 6 + size - self.step
        counts = (int(words / (rank**2 * _ZETA_2)) for rank in range(1, len(vocabulary) + 1))
        sampled = [w for w, count in zip(vocabulary, counts, strict=True) for _ in range(count)]
        chance.shuffle(sampled)
        return Context(" ".join(sampled), tuple([*vocabulary][1:4]))


@dataclass(frozen=True)
class Distracted:
    """A question on a few documents among distracting documents.

    Attributes:
        file: Questions and documents.
        document: Template of a document.
    """

    file: QuestionFile
    document: str
    step: ClassVar[int] = 10

    @property
    def most(self) -> int | None:
        """Number of documents."""
        return len(self.file.documents)

    def write(self, chance: Random, size: int, number: int) -> Context:
        """Returns the text of an example, by its number from 0."""
        question, documents = self.file.questions[number], self.file.documents
        near = [*question.documents, *question.related]
        if size >= len(documents):
            chosen = [*range(len(documents))]
        elif size > len(near):
            excluded = {*near}
            others = [index for index in range(len(documents)) if index not in excluded]
            chosen = near + chance.sample(others, size - len(near))
        else:
            spare = max(0, size - len(question.documents))
            chosen = [*question.documents, *chance.sample(question.related, spare)]
        chance.shuffle(chosen)
        parts = [
            self.document.format(i=i, document=documents[index])
            for i, index in enumerate(chosen, 1)
        ]
        text, spans = tile(parts, "\n\n")
        starts = {
            index: span.start + len(part) - len(documents[index])
            for index, part, span in zip(chosen, parts, spans, strict=True)
        }
        evidence = tuple(Span(starts[d] + s, starts[d] + e) for d, s, e in question.evidence)
        ends = trimmed(parts, spans, range(len(parts)))
        return Context(text, question.answers, {"query": question.question}, evidence, ends)


# Sizes are multiples of `step`, up to `most` if that is not None.
Recipe: TypeAlias = Needles | Variables | CommonWords | FrequentWords | Distracted


def recipe(
    settings: Mapping[str, Any],
    length: int,
    texts: Mapping[str, str],
    source: Any,  # noqa: ANN401 -- depends on the kind
) -> Recipe:
    """Returns the recipe of a task.

    Args:
        settings: Settings of the task in the benchmark's YAML.
        length: Number of tokens of the prompt.
        texts: Sentences of the benchmark: `needle`, `noise`, `document`.
        source: Background of needles, or file of questions; None for other kinds.
    """
    options = {name: item for name, item in settings.items() if name not in ("task", "file")}
    short = length < 4096  # noqa: PLR2004 -- the authors' bound
    match settings["task"]:
        case "niah":
            step = 500 if options["haystack"] == "essay" else 5 if short else 25
            return Needles(texts["needle"], texts["noise"], source, step, **options)
        case "variable_tracking":
            # Ten fit into the 500 tokens that the authors reserve.
            return Variables(texts["noise"], shots=10)
        case "common_words_extraction":
            return CommonWords(6, 1, (20, 3, 1)) if short else CommonWords(30, 3, (40, 10, 3))
        case "freq_words_extraction":
            return FrequentWords(length)
    return Distracted(source, texts["document"])


def inserted(
    sentences: Sequence[str], new: Sequence[str], places: Sequence[int]
) -> tuple[list[str], list[int]]:
    """Inserts new sentences at ascending places, and returns all sentences and the new indexes."""
    parts = [*sentences]
    indexes = [place + number for number, place in enumerate(places)]
    for index, sentence in zip(indexes, new, strict=True):
        parts.insert(index, sentence)
    return parts, indexes


def trimmed(parts: Sequence[str], spans: Sequence[Span], chosen: Iterable[int]) -> tuple[Span, ...]:
    """Returns the spans of some parts, without trailing white space."""
    starts = ((index, spans[index].start) for index in chosen)
    return tuple(Span(start, start + len(parts[index].rstrip())) for index, start in starts)


def numbered(words: Iterable[str]) -> str:
    """Returns a list in the benchmark's format: `1. word 2. word`."""
    return " ".join(f"{number}. {word}" for number, word in enumerate(words, 1))
