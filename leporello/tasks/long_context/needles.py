"""OpenAI-MRCR (2025) and GraphWalks (2025): needles in conversations, and walks in graphs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.official_prompt import OfficialPrompt
from leporello.core.protocols import MetricEntry
from leporello.core.records import Document, Example
from leporello.tasks.jsonl.schema import RowError, decode
from leporello.tasks.official.benchmark import Benchmark, one_of, text_of, texts_of

_EDGES, _OPERATION = "The graph has the following edges:\n", "Operation:\n"


@dataclass(frozen=True)
class Mrcr(Benchmark):
    """One of the two files of OpenAI-MRCR for a number of needles, from the official Parquet file.

    The document is the conversation, with the roles before the messages; the question is the last
    message. The authors send the messages as turns of a chat instead. Needs the extra `pyarrow`.
    """

    name: Literal[
        "2needle_0", "2needle_1", "4needle_0", "4needle_1", "8needle_0", "8needle_1"
    ]  # fmt: skip
    split: str = "test"
    data: Path | None = None

    benchmark: ClassVar[str] = "mrcr"
    repository: ClassVar[str] = "openai/mrcr"
    file: ClassVar[str] = "{name[0]}needle/{name}.parquet"
    metrics: ClassVar[tuple[MetricEntry, ...]] = ("mrcr",)

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterator[Example]:
        *turns, (_, question) = _messages(text_of(row, "prompt"))
        prefix, answer = text_of(row, "random_string_to_prepend"), text_of(row, "answer")
        is_gold = answer.startswith(prefix)
        yield Example(
            id=f"{self.name}-{number}",
            document=Document("", "\n\n".join(f"{role.title()}: {text}" for role, text in turns)),
            question=question,
            references=(answer,),
            metadata={
                **OfficialPrompt("", query=f"\n\nUser: {question}").metadata(),
                "gold": {"prefix": prefix},
            },
            fault="" if is_gold else "`answer` does not begin with `random_string_to_prepend`",
        )


@dataclass(frozen=True)
class GraphWalks(Benchmark):
    """GraphWalks of one range of lengths, from the official Parquet file.

    The document is the list of edges, the question the operation; examples and instructions are
    the instruction. The reference is the list of nodes as JSON; the type of problem is the group.
    Needs the extra `pyarrow`.

    Attributes:
        name: Name of the file without `graphwalks_`.
    """

    name: Literal["128k_and_shorter", "256k_to_1mil"] = "128k_and_shorter"
    split: str = "test"
    data: Path | None = None

    benchmark: ClassVar[str] = "graphwalks"
    repository: ClassVar[str] = "openai/graphwalks"
    file: ClassVar[str] = "graphwalks_{name}.parquet"
    metrics: ClassVar[tuple[MetricEntry, ...]] = ("graphwalks",)

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterator[Example]:
        prompt = text_of(row, "prompt")
        # The examples before have graphs and operations too, so the last ones count.
        start, end = prompt.rfind(_EDGES) + len(_EDGES), prompt.rfind(_OPERATION)
        if not len(_EDGES) <= start <= end:
            raise RowError([f"field 'prompt' must contain {_EDGES!r} and then {_OPERATION!r}"])
        # The first version of the file, of April 2025, calls it `answer`.
        nodes = texts_of(row, "answer_nodes" if "answer_nodes" in row else "answer")
        before, edges, query = prompt[:start], prompt[start:end], prompt[end:]
        yield Example(
            id=f"{self.name}-{number}",
            document=Document("", edges.rstrip()),
            question=query.removeprefix(_OPERATION).strip(),
            instruction=before.strip(),
            references=(json.dumps(nodes),),
            group=one_of(row, "problem_type", ("bfs", "BFS", "parents")).lower(),
            metadata=OfficialPrompt(before, edges[len(edges.rstrip()) :], query).metadata(),
        )


def _messages(text: str) -> list[tuple[str, str]]:
    """Returns the roles and texts of a conversation that ends with a question."""
    turns: Any = decode(b'{"turns": %b}' % text.encode(), strict=False).get("turns")
    if not isinstance(turns, list) or len(turns) < 2:  # noqa: PLR2004 -- a turn and the question
        raise RowError(["field 'prompt' must be a JSON list of at least two messages"])
    if not all(isinstance(turn, dict) for turn in turns):
        raise RowError(["field 'prompt' must be a list of objects with `role` and `content`"])
    return [(text_of(turn, "role"), text_of(turn, "content")) for turn in turns]
