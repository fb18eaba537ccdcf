"""InfiniteBench (Zhang et al. 2024): twelve tasks on documents of over 100,000 tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.protocols import MetricEntry
from leporello.core.records import Document, Example
from leporello.tasks.jsonl.schema import RowError
from leporello.tasks.long_context.templates import data_of, metadata_of
from leporello.tasks.official.benchmark import Benchmark, text_of, texts_of
from leporello.text import answers

_CALL = re.compile(r"func_[0-9]+\(-?[0-9]+\)")
_RANK = re.compile(r"^(?:(?!The ).)*+(The .+ of)", re.MULTILINE)
_LETTERS = "ABCD"
_CHOICES = ("code_debug", "longbook_choice_eng")
_NUMBERS = ("code_run", "math_find")


@dataclass(frozen=True)
class InfiniteBench(Benchmark):
    """A task of InfiniteBench, from the benchmark's official file.

    The document is the row's `context`, the question its `input`; `OfficialPrompt.of(example)` has
    the authors' prompt for open models. Numbers become references as JSON; in multiple-choice tasks
    both the option and its letter are references.
    """

    name: Literal[
        "passkey", "number_string", "kv_retrieval", "longdialogue_qa_eng", "longbook_sum_eng",
        "longbook_choice_eng", "longbook_qa_eng", "longbook_qa_chn", "math_find", "math_calc",
        "code_run", "code_debug",
    ]  # fmt: skip
    split: str = "test"
    data: Path | None = None

    benchmark: ClassVar[str] = "infinite_bench"
    repository: ClassVar[str] = "xinrongzhang2022/InfiniteBench"
    file: ClassVar[str] = "{name}.jsonl"

    @property
    def metrics(self) -> tuple[MetricEntry, ...]:
        """The official metric."""
        return ({"class": "infinite_bench", "task": self.name},)

    def normalise(self, text: str, example: Example) -> str:
        """Returns an answer in the form that the metric requires."""
        return answers.option_letter(text, example.choices) if self.name in _CHOICES else text

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterator[Example]:
        data = data_of("infinite_bench", self.name)
        question = text_of(row, "input")
        choices = texts_of(row, "options") if self.name in _CHOICES else ()
        yield Example(
            id=f"{self.name}-{row.get('id', number)}",
            document=Document("", text_of(row, "context")),
            question=question,
            instruction=data["instruction"],
            choices=choices,
            references=references(self.name, row.get("answer"), choices),
            metadata=metadata_of(data["prompt"], self._fields(question, choices)),
        )

    def _fields(self, question: str, choices: tuple[str, ...]) -> dict[str, str]:
        """Returns the fields of the authors' prompt, except the document."""
        fields = {"input": question, "question": question}
        if self.name in _CHOICES:
            if len(choices) != len(_LETTERS):
                raise RowError([f"field 'options' must be four texts, got {len(choices)}"])
            options = zip(_LETTERS, choices, strict=True)
            fields |= {f"OPTION_{letter}": choice for letter, choice in options}
        if self.name == "code_run":
            call = _extracted(_CALL, question, "a call, `func_1(2)`")
            fields |= {"func_call": call, "func": call.partition("(")[0]}
        if self.name == "math_find":
            rank = _extracted(_RANK, question, "a goal, `The largest number of`")
            fields["prefix"] = f"What is {rank.lower()[:-3]} in the following list?"
        return fields


def _extracted(pattern: re.Pattern[str], question: str, what: str) -> str:
    if match := pattern.search(question):
        return match[match.lastindex or 0]
    raise RowError([f"field 'input' must contain {what}, got {question!r:.60}"])


def references(task: str, answer: Any, options: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ANN401 -- any JSON
    """Returns the references in a row's answer: a text, a number or a list; raises RowError."""
    listed = answer if isinstance(answer, list) else [answer]
    kind: type | tuple[type, ...] = str
    if task == "math_calc":
        listed = listed[0] if listed and isinstance(listed[0], list) else listed
        kind = int
    elif task in _NUMBERS:
        kind = (int, float)
    if not listed or not all(isinstance(i, kind) and not isinstance(i, bool) for i in listed):
        expected = "text" if kind is str else "a number"
        raise RowError([f"field 'answer' must be {expected} or a list of them, got {answer!r:.60}"])
    if task in _CHOICES:
        return _labelled(listed, options)
    if task == "math_calc":
        return (json.dumps(listed),)
    return tuple(item if isinstance(item, str) else json.dumps(item) for item in listed)


def _labelled(answer: list[str], options: tuple[str, ...]) -> tuple[str, ...]:
    if len(answer) > 1 and answer[1] in tuple(_LETTERS):
        return tuple(answer[:2])
    if answer[0] not in options:
        raise RowError([f"field 'answer' must be one of the options, got {answer!r:.60}"])
    return answer[0], _LETTERS[options.index(answer[0])]
