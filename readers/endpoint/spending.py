"""Token counts of prompts, and spending: ledgers of models, and the limits of each reader."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from weakref import WeakValueDictionary

from leporello.core.calls.budget import Budget, Ledger
from leporello.core.errors import BudgetSpentError
from leporello.readers.backends.pretrained import Tokens
from leporello.readers.endpoint.responses import Usage
from leporello.readers.prompting.prompted_reader import Chat
from leporello.text.tokens import Words

_MILLION = 1_000_000
_DIGITS = 12  # of dollars: a token may cost a hundred-millionth
# Overestimates: text in Latin script has 1.3 to 1.5 tokens per word, and 3.4 to 4.2 bytes per token
# if words are long or joined by punctuation (docs/endpoints.md).
_TOKENS_PER_WORD = 1.5
_BYTES_PER_TOKEN = 3.0
_CHAT = 32  # tokens that an unknown chat template may add
_TURN = 8  # tokens for each turn of a worked example; known templates add 4 to 6


@dataclass
class SharedLedger:
    """Ledger of several readers."""

    spent: Ledger = field(default_factory=Ledger)
    closed: bool = False  # whether a limit was reached, so that later readers start another ledger


# Readers of the same model on the same server share a ledger as long as any of them exists: this
# includes all points of a sweep, since a run keeps its stages.
_LEDGERS: WeakValueDictionary[tuple[str, str], SharedLedger] = WeakValueDictionary()
_lock = threading.Lock()  # of all ledgers, since readers have threads of their own


def shared_ledger(base_url: str, model: str) -> SharedLedger:
    """Returns the ledger of a model on a server."""
    with _lock:
        ledger = _LEDGERS.get((base_url, model))
        if ledger is None or ledger.closed:
            ledger = _LEDGERS[base_url, model] = SharedLedger()
        return ledger


@dataclass
class ServerAccount:
    """Account of one reader in the ledger of its model; prices are dollars per million tokens."""

    ledger: SharedLedger
    budget: Budget
    input_price: float
    output_price: float

    def add(self, usage: Usage) -> None:
        """Adds the cost of an answered request."""
        with _lock:
            self.ledger.spent += Ledger(
                1, usage.input_tokens, usage.output_tokens, self._cost(usage)
            )

    def check(self) -> None:
        """Raises `BudgetSpentError` if the budget is spent."""
        spent = self.ledger.spent
        if name := self.budget.reached(spent):
            self.ledger.closed = True
            limit = self.budget.row()[name]
            price = f", {spent.dollars:.4f} dollars" if self._is_priced else ""
            raise BudgetSpentError(
                f"budget_{name} ({limit:{',' if name == 'tokens' else 'g'}}) is spent:"
                f" {spent.reads:,} answers took {spent.input_tokens:,} input tokens and"
                f" {spent.output_tokens:,} output tokens{price}; all answers are stored: run the"
                " same command again to resume with the same budget"
            )

    def share(self, budget: Budget) -> None:
        """Replaces the limits by a budget for further spending."""
        self.ledger.closed = False
        self.budget = budget.after(self.ledger.spent)

    def price(self, usages: Sequence[Usage]) -> float | None:
        """Returns the dollars of answers; None without prices."""
        return round(sum(map(self._cost, usages)), _DIGITS) if self._is_priced else None

    @property
    def _is_priced(self) -> bool:
        return bool(self.input_price or self.output_price)

    def _cost(self, usage: Usage) -> float:
        read, written = usage.input_tokens, usage.output_tokens
        return (read * self.input_price + written * self.output_price) / _MILLION


@dataclass(frozen=True)
class TokenCounts:
    """Counts tokens; thread-safe, since tokenizers may keep state between calls."""

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
