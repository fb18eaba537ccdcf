"""Data files of newer benchmarks, their prompts, and the base class of generated examples."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import JSON, DocumentRows, Example
from leporello.core.yaml.tree import read_tree
from leporello.models.locate import model_fingerprint
from leporello.tasks.layouts import LaidOut

_SLOT = "{context}"
_FIELD = re.compile(r"(?<!{){\w+}")
_SENTENCE = re.compile(r"[.!?。！？\"”]\s*$")
_SHORTEST = 10  # least characters of a line of an instruction; shorter lines are headers
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


def prompt_of(template: str, fields: Mapping[str, str]) -> OfficialPrompt:
    """Returns the prompt around the document, with its other fields filled in."""
    before, _, after = template.partition(_SLOT)
    return OfficialPrompt(before.format(**fields), query=after.format(**fields))


@cache
def instruction_of(template: str) -> str:
    """Returns the instruction in a prompt: its distinct lines without fields and headers."""
    lines = [line.strip() for line in template.replace("{{", "{").replace("}}", "}").split("\n")]
    if not _SENTENCE.search(lines[-1]):
        lines.pop()  # beginning of the answer
    sentences = (
        line
        for line in lines
        if len(line) >= _SHORTEST and not _FIELD.search(line) and not line.endswith((":", "："))
    )
    return "\n".join(dict.fromkeys(sentences))


class Generated(LaidOut):
    """Examples that depend only on their numbers from 0; each has its own document."""

    length: int
    tokenizer: str

    def example(self, number: int) -> Example:
        """Returns an example by its number."""
        raise NotImplementedError

    def sources(self) -> list[JSON]:
        """Returns everything that determines the examples."""
        raise NotImplementedError

    def fingerprint(self) -> str:
        """Returns a hash of everything that determines the examples."""
        return hashlib.sha256(json.dumps(self.sources()).encode()).hexdigest()

    def layout(self) -> Iterator[DocumentRows]:
        """Yields one document per example; see `Sharded.layout`."""
        for number in range(len(self)):
            yield DocumentRows(1, _BYTES * self.length, number)

    def examples_of(self, documents: Iterable[DocumentRows], first: int) -> Iterator[Example]:
        """Yields the examples on these documents; see `Sharded.examples_of`."""
        return (self.example(number) for number, _ in enumerate(documents, first))

    @property
    def _tokenizer_identity(self) -> str:
        return self.tokenizer if self.tokenizer == "words" else model_fingerprint(self.tokenizer)
