"""What readers that learn classes share: whether there is enough to learn from, and the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from leporello.core.errors import UserError

_FEWEST = 4  # examples of a class: fewer teach nothing that holds elsewhere


def check_targets(reader: str, targets: Sequence[str], allowed: Sequence[str] = ()) -> None:
    """Refuses wanted outputs that a classifier cannot learn.

    Args:
        reader: Name of the reader, for the message.
        targets: Targets, one an input.
        allowed: Targets that there may be; any if empty.

    Raises:
        UserError: One class only, or too few examples of one, or classes that are not allowed.
    """
    counts = Counter(targets)
    shown = ", ".join(f"{label!r:.40} {count}" for label, count in counts.most_common(8))
    foreign = [label for label in counts if allowed and label not in allowed]
    if foreign:
        raise UserError(
            f"{reader} learns {' and '.join(map(repr, allowed))}, and the combiner wants"
            f" {foreign[0]!r:.80}: combine with AssignAuthors or ClusterAuthors"
        )
    if len(counts) < 2:  # noqa: PLR2004 -- a choice
        reason = f"all of its {len(targets)} examples are {shown}" if counts else "there are none"
        raise UserError(
            f"{reader} needs examples of two classes at least, and {reason}; train on more"
        )
    rare = [label for label, count in counts.items() if count < _FEWEST]
    if rare:
        raise UserError(
            f"{reader} needs {_FEWEST} examples of every class at least, and there are too few of"
            f" {rare[0]!r:.40} ({shown}). Are its answers labels? Train on more, or on another task"
        )


def labelled(choices: Sequence[str], likely: Mapping[str, float]) -> tuple[str, tuple[float, ...]]:
    """Returns the likeliest label, of the choices if there are any, and a probability a choice.

    Args:
        choices: Choices of an input; may be none.
        likely: Probability of each label that the model knows.

    Raises:
        ValueError: A choice is no label.
    """
    if foreign := [choice for choice in choices if choice not in likely]:
        labels = ", ".join(likely)
        raise ValueError(f"choice {foreign[0]!r:.80} is no label of the model's ({labels:.400})")
    return max(choices or likely, key=likely.__getitem__), tuple(likely[c] for c in choices)
