"""Fine-tuning of models that classify texts and pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from leporello.core.training import TrainingPairs, TuningJob, TuningResult
from leporello.readers.classical.labels import check_targets
from leporello.readers.classifier import Classifier
from leporello.readers.encoders.trained_classifier import TrainedClassifier
from leporello.readers.pair_classifier import LABELS, PairClassifier
from leporello.readers.training import collators
from leporello.readers.training.examples import TrainingExample
from leporello.readers.training.hardware import check  # noqa: F401 -- asked for beside the trainer
from leporello.readers.training.trainer import ModelToTune, fine_tune


def classifier(reader: Classifier, job: TuningJob) -> TuningResult:
    """Fine-tunes a model to tell the targets' classes; its own stand, if it knows them all."""
    check_targets("Classifier", job.train.targets)
    return _fine_tune(reader, tuple(sorted(set(job.train.targets))), job)


def pair_classifier(reader: PairClassifier, job: TuningJob) -> TuningResult:
    """Fine-tunes a model to tell whether the texts of a pair are the same author's."""
    check_targets("PairClassifier", job.train.targets, LABELS)
    return _fine_tune(reader, tuple(sorted(LABELS)), job)


def _fine_tune(reader: TrainedClassifier, labels: tuple[str, ...], job: TuningJob) -> TuningResult:
    network = reader.network
    declared = network.declared_labels
    order = declared if set(labels) <= set(declared) else labels
    model = ModelToTune(
        network.model,
        "AutoModelForSequenceClassification",
        network.tokens,
        network.device,
        collators.classes,
        order,
    )
    return fine_tune(model, job, partial(_training_examples, reader, order))


def _training_examples(
    reader: TrainedClassifier, labels: Sequence[str], pairs: TrainingPairs, counts: Counter[str]
) -> list[TrainingExample]:
    """Returns an example for each part of an input; a class that is not learnt is none."""
    examples = []
    for read, target in zip(pairs.inputs, pairs.targets, strict=True):
        if target not in labels:
            counts["of a class that is not learnt"] += 1
            continue
        parts = reader.prompts(read)
        counts["learnt"] += len(parts)
        examples += [TrainingExample(part, (labels.index(target),)) for part in parts]
    return examples
