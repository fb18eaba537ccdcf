"""ZeroSCROLLS (Shaham et al. 2023): ten tasks with a prompt around every document."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import Document, Example, Span
from leporello.tasks.jsonl.schema import RowError
from leporello.tasks.official.archives import Archive, zip_or_folder
from leporello.tasks.official.benchmark import Benchmark, Published
from leporello.tasks.official.fields import outputs, text_of
from leporello.text import answers

SPLITS = ("validation", "test")
METRICS: Mapping[str, tuple[str, ...]] = {
    "gov_report": ("rouge_scrolls",),
    "summ_screen_fd": ("rouge_scrolls",),
    "qmsum": ("rouge_scrolls",),
    "squality": ("rouge_scrolls",),
    "qasper": ("f1_unidecode", "no_answer"),
    "narrative_qa": ("f1_unidecode",),
    "quality": ("option_letter",),
    "musique": ("f1_unidecode", "no_answer"),
    "space_digest": ("exponential_similarity",),
    "book_sum_sort": ("concordance_index",),
}
SUMMARIES = ("gov_report", "summ_screen_fd", "qmsum", "squality")
# What the authors add to the instructions of all other tasks for chat models.
CHAT = "Do not provide any explanation."

_OFFSETS = (
    "document_start_index",
    "document_end_index",
    "query_start_index",
    "query_end_index",
)
_OPTIONS = re.compile(
    r"\A(?>(.*?)^ *+\(A\)) *+(?>(.*?)^ *+\(B\)) *+(?>(.*?)^ *+\(C\)) *+(?>(.*?)^ *+\(D\)) *+(.*)",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class ZeroScrolls(Benchmark):
    """A task of ZeroSCROLLS, from the benchmark's own file.

    Rows with one `id` are one example with several references. The benchmark's prompt is taken
    apart into instruction, headers (context, query, response), question and document; reviews,
    paragraphs and summaries are the document's `parts`; `OfficialPrompt.of(example)` has it
    unaltered.

    Attributes:
        name: Name of the task, as the benchmark names it.
        split: `validation`, or `test`, whose gold answers the authors may keep to themselves.
        chat: The authors' variant for chat models: no response header, and no explanation wanted.
            `claude` is theirs for Claude 1: a turn of `Human:`, and one of `Assistant:` which an
            opening tag begins, so that the answer ends where it is closed (`stop: ["</"]`).
        data: Directory of the benchmarks' files: `zero_scrolls/NAME.zip` in it, or
            `zero_scrolls/NAME/SPLIT.jsonl`. None stands for `LEPORELLO_DATA`, else `data`.
    """

    name: Literal[
        "gov_report", "summ_screen_fd", "qmsum", "squality", "qasper", "narrative_qa", "quality",
        "musique", "space_digest", "book_sum_sort",
    ]  # fmt: skip
    split: str = "validation"
    chat: bool | Literal["claude"] = False
    data: Path | None = None

    benchmark: ClassVar[str] = "zero_scrolls"
    splits: ClassVar[tuple[str, ...]] = SPLITS

    @property
    def metrics(self) -> tuple[str, ...]:
        """The benchmark's own."""
        return METRICS[self.name]

    @property
    def no_answer(self) -> str:
        """What references say where the document does not say so; empty if they never do."""
        return "unanswerable" if self.name in ("qasper", "musique") else ""

    @property
    def published(self) -> Published:
        """The zip of both splits."""
        return Published("tau/zero_scrolls", f"{self.name}.zip", f"zero_scrolls/{self.name}.zip")

    def places(self, folder: Path) -> Sequence[Archive]:
        """Returns the zip of all splits, or what was in it."""
        file = f"{self.split}.jsonl"
        return zip_or_folder(folder, f"{self.name}.zip", f"{self.name}/{file}", file)

    def normalise(self, text: str, example: Example) -> str:
        """Returns an answer in the form that the metric reads."""
        match self.name:
            case "quality":
                return answers.option_letter(text, example.choices)
            case "space_digest":
                return answers.percentage(text)
            case "book_sum_sort":
                return answers.permutation(text, len(example.document.parts))
        return answers.unanswerable(text, self.no_answer) if self.no_answer else text

    def take(self, number: int, row: Mapping[str, Any]) -> Example:  # noqa: ARG002 -- part of `Benchmark`
        """Takes a row apart; see `Benchmark.take`."""
        text, offsets = text_of(row, "input"), _offsets(row)
        starts, gold = _starts(row), outputs(row)
        example = Example(text_of(row, "id"), Document("", text))
        if fault := _misplaced(offsets, starts, len(text)):
            return replace(example, fault=fault)
        start, end = offsets[:2]
        # The benchmark spells it so.
        prompt = self._prompt(text, offsets, text_of(row, "truncation_seperator"))
        question, choices, headers = self._apart(prompt)
        return replace(
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
        """Returns the pieces around the document; for chat models, as the authors change them."""
        start, end, query_start, query_end = offsets
        if query_start < end:  # there is no query, so that both are equal
            query_start = query_end = end
        if not text[query_end:].strip():  # the query reaches over the response header
            query = text[query_start:].rstrip()
            query_end = query_start + len(query[: query.rfind("\n") + 1].rstrip())
        prompt = OfficialPrompt(
            text[:start],
            text[end:query_start],
            text[query_start:query_end],
            text[query_end:],
            separator,
        )
        if not self.chat:
            return prompt
        wanted, before = prompt.after.strip().replace(":", ""), prompt.before
        tag = wanted.lower().replace(" ", "_")
        closed = self.chat == "claude" and self.name not in SUMMARIES
        tags = f", and please highlight your final {wanted.lower()} with <{tag}></{tag}> tags."
        before = self._told(before, tags if closed else ".")
        if self.chat is True:
            return replace(prompt, before=before, after="")
        turn = f"\n\nAssistant: {wanted}: <{tag}>" if closed else "\n\nAssistant:"
        return replace(prompt, before=f"\n\nHuman: {before}", after=turn)

    def _told(self, before: str, end: str) -> str:
        """Returns what stands before the document with the sentence for chat models."""
        instruction, gap, rest = before.partition("\n\n")
        if self.name in SUMMARIES:
            return before
        return f"{instruction.strip().removesuffix(CHAT).rstrip()} {CHAT[:-1]}{end}{gap}{rest}"

    def _apart(self, prompt: OfficialPrompt) -> tuple[str, tuple[str, ...], tuple[str, str, str]]:
        """Returns the question, its options, and the headers of context, query and response."""
        context = _above(prompt.before)[1]
        response = "" if self.chat else prompt.after.strip().removesuffix(":")
        header, question = _below(prompt.between + prompt.query)
        choices: Sequence[str] = ()
        if self.name == "quality" and (options := _OPTIONS.match(question)):
            question, *choices = (part.rstrip() for part in options.groups())
        return question, (*choices,), (context, header, response)

    def _unfit(self, gold: Sequence[str]) -> str:
        """Returns why the benchmark's metric could not score by these references, if so."""
        for answer in gold:
            if self.name == "quality" and not answers.LETTER.search(answer):
                return f"gold answer {answer!r:.60} has no letter A to D"
            if self.name == "space_digest" and not answers.PERCENTAGE.search(answer):
                return f"gold answer {answer!r:.60} has no percentage"
            if self.name == "book_sum_sort":
                ids = answers.ids(answer)
                if len(ids) < 2 or len(set(ids)) < len(ids):  # noqa: PLR2004 -- one has no order
                    return f"gold answer {answer!r:.60} is no order of two ids or more"
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
    """Returns what is wrong with offsets into `input`, if anything."""
    start, end, query_start, query_end = offsets
    if not 0 <= start <= end <= length:
        return f"document_start_index {start} and document_end_index {end} are not in `input`"
    if query_start != query_end and not end <= query_start < query_end <= length:
        return f"query_start_index {query_start} and query_end_index {query_end} are misplaced"
    borders = [start, *starts, end]
    if any(a > b for a, b in itertools.pairwise(borders)) or len(set(starts)) < len(starts):
        return "inner_docs_start_indices do not ascend within the document"
    return ""


def _parts(text: str, starts: Sequence[int], start: int, end: int) -> tuple[Span, ...]:
    """Returns the inner documents, each without the blanks behind it."""
    return tuple(
        Span(a - start, a - start + len(text[a:b].rstrip()))
        for a, b in itertools.pairwise([*starts, end])
    )


def _above(before: str) -> tuple[str, str]:
    """Returns instruction and context header of what stands before a document."""
    body, _, last = before.rstrip().rpartition("\n")
    return (body.strip(), last.removesuffix(":")) if last.endswith(":") else (before.strip(), "")


def _below(zone: str) -> tuple[str, str]:
    """Returns header and query of what stands between a document and the response header."""
    first, _, rest = zone.strip().partition("\n")
    return (
        (first.removesuffix(":"), rest.strip())
        if first.endswith(":") and rest
        else ("", zone.strip())
    )
