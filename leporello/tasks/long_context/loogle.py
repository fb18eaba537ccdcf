"""LooGLE (Li et al. 2023): questions with short and long dependencies, clozes and summaries."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.protocols import MetricEntry
from leporello.core.records import Document, Example, Span
from leporello.tasks.jsonl.schema import RowError
from leporello.tasks.long_context.templates import data_of, metadata_of
from leporello.tasks.official.archives import Archive
from leporello.tasks.official.benchmark import Benchmark, Published, text_of

# Fields in rows with several questions -> fields in rows with one question.
_FLAT = {"Q": "question", "A": "answer", "S": "evidence"}


@dataclass(frozen=True)
class LooGLE(Benchmark):
    """A task of LooGLE, from the benchmark's official file.

    A row is a document with its questions (`input`, `qa_pairs`), or in newer files of the hub a
    question with its document (`context`, `question`, `answer`). The reference of a cloze is the
    dictionary of its masks, as JSON. Proofs that occur in the document are the evidence; the type
    of a question is its group.
    """

    name: Literal["shortdep_qa", "longdep_qa", "longdep_summarization", "shortdep_cloze"]
    split: str = "test"
    data: Path | None = None

    benchmark: ClassVar[str] = "loogle"
    repository: ClassVar[str] = "bigai-nlco/LooGLE"

    @property
    def metrics(self) -> tuple[MetricEntry, ...]:
        """The official metrics that need no model."""
        return (self._data["metric"],)

    @property
    def published(self) -> Published:
        """The task's file on the hub, with one question per row."""
        file = self.name.removeprefix("longdep_") if "summ" in self.name else self.name
        return Published(self.repository, f"data/{file}.jsonl", f"loogle/{self.name}.jsonl")

    def _places(self, folder: Path) -> Sequence[Archive]:
        file = f"{self.name}.jsonl"
        return Archive(folder / file), Archive(folder / "data.zip", (f"data/{file}", file))

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterator[Example]:
        is_flat, title = "context" in row, str(row.get("title") or "")
        document = Document("", text_of(row, "context" if is_flat else "input"), title=title)
        if is_flat:
            pairs: Sequence[Mapping[str, Any]] = [{new: row.get(old) for new, old in _FLAT.items()}]
        elif "summ" in self.name:
            pairs = [{"Q": "", "A": row.get("output")}]
        else:
            pairs = _pairs(row.get("qa_pairs"))
        for place, pair in enumerate(pairs):
            yield self._example(f"{number}-{place}", document, pair)

    def _example(self, place: str, document: Document, pair: Mapping[str, Any]) -> Example:
        question = "" if "summ" in self.name else text_of(pair, "Q")
        return Example(
            id=f"{self.name}-{place}",
            document=document,
            question=question,
            instruction=self._data["instruction"],
            references=(self._gold(pair),),
            evidence=tuple(_evidence(document.text, pair.get("S"))),
            group=str(pair.get("type") or ""),
            metadata=metadata_of(self._data["prompt"], {"input": question}),
        )

    def _gold(self, pair: Mapping[str, Any]) -> str:
        if "cloze" not in self.name:
            return text_of(pair, "A")
        masks = _literal(pair.get("A"))
        if isinstance(masks, dict) and masks and all(isinstance(v, str) for v in masks.values()):
            return json.dumps(masks, ensure_ascii=False)
        raise RowError([f"field 'A' must be an object of masks and texts, got {masks!r:.60}"])

    @property
    def _data(self) -> Mapping[str, Any]:
        return data_of("loogle", self.name)


def _pairs(value: Any) -> Sequence[Mapping[str, Any]]:  # noqa: ANN401 -- any JSON
    """Returns the questions of a row, which may be a Python literal."""
    value = _literal(value)
    if isinstance(value, list) and value and all(isinstance(pair, dict) for pair in value):
        return value
    raise RowError(["field 'qa_pairs' must be a list of objects with `Q` and `A`"])


def _literal(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    """Returns the value of a text that is a Python literal; other values unchanged."""
    if isinstance(value, str):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(value)
    return value


def _evidence(text: str, proofs: Any) -> list[Span]:  # noqa: ANN401 -- any JSON
    listed = proofs if isinstance(proofs, list) else [proofs]
    starts = [
        (text.find(proof), len(proof)) for proof in listed if isinstance(proof, str) and proof
    ]
    return [Span(start, start + length) for start, length in starts if start >= 0]
