"""PAN's style change task: a folder of `problem-1.txt` and `truth-problem-1.json`."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from leporello.core.errors import UserError
from leporello.core.records import Document, DocumentRows, Example, Span
from leporello.loaders.files import file_hash, load, read_bytes
from leporello.tasks.layouts import LaidOut
from leporello.text import answers

_NAME = re.compile(r"problem-(\d+)\.txt")
# Windows line ends too, since PAN's folders come from several systems.
_BLANK_LINE = re.compile(r"\r?\n\s*\n")
_LINE_BREAK = re.compile(r"\r?\n")


@dataclass(frozen=True)
class Pan21(LaidOut):
    """Style change from a folder of PAN 2021, or of the generator of MuLD's task.

    `problem-N.txt` is a document, whose paragraphs are its `parts`. `truth-problem-N.json` has its
    `paragraph-authors`, from which the other truths follow. A problem without a truth file is test
    data. PAN separates paragraphs by blank lines, MuLD by line breaks: the separator is the one
    with the right number of paragraphs, or without truth a blank line if there is any.

    Attributes:
        path: The folder.
    """

    metrics: ClassVar[tuple[str, ...]] = ("pan21",)

    path: Path

    def layout(self) -> Iterator[DocumentRows]:
        """Yields names and sizes of the problems, in the order of their numbers."""
        for file in self._problems():
            yield DocumentRows(1, file.stat().st_size if file.exists() else 0, file.name)

    def examples_of(self, documents: Iterable[DocumentRows], first: int) -> Iterator[Example]:  # noqa: ARG002 -- part of `Sharded`
        """Yields problems of the layout; faulty examples have a `fault`."""
        for document in documents:
            yield _example(self.path / str(document.rows))

    def fingerprint(self) -> str:
        """Returns the SHA-256 of all problems and truth files."""
        digest = hashlib.sha256()
        for problem in self._problems():
            for file in (f for f in (problem, _truth_file(problem)) if f.exists()):
                digest.update(f"{file.name}\0".encode() + file_hash(file))
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._problems())

    def normalise(self, text: str, example: Example) -> str:  # noqa: ARG002 -- part of every task
        """Returns an answer in the form that the metric requires."""
        return answers.authors(text)

    def _problems(self) -> list[Path]:
        if not self.path.is_dir():
            raise UserError(f"{self.path}: there is no such folder")
        numbers = {file: _NAME.fullmatch(file.name) for file in self.path.iterdir()}
        problems = [(int(match[1]), file) for file, match in numbers.items() if match]
        if not problems:
            raise UserError(f"{self.path}: has no problem-1.txt, problem-2.txt, … of PAN")
        # By number, since `problem-10` precedes `problem-2` by name.
        return [file for _, file in sorted(problems)]


def _truth_file(problem: Path) -> Path:
    return problem.with_name(f"truth-{problem.stem}.json")


def _example(problem: Path) -> Example:
    """Returns a problem as an example, with faults of its files as its `fault`."""
    try:
        document = load(problem, problem.stem)
    except UserError as error:
        return Example(problem.stem, Document(problem.stem, ""), fault=str(error))
    file = _truth_file(problem)
    if not file.exists():
        # Without truth nobody knows the separator; a text with blank lines mostly uses them.
        blank = bool(_BLANK_LINE.search(document.text.strip()))
        parts = _parts(document.text, _BLANK_LINE if blank else _LINE_BREAK)
        return Example(problem.stem, dataclasses.replace(document, parts=parts))
    try:
        truth = _truth(file)
        authors = _authors(truth)
        parts = _paragraphs(document.text, len(authors))
    except (UserError, ValueError) as error:
        fault = str(error) if isinstance(error, UserError) else f"{file.name}: {error}"
        return Example(problem.stem, document, fault=fault)
    gold = {name: value for name, value in truth.items() if name in ("site", "structure")}
    return Example(
        problem.stem,
        dataclasses.replace(document, parts=parts),
        references=(json.dumps(authors),),
        metadata={"gold": gold},
    )


def _truth(file: Path) -> Mapping[str, Any]:
    value = json.loads(read_bytes(file))
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 -- reported as the example's fault
    return value


def _authors(truth: Mapping[str, Any]) -> list[int]:
    """Returns the paragraphs' authors; raises ValueError if they are missing or not numbers."""
    authors = truth.get("paragraph-authors")
    if not isinstance(authors, list) or not authors:
        raise ValueError("has no list `paragraph-authors`")
    if not all(type(author) is int and author > 0 for author in authors):
        raise ValueError("`paragraph-authors` are not numbers from 1")
    return authors


def _paragraphs(text: str, count: int) -> tuple[Span, ...]:
    """Returns `count` paragraphs; raises ValueError if neither separator gives this number."""
    by_blank, by_line = (_parts(text, border) for border in (_BLANK_LINE, _LINE_BREAK))
    # Blank lines first, since PAN itself uses them; MuLD's generator writes one line each.
    for parts in (by_blank, by_line):
        if len(parts) == count:
            return parts
    raise ValueError(
        f"has {count} paragraph-authors, but the problem has {len(by_blank)} paragraphs separated"
        f" by blank lines, or {len(by_line)} by line breaks"
    )


def _parts(text: str, border: re.Pattern[str]) -> tuple[Span, ...]:
    ends = [match.start() for match in border.finditer(text)]
    starts = [0, *(match.end() for match in border.finditer(text))]
    spans = [Span(*pair) for pair in zip(starts, [*ends, len(text)], strict=True)]
    return tuple(span for span in spans if text[span.start : span.end].strip())
