"""RULER's recipes: how each kind of its texts is made, after the scripts of its repository.

What a recipe writes is a function of the generator that it is handed and of a size: the number of
words, sentences, documents that the text has besides what is asked for.
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

_DEPTHS = [round(100 * place / 39) for place in range(40)]  # of needles in essays, per cent
_ZETA_2 = math.pi**2 / 6


@dataclass(frozen=True, slots=True)
class Context:
    """A text with what is asked of it.

    Attributes:
        text: The context.
        answers: References.
        fields: Values of the template's fields.
        evidence: Spans of what the answers follow from.
        parts: Spans of ready-made parts.
        shot: Context and answers of a worked example, where the benchmark has one.
    """

    text: str
    answers: tuple[str, ...]
    fields: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[Span, ...] = ()
    parts: tuple[Span, ...] = ()
    shot: Context | None = None


@dataclass(frozen=True)
class Needles:
    """Sentences that give keys values, in a haystack; some of the keys are asked for.

    Attributes:
        needle: Template of the sentences.
        noise: Text that a haystack `repeat` repeats.
        background: Sentences of a haystack `essay`.
        step: Number that sizes are multiples of.
        haystack: Kind of the haystack: `repeat`, `essay`, or `needle` for more of them.
        type_k: Kind of the keys: `numbers`, `words`, `uuids`.
        type_v: Kind of the values.
        keys: Number of keys.
        values: Number of values a key.
        queries: Number of keys asked for.
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
        given: dict[str, list[str]] = {}
        while len(given) < max(self.keys, self.queries):
            given[value(chance, self.type_k)] = [
                value(chance, self.type_v) for _ in range(self.values)
            ]
        needles = [(key, one) for key, values in given.items() for one in values]
        chance.shuffle(needles)
        asked = chance.sample([*given], self.queries)
        straw, places = self._haystack(chance, size, len(needles), asked)
        sentences = [self._sentence(*each) for each in needles]
        parts, indexes = inserted(straw, sentences, places)
        text, spans = tile(parts, " " if self.haystack == "essay" else "\n")
        proof = [i for i, (key, _) in zip(indexes, needles, strict=True) if key in asked]
        single = self.queries * self.values == 1
        query = ", ".join(asked[:-1]) + ", and " + asked[-1] if len(asked) > 1 else asked[0]
        kind = self.type_v[:-1] if single else self.type_v
        return Context(
            text,
            tuple(chain.from_iterable(given[key] for key in asked)),
            {"type_needle_v": kind, "query": query},
            trimmed(parts, spans, proof),
        )

    def _haystack(
        self, chance: Random, size: int, count: int, asked: Collection[str]
    ) -> tuple[list[str], list[int]]:
        """Returns its sentences, and before which of them needles go."""
        if self.haystack == "essay":
            straw = self.background.first(size)
            return straw, [len(straw) * d // 100 for d in sorted(chance.sample(_DEPTHS, count))]
        places = sorted(chance.sample(range(size), count))
        if self.haystack == "repeat":
            return [self.noise] * size, places
        keys = (key for key in iter(lambda: value(chance, self.type_k), "") if key not in asked)
        pairs = zip(keys, range(size), strict=False)
        return [self._sentence(key, value(chance, self.type_v)) for key, _ in pairs], places

    def _sentence(self, key: str, given: str) -> str:
        return self.needle.format(type_needle_v=self.type_v, key=key, value=given)


@dataclass(frozen=True)
class Variables:
    """A chain of variables, each assigned the one before it, in repeated noise.

    Attributes:
        noise: Text that is repeated.
        step: Number that sizes are multiples of.
        shots: Size of the worked example; 0 for none.
        letters: Number of letters of a name.
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
        said = [f"VAR {chain_[0]} = {start}"]
        said += [f"VAR {new} = VAR {old} " for old, new in pairwise(chain_)]
        places = sorted(chance.sample(range(size), len(said)))
        parts, indexes = inserted([f"{self.noise}\n"] * size, said, places)
        text, spans = tile(parts, " ")
        fields = {"query": start, "num_v": str(len(chain_))}
        own = Variables(self.noise, letters=3) if self.shots else None
        shot = own.write(chance, self.shots, number) if own else None
        return Context(text, tuple(chain_), fields, trimmed(parts, spans, indexes), shot=shot)


@dataclass(frozen=True)
class CommonWords:
    """A numbered list of words, ten of which come more often.

    Attributes:
        often: Number of times that each of the ten comes.
        seldom: Number of times that each other comes.
        shot: Size of the worked example and how often its words come; empty for none.
    """

    often: int
    seldom: int
    shot: tuple[int, int, int] | tuple[()] = ()
    step: ClassVar[int] = 10
    common: ClassVar[int] = 10

    @property
    def most(self) -> int | None:
        """How many words there are."""
        return len(self._words)

    @property
    def _words(self) -> list[str]:
        return sorted({*word_list("noun"), *word_list("adjective"), *word_list("verb")})

    def write(self, chance: Random, size: int, number: int) -> Context:
        """Returns the text of an example, by its number from 0."""
        chosen = chance.sample(self._words, size)
        common, rest = chosen[: self.common], chosen[self.common :]
        listed = common * self.often + rest * self.seldom
        chance.shuffle(listed)
        text = numbered(listed)
        if not self.shot:
            return Context(text, tuple(common))
        words, often, seldom = self.shot
        shot = CommonWords(often, seldom).write(chance, words, number)
        return Context(text, tuple(common), shot=shot)


@dataclass(frozen=True)
class FrequentWords:
    """Coded words, each as often as Zipf's law says; the first is noise, `...`.

    Attributes:
        length: Number of tokens of the whole, by which the authors choose vocabulary and steps.
    """

    length: int
    most: ClassVar[int | None] = None

    @property
    def step(self) -> int:
        """What the authors' script goes up by."""
        return max(1, self.length // 32)

    def write(self, chance: Random, size: int, number: int) -> Context:  # noqa: ARG002 -- of every recipe
        """Returns the text of an example, by its number from 0."""
        vocabulary: dict[str, None] = {"...": None}
        while len(vocabulary) < max(4, self.length // 50):
            vocabulary["".join(chance.choices(string.ascii_lowercase, k=6))] = None
        words = self.length // 6 + size - self.step
        counts = (int(words / (rank**2 * _ZETA_2)) for rank in range(1, len(vocabulary) + 1))
        drawn = [w for w, count in zip(vocabulary, counts, strict=True) for _ in range(count)]
        chance.shuffle(drawn)
        return Context(" ".join(drawn), tuple([*vocabulary][1:4]))


@dataclass(frozen=True)
class Distracted:
    """A question on a few documents among others.

    Attributes:
        file: Questions and documents.
        document: Template of a document.
    """

    file: QuestionFile
    document: str
    step: ClassVar[int] = 10

    @property
    def most(self) -> int | None:
        """How many documents there are."""
        return len(self.file.documents)

    def write(self, chance: Random, size: int, number: int) -> Context:
        """Returns the text of an example, by its number from 0."""
        asked, documents = self.file.questions[number], self.file.documents
        near = [*asked.documents, *asked.related]
        if size >= len(documents):
            chosen = [*range(len(documents))]
        elif size > len(near):
            known = {*near}
            others = [each for each in range(len(documents)) if each not in known]
            chosen = near + chance.sample(others, size - len(near))
        else:
            spare = max(0, size - len(asked.documents))
            chosen = [*asked.documents, *chance.sample(asked.related, spare)]
        chance.shuffle(chosen)
        parts = [
            self.document.format(i=i, document=documents[each]) for i, each in enumerate(chosen, 1)
        ]
        text, spans = tile(parts, "\n\n")
        starts = {
            each: span.start + len(part) - len(documents[each])
            for each, part, span in zip(chosen, parts, spans, strict=True)
        }
        evidence = tuple(Span(starts[d] + s, starts[d] + e) for d, s, e in asked.evidence)
        ends = trimmed(parts, spans, range(len(parts)))
        return Context(text, asked.answers, {"query": asked.question}, evidence, ends)


# Sizes are multiples of `step`, and `most` at most if that is not None.
Recipe: TypeAlias = Needles | Variables | CommonWords | FrequentWords | Distracted


def recipe(
    settings: Mapping[str, Any],
    length: int,
    texts: Mapping[str, str],
    source: Any,  # noqa: ANN401 -- what the kind needs
) -> Recipe:
    """Returns the recipe of a task.

    Args:
        settings: Settings of the task, as the benchmark's YAML has them.
        length: Number of tokens of the whole.
        texts: Sentences of the benchmark: `needle`, `noise`, `document`.
        source: Background of needles, or file of questions; None for others.
    """
    own = {name: given for name, given in settings.items() if name not in ("task", "file")}
    short = length < 4096  # noqa: PLR2004 -- the authors' bound
    match settings["task"]:
        case "niah":
            step = 500 if own["haystack"] == "essay" else 5 if short else 25
            return Needles(texts["needle"], texts["noise"], source, step, **own)
        case "variable_tracking":
            # Ten have room in the 500 tokens that the authors give it.
            return Variables(texts["noise"], shots=10)
        case "common_words_extraction":
            return CommonWords(6, 1, (20, 3, 1)) if short else CommonWords(30, 3, (40, 10, 3))
        case "freq_words_extraction":
            return FrequentWords(length)
    return Distracted(source, texts["document"])


def inserted(
    sentences: Sequence[str], new: Sequence[str], places: Sequence[int]
) -> tuple[list[str], list[int]]:
    """Returns sentences with new ones before those at the ascending places, and where these are."""
    parts = [*sentences]
    indexes = [place + number for number, place in enumerate(places)]
    for index, sentence in zip(indexes, new, strict=True):
        parts.insert(index, sentence)
    return parts, indexes


def trimmed(parts: Sequence[str], spans: Sequence[Span], chosen: Iterable[int]) -> tuple[Span, ...]:
    """Returns the spans of some parts, without what parts them."""
    starts = ((index, spans[index].start) for index in chosen)
    return tuple(Span(start, start + len(parts[index].rstrip())) for index, start in starts)


def numbered(words: Iterable[str]) -> str:
    """Returns a list as the benchmark writes it: `1. word 2. word`."""
    return " ".join(f"{number}. {word}" for number, word in enumerate(words, 1))
