"""HELMET (Yen et al. 2025): recall, retrieval-augmented generation and passage re-ranking."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.errors import UserError
from leporello.core.records import Document, Example
from leporello.tasks.jsonl.schema import RowError, decode
from leporello.tasks.long_context.templates import data_of, metadata_of
from leporello.tasks.official.archives import Archive, data_directory, present
from leporello.tasks.official.benchmark import Benchmark, text_of, texts_of

_Row = Mapping[str, Any]
_QUESTIONS, _SHOTS, _SEED, _POPULAR = 100, 2, 42, 1000  # as in the authors' configs


@dataclass(frozen=True)
class Helmet(Benchmark):
    """A task of HELMET at one length, with the authors' 100 questions and two worked examples.

    The document is the row's context. A question has a row for each depth of the right passage.

    Attributes:
        length: Length of the input in tokens of Llama 2.
        data: Directory of the benchmarks' files; `helmet` in it is the authors' folder `data`. None
            means `LEPORELLO_DATA` or `data`.
    """

    name: Literal[
        "kilt_nq", "kilt_triviaqa", "kilt_hotpotqa", "kilt_popqa_3", "json_kv", "ruler_niah_mk_2",
        "ruler_niah_mk_3", "ruler_niah_mv", "msmarco_rerank_psg",
    ]  # fmt: skip
    length: Literal[8192, 16384, 32768, 65536, 131072] = 131072
    split: str = "test"
    data: Path | None = None

    benchmark: ClassVar[str] = "helmet"
    by_hand: ClassVar[str] = "https://huggingface.co/datasets/princeton-nlp/HELMET (data.tar.gz)"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The official metric."""
        return (self._data["metric"],)

    def _places(self, folder: Path) -> Sequence[Archive]:
        size = self._data["sizes"][(8192, 16384, 32768, 65536, 131072).index(self.length)]
        return (Archive(folder / self._data["file"].format(size=size)),)

    def _take(self, number: int, row: _Row) -> Iterator[Example]:
        data = self._data
        questions = _drawn(self.archive, "passage" in data)
        if (_key(row) if "passage" in data else number) not in questions:
            return
        try:
            fields = {**row, "demos": "".join(self._demos(row))}
            yield Example(
                id=f"{self.name}-{number}",
                document=Document("", _context(data, row)),
                question=data["question"].format(**fields),
                instruction=data["instruction"],
                references=_answers(row),
                metadata={
                    **metadata_of(data["prompt"], fields),
                    "gold": {"relevance": _labels(row)},
                },
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            fault = f"has no field {error}" if isinstance(error, KeyError) else str(error)
            raise RowError([f"is not a row of {self.full_name}: {fault}"]) from None

    def _demos(self, row: _Row) -> Iterator[str]:
        """Yields worked examples before a question, drawn by its key like the authors."""
        import numpy as np

        for key, value in row.get("demos", ())[:_SHOTS]:  # of `json_kv`
            yield f"Key: {key}\nCorresponding value: {value}\n\n"
        if not (file := self._data.get("demos")):
            return
        archive = Archive(data_directory(self.data) / self.benchmark / file)
        archive = present(self.full_name, (archive,), self.by_hand)
        demos = [r for r in _read(archive, dict) if _key(r) != _key(row)]
        seed = int(hashlib.sha256(str(_key(row)).encode()).hexdigest(), 16) % 2**31
        first: dict[Any, _Row] = {}
        for index in np.random.default_rng(seed).permutation(len(demos)):
            first.setdefault(_key(demos[index]), demos[index])
        for demo in [*first.values()][:_SHOTS]:
            fields = {"context": _context(self._data, demo), "answer": _answers(demo)[0]}
            yield self._data["demo"].format(**{**demo, **fields})

    @property
    def _data(self) -> _Row:
        task = data_of("helmet", "tasks", self.name)
        return {**data_of("helmet", task["kind"]), **task}


@lru_cache(maxsize=8)
def _drawn(archive: Archive, by_question: bool) -> frozenset[Any]:
    """Returns the keys of the authors' questions, or the numbers of their rows."""
    import numpy as np

    if by_question:
        keys = sorted({*_read(archive, _key)})
        return frozenset(random.Random(_SEED).sample(keys, min(_QUESTIONS, len(keys))))
    count = sum(1 for _ in archive.rows())
    return frozenset(np.random.default_rng(_SEED).permutation(count)[:_QUESTIONS].tolist())


@lru_cache(maxsize=8)
def _read(archive: Archive, of_row: Callable[[_Row], Any]) -> list[Any]:
    """Returns the rows in a form, without popular questions, which only `popqa_3` has."""
    results = []
    for line in archive.rows():
        try:
            row = decode(line.content, strict=False)
        except RowError as error:
            raise UserError(f"{archive}:{line.number}: {error}") from None
        if row.get("s_pop", 0) < _POPULAR:
            results.append(of_row(row))
    return results


def _key(row: _Row) -> Any:  # noqa: ANN401 -- a text or a number
    return row.get("qid", row.get("id", row.get("question")))


def _context(kind: _Row, row: _Row) -> str:
    if "passage" not in kind:
        return text_of(row, "context")
    return "\n\n".join(kind["passage"].format(**passage) for passage in row["ctxs"])


def _labels(row: _Row) -> dict[str, Any]:
    """Returns the relevance of each passage by its id; empty without labels."""
    return {p["id"]: int(p["label"]) for p in (row["ctxs"] if "qid" in row else ())}


def _answers(row: _Row) -> tuple[str, ...]:
    """Returns the references; for passages with labels, the order of their ids."""
    if labels := _labels(row):
        return (" > ".join(sorted(labels, key=labels.__getitem__, reverse=True)),)
    name = next((name for name in ("answers", "answer", "outputs") if name in row), "answer")
    return texts_of(row, name) if isinstance(row.get(name), list) else (text_of(row, name),)
