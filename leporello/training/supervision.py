"""What a reader is trained on: its pipeline's own inputs, each with the output that is wanted."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from leporello.config import Built
from leporello.executors.groups import by_document, select_group
from leporello.flight import ExampleError, blame
from leporello.launch import launch
from leporello.progress import Progress
from leporello.records import Chunk, Example, Read
from leporello.selection import Found
from leporello.stages import Supervises

__all__ = ["Supervision", "supervise"]


@dataclass
class Supervision:
    """Inputs and wanted outputs of a pipeline's reader, and what became of the examples.

    Attributes:
        inputs: As the reader gets them; chunks have become texts, so that no document is held.
        targets: What it should answer to each.
        examples: Looked at.
        unanswered: Of these, how many have no references.
        failures: How many failed, by stage and the error's first line.
    """

    inputs: list[Read] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    examples: int = 0
    unanswered: int = 0
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)


def supervise(stages: Built, examples: Iterable[Example], progress: Progress) -> Supervision:
    """Divides and selects as a run does, and asks the combiner what its reads should come to.

    Args:
        stages: The combiner has `supervise`; the reader is only asked what fits it.
        examples: With references; those on one document stand together.
        progress: Told of everything.

    Raises:
        UserError: A mistake of the user's.
    """
    gathered = Supervision()
    for _, group in by_document(examples):
        answered = [example for example in group if example.references or example.fault]
        gathered.examples += len(group)
        gathered.unanswered += len(group) - len(answered)
        found = select_group(stages, answered, None).found
        for example, own in zip(answered, found, strict=True):
            failed = _add(gathered, stages, example, own)
            progress.example(failed=failed)
        progress.document()
    return gathered


def _add(
    gathered: Supervision, stages: Built, example: Example, found: Found | ExampleError
) -> bool:
    """Adds an example's first round; returns whether it failed."""
    try:
        if isinstance(found, ExampleError):
            raise found
        with blame("combiner"):
            reads, targets = _first_round(stages, example, found)
    except ExampleError as error:
        gathered.failures[error.stage, error.told.partition("\n")[0]] += 1
        return True
    for read, target in zip(reads, targets, strict=True):
        if target is not None:
            gathered.inputs.append(_free(read))
            gathered.targets.append(target)
    return False


def _first_round(
    stages: Built, example: Example, found: Found
) -> tuple[Sequence[Read], Sequence[str | None]]:
    combiner: Supervises = stages.combiner
    flight = launch(stages, 0, example, found)
    flight.start()
    targets = combiner.supervise(example, flight.reads)
    texts = all(isinstance(target, str | None) for target in targets)
    if len(targets) != len(flight.reads) or not texts:
        raise TypeError(
            f"{type(combiner).__name__}.supervise must return a text or None for each of"
            f" {len(flight.reads)} reads, got {targets!r:.80}"
        )
    return flight.reads, targets


def _free(read: Read) -> Read:
    """Returns the read with texts in place of chunks, which would hold their documents."""
    passages = tuple(p.text if isinstance(p, Chunk) else p for p in read.passages)
    return dataclasses.replace(read, passages=passages)
