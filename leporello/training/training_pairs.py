"""Training data of a reader: the inputs that its pipeline gives it, each with its target."""

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from leporello.cache.store import Cache
from leporello.config import Pipeline
from leporello.core.errors import UserError
from leporello.core.protocols import Supervises, Targets
from leporello.core.records import JSON, Chunk, Example, Read
from leporello.core.training import TrainingPairs
from leporello.engine.active_example import first_reads
from leporello.engine.failures import ExampleError, stage_errors
from leporello.engine.progress import Progress
from leporello.engine.selection import Selection, by_document, select_document

_MAX_FAILURES = 5  # in a message


@dataclass
class Supervision:
    """Inputs and targets of a pipeline's reader, and counts of the examples."""

    # Inputs of the reader, with texts in place of chunks, which would keep their documents.
    inputs: list[Read] = field(default_factory=list)
    # Texts that the reader should answer, one per input.
    targets: list[str] = field(default_factory=list)
    examples: int = 0
    unanswered: int = 0  # number of examples without references
    # Number of failures, by stage and the error's first line.
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    documents: set[str] = field(default_factory=set)  # SHA-256 of the documents of the inputs

    @property
    def pairs(self) -> TrainingPairs:
        """The inputs and their targets."""
        return TrainingPairs(self.inputs, self.targets)

    def sha256(self) -> str:
        """Returns a hash of all inputs and targets, in order."""
        digest = hashlib.sha256()
        for read, target in zip(self.inputs, self.targets, strict=True):
            row = json.dumps([dataclasses.asdict(read), target])
            digest.update(f"{row}\n".encode())
        return digest.hexdigest()

    def account(self) -> str:
        """Returns a sentence with the counts of the examples."""
        parts = [f"{self.examples} examples", f"{self.unanswered} without references"]
        parts += [
            f"{count} failed at the {stage} ({error})"
            for (stage, error), count in self.failures.most_common(_MAX_FAILURES)
        ]
        return ", ".join(parts)

    def counts(self) -> dict[str, JSON]:
        """Returns the counts of the examples and inputs, as JSON."""
        return {
            "examples": self.examples,
            "without references": self.unanswered,
            "failed": self.failures.total(),
            "inputs": len(self.inputs),
            "documents": len(self.documents),
            "sha256": self.sha256(),
        }


def check_supervises(pipeline: str, stages: Pipeline) -> None:
    """Raises UserError if a pipeline's combiner does not give the target of each read."""
    combiner = stages.combiner
    if not isinstance(combiner, Supervises):
        raise UserError(
            f"pipeline {pipeline!r} cannot give its reads targets: its combiner"
            f" {type(combiner).__name__} has no method `supervise`; use Stuff (docs/training.md)"
        )


def supervise(
    stages: Pipeline,
    examples: Iterable[Example],
    progress: Progress,
    cache: Cache | None,
    *,
    all_references: bool = False,
) -> Supervision:
    """Divides documents and selects chunks as a run does; returns the reads and their targets.

    Examples on one document are consecutive. The reader only answers whether texts fit. With
    `all_references`, all targets of a read are used, not only the first.
    """
    supervision = Supervision()
    for _, group in by_document(examples):
        if cache:
            group[0].document.use_cache(cache)
        answered = [example for example in group if example.references or example.fault]
        supervision.examples += len(group)
        supervision.unanswered += len(group) - len(answered)
        selections = select_document(stages, answered)
        for example, selection in zip(answered, selections, strict=True):
            failed = _add(supervision, stages, example, selection, all_references)
            progress.example(failed=failed)
    return supervision


def _add(
    supervision: Supervision,
    stages: Pipeline,
    example: Example,
    selection: Selection | ExampleError,
    all_references: bool,
) -> bool:
    """Adds the first round of reads of an example; returns whether the example failed."""
    try:
        with stage_errors("combiner"):
            reads, targets = _first_round(stages, example, selection)
    except ExampleError as error:
        supervision.failures[error.stage, error.message.partition("\n")[0]] += 1
        return True
    for read, target in zip(reads, targets, strict=True):
        texts = (target,) if isinstance(target, str) else (target or ())
        # SCROLLS' code learns each answer of a question, unlike its paper (decision 26).
        for text in dict.fromkeys(texts if all_references else texts[:1]):
            supervision.inputs.append(_without_documents(read))
            supervision.targets.append(text)
            supervision.documents.add(example.document.sha256)
    return False


def _first_round(
    stages: Pipeline, example: Example, selection: Selection | ExampleError
) -> tuple[Sequence[Read], Sequence[Targets]]:
    combiner: Supervises = stages.combiner
    # Only the first round: later rounds depend on answers, which an untrained reader gets wrong.
    reads = first_reads(stages, example, selection)
    targets = combiner.supervise(example, reads)
    if len(targets) != len(reads) or not all(map(_is_target, targets)):
        raise TypeError(
            f"{type(combiner).__name__}.supervise must return a text, a tuple of texts or None for"
            f" each of {len(reads)} reads, got {targets!r:.80}"
        )
    return reads, targets


def _is_target(target: object) -> bool:
    texts = target if isinstance(target, tuple) else (target or "",)
    return all(isinstance(text, str) for text in texts)


def _without_documents(read: Read) -> Read:
    """Returns the read with texts in place of chunks, which would keep documents in memory."""
    passages = tuple(p.text if isinstance(p, Chunk) else p for p in read.passages)
    return dataclasses.replace(read, passages=passages)
