"""Token counts of prompts: by the model's tokenizer, or overestimated from words."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from leporello.readers.backends.pretrained import Tokens
from leporello.readers.endpoint.responses import Usage
from leporello.readers.prompting.chat import Chat
from leporello.text.tokens import Words

# Overestimates: text in Latin script has 1.3 to 1.5 tokens per word, and 3.4 to 4.2 bytes per token
# if words are long or joined by punctuation (docs/endpoints.md).
_TOKENS_PER_WORD = 1.5
_BYTES_PER_TOKEN = 3.0
_CHAT = 32  # tokens that an unknown chat template may add
_TURN = 8  # tokens for each turn of a worked example; known templates add 4 to 6


@dataclass(frozen=True)
class TokenCounts:
    """Counts tokens; thread-safe, since tokenizers may keep state between calls.

    Attributes:
        tokenizer: Path or hub id of the model's tokenizer; `words` estimates.
        chat: Whether prompts are part of a chat.
        system: System message of the chat.
        turns: Prompts and answers of the examples, which precede the prompt.
    """

    tokenizer: str
    chat: bool
    system: str = ""
    turns: tuple[tuple[str, str], ...] = ()
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False, compare=False)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text."""
        if self.tokenizer == "words":
            return list(map(_estimate, texts))
        with self._lock:
            return self._tokens.count(texts)

    def size(self, prompt: str) -> int:
        """Returns the number of tokens of a prompt with the chat around it."""
        if self.tokenizer == "words":
            return _estimate(prompt) + self._around
        with self._lock:
            if self.chat and self._tokens.tokenizer.chat_template:
                return len(self._chat.encode(prompt))
            return len(self._tokens.encode(prompt)) + self._around

    def usage(self, prompt: str, text: str) -> Usage:
        """Returns the usage of a prompt and its answer."""
        return Usage(self.size(prompt), self.count([text])[0])

    @cached_property
    def _around(self) -> int:
        """Number of tokens around a prompt with an unknown chat template."""
        if not self.chat:
            return 0
        texts = [text for turn in self.turns for text in turn]
        return sum(self.count([self.system, *texts])) + _CHAT + _TURN * len(texts)

    @cached_property
    def _chat(self) -> Chat:
        return Chat(self._tokens, self.system, self.turns)

    @cached_property
    def _tokens(self) -> Tokens:
        return Tokens(self.tokenizer)


@lru_cache(maxsize=256)  # prompts are measured several times
def _estimate(text: str) -> int:
    ascii_only = text.isascii()
    words = len(text.split()) if ascii_only else len(Words().offsets(text))
    size = len(text) if ascii_only else len(text.encode("utf-8", "replace"))
    return math.ceil(max(words * _TOKENS_PER_WORD, size / _BYTES_PER_TOKEN))
