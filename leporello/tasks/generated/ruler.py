"""RULER (Hsieh et al. 2024): thirteen tasks of any length, made here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any, Literal

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import Document, Example
from leporello.models.locate import model_fingerprint
from leporello.tasks.generated.generated import Generated, benchmark, file_of
from leporello.tasks.generated.questions import QuestionFile, question_file
from leporello.tasks.generated.recipes import Context, Recipe, numbered, recipe
from leporello.tasks.generated.words import Background, background
from leporello.tasks.official.archives import data_directory
from leporello.text.tokens import tokenizer


@dataclass(frozen=True)
class Ruler(Generated):
    """A task of RULER at one length: needles, variables, word counts, questions.

    Nothing is read but what haystacks are made of: the same parameters give the same examples, on
    any machine. An example depends on the seed and on its number, not on the others; keys and
    values are the same at every length. Beside the needles that are asked for, no other has their
    key, which the authors leave to chance.

    Attributes:
        name: Name of the task, as the benchmark names it.
        length: Number of tokens of prompt and answer together, at most.
        tokenizer: Tokenizer that counts them: `words`, or a Hugging Face tokenizer by path or hub
            id, that of the model as in the paper.
        samples: Number of examples.
        seed: Seed of all that is drawn.
        background: Folder of texts, or a file, in which needles of the tasks with essays are
            hidden; the paper's are Paul Graham's essays. None repeats the sentences of
            niah_single_1. One that is too short is gone through again.
        data: Directory of the benchmarks' files, for qa_1 and qa_2: `ruler/squad.json` and
            `ruler/hotpotqa.json` in it. None stands for `LEPORELLO_DATA`, else `data`.
    """

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
        """The benchmark's own, and how much of the evidence is found."""
        if self._settings["task"] == "qa":
            return ("string_match_part", "recall")
        return ("string_match_all", "recall")

    def __len__(self) -> int:
        """Returns how many there are: no more than the file of questions has."""
        file = self._source
        return min(self.samples, len(file.questions) if isinstance(file, QuestionFile) else 1 << 60)

    def fingerprint(self) -> str:
        """Returns a hash of all that the examples are made of.

        Raises:
            UserError: A file or the package of words is not there.
        """
        settings = self._settings
        source = self._source
        made = [
            *(self.name, self.length, self.samples, self.seed, source.sha256 if source else ""),
            self.tokenizer if self.tokenizer == "words" else model_fingerprint(self.tokenizer),
            file_of("ruler").read_text(encoding="utf-8"),
            version("wonderwords")
            if settings["task"] in ("niah", "common_words_extraction")
            else "",
        ]
        self.example(0)
        return hashlib.sha256(json.dumps(made).encode()).hexdigest()

    def example(self, number: int) -> Example:
        """Returns an example by its number from 0."""
        recipe, size = self._recipe, _size(self)
        written = self._write(number, size)
        while (tokens := self._tokens(written)) > self._room and size > recipe.step:
            size = (size - 1) // recipe.step * recipe.step
            written = self._write(number, size)
        prompt = self._prompt(written)
        over = f"has {tokens} tokens at least, more than the length {self.length} has room for"
        name = f"{self.name}-{number}"
        return Example(
            name,
            Document(name, written.text, parts=written.parts),
            question=prompt.query.removeprefix("Question: "),
            instruction=self._filled(self._template["template"], written)[0].strip(),
            references=written.answers,
            evidence=written.evidence,
            metadata={**prompt.metadata(), "tokens": tokens},
            fault=over if tokens > self._room else "",
        )

    @property
    def _settings(self) -> Mapping[str, Any]:
        settings: Mapping[str, Any] = benchmark("ruler")["tasks"][self.name]
        return settings

    @property
    def _template(self) -> Mapping[str, Any]:
        template: Mapping[str, Any] = benchmark("ruler")["templates"][self._settings["task"]]
        return template

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
        return background(self.background if essay else None, benchmark("ruler")["noise"])

    @property
    def _recipe(self) -> Recipe:
        return recipe(self._settings, self.length, benchmark("ruler"), self._source)

    def _write(self, number: int, size: int) -> Context:
        # Without the length: what is asked for is the same at every length.
        chance = Random(f"{self.seed}/{self.name}/{number}")
        return self._recipe.write(chance, size, number)

    def _tokens(self, written: Context) -> int:
        whole = self._prompt(written).around(written.text)
        return len(tokenizer(self.tokenizer).offsets(whole))

    def _prompt(self, written: Context) -> OfficialPrompt:
        before, behind = self._filled(self._template["template"], written)
        _, after = self._filled("{context}" + self._template["answer_prefix"], written)
        start = max(0, behind.find("Question: ")) or len(behind) - len(behind.lstrip())
        shot = self._shot(written.shot) if written.shot else ""
        return OfficialPrompt(shot + before, behind[:start], behind[start:], after)

    def _shot(self, shot: Context) -> str:
        """Returns the worked example, as the benchmark's scripts put it in front."""
        template = self._template
        if "shot" in template:
            before, behind = self._filled(template["shot"], shot)
            return f" {before}{shot.text}{behind} {' '.join(shot.answers)}\n\n\n\n"
        before, behind = self._filled(template["template"] + template["answer_prefix"], shot)
        return f"{before}{shot.text}{behind}{numbered(shot.answers)}\n"

    def _filled(self, template: str, written: Context) -> tuple[str, str]:
        """Returns what stands before and behind the context."""
        if self._settings["task"] == "niah" and len(written.answers) == 1:
            for plural, singular in (("Some", "A"), ("are all", "is"), ("are", "is")):
                template = template.replace(plural, singular)
        before, behind = template.split("{context}")
        return before.format(**written.fields), behind.format(**written.fields)


@lru_cache(maxsize=32)
def _size(task: Ruler) -> int:
    """Returns the size at which the first example has room, as the authors find it for all."""

    def fits(size: int) -> bool:
        written = task._write(0, size)
        answers = tokenizer(task.tokenizer).offsets(" ".join(written.answers))
        return task._tokens(written) + len(answers) <= task._room

    return largest(fits, task._recipe.step, task._recipe.most)


def largest(fits: Callable[[int], bool], step: int, most: int | None = None) -> int:
    """Returns the largest multiple of `step` that fits, or `most` if all up to it do.

    It is found in as many trials as the number has digits, where the authors' scripts go up step by
    step: what is longer than one that does not fit does not fit either.

    Args:
        fits: Function that tells whether a number of things is few enough.
        step: Number that the sizes are multiples of; at least one is returned, fitting or not.
        most: Number of things that there are; None if there is no end.
    """
    good, bad = 1, 2
    while (most is None or bad * step <= most) and fits(bad * step):
        good, bad = bad, 2 * bad
    while bad - good > 1:
        middle = (good + bad) // 2
        above = most is not None and middle * step > most
        good, bad = (good, middle) if above or not fits(middle * step) else (middle, bad)
    if most is not None and (good + 1) * step > most and fits(most):
        return most
    return good * step
