"""What was answered lately: an equal prompt is not asked, and not paid, twice."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

from readers.endpoint.answers import Fault, Reply

__all__ = ["Memory"]

_REPLIES = 4096  # remembered; some hundred bytes each


@dataclass
class Memory:
    """Replies to the latest prompts, and the faults of the latest window that had any.

    A window with a fault is read again by halves, until the guilty input is alone; so its faults
    are remembered for parts of it, until each has been told for its input alone.
    """

    _replies: OrderedDict[bytes, Reply] = field(default_factory=OrderedDict)
    _faults: dict[bytes, Fault] = field(default_factory=dict)
    _window: int = 0

    def recall(self, prompts: Collection[str], inputs: int) -> dict[str, Reply | Fault]:
        """Returns what is known of these prompts.

        Args:
            prompts: All different.
            inputs: That they belong to; fewer than in the window before are a part of it.
        """
        if inputs >= self._window:
            self._faults, self._window = {}, inputs
        known: dict[str, Reply | Fault] = {}
        for prompt in prompts:
            name = _digest(prompt)
            if name in self._replies:
                self._replies.move_to_end(name)
                known[prompt] = self._replies[name]
            elif name in self._faults:
                known[prompt] = self._faults[name] if inputs > 1 else self._faults.pop(name)
        return known

    def keep(self, prompt: str, outcome: Reply | Fault) -> None:
        """Remembers what was answered."""
        if isinstance(outcome, Fault):
            self._faults[_digest(prompt)] = outcome
            return
        self._replies[_digest(prompt)] = outcome
        while len(self._replies) > _REPLIES:
            self._replies.popitem(last=False)


def _digest(prompt: str) -> bytes:
    return hashlib.sha256(prompt.encode()).digest()
