"""A reader that ends its process at a certain prompt; apart, since this imports nothing slow."""

from __future__ import annotations

import os
from typing import Any

from leporello.errors import UserError
from leporello.executors.hands import Hands
from readers.replicas import Replicas


class OddError(Exception):
    """What cannot be made again from its text."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


class Deadly:
    """Reads by the first prompt of a batch."""

    def load(self) -> None:
        """Has nothing to load."""

    def budget(self) -> int:
        """Says that there is room for little."""
        return 10

    def answer(self, batch: Any) -> Any:
        """Dies, fails or answers."""
        if batch[0] == "die":
            os._exit(7)
        if batch[0] == "fail":
            raise UserError("told")
        if batch[0] == "odd":
            raise OddError("one", "two")
        if "".join(batch) > "huge":
            raise RuntimeError("CUDA out of memory")
        return [text.upper() for text in batch]


class Lead:
    """Asks such a reader in a process of its own."""

    def __call__(self, hands: Hands[Any]) -> tuple[Any, str]:
        """Returns what it says, and how it fails."""
        replicas: Any = Replicas(Deadly(), 1, hands)
        found = replicas.answers([["a"]])
        try:
            replicas.answers([["fail"]])
        except UserError as error:
            return found, str(error)
        return found, ""
