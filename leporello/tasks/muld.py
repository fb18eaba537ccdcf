"""MuLD (Hudson and Al Moubayed 2022), and ContraPro (Müller et al. 2018) on its subtitles."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.protocols import Count
from leporello.core.records import JSON, Document, Example, Span
from leporello.tasks.jsonl.schema import RowError
from leporello.tasks.official.benchmark import Benchmark, outputs, text_of
from leporello.text import answers
from leporello.text.english.terms import LINE

SPLITS: Mapping[str, tuple[str, ...]] = {
    "narrativeqa": ("train", "validation", "test"),
    "hotpotqa": ("train", "validation"),
    "opensubtitles": ("train", "test"),
    "vlsp": ("test",),
    "style_change": ("train", "validation", "test"),
    "character_id": ("train", "validation", "test"),
}
_WRITTEN = ("bleu_coco", "meteor_coco", "rouge_l_coco")
_OF_LABELS = {"style_change": ("pan21",), "character_id": ("f1_macro",)}
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
        split: `train`, `validation` or `test`; not all tasks have all of them.
        instruction: Instruction, which precedes the passages in a prompt; the benchmark has none.
    """

    name: Literal[
        "narrativeqa", "hotpotqa", "opensubtitles", "vlsp", "style_change", "character_id"
    ]
    split: str = "test"
    data: Path | None = None
    instruction: str = ""

    benchmark: ClassVar[str] = "muld"
    repository: ClassVar[str] = "ghomasHudson/muld"
    file: ClassVar[str] = "data/{name}_{split}.json.bz2"

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of the task."""
        return SPLITS[self.name]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the paper; the benchmark has no code for them."""
        return _OF_LABELS.get(self.name, _WRITTEN)

    def normalise(self, text: str, example: Example) -> str:  # noqa: ARG002 -- part of every task
        """Returns an answer in the form that the metric requires."""
        if self.name == "character_id":
            return answers.label(text, LABELS)
        return answers.authors(text) if self.name == "style_change" else text

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterator[Example]:
        text = text_of(row, "input")
        question, head, fault = self._split_input(text)
        document = Document("", text[head:], parts=self._parts(text))
        references, unfit = self._references(row, document)
        gold = _metadata(row)
        yield Example(
            # By position, since the benchmark has no ids; so the order of rows must never change.
            id=f"{self.split}-{number}",
            document=document,
            question=question,
            instruction=self.instruction,
            choices=LABELS if self.name == "character_id" else (),
            references=references,
            # Under `gold`, which stages never see, as it may contain answers.
            metadata=OfficialPrompt(before=text[:head]).metadata()
            | ({"gold": gold} if gold else {}),
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
    """Returns the question before a document, the start of the document, and a fault."""
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
        return "", 0, f"no question is recognised in the first {_LONGEST} characters"
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


def _metadata(row: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- any JSON
    """Returns a row's metadata, which may be a text in JSON."""
    metadata = row.get("metadata")
    if isinstance(metadata, str):
        with suppress(ValueError):
            return json.loads(metadata)
    return metadata


_FAR = 3  # lines; ContraPro's `evaluate.py` reports farther antecedents together
# ContraPro's segments have other white space and quotes than the subtitles.
_IGNORED = re.compile(r"[\s\"`´']")


@dataclass(frozen=True)
class ContraPro(Benchmark):
    """Contrastive choice of a pronoun, from the annotations of MuLD's OpenSubtitles.

    A row's `metadata` has the annotations of the film, in the form of `contrapro.json`. Each is an
    example, whose document is the English line with the lines before it. The choices are the
    reference and its `contrastive` variants, in alphabetical order, after the German lines before
    them. The group is the distance of the antecedent, in lines.

    Attributes:
        split: `train` or `test`.
        context: Number of lines before the annotated line, in both languages.
    """

    split: str = "test"
    context: Count = 3
    data: Path | None = None

    benchmark: ClassVar[str] = "muld"
    repository: ClassVar[str] = Muld.repository
    file: ClassVar[str] = "data/opensubtitles_{split}.json.bz2"
    name: ClassVar[str] = "contrapro"
    metrics: ClassVar[tuple[str, ...]] = ("exact_match",)
    splits: ClassVar[tuple[str, ...]] = SPLITS["opensubtitles"]

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterator[Example]:
        gold = outputs(row)
        english = text_of(row, "input").splitlines()
        german = list(gold) if len(gold) > 1 else "\n".join(gold).splitlines()
        metadata = _metadata(row) or []
        annotations = metadata if isinstance(metadata, list) else [metadata]
        for place, annotation in enumerate(_objects(annotations, "metadata")):
            yield self._example(f"{self.split}-{number}-{place}", english, german, annotation)

    def _example(
        self, name: str, english: Sequence[str], german: Sequence[str], entry: Mapping[str, Any]
    ) -> Example:
        source, right = (text_of(entry, field) for field in ("src segment", "ref segment"))
        wrong = [text_of(e, "contrastive") for e in _objects(entry.get("errors"), "errors")]
        line = _line_of(source, entry.get("segment id"), english)
        start = max(0, line - self.context)
        fault = ""
        if line < 0:
            fault = f"`src segment` {source!r:.80} is not a line of `input`"
        elif start < line and len(german) != len(english):
            fault = f"`input` has {len(english)} lines, but `output` has {len(german)}"
        elif not wrong or right in wrong:
            fault = "`errors` has no translation that differs from `ref segment`"
        before = [] if fault else german[start:line]
        choices = ["\n".join([*before, text]) for text in sorted({right, *wrong})]
        text = "" if fault else "\n".join([*english[start:line], source])
        distance = entry.get("ante distance")
        is_far = isinstance(distance, int) and distance > _FAR
        return Example(
            id=name,
            document=Document("", text),
            choices=tuple(choices),
            references=("\n".join([*before, right]),),
            group=f"distance >{_FAR}" if is_far else f"distance {distance}",
            metadata={"gold": {key: entry.get(key) for key in ("src pronoun", "ref pronoun")}},
            fault=fault,
        )


def _objects(value: Any, name: str) -> list[Mapping[str, Any]]:  # noqa: ANN401 -- any JSON
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise RowError([f"field {name!r} must be a list of objects, got {json.dumps(value):.60}"])
    return value


def _line_of(source: str, number: JSON, lines: Sequence[str]) -> int:
    """Returns the index of the line with a segment: the numbered line, or the first; or -1."""
    bare = _IGNORED.sub("", source)
    numbered = [number - 1] if isinstance(number, int) and 0 < number <= len(lines) else []
    places: Iterator[int] = chain(numbered, range(len(lines)))
    return next((place for place in places if _IGNORED.sub("", lines[place]) == bare), -1)
