"""ContraPro (Müller et al. 2018) on MuLD's subtitles: the translation with the right pronoun."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from leporello.core.protocols import Count
from leporello.core.records import JSON, Document, Example
from leporello.tasks.jsonl.schema import RowError
from leporello.tasks.muld import SPLITS
from leporello.tasks.official.archives import check_split
from leporello.tasks.official.benchmark import Benchmark, Published
from leporello.tasks.official.fields import outputs, text_of

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
        data: Directory of the benchmarks' files, with `muld/opensubtitles_SPLIT.json.bz2`. None
            means `LEPORELLO_DATA` or `data`.
    """

    split: str = "test"
    context: Count = 3
    data: Path | None = None

    benchmark: ClassVar[str] = "muld"
    name: ClassVar[str] = "contrapro"
    metrics: ClassVar[tuple[str, ...]] = ("exact_match",)
    splits: ClassVar[tuple[str, ...]] = SPLITS["opensubtitles"]

    @property
    def published(self) -> Published:
        """The split's file on the hub.

        Raises:
            UserError: The split does not exist.
        """
        check_split(self.full_name, self.split, self.splits)
        file = f"opensubtitles_{self.split}.json.bz2"
        return Published("ghomasHudson/muld", f"data/{file}", f"muld/{file}")

    def take_all(self, number: int, row: Mapping[str, Any]) -> Sequence[Example]:
        """Parses one row; see `Benchmark.take_all`."""
        gold = outputs(row)
        english = text_of(row, "input").splitlines()
        german = list(gold) if len(gold) > 1 else "\n".join(gold).splitlines()
        return [
            self._example(f"{self.split}-{number}-{place}", english, german, annotation)
            for place, annotation in enumerate(_annotations(row.get("metadata")))
        ]

    def _example(
        self, name: str, english: Sequence[str], german: Sequence[str], entry: Mapping[str, Any]
    ) -> Example:
        source, right = (text_of(entry, field) for field in ("src segment", "ref segment"))
        wrong = [text_of(error, "contrastive") for error in _listed(entry, "errors")]
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


def _annotations(metadata: JSON) -> list[Mapping[str, Any]]:
    """Returns the annotations of a row: a list or one annotation, or JSON of these."""
    if not metadata:
        return []
    try:
        value = json.loads(metadata) if isinstance(metadata, str) else metadata
    except ValueError as error:
        raise RowError([f"field 'metadata' is not JSON: {error}"]) from None
    return _objects(value if isinstance(value, list) else [value], "metadata")


def _listed(entry: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return _objects(entry.get(name), name)


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
