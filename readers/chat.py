"""A chat around a prompt, by the tokenizer's own template."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from readers.pretrained import Tokens

__all__ = ["Chat", "messages"]


def messages(system: str, turns: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Returns a chat's messages before the last turn of the user.

    Args:
        system: What the system says; empty for nothing.
        turns: What user and assistant said in turn: prompts and answers of worked examples.
    """
    pairs = [[("user", prompt), ("assistant", answer)] for prompt, answer in turns]
    said = [("system", system)] * bool(system) + [turn for pair in pairs for turn in pair]
    return [{"role": role, "content": content} for role, content in said]


class Chat:
    """What is said before the answer: a system's turn, worked examples, and the user's turn."""

    def __init__(self, tokens: Tokens, system: str, turns: Sequence[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._before = messages(system, turns)
        # The last prompts are remembered, since one that was measured is then read.
        self.encode = lru_cache(maxsize=256)(self._encode)

    def text(self, prompt: str) -> str:
        """Returns the chat, ready for the answer."""
        chat: str = self._apply(prompt, tokenize=False)
        return chat

    def _encode(self, prompt: str) -> tuple[int, ...]:
        """Returns the chat's ids; control tokens in a document are only text to the model."""
        options = {"sanitize_control_tokens": True, "return_dict": False}
        return tuple(self._apply(prompt, tokenize=True, **options))

    def _apply(self, prompt: str, **options: bool) -> Any:  # noqa: ANN401 -- text or ids
        messages = [*self._before, {"role": "user", "content": prompt}]
        tokenizer = self._tokens.tokenizer
        return tokenizer.apply_chat_template(messages, add_generation_prompt=True, **options)
