"""L-Eval (An et al. 2023): the closed tasks but for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.protocols import MetricEntry
from leporello.core.records import Document, Example
from leporello.tasks.jsonl.schema import RowError
from leporello.tasks.long_context.templates import data_of, prompt_of
from leporello.tasks.official.archives import Archive
from leporello.tasks.official.benchmark import Benchmark
from leporello.tasks.official.fields import text_of, texts_of


@dataclass(frozen=True)
class LEval(Benchmark):
    """A closed task of L-Eval, from the official file: a document with its instructions.

    The instruction of a row is the question, with its options if there are any; the authors' system
    prompt is the instruction, and the beginning of the official prompt.

    Attributes:
        name: Name of the task in the benchmark; `sci_fi` is left out, since half of its score is
            for a second question without the document.
        split: Always `test`.
        data: Directory of the benchmarks' files, with `leval/NAME.jsonl`. None means
            `LEPORELLO_DATA` or `data`.
    """

    name: Literal["coursera", "quality", "tpo", "gsm100", "codeU", "topic_retrieval_longchat"]
    split: str = "test"
    data: Path | None = None

    benchmark: ClassVar[str] = "leval"
    by_hand: ClassVar[str] = (
        "https://github.com/OpenLMLab/LEval/tree/main/LEval-data/Closed-ended-tasks"
    )

    @property
    def metrics(self) -> tuple[MetricEntry, ...]:
        """The official metric."""
        return ({"class": "leval", "task": self.name},)

    def places(self, folder: Path) -> Sequence[Archive]:
        """Returns the task's file."""
        return (Archive(folder / f"{self.name}.jsonl"),)

    def take_all(self, number: int, row: Mapping[str, Any]) -> Sequence[Example]:
        """Parses one row with its instructions; see `Benchmark.take_all`."""
        document = Document("", text_of(row, "input"))
        questions, answers = texts_of(row, "instructions"), texts_of(row, "outputs")
        if len(questions) != len(answers):
            counts = f"{len(questions)} and {len(answers)}"
            raise RowError([f"fields 'instructions' and 'outputs' must be equally long: {counts}"])
        data = data_of("leval")[self.name]
        template = f"{data['system']}\n\n{data['prompt']}"
        return [
            Example(
                id=f"{self.name}-{number}-{place}",
                document=document,
                question=question,
                instruction=data["system"].strip(),
                references=(answer,),
                metadata=prompt_of(template, {"input": question}).metadata(),
                fault="" if answer.strip() else f"`outputs` has no answer {place + 1}",
            )
            for place, (question, answer) in enumerate(zip(questions, answers, strict=True))
        ]
