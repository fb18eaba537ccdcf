"""SCROLLS (Shaham et al. 2022): seven tasks, and the hard subset of one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import Document, Example
from leporello.tasks.official.benchmark import Benchmark, outputs, text_of
from leporello.text import answers

SPLITS = ("train", "validation", "test")
_SUMMARIES = ("gov_report", "summ_screen_fd", "qmsum")
_METRICS = {"qasper": ("f1", "no_answer"), "narrative_qa": ("f1",)}
LABELS = ("Entailment", "Contradiction", "Not mentioned")  # of contract_nli

_WITHOUT_QUERY = ("gov_report", "summ_screen_fd")
_MULTIPLE_CHOICE = ("quality", "quality_hard")
_BREAK = "\n\n"  # after the query, and after the options
_OPTIONS = re.compile(
    r" *+\(A\) *+(?>(.*?)\n *+\(B\)) *+(?>(.*?)\n *+\(C\)) *+(?>(.*?)\n *+\(D\)) *+(?>(.*?)\n\n)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Scrolls(Benchmark):
    """A task of SCROLLS, from the benchmark's official file.

    Rows with the same `id` are one example with several references. The query is separated from the
    document; the options of `quality` are `choices`, and its gold answer is the text of an option.

    Attributes:
        name: Name of the task in the benchmark; `quality_hard` is the hard subset of `quality`.
        split: `train`, `validation`, or `test`, which has no gold answers.
        instruction: Instruction, which precedes the passages in a prompt; the benchmark has none.
    """

    name: Literal[
        "gov_report", "summ_screen_fd", "qmsum", "qasper", "narrative_qa", "quality",
        "quality_hard", "contract_nli",
    ]  # fmt: skip
    split: str = "validation"
    data: Path | None = None
    instruction: str = ""

    benchmark: ClassVar[str] = "scrolls"
    repository: ClassVar[str] = "tau/scrolls"
    splits: ClassVar[tuple[str, ...]] = SPLITS

    @property
    def metrics(self) -> tuple[str, ...]:
        """The official metrics."""
        if self.name in _SUMMARIES:
            return ("rouge_scrolls",)
        return _METRICS.get(self.name, ("exact_match",))

    @property
    def no_answer(self) -> str:
        """Reference of unanswerable questions; empty if the task has none."""
        return "Unanswerable" if self.name == "qasper" else ""

    @property
    def _file(self) -> str:
        return f"{self.name.removesuffix('_hard')}.zip"

    def normalise(self, text: str, example: Example) -> str:
        """Returns an answer in the form that the metric requires."""
        if self.name in _MULTIPLE_CHOICE:
            return answers.option_text(text, example.choices)
        if self.name == "contract_nli":
            return answers.label(text, LABELS)
        return answers.unanswerable(text, self.no_answer) if self.no_answer else text

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterator[Example]:  # noqa: ARG002 -- part of `Benchmark`
        hard = row.get("is_hard")  # the official loader also treats a missing field as false
        if self.name == "quality_hard" and not hard:
            return
        text = text_of(row, "input")
        head, question, choices, fault = self._split_input(text)
        prompt = OfficialPrompt(before=text[:head])
        yield Example(
            id=text_of(row, "id"),
            document=Document("", text[head:]),
            question=question,
            instruction=self.instruction,
            choices=choices,
            references=outputs(row),
            group="" if hard is None else "hard" if hard else "easy",
            metadata=prompt.metadata(),
            fault=fault,
        )

    def _split_input(self, text: str) -> tuple[int, str, tuple[str, ...], str]:
        """Returns the start of the document, the question, its choices, and a fault or nothing."""
        if self.name in _WITHOUT_QUERY:
            return 0, "", (), ""
        end = text.find(_BREAK)
        if end < 0:
            return 0, "", (), "`input` has no blank line between query and document"
        head = end + len(_BREAK)
        if self.name in _MULTIPLE_CHOICE:
            if options := _OPTIONS.match(text, head):
                choices = (*(option.rstrip(" ") for option in options.groups()),)
                return options.end(), text[:end], choices, ""
            return 0, "", (), "`input` has no options (A) to (D) after the question"
        return head, text[:end], LABELS if self.name == "contract_nli" else (), ""
