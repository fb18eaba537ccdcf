"""Summaries of a report's parts, to be put in order with the report in view (BAMBOO's)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import Document, Example, Span
from leporello.tasks.official.archives import Archive
from leporello.tasks.official.benchmark import Benchmark
from leporello.tasks.zero_scrolls import ZeroScrolls
from leporello.text import answers

_LABEL = re.compile(r"(?<!\s)\s*+Summary \d+:\s*")
_HEADER = re.compile(r"\w+:\s*\n")  # of the report
_FOOTER = re.compile(r"^\w++:\s*\Z", re.MULTILINE)  # the header of the summaries


@dataclass(frozen=True)
class ReportSumSort(Benchmark):
    """ReportSumSort (BAMBOO, Dong et al. 2023) in the layout of ZeroSCROLLS' book_sum_sort.

    A row's document is a report and, behind it, shuffled summaries of parts of it, which
    `inner_docs_start_indices` tell. It is not BookSumSort, which has no source beside them.

    Attributes:
        path: The JSON Lines file.
        source: Whether the report is in view: then it is the document, which rows share, and the
            summaries are the example's `choices`. Without it the summaries are the document, and
            its `parts`, as in BookSumSort.
    """

    metrics: ClassVar[tuple[str, ...]] = ("concordance_index",)

    path: Path
    source: bool = True

    @property
    def archive(self) -> Archive:
        """The file."""
        return Archive(self.path)

    def normalise(self, text: str, example: Example) -> str:
        """Returns an answer in the form that the metric reads."""
        return answers.permutation(text, len(example.choices or example.document.parts))

    def take(self, number: int, row: Mapping[str, Any]) -> Example:
        """Takes a row apart; see `Benchmark.take`."""
        example = ZeroScrolls("book_sum_sort").take(number, row)
        parts = example.document.parts
        if example.fault:
            return example
        if not parts:
            return replace(example, fault="inner_docs_start_indices are missing: no summaries")
        if unlike := [o for o in example.references if len(answers.ids(o)) != len(parts)]:
            problem = f"gold answer {unlike[0]!r:.60} does not order {len(parts)} summaries"
            return replace(example, fault=problem)
        return _with_source(example) if self.source else _without(example)


def _with_source(example: Example) -> Example:
    text, parts = example.document.text, example.document.parts
    report = text[: parts[0].start]
    start = border.end() if (border := _HEADER.match(report)) else 0
    if border := _FOOTER.search(report, start):
        report = report[: border.start()].rstrip()
    end = max(start, len(report))
    choices = [_LABEL.sub("", text[part.start : part.end], count=1) for part in parts]
    return replace(_of(example, start, end), choices=tuple(choices))


def _without(example: Example) -> Example:
    text, parts = example.document.text, example.document.parts
    start = parts[0].start
    moved = tuple(Span(part.start - start, part.end - start) for part in parts)
    shortened = _of(example, start, len(text))
    return replace(shortened, document=replace(shortened.document, parts=moved))


def _of(example: Example, start: int, end: int) -> Example:
    """Returns the example on these characters alone; what is around them is the prompt's."""
    prompt, text = OfficialPrompt.of(example), example.document.text
    assert prompt
    before, between = prompt.before + text[:start], text[end:] + prompt.between
    return replace(
        example,
        document=Document("", text[start:end]),
        metadata=replace(prompt, before=before, between=between).metadata(),
    )
