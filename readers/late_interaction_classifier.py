"""Classifier for recurring questions, fitted to the similarity of question and passages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from leporello.core.errors import UserError
from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import JSON, Output, Read
from leporello.models.locate import model_fingerprint
from leporello.readers.classical.labels import check_targets, labelled
from leporello.readers.classical.saved_model import load, save
from leporello.readers.encoders.late_interaction import LateInteraction
from leporello.readers.prompting.template import passage_text, refuse_pairs


@dataclass(frozen=True)
class LateInteractionClassifier:
    """Answers questions that recur in every document with the most probable label.

    `train` fits logistic regression to the question, since each has typical labels, and to how much
    closer than usual a passage is to it, by late interaction of the encoder's token vectors. A few
    documents suffice for these parameters. For a question that is not in the training data, only
    the similarity counts. The score is the label's probability; with choices, the answer is the
    most probable one, and each has the probability of its label.

    Attributes:
        model: Folder that `train` wrote; None before the training.
        encoder: Path or hub id of a transformers model with safetensors, or the name of one that
            is installed as a wheel.
        max_input_tokens: Size of the encoder's input window, including special tokens; a longer
            passage is read in segments.
        batch_size: Number of segments that are encoded at once.
        device: Device as torch names it; `auto` is CUDA if available, otherwise the CPU.
    """

    model: ModelSource | None = None
    encoder: ModelSource = "all-minilm-l6-v2"
    max_input_tokens: Positive = 256
    batch_size: Positive = 32
    device: str = "auto"

    def load(self) -> None:
        """Loads the model and the encoder, which `read` otherwise does on first use.

        Raises:
            UserError: The model is missing, cannot be loaded, or was trained on another encoder.
        """
        _ = self._trained
        self._interaction.load()

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order."""
        refuse_pairs(inputs)
        self.load()
        return list(map(self._output, inputs))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of the encoder's tokens of each text."""
        return self._interaction.tokens.count(texts)

    def learn(
        self, inputs: Sequence[Read], targets: Sequence[str], directory: Path
    ) -> Mapping[str, JSON]:
        """Trains a scikit-learn model, and writes it to the directory.

        Returns:
            The parameters of a reader with this model.

        Raises:
            UserError: There are too few examples to learn from.
        """
        refuse_pairs(inputs)
        check_targets("LateInteractionClassifier", targets)
        weights = self._interaction.weights(text for read in inputs for text in _texts(read))
        near = [self._interaction.nearest(read.question, _texts(read), weights) for read in inputs]
        model = {"weights": weights, **_fit([read.question for read in inputs], near, targets)}
        settings: dict[str, JSON] = {"encoder": model_fingerprint(self.encoder)}
        return save(directory, "LateInteractionClassifier", model, settings)

    def _output(self, read: Read) -> Output:
        texts, model = _texts(read), self._trained
        near = self._interaction.nearest(read.question, texts, model["weights"])
        row = _features(read.question, near, model["usual"], model["deviation"])
        [row] = model["classifier"].predict_proba([row]).tolist()
        probabilities = dict(zip(map(str, model["classifier"].classes_), row, strict=True))
        label, scores = labelled(read.choices, probabilities)
        tokens = self._interaction.size([read.question, *texts])
        probability = probabilities[label]
        return Output(label, probability, scores, input_tokens=tokens, probability=probability)

    @cached_property
    def _interaction(self) -> LateInteraction:
        return LateInteraction(self.encoder, self.max_input_tokens, self.batch_size, self.device)

    @cached_property
    def _trained(self) -> Mapping[str, Any]:
        model, settings = load(self.model, "LateInteractionClassifier")
        # Similarities of another encoder have another scale, and would give wrong labels in
        # silence.
        if settings["encoder"] != model_fingerprint(self.encoder):
            raise UserError(
                f"model {self.model!r} was trained with another encoder than {self.encoder!r};"
                " set encoder to that one, or train again"
            )
        values: Mapping[str, Any] = model
        return values


def _fit(questions: Sequence[str], near: Sequence[float], targets: Sequence[str]) -> dict[str, Any]:
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline

    usual = _usual(questions, near)
    over = [value - usual[question] for question, value in zip(questions, near, strict=True)]
    # Without any spread the division would fail, and the feature has nothing to add.
    deviation = pstdev(over) or 1.0
    rows = [_features(q, value, usual, deviation) for q, value in zip(questions, near, strict=True)]
    # C was chosen by cross-validation over documents: docs/decisions/0026-training.md
    classifier = LogisticRegression(C=2.0, max_iter=1000)
    model = Pipeline([("features", DictVectorizer()), ("classifier", classifier)])
    return {"usual": usual, "deviation": deviation, "classifier": model.fit(rows, list(targets))}


def _usual(questions: Sequence[str], near: Sequence[float]) -> dict[str, float]:
    """Returns the mean similarity of passages to each question."""
    by_question: defaultdict[str, list[float]] = defaultdict(list)
    for question, value in zip(questions, near, strict=True):
        by_question[question].append(value)
    return {question: fmean(values) for question, values in by_question.items()}


def _features(
    question: str, near: float, usual: Mapping[str, float], deviation: float
) -> dict[str, str | float]:
    """Returns the question, and how many deviations closer than usual the passages are."""
    expected = usual.get(question)
    # A new question has no usual similarity, so the mean of the known ones must do.
    expected = fmean(usual.values()) if expected is None else expected
    return {"question": question, "nearer": (near - expected) / deviation}


def _texts(read: Read) -> list[str]:
    return list(map(passage_text, read.passages))
