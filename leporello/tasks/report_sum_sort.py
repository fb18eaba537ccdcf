"""BAMBOO's task of ordering summaries of a report's parts, given the report."""

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

# `Summary 3:` shows the given order, so models would copy it (decision 23).
_LABEL = re.compile(r"(?<!\s)\s*+Summary \d+:\s*")
_HEADER = re.compile(r"\w+:\s*\n")  # of the report
_FOOTER = re.compile(r"^\w++:\s*\Z", re.MULTILINE)  # the header of the summaries


@dataclass(frozen=True)
class ReportSumSort(Benchmark):
    """ReportSumSort (BAMBOO, Dong et al. 2023) in the format of ZeroSCROLLS' book_sum_sort.

    A row's input is a report followed by shuffled summaries of its parts, which start at
    `inner_docs_start_indices`. BookSumSort, in contrast, has only summaries.

    Attributes:
        path: The JSON Lines file.
        source: Whether the report is given: then it is the document, which rows share, and the
            summaries are the example's `choices`. Otherwise the summaries are the document and its
            `parts`, as in BookSumSort.
    """

    metrics: ClassVar[tuple[str, ...]] = ("concordance_index",)

    path: Path
    # With the report, places in it give 96.5 % of pairs; without, 41 to 61 % (decision 23).
    source: bool = True

    @property
    def archive(self) -> Archive:
        """The JSON Lines file."""
        return Archive(self.path)

    def normalise(self, text: str, example: Example) -> str:
        """Returns an answer in the form that the metric requires."""
        return answers.permutation(text, len(example.choices or example.document.parts))

    def take(self, number: int, row: Mapping[str, Any]) -> Example:
        """Parses one row; see `Benchmark.take`."""
        example = ZeroScrolls("book_sum_sort").take(number, row)
        parts = example.document.parts
        if example.fault:
            return example
        if not parts:
            return replace(example, fault="inner_docs_start_indices are missing: no summaries")
        if unlike := [o for o in example.references if len(answers.ids(o)) != len(parts)]:
            problem = f"gold answer {unlike[0]!r:.60} does not order {len(parts)} summaries"
            return replace(example, fault=problem)
        return _with_source(example) if self.source else _without_source(example)


def _with_source(example: Example) -> Example:
    text, parts = example.document.text, example.document.parts
    report = text[: parts[0].start]
    # Headers are part of the prompt, not of the report, and would be found as text.
    start = border.end() if (border := _HEADER.match(report)) else 0
    if border := _FOOTER.search(report, start):
        report = report[: border.start()].rstrip()
    end = max(start, len(report))
    # Choices, so that the report alone is the document, and rows on it share its index.
    choices = [_LABEL.sub("", text[part.start : part.end], count=1) for part in parts]
    return replace(_restricted(example, start, end), choices=tuple(choices))


def _without_source(example: Example) -> Example:
    text, parts = example.document.text, example.document.parts
    start = parts[0].start
    # The document begins with the first summary, so its offsets move.
    moved = tuple(Span(part.start - start, part.end - start) for part in parts)
    shortened = _restricted(example, start, len(text))
    return replace(shortened, document=replace(shortened.document, parts=moved))


def _restricted(example: Example, start: int, end: int) -> Example:
    """Returns the example with these characters as document and the others in the prompt."""
    prompt, text = OfficialPrompt.of(example), example.document.text
    assert prompt
    # Moved, not dropped: the official prompt must remain complete.
    before, between = prompt.before + text[:start], text[end:] + prompt.between
    return replace(
        example,
        document=Document("", text[start:end]),
        metadata=replace(prompt, before=before, between=between).metadata(),
    )
