"""Chats around a prompt, with the template of the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leporello.readers.backends.pretrained import Tokens


def messages(system: str, turns: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Returns a chat's messages before the last turn of the user.

    Args:
        system: System message; empty to omit it.
        turns: Prompts and answers of examples, as messages of user and assistant.
    """
    pairs = [[("user", prompt), ("assistant", answer)] for prompt, answer in turns]
    contents = [("system", system)] * bool(system) + [turn for pair in pairs for turn in pair]
    return [{"role": role, "content": content} for role, content in contents]


class Chat:
    """Chat before the answer: system message, worked examples, and the user's turn."""

    def __init__(self, tokens: Tokens, system: str, turns: Sequence[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._before = messages(system, turns)
        self._mark = object()  # separates its entries in the tokenizer's memo

    def text(self, prompt: str) -> str:
        """Returns the text of the chat up to the answer."""
        chat: str = self._apply(prompt, tokenize=False)
        return chat

    def encode(self, prompt: str) -> tuple[int, ...]:
        """Returns the chat's ids; control tokens in a document are read as plain text."""

        def ids() -> Sequence[int]:
            # A document with `<|im_end|>` could otherwise end the user's turn and give
            # instructions.
            options = {"sanitize_control_tokens": True, "return_dict": False}
            tokens: list[int] = self._apply(prompt, tokenize=True, **options)
            return tokens

        return self._tokens.once(ids, self._mark, prompt)

    def _apply(self, prompt: str, **options: bool) -> Any:  # noqa: ANN401 -- text or ids
        messages = [*self._before, {"role": "user", "content": prompt}]
        tokenizer = self._tokens.tokenizer
        return tokenizer.apply_chat_template(messages, add_generation_prompt=True, **options)
