"""PAN's style change task: a folder of `problem-1.txt` and `truth-problem-1.json`."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

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
    document, file = Document(problem.stem, ""), _truth_file(problem)
    try:
        document = load(problem, problem.stem)
        truth = _truth(file) if file.exists() else {}
    except UserError as error:
        return Example(problem.stem, document, fault=str(error))
    # Blank lines first, since PAN itself uses them; MuLD's generator writes one line each.
    by_blank, by_line = (_parts(document.text, border) for border in (_BLANK_LINE, _LINE_BREAK))
    if not truth:
        # Without truth nobody knows the separator; a text with blank lines mostly uses them.
        parts = by_blank if len(by_blank) > 1 else by_line
        return Example(problem.stem, dataclasses.replace(document, parts=parts))
    authors = truth["paragraph-authors"]
    parts = by_blank if len(by_blank) == len(authors) else by_line
    if len(parts) != len(authors):
        fault = (
            f"{file.name}: has {len(authors)} paragraph-authors, but the problem has"
            f" {len(by_blank)} paragraphs separated by blank lines, {len(by_line)} by line breaks"
        )
        return Example(problem.stem, document, fault=fault)
    return Example(
        problem.stem,
        dataclasses.replace(document, parts=parts),
        references=(json.dumps(authors),),
        metadata={"gold": {n: value for n, value in truth.items() if n in ("site", "structure")}},
    )


def _truth(file: Path) -> Mapping[str, Any]:
    """Reads a truth file; raises UserError if its authors are missing or not numbers."""
    try:
        truth: Any = json.loads(read_bytes(file))
    except ValueError as error:
        raise UserError(f"{file.name}: {error}") from None
    authors = truth.get("paragraph-authors") if isinstance(truth, dict) else None
    if not isinstance(authors, list) or not authors:
        raise UserError(f"{file.name}: has no list `paragraph-authors`")
    if not all(type(author) is int and author > 0 for author in authors):
        raise UserError(f"{file.name}: `paragraph-authors` are not numbers from 1")
    return cast("Mapping[str, Any]", truth)


def _parts(text: str, border: re.Pattern[str]) -> tuple[Span, ...]:
    ends = [match.start() for match in border.finditer(text)]
    starts = [0, *(match.end() for match in border.finditer(text))]
    spans = [Span(*pair) for pair in zip(starts, [*ends, len(text)], strict=True)]
    return tuple(span for span in spans if text[span.start : span.end].strip())
