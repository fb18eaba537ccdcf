"""ZeroSCROLLS (Shaham et al. 2023), whose rows are complete prompts, and BAMBOO's ReportSumSort."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.files import stamp
from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import Document, Example, Span
from leporello.tasks.jsonl.schema import RowError
from leporello.tasks.official.archives import Archive
from leporello.tasks.official.benchmark import Benchmark, outputs, text_of
from leporello.text import answers

SPLITS = ("validation", "test")
SUMMARIES = ("gov_report", "summ_screen_fd", "qmsum", "squality")
_METRICS: Mapping[str, tuple[str, ...]] = {
    "qasper": ("f1_unidecode", "no_answer"),
    "narrative_qa": ("f1_unidecode",),
    "quality": ("option_letter",),
    "musique": ("f1_unidecode", "no_answer"),
    "space_digest": ("exponential_similarity",),
    "book_sum_sort": ("concordance_index",),
}
# For chat models, the authors add this to the instructions of all other tasks.
CHAT = "Do not provide any explanation."

_OFFSETS = ("document_start_index", "document_end_index", "query_start_index", "query_end_index")
# Atomic groups, since four lazy searches would backtrack through long questions.
_OPTIONS = re.compile(
    r"\A(?>(.*?)^ *+\(A\)) *+(?>(.*?)^ *+\(B\)) *+(?>(.*?)^ *+\(C\)) *+(?>(.*?)^ *+\(D\)) *+(.*)",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class ZeroScrolls(Benchmark):
    """A task of ZeroSCROLLS, from the benchmark's official file.

    Rows with the same `id` are one example with several references. The benchmark's prompt is split
    into instruction, headers (context, query, response), question and document; reviews, paragraphs
    and summaries are the document's `parts`. `OfficialPrompt.of(example)` has the original prompt.

    Attributes:
        split: `validation`, or `test`, for which gold answers may be unpublished.
        chat: The authors' variant for chat models, which asks for no explanation and has no
            response header. `claude` is the variant for Claude 1: a turn of `Human:`, and a turn of
            `Assistant:` with an opening tag, so that the answer ends at the closing tag (`stop:
            ["</"]`).
    """

    name: Literal[
        "gov_report", "summ_screen_fd", "qmsum", "squality", "qasper", "narrative_qa", "quality",
        "musique", "space_digest", "book_sum_sort",
    ]  # fmt: skip
    split: str = "validation"
    chat: bool | Literal["claude"] = False
    data: Path | None = None

    benchmark: ClassVar[str] = "zero_scrolls"
    repository: ClassVar[str] = "tau/zero_scrolls"
    file: ClassVar[str] = "{name}.zip"
    splits: ClassVar[tuple[str, ...]] = SPLITS

    @property
    def metrics(self) -> tuple[str, ...]:
        """The official metrics."""
        return _METRICS.get(self.name, ("rouge_scrolls",))

    @property
    def no_answer(self) -> str:
        """Reference of unanswerable questions; empty if the task has none."""
        return "unanswerable" if self.name in ("qasper", "musique") else ""

    def normalise(self, text: str, example: Example) -> str:
        """Returns an answer in the form that the metric requires."""
        match self.name:
            case "quality":
                return answers.option_letter(text, example.choices)
            case "space_digest":
                return answers.percentage(text)
            case "book_sum_sort":
                return answers.permutation(text, len(example.document.parts))
        return answers.unanswerable(text, self.no_answer) if self.no_answer else text

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterator[Example]:  # noqa: ARG002 -- part of `Benchmark`
        text, offsets = text_of(row, "input"), _offsets(row)
        starts, gold = _starts(row), outputs(row)
        example = Example(text_of(row, "id"), Document("", text))
        if fault := _misplaced(offsets, starts, len(text)):
            yield replace(example, fault=fault)
            return
        start, end = offsets[:2]
        # The benchmark's spelling.
        prompt = self._prompt(text, offsets, text_of(row, "truncation_seperator"))
        question, choices, headers = self._split(prompt)
        yield replace(
            example,
            document=Document("", text[start:end], parts=_parts(text, starts, start, end)),
            question=question,
            instruction=_above(prompt.before)[0].removeprefix("Human: "),
            headers=headers,
            choices=choices,
            references=gold,
            metadata=prompt.metadata(),
            fault=self._unfit(gold),
        )

    def _prompt(self, text: str, offsets: Sequence[int], separator: str) -> OfficialPrompt:
        """Returns the prompt around the document, in the variant for chat models if set."""
        start, end, query_start, query_end = offsets
        if query_start < end:  # without a query, both offsets are equal
            query_start = query_end = end
        if not text[query_end:].strip():  # the query includes the response header
            query = text[query_start:].rstrip()
            query_end = query_start + len(query[: query.rfind("\n") + 1].rstrip())
        query, after = text[query_start:query_end], text[query_end:]
        prompt = OfficialPrompt(text[:start], text[end:query_start], query, after, separator)
        if not self.chat:
            return prompt
        header, before = prompt.after.strip().replace(":", ""), prompt.before
        tag = header.lower().replace(" ", "_")
        has_tags = self.chat == "claude" and self.name not in SUMMARIES
        tags = f", and please highlight your final {header.lower()} with <{tag}></{tag}> tags."
        before = self._with_chat_sentence(before, tags if has_tags else ".")
        if self.chat is True:
            return replace(prompt, before=before, after="")
        turn = f"\n\nAssistant: {header}: <{tag}>" if has_tags else "\n\nAssistant:"
        return replace(prompt, before=f"\n\nHuman: {before}", after=turn)

    def _with_chat_sentence(self, before: str, end: str) -> str:
        instruction, gap, tail = before.partition("\n\n")
        if self.name in SUMMARIES:
            return before
        return f"{instruction.strip().removesuffix(CHAT).rstrip()} {CHAT[:-1]}{end}{gap}{tail}"

    def _split(self, prompt: OfficialPrompt) -> tuple[str, tuple[str, ...], tuple[str, str, str]]:
        """Returns the question, its options, and the headers of context, query and response."""
        context = _above(prompt.before)[1]
        response = "" if self.chat else prompt.after.strip().removesuffix(":")
        header, question = _below(prompt.between + prompt.query)
        choices: Sequence[str] = ()
        if self.name == "quality" and (options := _OPTIONS.match(question)):
            question, *choices = (part.rstrip() for part in options.groups())
        return question, (*choices,), (context, header, response)

    def _unfit(self, gold: Sequence[str]) -> str:
        """Returns why the official metric cannot use these references; empty if it can."""
        for answer in gold:
            if self.name == "quality" and not answers.LETTER.search(answer):
                return f"gold answer {answer!r:.60} has no letter A to D"
            if self.name == "space_digest" and not answers.PERCENTAGE.search(answer):
                return f"gold answer {answer!r:.60} has no percentage"
            if self.name == "book_sum_sort":
                ids = answers.ids(answer)
                if len(ids) < 2 or len(set(ids)) < len(ids):  # noqa: PLR2004 -- a single id has no order
                    return f"gold answer {answer!r:.60} is not an order of at least two ids"
        return ""


def _offsets(row: Mapping[str, Any]) -> tuple[int, ...]:
    values = tuple(row.get(name) for name in _OFFSETS)
    for name, value in zip(_OFFSETS, values, strict=True):
        if not isinstance(value, int) or isinstance(value, bool):
            raise RowError([f"field {name!r} must be a number of characters, got {value!r:.60}"])
    return values  # type: ignore[return-value]  # all are int


def _starts(row: Mapping[str, Any]) -> list[int]:
    value = row.get("inner_docs_start_indices") or []
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        raise RowError([f"field 'inner_docs_start_indices' must be numbers, got {value!r:.60}"])
    return value


def _misplaced(offsets: Sequence[int], starts: Sequence[int], length: int) -> str:
    """Returns the fault of offsets into `input`; empty without a fault."""
    start, end, *query = offsets
    query = query if query[0] != query[1] else []
    borders = [0, start, *starts, end, *query, length]
    if any(a > b for a, b in itertools.pairwise(borders)) or len({*starts}) < len(starts):
        return f"offsets of document, its parts and query do not ascend within `input`: {borders}"
    return ""


def _parts(text: str, starts: Sequence[int], start: int, end: int) -> tuple[Span, ...]:
    """Returns the inner documents, without trailing blanks."""
    return tuple(
        Span(a - start, a - start + len(text[a:b].rstrip()))
        for a, b in itertools.pairwise([*starts, end])
    )


def _above(before: str) -> tuple[str, str]:
    """Returns instruction and context header from the text before a document."""
    body, _, last = before.rstrip().rpartition("\n")
    return (body.strip(), last.removesuffix(":")) if last.endswith(":") else (before.strip(), "")


def _below(zone: str) -> tuple[str, str]:
    """Returns header and query from the text between a document and the response header."""
    first, _, query = zone.strip().partition("\n")
    has_header = first.endswith(":") and query
    return (first.removesuffix(":"), query.strip()) if has_header else ("", zone.strip())


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
        return Archive(self.path, stamp=stamp(self.path))

    def normalise(self, text: str, example: Example) -> str:
        """Returns an answer in the form that the metric requires."""
        return answers.permutation(text, len(example.choices or example.document.parts))

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterator[Example]:
        [example] = ZeroScrolls("book_sum_sort")._take(number, row)
        parts = example.document.parts
        unlike = [o for o in example.references if len(answers.ids(o)) != len(parts)]
        if example.fault:
            yield example
        elif not parts:
            yield replace(example, fault="inner_docs_start_indices are missing: no summaries")
        elif unlike:
            problem = f"gold answer {unlike[0]!r:.60} does not order {len(parts)} summaries"
            yield replace(example, fault=problem)
        else:
            yield _with_source(example) if self.source else _without_source(example)


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
