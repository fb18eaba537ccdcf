"""A benchmark's prompts, from its data file: what stands around the document, and what it tells."""

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
_SHORTEST = 10  # characters of a line that tells what to do; shorter ones are headers


@cache
def data_of(benchmark: str) -> Mapping[str, Mapping[str, Any]]:
    """Returns what a benchmark's data file says of each of its tasks."""
    loaded: Any = read_tree(Path(__file__).with_name(f"{benchmark}.yaml")).plain()
    return cast("Mapping[str, Mapping[str, Any]]", loaded)


def prompt_of(template: str, fields: Mapping[str, str]) -> OfficialPrompt:
    """Returns what stands around the document in a prompt, its other fields filled in."""
    before, _, after = template.partition(_SLOT)
    return OfficialPrompt(before.format(**fields), query=after.format(**fields))


@cache
def instruction_of(template: str) -> str:
    """Returns the lines of a prompt that tell what to do, each once, without fields and headers."""
    lines = [line.strip() for line in template.replace("{{", "{").replace("}}", "}").split("\n")]
    if not _SENTENCE.search(lines[-1]):
        lines.pop()  # the answer's beginning
    told = (
        line
        for line in lines
        if len(line) >= _SHORTEST and not _FIELD.search(line) and not line.endswith((":", "："))
    )
    return "\n".join(dict.fromkeys(told))
