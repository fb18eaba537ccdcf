"""The k-Block Shuffle Test (Laban et al. 2021): texts must score higher than their shuffles."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import ClassVar, Literal, TypeAlias

from leporello.core.errors import ConfigError, Fault, UserError
from leporello.core.files import Stamp, sha256, stamp
from leporello.core.protocols import Count, Positive
from leporello.core.records import JSON, Document, Example
from leporello.storage import to_path
from leporello.tasks.jsonl.schema import RowError, decode
from leporello.tasks.official.archives import Archive, check_split, data_directory
from leporello.tasks.official.benchmark import text_of
from leporello.text.sentences import punkt, sentence_spans

SPLITS = ("train", "test")
LABELS = ("original", "shuffled")
_MOST_FAULTS = 20  # reading stops after as many
Unit: TypeAlias = Literal["sentence", "line", "punkt"]
# Number of a line from 1, and the id and text of its row, or faults.
_Row: TypeAlias = tuple[int, tuple[str, str] | RowError]


@dataclass(frozen=True, slots=True)
class ShuffleCorpus:
    """File of texts of the paper, and the split."""

    file: str  # path below the data directory; `{split}` in it is replaced by the split
    text: str = "text"
    id: str = "id"  # field of the text's id, if the row has it
    needs: str = ""  # further field; the row is skipped if it is blank
    # Number of rows of the split `test`, from the end if negative; 0 means all. If there is only
    # one file, `train` has the other rows.
    tested: int = 0

    def rows(self, path: Path, split: str) -> Iterator[_Row]:
        """Returns the rows of a split, in their order."""
        rows = self._rows(path)
        if split == "test" and self.tested:
            if self.tested > 0:
                return islice(rows, self.tested)
            return iter(deque(rows, maxlen=-self.tested))  # the file has many more
        return rows if "{split}" in self.file else _without_last(rows, -self.tested)

    def _rows(self, path: Path) -> Iterator[_Row]:
        for line in Archive(path).rows():
            try:
                row = decode(line.content, strict=False)
                text, name = text_of(row, self.text), self.id in row and text_of(row, self.id)
                if text.strip() and (not self.needs or text_of(row, self.needs).strip()):
                    yield line.number, (name or "", text)
            except RowError as error:
                yield line.number, error


def _without_last(rows: Iterator[_Row], count: int) -> Iterator[_Row]:
    buffer: deque[_Row] = deque()
    for row in rows:
        buffer.append(row)
        if len(buffer) > count:
            yield buffer.popleft()


# As in HF's `reddit_tifu` (short), posts need text and title; the authors test the last thousand.
CORPORA: Mapping[str, ShuffleCorpus] = {
    "": ShuffleCorpus(""),  # the user's file
    # The splits are the authors' files and row numbers, so that scores compare (decision 21).
    "wsj": ShuffleCorpus("shuffle_test/coherence_{split}_set.json", id=""),
    "billsum": ShuffleCorpus(
        "billsum/us_{split}_data_final_OFFICIAL.jsonl", id="bill_id", tested=1000
    ),
    "reddit_tifu": ShuffleCorpus(
        "reddit_tifu/tifu_all_tokenized_and_filtered.json",
        text="selftext_without_tldr",
        needs="trimmed_title",
        tested=-1000,
    ),
}


@dataclass(frozen=True)
class ShuffleTest:
    """Texts and shuffles of their sentences; each is an example with its own document.

    A row of the JSON Lines file has a `text`; its name is `id` or the row's number from 0. Other
    fields, and rows with blank texts, are ignored. The example `ID/original` is followed by
    `ID/3-0`, `ID/3-1`, … for blocks of three sentences; all have one sentence per line. A pipeline
    scores each example, and the metric compares the scores: a text is scored once for all its
    shuffles.

    The choices are the labels `original` and `shuffled`; the reference is the correct label. The
    metadata describe an example under `gold`, which is hidden from stages.

    Attributes:
        path: Path of the file; `{split}` in it is replaced by the split.
        block_sizes: Numbers of sentences per block.
        shuffles: Number of shuffles of each text, for each block size.
        seed: Seed of the shuffles, which depend only on it, the text's id and the block size.
        truncate_sentences: Number of first sentences to use, as in the paper; 0 uses all, as in the
            authors' code.
        unit: Unit into which a text is divided: sentences; lines, as the authors do with WSJ; or
            sentences by NLTK's Punkt, as they do with other corpora.
        split: Name of the split, which replaces `{split}` in the path.
        corpus: Corpus of the paper, in the file of its authors, instead of `path`: `wsj`
            (DATA/shuffle_test/coherence_test_set.json), `billsum` (the first thousand rows of
            DATA/billsum/us_test_data_final_OFFICIAL.jsonl) or `reddit_tifu` (the last thousand of
            DATA/reddit_tifu/tifu_all_tokenized_and_filtered.json; `train` has the other rows).
        data: Directory of these files. None means `LEPORELLO_DATA` or `data`.
    """

    metrics: ClassVar[tuple[str, ...]] = ("shuffle_accuracy",)

    path: Path | None = None
    # The paper's sizes: its GPT2-medium loses 10 points from 1 to 5 on WSJ (decision 21).
    block_sizes: tuple[Positive, ...] = (1, 2, 3, 4, 5)
    shuffles: Positive = 20
    seed: int = 0
    # 20 in the paper, all in its code; both are possible (decision 21).
    truncate_sentences: Count = 20
    # The project's own rules by default, since NLTK's Punkt needs a download (decision 7).
    unit: Unit = "sentence"
    split: str = ""
    corpus: Literal["", "wsj", "billsum", "reddit_tifu"] = ""
    data: Path | None = None

    def __post_init__(self) -> None:
        if bool(self.corpus) == bool(self.path):
            raise ValueError("give either the path of a file, or a corpus of the paper")
        if not self.block_sizes or len(set(self.block_sizes)) < len(self.block_sizes):
            raise ValueError(f"block_sizes must be different sizes, got {list(self.block_sizes)}")

    @property
    def file(self) -> Path:
        """The file of the split."""
        if self.corpus:
            check_split(f"shuffle_test/{self.corpus}", self.split, SPLITS)
            place = CORPORA[self.corpus].file.replace("{split}", self.split)
            return data_directory(self.data) / place
        if bool(self.split) != ("{split}" in str(self.path)):
            raise UserError(
                f"path {self.path} and split {self.split!r} do not match: a path with {{split}}"
                " needs `split` or --split, and other paths have no splits"
            )
        return to_path(str(self.path).replace("{split}", self.split))

    def check(self) -> None:
        """Checks all rows; raises ConfigError with the first faults, with their lines."""
        self._count()

    def examples(self) -> Iterator[Example]:
        """Yields each text and its shuffles; one text at a time is in memory."""
        self._count()
        for number, (_, row) in enumerate(self._rows()):
            if isinstance(row, RowError):
                raise UserError(f"{self.file}: has changed while it was read")
            name, text = row
            sentences = sentences_of(text, self.unit)[: self.truncate_sentences or None]
            yield from self._examples(name or str(number), sentences)

    def __len__(self) -> int:
        return self._count() * (1 + len(self.block_sizes) * self.shuffles)

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the file."""
        self._count()
        return sha256(self.file)

    def _rows(self) -> Iterator[_Row]:
        return CORPORA[self.corpus].rows(self.file, self.split)

    def _count(self) -> int:
        return _checked(self, stamp(self.file))

    def _examples(self, text: str, sentences: Sequence[str]) -> Iterator[Example]:
        yield _example(text, "original", sentences, {"block_size": 0, "unchanged": True})
        for size in self.block_sizes:
            # Neither `--limit` nor other block sizes may change a shuffle (decision 21).
            chance = Random(f"{self.seed}/{size}/{text}")
            # A single block has no other order; the pair counts as wrong, as for the authors.
            gold: dict[str, JSON] = {"block_size": size, "unchanged": len(sentences) <= size}
            for number, order in enumerate(shuffles(sentences, size, self.shuffles, chance)):
                yield _example(text, f"{size}-{number}", order, gold)


def _example(text: str, name: str, sentences: Sequence[str], gold: Mapping[str, JSON]) -> Example:
    name, size = f"{text}/{name}", gold["block_size"]
    return Example(
        id=name,
        # A document for each shuffle, so that chunkers can divide it, and a text that fails does
        # not lose the other pairs. The original's own white space would give it away (decision 21).
        document=Document(name, "\n".join(sentences)),
        choices=LABELS,
        references=(LABELS[bool(size)],),
        group=f"k={size}" if size else LABELS[0],
        # Under `gold`, which stages never see: the pair would reveal the original.
        metadata={"gold": {"shuffle_test": {"document": text, **gold}}},
    )


@lru_cache(maxsize=8)
def _checked(task: ShuffleTest, stamp: Stamp) -> int:  # noqa: ARG001 -- changed files have another stamp
    """Checks all rows, once per process, and returns their number."""
    faults: list[Fault] = []
    lines: dict[str, int] = {}
    sentences_of("", task.unit)  # reports a missing package
    for number, (line, row) in enumerate(task._rows()):
        if isinstance(row, RowError):
            faults += [Fault(task.file, line, text) for text in row.faults]
        elif (first := lines.setdefault(name := row[0] or str(number), line)) != line:
            faults.append(Fault(task.file, line, f"id {name!r} is a duplicate of line {first}"))
        if len(faults) >= _MOST_FAULTS:
            faults.append(Fault(task.file, line, "… reading stopped here"))
            break
    if faults:
        raise ConfigError(faults)
    if not lines:
        raise UserError(f"{task.file}: has no rows")
    return len(lines)


def sentences_of(text: str, unit: Unit) -> list[str]:
    """Returns the stripped sentences or lines of a text, without empty ones."""
    if unit == "sentence":
        return [text[start:end] for start, end in sentence_spans(text)]
    parts = text.split("\n") if unit == "line" else punkt(text)
    return [stripped for part in parts if (stripped := part.strip())]


def shuffles(
    sentences: Sequence[str], block_size: int, count: int, chance: Random
) -> Iterator[list[str]]:
    """Yields orders of the sentences with shuffled blocks, which differ from the original order.

    Orders may repeat. The last block may have fewer sentences. A single block keeps its order.
    `chance` is called in the same sequence as `random` in the authors' code, so that the same seed
    gives the same shuffles.
    """
    starts = range(0, len(sentences), block_size)
    blocks = [sentences[start : start + block_size] for start in starts]
    for _ in range(count):
        # From the start each time, so that the generator is called as in the authors' code.
        order = list(range(len(blocks)))
        # The original order must not count, and two blocks have it in half of the draws.
        while len(blocks) > 1 and order == sorted(order):
            chance.shuffle(order)
        yield [sentence for index in order for sentence in blocks[index]]
