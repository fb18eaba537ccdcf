"""The recipe from texts by author to the folder `style`."""

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
from recipes.weights import write_model

_DOCUMENTS, _SEED = 20, 7
_CONTEXT, _PAIRS = 3, 400  # paragraphs of a text; pairs of either kind of a document
_FEWEST = 4  # authors
_CARD = """\
# Style

Whether two texts are by one author: logistic regression over stylometric distances; English. It is
read by `PairClassifier` under the name `leporello-style`.

- *Data*, public domain: {works} texts of {authors} authors. Stories of science fiction from Project
  Gutenberg, as SQuALITY has them, by authors of whom none stands in the development documents; and
  novels by Austen, Barrie, Carroll, Conan Doyle, Kafka (Wyllie's translation), Melville, Stoker and
  Wilde. No text belongs to documents of the final measurement ({excluded} were left out here).
- *Recipe*: `recipes/style`: {documents} documents of two to four authors,
  segments of their texts one behind another; at most {pairs} pairs of either kind of each document
  teach, three paragraphs a text.
- *Scores*: docs/decisions/0016-style-change.md.
- *Limits*: prose; short paragraphs tell little; topic tells as much as style.
"""
Works = Mapping[str, Sequence[Sequence[str]]]
"""Texts by author, each a sequence of paragraphs."""
_AUTHORS = (2, 2, 3, 4)
_CHARACTERS = 30_000, 50_000


@dataclass(frozen=True)
class StyleSettings:
    """Settings; relative paths count from their file.

    Attributes:
        works: File of `read_works`.
        exclude: Python file with `is_apart(text)`, which is run: works that it knows are left out.
    """

    works: Path
    exclude: Path | None = None


SETTINGS = StyleSettings


MODEL = "style"


def train(settings: StyleSettings, folder: Path) -> dict[str, JSON]:
    """Ships a model by settings, and returns what was counted."""
    works, excluded = read_works(settings.works, settings.exclude)
    if len(works) < _FEWEST:
        raise UserError(f"there are {len(works)} authors, and a document may have {_FEWEST}")
    reader = PairClassifier()
    told: dict[str, JSON] = {
        "authors": len(works),
        "works": sum(map(len, works.values())),
        "excluded": excluded,
        "documents": _DOCUMENTS,
        "pairs": _PAIRS,
    }
    with TemporaryDirectory() as temporary:
        reader.learn(*_taught(glued(works, _DOCUMENTS, _SEED)), Path(temporary))
        shutil.copytree(Path(temporary) / "model", folder, dirs_exist_ok=True)
    files = {"card.md": _CARD.format(**told).encode()}
    files |= {name: (folder / name).read_bytes() for name in ("model.skops", "settings.json")}
    write_model(folder, files, {"language": "en", **told})
    return told


def read_works(file: Path, exclude: Path | None = None) -> tuple[Works, int]:
    """Returns texts by author, and how many were left out.

    Args:
        file: JSON lines with `author` and `text`, a paragraph a line, without title and notes.
        exclude: Python file with `is_apart(text)`, or None.

    Raises:
        UserError: A file cannot be read.
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


def _taught(examples: Sequence[Example]) -> tuple[list[Read], list[str]]:
    """Returns pairs of paragraphs and whether they are by one author, as `train` has them."""
    chunker = Parts()
    combiner = ClusterAuthors(context=_CONTEXT, training_pairs=_PAIRS)
    inputs: list[Read] = []
    targets: list[str] = []
    for example in examples:
        hits = [Hit(chunk, 0.0) for chunk in divide(chunker, example.document)]
        yielded = next(combiner.combine(example.without_gold(), hits))
        reads = [read for read in yielded if isinstance(read, Read)]
        for read, target in zip(reads, combiner.supervise(example, reads), strict=True):
            if target:
                inputs.append(read)
                targets.append(target)
    return inputs, targets


def glued(works: Works, count: int, seed: int) -> list[Example]:
    """Returns documents of two to four authors, whose gold is the author of each paragraph.

    An author who comes again goes on where the segment before ended.

    Args:
        works: Texts by author; at least four authors.
        count: Number of documents.
        seed: Seed of what is drawn.
    """
    chance = Random(seed)
    return [_document(works, f"d{seed}-{number}", chance) for number in range(count)]


def _document(works: Works, name: str, chance: Random) -> Example:
    count, total = chance.choice(_AUTHORS), chance.randint(*_CHARACTERS)
    plan = _plan(chance.sample(sorted(works), count), chance)
    shares = [chance.uniform(0.5, 1.5) for _ in plan]
    places: dict[str, tuple[Sequence[str], int]] = {}
    paragraphs: list[str] = []
    authors: list[str] = []
    for author, share in zip(plan, shares, strict=True):
        if author not in places:
            work = chance.choice(works[author])
            places[author] = work, chance.randint(0, len(work) // 2)
        work, place = places[author]
        left = total * share / sum(shares)
        while left > 0 and place < len(work):
            left -= len(work[place])
            paragraphs.append(work[place])
            authors.append(author)
            place += 1
        places[author] = work, place
    numbers: dict[str, int] = {}
    gold = [numbers.setdefault(author, len(numbers) + 1) for author in authors]
    return Example(name, _of_parts(name, paragraphs), references=(json.dumps(gold),))


def _plan(authors: Sequence[str], chance: Random) -> list[str]:
    """Returns the authors of segments: each once at least, none twice in a row."""
    plan = [*authors, *(chance.choice(authors) for _ in range(chance.randint(0, 2)))]
    for _ in range(50):
        chance.shuffle(plan)
        if all(one != other for one, other in pairwise(plan)):
            return plan
    return [*authors]


def _of_parts(name: str, paragraphs: Sequence[str]) -> Document:
    spans, end = [], 0
    for paragraph in paragraphs:
        spans.append(Span(end, end + len(paragraph)))
        end += len(paragraph) + 1
    return Document(name, "\n".join(paragraphs), parts=tuple(spans))
