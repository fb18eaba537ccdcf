"""LongBench (Bai et al. 2023), 21 tasks in English and Chinese, and LongBench v2 (2024)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.protocols import MetricEntry
from leporello.core.records import JSON, Document, Example
from leporello.tasks.long_context.templates import data_of, metadata_of
from leporello.tasks.official.benchmark import Benchmark, one_of, text_of, texts_of
from leporello.text import answers

_PARAGRAPH = re.compile(r"(?:Paragraph |段落)\d")
_OPTIONS = ("A", "B", "C", "D")


@dataclass(frozen=True)
class LongBench(Benchmark):
    """A task of LongBench, from the benchmark's official file.

    The document is the row's `context`, the question its `input`; labels of trec and lsht are
    `choices`. The instruction is taken from the prompt; `OfficialPrompt.of(example)` has the
    original prompt.
    """

    name: Literal[
        "narrativeqa", "qasper", "multifieldqa_en", "multifieldqa_zh", "hotpotqa", "2wikimqa",
        "musique", "dureader", "gov_report", "qmsum", "multi_news", "vcsum", "trec", "triviaqa",
        "samsum", "lsht", "passage_count", "passage_retrieval_en", "passage_retrieval_zh", "lcc",
        "repobench-p",
    ]  # fmt: skip
    split: str = "test"
    data: Path | None = None

    benchmark: ClassVar[str] = "longbench"
    repository: ClassVar[str] = "THUDM/LongBench"
    file: ClassVar[str] = "data.zip"
    members: ClassVar[tuple[str, ...]] = ("data/{name}.jsonl", "{name}.jsonl")

    @property
    def metrics(self) -> tuple[MetricEntry, ...]:
        """The official metric."""
        first_line: Mapping[str, JSON] = {"first_line": True} if "first_line" in self._data else {}
        return ({"class": "longbench", "score_by": self._data["score_by"], **first_line},)

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterator[Example]:  # noqa: ARG002 -- part of `Benchmark`
        question, gold = text_of(row, "input"), texts_of(row, "answers")
        yield Example(
            id=text_of(row, "_id"),
            document=Document("", text_of(row, "context")),
            question=question,
            instruction=self._data["instruction"],
            choices=texts_of(row, "all_classes"),
            references=gold,
            metadata=metadata_of(self._data["prompt"], {"input": question}),
            fault=self._unfit(gold),
        )

    def _unfit(self, gold: tuple[str, ...]) -> str:
        """Returns why the official metric cannot use these references; empty if it can."""
        wrong = [text for text in gold if not _PARAGRAPH.search(text)]
        if self._data["score_by"] == "retrieval" and wrong:
            return f"gold answer {wrong[0]!r:.60} has no `Paragraph N` or `段落N`"
        return ""

    @property
    def _data(self) -> Mapping[str, Any]:
        return data_of("longbench", self.name)


@dataclass(frozen=True)
class LongBenchV2(Benchmark):
    """LongBench v2: questions with four options, from the benchmark's official file.

    The options are `choices`, the reference is a letter; `group` is the difficulty, and `metadata`
    contains difficulty and length. White space around texts is removed, as in the authors' code.
    The split `test` is `train` on the hub.
    """

    split: str = "test"
    data: Path | None = None

    benchmark: ClassVar[str] = "longbench_v2"
    metrics: ClassVar[tuple[MetricEntry, ...]] = ("longbench_v2",)
    repository: ClassVar[str] = "THUDM/LongBench-v2"
    file: ClassVar[str] = "data.json"

    def normalise(self, text: str, example: Example) -> str:
        """Returns an answer in the form that the metric requires."""
        letter = answers.option_letter(text, example.choices)
        return f"The correct answer is ({letter})" if letter in _OPTIONS else text

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterator[Example]:  # noqa: ARG002 -- part of `Benchmark`
        question = text_of(row, "question").strip()
        options = {letter: text_of(row, f"choice_{letter}").strip() for letter in _OPTIONS}
        data = data_of("longbench_v2", "longbench_v2")
        groups: dict[str, JSON] = {
            "difficulty": one_of(row, "difficulty", ("easy", "hard")),
            "length": one_of(row, "length", ("short", "medium", "long")),
        }
        yield Example(
            id=text_of(row, "_id"),
            document=Document("", text_of(row, "context").strip()),
            question=question,
            instruction=data["instruction"],
            choices=tuple(options.values()),
            references=(one_of(row, "answer", _OPTIONS),),
            group=str(groups["difficulty"]),
            metadata=metadata_of(data["prompt"], {"input": question, **options}) | groups,
        )
