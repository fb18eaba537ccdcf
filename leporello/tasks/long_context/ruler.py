"""RULER (Hsieh et al. 2024): thirteen tasks, generated at any length."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Literal

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import JSON, Document, Example
from leporello.tasks.long_context.recipes import Context, Recipe, numbered, recipe
from leporello.tasks.long_context.sources import Background, QuestionFile, background, question_file
from leporello.tasks.long_context.templates import Generated, data_of
from leporello.tasks.official.archives import data_directory
from leporello.text.tokens import tokenizer


@dataclass(frozen=True)
class Ruler(Generated):
    """A task of RULER at one length: needles, variables, word counts, questions.

    The same parameters give the same examples on any machine. An example depends only on the seed
    and its number; keys and values are the same at every length. Only the needles of the answer
    have a queried key, whereas the authors' scripts leave that to chance.

    Attributes:
        name: Name of the task in the benchmark.
        length: Largest number of tokens of prompt and answer together.
        tokenizer: Tokenizer that counts tokens: `words`, or a Hugging Face tokenizer by path or hub
            id; the paper uses the model's.
        samples: Number of examples.
        seed: Random seed.
        background: File, or folder of texts, as haystack of the tasks with essays; the paper uses
            Paul Graham's essays. None repeats the sentences of niah_single_1. A short background
            is repeated.
        data: Directory of the benchmarks' files, with `ruler/squad.json` for qa_1 and
            `ruler/hotpotqa.json` for qa_2. None means `LEPORELLO_DATA` or `data`.
    """

    benchmark: ClassVar[str] = "ruler"

    name: Literal[
        "niah_single_1", "niah_single_2", "niah_single_3", "niah_multikey_1", "niah_multikey_2",
        "niah_multikey_3", "niah_multivalue", "niah_multiquery", "vt", "cwe", "fwe", "qa_1",
        "qa_2",
    ]  # fmt: skip
    length: Positive = 4096
    tokenizer: ModelSource = "words"
    samples: Positive = 500
    seed: int = 42
    background: Path | None = None
    data: Path | None = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The official metric, and recall of the evidence."""
        if self._settings["task"] == "qa":
            return ("string_match_part", "recall")
        return ("string_match_all", "recall")

    def __len__(self) -> int:
        """Returns the number of examples, limited by the file of questions."""
        file = self._source
        return min(self.samples, len(file.questions) if isinstance(file, QuestionFile) else 1 << 60)

    def _sources(self) -> list[JSON]:
        source = self._source
        # Reports a missing file or package before the run, rather than for each example.
        self.example(0)
        has_words = self._settings["task"] in ("niah", "common_words_extraction")
        return [source.sha256 if source else "", version("wonderwords") if has_words else ""]

    def example(self, number: int) -> Example:
        """Returns an example by its number from 0."""
        recipe, size = self._recipe, _size(self)
        context = self._write(number, size)
        while (tokens := self._tokens(context)) > self._room and size > recipe.step:
            size = (size - 1) // recipe.step * recipe.step
            context = self._write(number, size)
        prompt = self._prompt(context)
        fault = f"has at least {tokens} tokens, more than fit into the length {self.length}"
        name = f"{self.name}-{number}"
        return Example(
            name,
            Document(name, context.text, parts=context.parts),
            question=prompt.query.removeprefix("Question: "),
            instruction=self._filled(self._template["template"], context)[0].strip(),
            references=context.answers,
            evidence=context.evidence,
            metadata={**prompt.metadata(), "tokens": tokens},
            fault=fault if tokens > self._room else "",
        )

    @property
    def _settings(self) -> Mapping[str, Any]:
        return data_of("ruler", "tasks", self.name)

    @property
    def _template(self) -> Mapping[str, Any]:
        return data_of("ruler", "templates", self._settings["task"])

    @property
    def _room(self) -> int:
        return self.length - int(self._template["generate"])

    @property
    def _source(self) -> Background | QuestionFile | None:
        if file := self._settings.get("file"):
            return question_file(data_directory(self.data) / "ruler" / file)
        if self._settings["task"] != "niah":
            return None
        essay = self._settings["haystack"] == "essay"
        return background(self.background if essay else None, data_of("ruler")["noise"])

    @property
    def _recipe(self) -> Recipe:
        return recipe(self._settings, self.length, data_of("ruler"), self._source)

    def _write(self, number: int, size: int) -> Context:
        # The seed excludes the length, so that questions and answers do not depend on it.
        chance = Random(f"{self.seed}/{self.name}/{number}")
        return self._recipe.write(chance, size, number)

    def _tokens(self, context: Context) -> int:
        prompt = self._prompt(context).around(context.text)
        return len(tokenizer(self.tokenizer).offsets(prompt))

    def _prompt(self, context: Context) -> OfficialPrompt:
        before, query = self._filled(self._template["template"], context)
        _, after = self._filled("{context}" + self._template["answer_prefix"], context)
        start = max(0, query.find("Question: ")) or len(query) - len(query.lstrip())
        shot = self._shot(context.shot) if context.shot else ""
        return OfficialPrompt(shot + before, query[:start], query[start:], after)

    def _shot(self, shot: Context) -> str:
        template = self._template
        if "shot" in template:
            before, after = self._filled(template["shot"], shot)
            return f" {before}{shot.text}{after} {' '.join(shot.answers)}\n\n\n\n"
        before, after = self._filled(template["template"] + template["answer_prefix"], shot)
        return f"{before}{shot.text}{after}{numbered(shot.answers)}\n"

    def _filled(self, template: str, context: Context) -> tuple[str, str]:
        if self._settings["task"] == "niah" and len(context.answers) == 1:
            for plural, singular in (("Some", "A"), ("are all", "is"), ("are", "is")):
                template = template.replace(plural, singular)
        before, after = template.split("{context}")
        return before.format(**context.fields), after.format(**context.fields)


@lru_cache(maxsize=32)
def _size(task: Ruler) -> int:
    """Returns the largest size at which the first example fits, which the authors use for all."""

    def fits(size: int) -> bool:
        context = task._write(0, size)
        answers = tokenizer(task.tokenizer).offsets(" ".join(context.answers))
        return task._tokens(context) + len(answers) <= task._room

    return largest(fits, task._recipe.step, task._recipe.most)


def largest(fits: Callable[[int], bool], step: int, most: int | None = None) -> int:
    """Returns the largest multiple of `step` that fits, by bisection, or `most` if all up to it do.

    Longer texts must never fit if shorter ones do not. If not even `step` fits, it is returned.
    """

    def is_too_large(count: int) -> bool:
        return (most is not None and count * step > most) or not fits(count * step)

    bad = 2
    while not is_too_large(bad):
        bad *= 2
    good = bisect_left(range(bad), x=True, lo=bad // 2 + 1, key=is_too_large) - 1
    if most is not None and (good + 1) * step > most and fits(most):
        return most
    return good * step
