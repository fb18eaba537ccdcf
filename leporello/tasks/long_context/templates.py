"""Data files of newer benchmarks, their prompts, and the base class of generated examples."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, cast

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import JSON, DocumentRows, Example
from leporello.core.yaml.tree import read_tree
from leporello.models.locate import model_fingerprint
from leporello.tasks.layouts import LaidOut

_SLOT = "{context}"
_BYTES = 6  # approximate bytes per token


def file_of(benchmark: str) -> Path:
    """Returns the path of a benchmark's data file."""
    return Path(__file__).with_name(f"{benchmark}.yaml")


@cache
def data_of(benchmark: str, *keys: str) -> Mapping[str, Any]:
    """Returns the settings and prompts in a benchmark's data file, or those below nested keys."""
    if keys:
        *outer, key = keys
        return cast("Mapping[str, Any]", data_of(benchmark, *outer)[key])
    return cast("Mapping[str, Any]", read_tree(file_of(benchmark)).plain())


def metadata_of(template: str, fields: Mapping[str, str]) -> dict[str, JSON]:
    """Returns metadata with the prompt around the document, with its other fields filled in."""
    before, _, after = template.partition(_SLOT)
    return OfficialPrompt(before.format(**fields), query=after.format(**fields)).metadata()


class Generated(LaidOut):
    """Examples that depend only on their numbers from 0; each has its own document."""

    benchmark: ClassVar[str]
    length: int
    tokenizer: str

    def example(self, number: int) -> Example:
        """Returns an example by its number."""
        raise NotImplementedError

    def _sources(self) -> list[JSON]:
        """Returns hashes of the files that the examples are made from."""
        raise NotImplementedError

    def fingerprint(self) -> str:
        """Returns a hash of everything that determines the examples."""
        paths = ("background", "data", "tokenizer")
        options = {name: value for name, value in vars(self).items() if name not in paths}
        words = self.tokenizer == "words"
        tokenizer = self.tokenizer if words else model_fingerprint(self.tokenizer)
        data = file_of(self.benchmark).read_text(encoding="utf-8")
        parts = [options, tokenizer, data, self._sources()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def layout(self) -> Iterator[DocumentRows]:
        """Yields one document per example; see `Sharded.layout`."""
        for number in range(len(self)):
            yield DocumentRows(1, _BYTES * self.length, number)

    def examples_of(self, documents: Iterable[DocumentRows], first: int) -> Iterator[Example]:
        """Yields the examples on these documents; see `Sharded.examples_of`."""
        return (self.example(number) for number, _ in enumerate(documents, first))
