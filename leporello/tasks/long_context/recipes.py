"""RULER's recipes, which write its kinds of texts like the scripts of its repository.

A text depends only on the random generator and on a size: the number of words, sentences or
documents in addition to those that answer the question.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain, pairwise
from random import Random
from typing import Any

from leporello.core.coverage import Span
from leporello.tasks.long_context.sources import Background, QuestionFile, value, word_list
from leporello.text.outline import tile

_DEPTHS = [round(100 * place / 39) for place in range(40)]  # of needles in essays, in per cent
_ZETA_2 = math.pi**2 / 6
_HOPS, _COMMON = 4, 10  # assignments after the first; frequent words in a list


@dataclass(frozen=True, slots=True)
class Context:
    """A text and a question on it."""

    text: str
    answers: tuple[str, ...]
    fields: Mapping[str, str] = field(default_factory=dict)  # values of the template's fields
    evidence: tuple[Span, ...] = ()  # spans that prove the answers
    parts: tuple[Span, ...] = ()  # spans of the document's parts
    shot: Context | None = None  # worked example; None if the benchmark has none


@dataclass(frozen=True, slots=True)
class Recipe:
    """Way to write the texts of a task."""

    # Function that returns a text from a random generator, a size, and the example's number.
    write: Callable[[Random, int, int], Context]
    step: int = 10  # number of which sizes are multiples
    most: int | None = None  # largest size; None means no limit


def recipe(
    settings: Mapping[str, Any],
    length: int,
    texts: Mapping[str, str],
    source: Any,  # noqa: ANN401 -- depends on the kind
) -> Recipe:
    """Returns the recipe of a task, for a prompt of this number of tokens.

    `texts` has the benchmark's `needle`, `noise` and `document`. `source` is the background of
    needles or a file of questions; None for other kinds.
    """
    is_short = length < 4096  # noqa: PLR2004 -- the authors' bound
    match settings["task"]:
        case "niah":
            step = 500 if settings["haystack"] == "essay" else 5 if is_short else 25
            options = {name: item for name, item in settings.items() if name != "task"}
            return Recipe(lambda c, size, _: _needles(c, size, texts, source, **options), step)
        case "variable_tracking":
            return Recipe(lambda c, size, _: _variables(c, size, texts["noise"]))
        case "common_words_extraction":
            counts = (6, 1, (20, 3, 1)) if is_short else (30, 3, (40, 10, 3))
            most = len(_vocabulary())
            return Recipe(lambda c, size, _: _common_words(c, size, *counts), most=most)
        case "freq_words_extraction":
            step = max(1, length // 32)  # as in the authors' script
            return Recipe(
                lambda c, size, _: _frequent_words(c, length, length // 6 + size - step), step
            )
    write = partial(_distracted, source, texts["document"])
    return Recipe(write, most=len(source.documents))


def _needles(
    chance: Random,
    size: int,
    texts: Mapping[str, str],
    background: Background,
    *,
    haystack: str,
    type_k: str = "words",
    type_v: str = "numbers",
    keys: int = 1,
    values: int = 1,
    queries: int = 1,
) -> Context:
    """Hides sentences with keys and values in a haystack; the question asks for some keys' values.

    A haystack `repeat` is repeated noise, `essay` the background, and `needle` further needles.
    """

    def sentence(key: str, item: str) -> str:
        return texts["needle"].format(type_needle_v=type_v, key=key, value=item)

    values_of: dict[str, list[str]] = {}
    while len(values_of) < max(keys, queries):
        values_of[value(chance, type_k)] = [value(chance, type_v) for _ in range(values)]
    needles = [(key, item) for key, items in values_of.items() for item in items]
    chance.shuffle(needles)
    queried = chance.sample([*values_of], queries)
    if haystack == "essay":
        hay, depths = background.first(size), sorted(chance.sample(_DEPTHS, len(needles)))
        places = [len(hay) * depth // 100 for depth in depths]
    else:
        places = sorted(chance.sample(range(size), len(needles)))
        others = (key for key in iter(lambda: value(chance, type_k), "") if key not in queried)
        pairs = zip(others, range(size if haystack == "needle" else 0), strict=False)
        hay = [sentence(key, value(chance, type_v)) for key, _ in pairs] or [texts["noise"]] * size
    parts, indexes = inserted(hay, [sentence(*needle) for needle in needles], places)
    text, spans = tile(parts, " " if haystack == "essay" else "\n")
    proof = [i for i, (key, _) in zip(indexes, needles, strict=True) if key in queried]
    *first, last = queried
    fields = {
        "type_needle_v": type_v[:-1] if queries * values == 1 else type_v,
        "query": f"{', '.join(first)}, and {last}" if first else last,
    }
    answers = tuple(chain.from_iterable(values_of[key] for key in queried))
    return Context(text, answers, fields, trimmed(parts, spans, proof))


def _variables(
    chance: Random, size: int, noise: str, *, letters: int = 5, shot_size: int = 10
) -> Context:
    """Hides a chain of variables, each assigned the previous variable, in repeated noise."""
    names: dict[str, None] = {}
    while len(names) <= _HOPS:
        names["".join(chance.choices(string.ascii_uppercase, k=letters))] = None
    chain_, start = [*names], str(chance.randint(10000, 99998))
    assignments = [f"VAR {chain_[0]} = {start}"]
    assignments += [f"VAR {new} = VAR {old} " for old, new in pairwise(chain_)]
    places = sorted(chance.sample(range(size), len(assignments)))
    parts, indexes = inserted([f"{noise}\n"] * size, assignments, places)
    text, spans = tile(parts, " ")
    fields = {"query": start, "num_v": str(len(chain_))}
    # Ten assignments fit into the 500 tokens that the authors reserve.
    shot = _variables(chance, shot_size, noise, letters=3, shot_size=0) if shot_size else None
    return Context(text, tuple(chain_), fields, trimmed(parts, spans, indexes), shot=shot)


@cache
def _vocabulary() -> list[str]:
    # The order of a set of texts differs between processes.
    return sorted({*word_list("noun"), *word_list("adjective"), *word_list("verb")})


def _common_words(
    chance: Random, size: int, often: int, seldom: int, shot: tuple[int, int, int] | None = None
) -> Context:
    """Lists words, the first ten of which occur `often`, the others `seldom` times."""
    chosen = chance.sample(_vocabulary(), size)
    common = chosen[:_COMMON]
    listed = common * often + chosen[_COMMON:] * seldom
    chance.shuffle(listed)
    example = _common_words(chance, *shot) if shot else None
    return Context(numbered(listed), tuple(common), shot=example)


def _frequent_words(chance: Random, length: int, words: int) -> Context:
    """Samples coded words by Zipf's law; the most frequent word is noise, `...`."""
    vocabulary: dict[str, None] = {"...": None}
    while len(vocabulary) < max(4, length // 50):
        vocabulary["".join(chance.choices(string.ascii_lowercase, k=6))] = None
    counts = (int(words / (rank**2 * _ZETA_2)) for rank in range(1, len(vocabulary) + 1))
    sampled = [w for w, count in zip(vocabulary, counts, strict=True) for _ in range(count)]
    chance.shuffle(sampled)
    return Context(" ".join(sampled), tuple([*vocabulary][1:4]))


def _distracted(
    file: QuestionFile, template: str, chance: Random, size: int, number: int
) -> Context:
    """Puts the documents of a question among distracting documents."""
    question, documents = file.questions[number], file.documents
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
    parts = [template.format(i=i, document=documents[index]) for i, index in enumerate(chosen, 1)]
    text, spans = tile(parts, "\n\n")
    starts = {
        index: span.start + len(part) - len(documents[index])
        for index, part, span in zip(chosen, parts, spans, strict=True)
    }
    evidence = tuple(Span(starts[d] + s, starts[d] + e) for d, s, e in question.evidence)
    ends = trimmed(parts, spans, range(len(parts)))
    return Context(text, question.answers, {"query": question.question}, evidence, ends)


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
