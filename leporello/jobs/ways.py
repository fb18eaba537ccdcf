"""Ways that answers came through combiners that choose: how many went how far, what it saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from leporello.core.table import ResultTable

_UNITS = ("reads", "tokens")


def ways_table(
    title: str, pipelines: Iterable[tuple[str, Mapping[str, Mapping[str, int]]]]
) -> ResultTable:
    """Returns a row a way: how many examples came by it, and what each of them cost.

    Args:
        title: Title.
        pipelines: Labels of pipelines, each with `Result.ways`.
    """
    rows, notes = [], []
    for label, ways in pipelines:
        if not ways:
            continue
        examples = sum(told["examples"] for told in ways.values())
        for way, told in ways.items():
            count = told["examples"]
            each = (f"{told[unit] / count:,.1f}" for unit in _UNITS)
            rows.append((label, way, f"{count:,}", f"{count / examples:.1%}", *each))
        notes.append(f"{label}: {_saved(ways, examples)}")
    heads = ("pipeline", "way", "examples", "share", "reads each", "tokens each")
    return ResultTable(title, heads, tuple(rows), tuple(notes))


def _saved(ways: Mapping[str, Mapping[str, int]], examples: int) -> str:
    """Returns what is saved against all going the way whose answers cost most."""
    told = []
    for unit in _UNITS:
        most = max(one[unit] / one["examples"] for one in ways.values()) * examples
        spent = sum(one[unit] for one in ways.values())
        if most:
            told.append(f"{1 - spent / most:.0%} of the {unit}")
    return f"saved, had all gone the dearest way: {', '.join(told) or 'nothing'}"
