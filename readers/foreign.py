"""Base classes of readers with a LangChain or Haystack model, which a user's class creates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from leporello.core.environment.extras import require
from leporello.core.records import Output, Read
from leporello.readers.batching.one_by_one import OneByOne
from leporello.readers.prompting.prompted_reader import PROMPT
from leporello.readers.prompting.template import Template, refuse_pairs


@dataclass(frozen=True)
class _ForeignReader(OneByOne):
    """Reads with the model that `make` returns, which must reject inputs that are too long."""

    generates: ClassVar[bool] = True
    prompt: ClassVar[str] = PROMPT

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 -- whatever `make` returns
        return self.make()

    # A method, not a parameter, so that its source is part of caches and signatures.
    def make(self) -> Any:  # noqa: ANN401 -- as above
        """Returns the model; called once."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `make`")

    def render(self, read: Read) -> str:
        """Returns the text that the model receives."""
        return Template(self.prompt).render(read)

    def fit(self, read: Read) -> int:
        """Returns the number of passages, since the input window is unknown."""
        # Everything fits, so that a combiner that asks drops no passages.
        return len(read.passages)


@dataclass(frozen=True)
class LangChainReader(_ForeignReader):
    """Reads with a chat model or LLM of LangChain, which a subclass creates."""

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order."""
        require("LangChainReader", "langchain_core")
        refuse_pairs(inputs)
        replies = self._model.batch([*map(self.render, inputs)])
        return [*map(_langchain_output, replies)]


@dataclass(frozen=True)
class HaystackReader(_ForeignReader):
    """Reads with a chat generator of Haystack, which a subclass creates."""

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order."""
        require("HaystackReader", "haystack")
        from haystack.dataclasses import ChatMessage

        refuse_pairs(inputs)
        chats = ([ChatMessage.from_user(self.render(read))] for read in inputs)
        return [_haystack_output(self._model.run(messages=chat)["replies"][0]) for chat in chats]


def _langchain_output(reply: Any) -> Output:  # noqa: ANN401 -- a text, or a message
    if isinstance(reply, str):
        return Output(reply.strip())
    used = reply.usage_metadata or {}
    tokens = (used.get(name, 0) for name in ("input_tokens", "output_tokens"))
    return Output(str(reply.text).strip(), None, (), None, 0, *tokens)


def _haystack_output(reply: Any) -> Output:  # noqa: ANN401 -- a message
    used = reply.meta.get("usage") or {}
    tokens = (used.get(name, 0) for name in ("prompt_tokens", "completion_tokens"))
    return Output((reply.text or "").strip(), None, (), None, 0, *tokens)
