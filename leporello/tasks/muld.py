"""MuLD (Hudson and Al Moubayed 2022): six tasks on documents of at least 10,000 words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import JSON, Document, Example, Span
from leporello.tasks.official.archives import check_split
from leporello.tasks.official.benchmark import Benchmark, Published
from leporello.tasks.official.fields import outputs, text_of
from leporello.text import answers
from leporello.text.english.scripts import LINE

SPLITS: Mapping[str, tuple[str, ...]] = {
    "narrativeqa": ("train", "validation", "test"),
    "hotpotqa": ("train", "validation"),
    "opensubtitles": ("train", "test"),
    "vlsp": ("test",),
    "style_change": ("train", "validation", "test"),
    "character_id": ("train", "validation", "test"),
}
_WRITTEN = ("bleu_coco", "meteor_coco", "rouge_l_coco")
METRICS: Mapping[str, tuple[str, ...]] = {
    "narrativeqa": _WRITTEN,
    "hotpotqa": _WRITTEN,
    "opensubtitles": _WRITTEN,
    "vlsp": _WRITTEN,
    "style_change": ("pan21",),
    "character_id": ("f1_macro",),
}
LABELS = ("Hero", "Villain/Antagonist")  # of character_id

# Without a limit, any `<html` in a book would end the question.
_LONGEST = 1000  # most characters of a question; the document must begin within them
# Beginnings of books and scripts: HTML, or a byte order mark, which may be read as Latin-1.
_BORDER = re.compile("(?P<mark>\ufeff|ï»¿)|<html", re.IGNORECASE)
_ASKED = re.compile(r"\?[\"'”’)\]]*")
_BLANK = re.compile(r"\s*")
_AUTHORS = re.compile(r"\[\d+(, \d+)*\]")


@dataclass(frozen=True)
class Muld(Benchmark):
    """A task of MuLD, from the benchmark's official file.

    A row is an example; its id is the split and its number from 0, as the benchmark has no ids. The
    question, in `character_id` the character's name, is separated from the document. In
    `style_change` the paragraphs are the document's `parts`, and the reference is a list of
    authors.

    Attributes:
        name: Name of the task in the benchmark's file names.
        split: `train`, `validation` or `test`; not all tasks have all of them.
        data: Directory of the benchmarks' files, with `muld/NAME_SPLIT.json.bz2`. None means
            `LEPORELLO_DATA` or `data`.
        instruction: Instruction, which precedes the passages in a prompt; the benchmark has none.
    """

    name: Literal[
        "narrativeqa", "hotpotqa", "opensubtitles", "vlsp", "style_change", "character_id"
    ]
    split: str = "test"
    data: Path | None = None
    instruction: str = ""

    benchmark: ClassVar[str] = "muld"

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of the task."""
        return SPLITS[self.name]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the paper; the benchmark has no code for them."""
        return METRICS[self.name]

    @property
    def published(self) -> Published:
        """The split's file on the hub.

        Raises:
            UserError: The task has no such split.
        """
        check_split(f"muld/{self.name}", self.split, self.splits)
        file = f"{self.name}_{self.split}.json.bz2"
        return Published("ghomasHudson/muld", f"data/{file}", f"muld/{file}")

    def normalise(self, text: str, example: Example) -> str:  # noqa: ARG002 -- part of every task
        """Returns an answer in the form that the metric requires."""
        if self.name == "character_id":
            return answers.label(text, LABELS)
        return answers.authors(text) if self.name == "style_change" else text

    def take(self, number: int, row: Mapping[str, Any]) -> Example:
        """Parses one row; see `Benchmark.take`."""
        text = text_of(row, "input")
        question, head, fault = self._split_input(text)
        document = Document("", text[head:], parts=self._parts(text))
        references, unfit = self._references(row, document)
        return Example(
            # By position, since the benchmark has no ids; so the order of rows must never change.
            id=f"{self.split}-{number}",
            document=document,
            question=question,
            instruction=self.instruction,
            choices=LABELS if self.name == "character_id" else (),
            references=references,
            metadata=OfficialPrompt(before=text[:head]).metadata() | _gold(row),
            fault=fault or unfit,
        )

    def _split_input(self, text: str) -> tuple[str, int, str]:
        """Returns the question, the start of the document, and a fault or an empty text."""
        if self.name in ("narrativeqa", "hotpotqa"):
            return _question_above(text)
        if self.name == "character_id":
            name, line_end, _ = text.partition("\n")
            fault = "" if line_end and name.strip() else "`input` has no line with a name above it"
            return name.strip(), len(name) + len(line_end) if line_end else 0, fault
        return "", 0, ""

    def _parts(self, text: str) -> tuple[Span, ...]:
        """Returns the paragraphs of `style_change`: lines without blank ones."""
        if self.name != "style_change":
            return ()
        # Spans, so that PAN's paragraphs remain slices of the document.
        return tuple(Span(*line.span()) for line in LINE.finditer(text))

    def _references(
        self, row: Mapping[str, Any], document: Document
    ) -> tuple[tuple[str, ...], str]:
        """Returns the references, and a reason if the metric cannot use them."""
        if self.name == "style_change":
            return _authors(row.get("output"), len(document.parts))
        gold = outputs(row)
        if self.name == "character_id":
            gold = tuple(answers.label(answer, LABELS) for answer in gold)
            foreign = [answer for answer in gold if answer not in LABELS]
            return gold, f"gold answer {foreign[0]!r:.60} is not a label" if foreign else ""
        lines = len(document.text.splitlines())
        # A translation is a list of lines; metrics would score only the best line.
        if self.name == "opensubtitles" and len(gold) == lines > 1:
            gold = ("\n".join(gold),)
        return gold, ""


def _question_above(text: str) -> tuple[str, int, str]:
    """Returns the question before a document, the start of the document, and a fault.

    Between them is a byte order mark, a tag, a line break or nothing, depending on the row.
    """
    if border := _BORDER.search(text, 0, _LONGEST):
        head = border.end() if border["mark"] else border.start()
        return text[: border.start()].strip(), head, ""
    blank = _BLANK.match(text)
    start = blank.end() if blank else 0
    end = text.find("\n", start, start + _LONGEST)
    line = text[start : start + _LONGEST if end < 0 else end]
    match = _ASKED.search(line)
    # Some rows have no line break between the question and the book.
    if match and not line.rstrip(" \"'”’)]").endswith("?"):
        line = line[: match.end()]  # the document begins on the same line
    elif end < 0 and not match:
        return (
            "",
            0,
            f"no question is recognised in the first {_LONGEST} characters",
        )
    gap = _BLANK.match(text, start + len(line))
    return line.strip(), gap.end() if gap else start + len(line), ""


def _authors(output: JSON, paragraphs: int) -> tuple[tuple[str, ...], str]:
    """Returns the gold authors as JSON, from any of the forms in the official files."""
    if output is None:
        return (), ""
    # Rows have the authors as numbers, a text, or a list of one text.
    if isinstance(output, list) and len(output) == 1 and isinstance(output[0], str):
        output = output[0]
    listed = answers.authors(output if isinstance(output, str) else json.dumps(output))
    if not _AUTHORS.fullmatch(listed):
        return (), f"gold answer {listed!r:.60} is not a list of authors"
    # Checked here, because a wrong number would shift all later paragraphs in the metric.
    count = listed.count(",") + 1
    if count != paragraphs:
        return (), f"{paragraphs} paragraphs, but {count} authors of paragraphs"
    return (listed,), ""


def _gold(row: Mapping[str, Any]) -> dict[str, JSON]:
    """Returns the row's metadata as `gold`, as it may contain answers."""
    metadata = row.get("metadata")
    if not metadata:
        return {}
    try:
        # Under `gold`, which stages never see.
        return {"gold": json.loads(metadata) if isinstance(metadata, str) else metadata}
    except ValueError:
        return {"gold": metadata}
