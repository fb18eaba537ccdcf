"""Scientific Papers (Cohan et al. 2018): papers of arXiv and PubMed with their abstracts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import Document, Example
from leporello.tasks.official.archives import Archive
from leporello.tasks.official.benchmark import Benchmark, text_of, texts_of

# Splits -> names of their files.
SPLITS: Mapping[str, str] = {"train": "train", "validation": "val", "test": "test"}


@dataclass(frozen=True)
class ScientificPapers(Benchmark):
    """Papers to summarise, from the official files; MuLD's summarisers were trained on them.

    A row's paragraphs (`article_text`) are the document's lines; the reference is its abstract
    without the sentence tags `<S>`. Rows without text are skipped.

    Attributes:
        name: Name of the collection.
        split: `train`, `validation` or `test`.
        data: Directory of the benchmarks' files, with `scientific_papers/NAME-dataset.zip` or
            `scientific_papers/NAME-dataset/train.txt`. None means `LEPORELLO_DATA` or `data`.
    """

    benchmark: ClassVar[str] = "scientific_papers"
    splits: ClassVar[tuple[str, ...]] = tuple(SPLITS)
    by_hand: ClassVar[str] = "https://github.com/armancohan/long-summarization"
    metrics: ClassVar[tuple[str, ...]] = ("rouge_scrolls",)

    name: Literal["arxiv", "pubmed"]
    split: str = "validation"
    data: Path | None = None

    def _places(self, folder: Path) -> Sequence[Archive]:
        inner = f"{self.name}-dataset"
        file = f"{inner}/{SPLITS[self.split]}.txt"
        return Archive(folder / file), Archive(folder / f"{inner}.zip", (file,))

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterator[Example]:  # noqa: ARG002 -- part of `Benchmark`
        text = "\n".join(texts_of(row, "article_text"))
        marked = " ".join(texts_of(row, "abstract_text"))
        abstract = " ".join(marked.replace("<S>", " ").replace("</S>", " ").split())
        if not text.strip() or not abstract:
            return
        yield Example(
            id=text_of(row, "article_id"),
            document=Document("", text),
            references=(abstract,),
            metadata=OfficialPrompt("").metadata(),
        )
