"""The recipe `style`: trains a model of authorship from texts by author."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from leporello.chunkers import Parts
from leporello.combiners import ClusterAuthors
from leporello.core.calls.stage_calls import divide
from leporello.core.errors import UserError
from leporello.core.files import opened
from leporello.core.records import JSON, Document, Example, Hit, Read, Span
from leporello.readers import PairClassifier
from recipes.settings import exclusion
from recipes.weights import card_of, write_model

_DOCUMENTS, _SEED = 20, 7
_CONTEXT, _PAIRS = 3, 400  # paragraphs per text; pairs of each kind per document
_FEWEST = 4  # minimum number of authors
Works = Mapping[str, Sequence[Sequence[str]]]
"""Texts by author; a text is a sequence of paragraphs."""
_AUTHORS = (2, 2, 3, 4)
_CHARACTERS = 30_000, 50_000


@dataclass(frozen=True)
class StyleSettings:
    """Settings; relative paths count from their file."""

    works: Path  # file for `read_works`
    # Python file with `is_apart(text)`, which is run: works are left out if it returns true.
    exclude: Path | None = None


SETTINGS = StyleSettings


MODEL = "style"


def train(settings: StyleSettings, folder: Path) -> dict[str, JSON]:
    """Trains and writes a model; returns counts of the data."""
    works, excluded = read_works(settings.works, settings.exclude)
    if len(works) < _FEWEST:
        raise UserError(f"there are {len(works)} authors, but training needs {_FEWEST}")
    reader = PairClassifier()
    counts: dict[str, JSON] = {
        "authors": len(works),
        "works": sum(map(len, works.values())),
        "excluded": excluded,
        "documents": _DOCUMENTS,
        "pairs": _PAIRS,
    }
    with TemporaryDirectory() as temporary:
        reader.learn(*_training_pairs(glued(works, _DOCUMENTS, _SEED)), Path(temporary))
        shutil.copytree(Path(temporary) / "model", folder, dirs_exist_ok=True)
    files = {"card.md": card_of("style").format(**counts).encode()}
    files |= {name: (folder / name).read_bytes() for name in ("model.skops", "settings.json")}
    write_model(folder, files, {"language": "en", **counts})
    return counts


def read_works(file: Path, exclude: Path | None = None) -> tuple[Works, int]:
    """Returns texts by author, and the number of excluded texts.

    The file is JSON Lines with `author` and `text`, one paragraph per line, without title and
    notes.
    """
    is_apart, excluded = exclusion(exclude), 0
    works: defaultdict[str, list[list[str]]] = defaultdict(list)
    with opened(file) as lines:
        for row in map(json.loads, lines):
            if is_apart(row["text"]):
                excluded += 1
            else:
                works[row["author"]].append([p for p in row["text"].split("\n") if p.strip()])
    return works, excluded


def _training_pairs(examples: Sequence[Example]) -> tuple[list[Read], list[str]]:
    """Returns reads of pairs of paragraphs, and their targets, as in the verb `train`."""
    chunker = Parts()
    combiner = ClusterAuthors(context=_CONTEXT, training_pairs=_PAIRS)
    inputs: list[Read] = []
    targets: list[str] = []
    for example in examples:
        hits = [Hit(chunk, 0.0) for chunk in divide(chunker, example.document)]
        requests = next(combiner.combine(example.without_gold(), hits))
        reads = [request for request in requests if isinstance(request, Read)]
        for read, target in zip(reads, combiner.supervise(example, reads), strict=True):
            if target:
                inputs.append(read)
                targets.append(target)
    return inputs, targets


def glued(works: Works, count: int, seed: int) -> list[Example]:
    """Returns documents of two to four authors; the reference is the author of each paragraph.

    A later segment of an author continues the text of the earlier one.
    """
    generator = Random(seed)
    return [_document(works, f"d{seed}-{number}", generator) for number in range(count)]


def _document(works: Works, name: str, generator: Random) -> Example:
    count, total = generator.choice(_AUTHORS), generator.randint(*_CHARACTERS)
    plan = _plan(generator.sample(sorted(works), count), generator)
    shares = [generator.uniform(0.5, 1.5) for _ in plan]
    places: dict[str, tuple[Sequence[str], int]] = {}
    paragraphs: list[str] = []
    authors: list[str] = []
    for author, share in zip(plan, shares, strict=True):
        if author not in places:
            work = generator.choice(works[author])
            places[author] = work, generator.randint(0, len(work) // 2)
        work, place = places[author]
        remaining = total * share / sum(shares)
        while remaining > 0 and place < len(work):
            remaining -= len(work[place])
            paragraphs.append(work[place])
            authors.append(author)
            place += 1
        places[author] = work, place
    numbers: dict[str, int] = {}
    gold = [numbers.setdefault(author, len(numbers) + 1) for author in authors]
    return Example(name, _with_parts(name, paragraphs), references=(json.dumps(gold),))


def _plan(authors: Sequence[str], generator: Random) -> list[str]:
    """Returns the authors of segments: every author at least once, and never twice in a row."""
    plan = [*authors, *(generator.choice(authors) for _ in range(generator.randint(0, 2)))]
    for _ in range(50):
        generator.shuffle(plan)
        if all(first != second for first, second in pairwise(plan)):
            return plan
    return [*authors]


def _with_parts(name: str, paragraphs: Sequence[str]) -> Document:
    spans, end = [], 0
    for paragraph in paragraphs:
        spans.append(Span(end, end + len(paragraph)))
        end += len(paragraph) + 1
    return Document(name, "\n".join(paragraphs), parts=tuple(spans))
