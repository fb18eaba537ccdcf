"""Fine-tuning of readers, which their `trainer` names, and their training examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from leporello.core.errors import UserError
from leporello.core.records import Read
from leporello.core.training import Training, TrainingPairs, TuningJob, TuningResult
from leporello.readers.backends import pretrained
from leporello.readers.backends.pretrained import Architecture
from leporello.readers.batching.micro_batches import ModelInput
from leporello.readers.classical.saved_model import check_targets
from leporello.readers.encoders.classification import TrainedClassifier
from leporello.readers.encoders.segments import PassageWindow
from leporello.readers.extractive import Extractive
from leporello.readers.language_models import CausalLM, Seq2Seq
from leporello.readers.log_likelihood import LogLikelihood
from leporello.readers.pair_classifier import LABELS, PairClassifier
from leporello.readers.training.examples import (
    Collator,
    TrainingExample,
    classes,
    continuations,
    spans,
    translations,
)
from leporello.readers.training.trainer import ModelToTune, fine_tune, is_cpu

Tuned: TypeAlias = Seq2Seq | CausalLM | LogLikelihood | Extractive | TrainedClassifier


def check(reader: Tuned, settings: Training) -> None:
    """Raises UserError if this machine does not support the settings; called before any work."""
    # The Trainer ignores the number in `cuda:1`, so the wrong GPU would be used in silence.
    if reader.device != "auto" and (number := pretrained._device(reader.device).index):
        raise UserError(
            f"device: training uses the first visible GPU, not {reader.device}: omit the number,"
            f" and set CUDA_VISIBLE_DEVICES={number}"
        )
    if settings.precision == "float16" and is_cpu(reader.device):
        raise UserError(
            "train.precision: float16 needs a GPU: --set train.precision=float32, or bfloat16"
        )


def tune(reader: Tuned, job: TuningJob) -> TuningResult:
    """Fine-tunes the model of a reader."""
    rows = (row for kind, row in _TUNED.items() if isinstance(reader, kind))
    architecture, collator, prepare = next(rows)
    labels = _labels(reader, job.train.targets) if isinstance(reader, TrainedClassifier) else ()
    prepare = partial(prepare, reader, labels) if labels else partial(prepare, reader)
    model = ModelToTune(reader.tokens, architecture, reader.device, collator, labels)
    return fine_tune(model, job, prepare)


def _labels(reader: TrainedClassifier, targets: Sequence[str]) -> tuple[str, ...]:
    allowed = LABELS if isinstance(reader, PairClassifier) else ()
    check_targets(type(reader).__name__, targets, allowed)
    labels = sorted(allowed or set(targets))
    # A model that can already distinguish these classes keeps its head.
    declared = reader.declared_labels
    return declared if set(labels) <= set(declared) else tuple(labels)


def _written(
    reader: CausalLM | Seq2Seq, pairs: TrainingPairs, counts: Counter[str]
) -> list[TrainingExample]:
    """Returns the training examples; targets are cut to the reader's maximum of new tokens."""
    examples = []
    for read, target in zip(pairs.inputs, pairs.targets, strict=True):
        parts = reader.training_examples(read, target)
        if len(parts) > 1:  # the target cannot be assigned to the parts
            counts["split, and left out"] += 1
            continue
        for prompt, tokens in parts:
            counts["learnt"] += 1
            counts["targets cut"] += len(tokens) > reader.max_new_tokens
            examples.append(TrainingExample(prompt, tokens[: reader.max_new_tokens]))
    return examples


def _passages(
    reader: LogLikelihood, pairs: TrainingPairs, counts: Counter[str]
) -> list[TrainingExample]:
    # The first of the labels is `original`, and shuffled passages must not be learnt.
    rows = {
        reader.ids(read): None
        for read, target in zip(pairs.inputs, pairs.targets, strict=True)
        if not read.choices or target == read.choices[0]
    }
    examples = [TrainingExample(ModelInput(row[:1]), row[1:]) for row in rows if len(row) > 1]
    counts["learnt"] += len(examples)
    counts["left out, not the first choice or met before"] += len(pairs.inputs) - len(examples)
    return examples


def _labelled(
    reader: TrainedClassifier, labels: Sequence[str], pairs: TrainingPairs, counts: Counter[str]
) -> list[TrainingExample]:
    """Returns an example for each part of an input whose target is among the labels."""
    examples = []
    for read, target in zip(pairs.inputs, pairs.targets, strict=True):
        if target not in labels:
            counts["of a class that is not learnt"] += 1
            continue
        parts = reader.prompts(read)
        counts["learnt"] += len(parts)
        examples += [TrainingExample(part, (labels.index(target),)) for part in parts]
    return examples


def _marked_spans(
    reader: Extractive, pairs: TrainingPairs, counts: Counter[str]
) -> list[TrainingExample]:
    examples = []
    for read, target in zip(pairs.inputs, pairs.targets, strict=True):
        segments = _segments(reader, read, target)
        has_answer = any(example.labels[1] for example in segments)
        reason = "no answer in the passages" if segments else "not found, and left out"
        counts["learnt" if has_answer else reason] += 1
        examples += segments
    return examples


def _segments(reader: Extractive, read: Read, target: str) -> list[TrainingExample]:
    """Returns an example for each segment, with the first occurrence of the answer."""
    examples = []
    answer = "" if target == reader.unanswerable else target.strip()
    for window in reader.windows(read):
        positions = _marked(window, answer) if answer else None
        if positions is None and reader.null_threshold is not None:
            positions = (window.prompt.null, window.prompt.null)
        if positions is not None:
            examples.append(TrainingExample(window.prompt, positions))
    return examples


def _marked(window: PassageWindow, answer: str) -> tuple[int, int] | None:
    """Returns the first and last token of the answer's first occurrence in a segment, if any."""
    begin = window.text.casefold().find(answer.casefold())
    while begin >= 0:
        if positions := _tokens(window, begin, begin + len(answer)):
            return positions
        begin = window.text.casefold().find(answer.casefold(), begin + 1)
    return None


def _tokens(window: PassageWindow, begin: int, end: int) -> tuple[int, int] | None:
    """Returns the first and last token of these characters, if all are in the segment."""
    marked = [
        (index, span)
        for index, (mark, span) in enumerate(zip(window.prompt.marks, window.offsets, strict=True))
        if mark
    ]
    inside = [index for index, (start, stop) in marked if start < end and stop > begin]
    if not inside or marked[0][1][0] > begin or marked[-1][1][1] < end:
        return None
    return inside[0], inside[-1]


# By class of reader: its architecture, the tensors of a micro-batch, and the training examples.
_TUNED: dict[type, tuple[Architecture, Collator, Callable[..., list[TrainingExample]]]] = {
    Seq2Seq: ("AutoModelForSeq2SeqLM", translations, _written),
    CausalLM: ("AutoModelForCausalLM", continuations, _written),
    LogLikelihood: ("AutoModelForCausalLM", continuations, _passages),
    TrainedClassifier: ("AutoModelForSequenceClassification", classes, _labelled),
    Extractive: ("AutoModelForQuestionAnswering", spans, _marked_spans),
}
