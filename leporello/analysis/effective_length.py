"""How long a context a pipeline copes with, as RULER defines it."""

from __future__ import annotations

from collections.abc import Mapping

# Llama2-7b's average at 4K: "exceeding a qualitative threshold, Llama-2-7b performance at 4K
# (85.6%)" (README of hsiehjackson/RULER).
THRESHOLD = 85.6


def effective_length(averages: Mapping[int, float], threshold: float = THRESHOLD) -> int | None:
    """Returns the longest length whose average is not below the threshold; None if none is.

    Args:
        averages: Means over the tasks of RULER, 0 to 100, by length in tokens.
        threshold: Score that counts as coping.
    """
    return max((length for length, mean in averages.items() if mean >= threshold), default=None)


def length_of(task: str) -> tuple[str, int] | None:
    """Returns the name without it and the length of `NAME@length=8192`; None of other names."""
    base, _, settings = task.partition("@")
    pairs = [setting.partition("=") for setting in settings.split(",")]
    lengths = [int(value) for name, _, value in pairs if name == "length" and value.isdecimal()]
    others = ",".join(f"{name}={value}" for name, _, value in pairs if name != "length")
    return (f"{base}@{others}" if others else base, lengths[0]) if lengths else None
