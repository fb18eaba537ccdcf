"""What a model writes to itself before it answers."""

from __future__ import annotations

_OPENS, _ENDS = "<think>", "</think>"


def split_reasoning(text: str) -> tuple[str, str]:
    """Returns what stands between the marks of reasoning, and the answer.

    Some chat templates write the first mark themselves, so that only the second is seen.
    """
    begun = text.lstrip()
    before, end, after = begun.partition(_ENDS)
    if begun.startswith(_OPENS):
        return before.removeprefix(_OPENS).strip(), after.strip()
    return (before.strip(), after.strip()) if end and _OPENS not in before else ("", text)
