"""What a reader is trained on: its pipeline's own inputs, each with the output that is wanted."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from leporello.config import Pipeline
from leporello.core.errors import UserError
from leporello.core.protocols import Supervises, Targets
from leporello.core.records import JSON, Chunk, Example, Read
from leporello.core.training import TrainingPairs
from leporello.engine.active_example import ActiveExample
from leporello.engine.failures import ExampleError, stage_errors
from leporello.engine.progress import Progress
from leporello.engine.selection import Selection, by_document, select_document

_NAMED = 5  # of many, in a message


@dataclass
class Supervision:
    """Inputs and wanted outputs of a pipeline's reader, and what became of the examples.

    Attributes:
        inputs: Inputs as the reader gets them; chunks have become texts, so that no document is
            held.
        targets: Texts that the reader should answer, one an input.
        examples: Number of examples that were looked at.
        unanswered: Number of these that have no references.
        failures: Number of failures, by stage and the error's first line.
        documents: SHA-256 of the documents whose examples were learnt from.
    """

    inputs: list[Read] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    examples: int = 0
    unanswered: int = 0
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    documents: set[str] = field(default_factory=set)

    @property
    def pairs(self) -> TrainingPairs:
        """The inputs and what is wanted of them."""
        return TrainingPairs(self.inputs, self.targets)

    def sha256(self) -> str:
        """Returns a hash of all inputs and targets, in order."""
        digest = hashlib.sha256()
        for read, target in zip(self.inputs, self.targets, strict=True):
            row = json.dumps([dataclasses.asdict(read), target])
            digest.update(f"{row}\n".encode())
        return digest.hexdigest()

    def account(self) -> str:
        """Says what became of the examples."""
        parts = [f"{self.examples} examples", f"{self.unanswered} without references"]
        parts += [
            f"{count} failed at the {stage} ({error})"
            for (stage, error), count in self.failures.most_common(_NAMED)
        ]
        return ", ".join(parts)

    def counts(self) -> dict[str, JSON]:
        """Returns the same for a file."""
        return {
            "examples": self.examples,
            "without references": self.unanswered,
            "failed": self.failures.total(),
            "inputs": len(self.inputs),
            "documents": len(self.documents),
            "sha256": self.sha256(),
        }


def check_supervises(pipeline: str, stages: Pipeline) -> None:
    """Refuses a pipeline whose combiner cannot say what each read should come to.

    Raises:
        UserError: It cannot.
    """
    combiner = stages.combiner
    if not isinstance(combiner, Supervises):
        raise UserError(
            f"pipeline {pipeline!r} cannot tell what its reads should come to: its combiner"
            f" {type(combiner).__name__} has no method `supervise`; Stuff has (docs/training.md)"
        )


def supervise(
    stages: Pipeline,
    examples: Iterable[Example],
    progress: Progress,
    *,
    all_references: bool = False,
) -> Supervision:
    """Divides and selects as a run does, and asks the combiner what its reads should come to.

    Args:
        stages: Stages of which the combiner has `supervise`; the reader is only asked what fits it.
        examples: Examples with references; those on one document stand together.
        progress: Progress that is told of every example and document.
        all_references: Whether of several targets all are learnt, or the first.

    Raises:
        UserError: A mistake of the user's.
    """
    gathered = Supervision()
    for _, group in by_document(examples):
        answered = [example for example in group if example.references or example.fault]
        gathered.examples += len(group)
        gathered.unanswered += len(group) - len(answered)
        selections = select_document(stages, answered, None).selections
        for example, selection in zip(answered, selections, strict=True):
            failed = _add(gathered, stages, example, selection, all_references)
            progress.example(failed=failed)
        progress.document()
    return gathered


def _add(
    gathered: Supervision,
    stages: Pipeline,
    example: Example,
    selection: Selection | ExampleError,
    all_references: bool,
) -> bool:
    """Adds an example's first round; returns whether it failed."""
    try:
        if isinstance(selection, ExampleError):
            raise selection
        with stage_errors("combiner"):
            reads, targets = _first_round(stages, example, selection)
    except ExampleError as error:
        gathered.failures[error.stage, error.message.partition("\n")[0]] += 1
        return True
    for read, target in zip(reads, targets, strict=True):
        wanted = (target,) if isinstance(target, str) else (target or ())
        for text in dict.fromkeys(wanted if all_references else wanted[:1]):
            gathered.inputs.append(_without_documents(read))
            gathered.targets.append(text)
            gathered.documents.add(example.document.sha256)
    return False


def _first_round(
    stages: Pipeline, example: Example, selection: Selection
) -> tuple[Sequence[Read], Sequence[Targets]]:
    combiner: Supervises = stages.combiner
    active = ActiveExample.create(stages, 0, example, selection)
    active.start()
    targets = combiner.supervise(example, active.reads)
    if len(targets) != len(active.reads) or not all(map(_is_target, targets)):
        raise TypeError(
            f"{type(combiner).__name__}.supervise must return a text, a tuple of texts or None for"
            f" each of {len(active.reads)} reads, got {targets!r:.80}"
        )
    return active.reads, targets


def _is_target(target: object) -> bool:
    texts = target if isinstance(target, tuple) else (target or "",)
    return all(isinstance(text, str) for text in texts)


def _without_documents(read: Read) -> Read:
    """Returns the read with texts in place of chunks, which would hold their documents."""
    passages = tuple(p.text if isinstance(p, Chunk) else p for p in read.passages)
    return dataclasses.replace(read, passages=passages)
