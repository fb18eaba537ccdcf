"""Prompts and instructions from a benchmark's data file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.yaml.tree import read_tree

_SLOT = "{context}"
_FIELD = re.compile(r"(?<!{){\w+}")
_SENTENCE = re.compile(r"[.!?。！？\"”]\s*$")
_SHORTEST = 10  # least characters of a line of an instruction; shorter lines are headers


@cache
def data_of(benchmark: str) -> Mapping[str, Mapping[str, Any]]:
    """Returns the settings of a benchmark's tasks by name, from its data file."""
    loaded: Any = read_tree(Path(__file__).with_name(f"{benchmark}.yaml")).plain()
    return cast("Mapping[str, Mapping[str, Any]]", loaded)


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
