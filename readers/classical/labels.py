"""Checks of training targets, and answers, for readers that learn classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from leporello.core.errors import UserError

_MIN_EXAMPLES = 4  # of a class; fewer do not generalise


def check_targets(reader: str, targets: Sequence[str], allowed: Sequence[str] = ()) -> None:
    """Checks that a classifier can learn the targets.

    Args:
        reader: Name of the reader, for the message.
        targets: Targets, one per input.
        allowed: Allowed targets; if empty, all are allowed.

    Raises:
        UserError: There is only one class, too few examples of a class, or a class that is not
            allowed.
    """
    counts = Counter(targets)
    shown = ", ".join(f"{label!r:.40} {count}" for label, count in counts.most_common(8))
    foreign = [label for label in counts if allowed and label not in allowed]
    if foreign:
        raise UserError(
            f"{reader} learns {' and '.join(map(repr, allowed))}, but the combiner's target is"
            f" {foreign[0]!r:.80}: use the combiner AssignAuthors or ClusterAuthors"
        )
    # Checked before the training, since scikit-learn's message would name no remedy.
    if len(counts) < 2:  # noqa: PLR2004 -- a choice
        reason = f"all of its {len(targets)} examples are {shown}" if counts else "has no examples"
        raise UserError(
            f"{reader} needs examples of at least two classes, but {reason}; train on more examples"
        )
    rare = [label for label, count in counts.items() if count < _MIN_EXAMPLES]
    if rare:
        raise UserError(
            f"{reader} needs at least {_MIN_EXAMPLES} examples of each class, but there are too few"
            f" of {rare[0]!r:.40} ({shown}). Train on more examples, or on a task whose answers are"
            " labels"
        )


def labelled(
    choices: Sequence[str], probabilities: Mapping[str, float]
) -> tuple[str, tuple[float, ...]]:
    """Returns the most probable label, among the choices if any, and their probabilities.

    Args:
        choices: Choices of an input; may be empty.
        probabilities: Probability of each label of the model.

    Raises:
        ValueError: A choice is not a label.
    """
    if foreign := [choice for choice in choices if choice not in probabilities]:
        labels = ", ".join(probabilities)
        raise ValueError(f"choice {foreign[0]!r:.80} is not a label of the model ({labels:.400})")
    best = max(choices or probabilities, key=probabilities.__getitem__)
    return best, tuple(probabilities[choice] for choice in choices)
