"""Classes of what questions that recur find in a document: fitted to how near its passages come."""

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
    """Answers questions that are asked of every document with the label that is likeliest.

    What `train` writes is logistic regression over the question itself, which has one label more
    often than others, and how much nearer than usual a passage comes to it, by late interaction of
    the encoder's token vectors. So little is learnt that a few documents teach it. Of a question
    that training had not, only the nearness counts. The score is the label's probability; with
    choices, the likeliest of them is the answer, and each has the probability of its label.

    Attributes:
        model: A folder that `train` made; None until it is trained.
        encoder: Path or hub id of a transformers model with safetensors, or the name of one that
            comes as a wheel.
        max_input_tokens: Tokens of the encoder's window, special tokens included; a longer passage
            is read in several.
        batch_size: Number of windows encoded at once.
        device: Device as torch names it; `auto` is CUDA where there is any, else the CPU.
    """

    model: ModelSource | None = None
    encoder: ModelSource = "all-minilm-l6-v2"
    max_input_tokens: Positive = 256
    batch_size: Positive = 32
    device: str = "auto"

    def load(self) -> None:
        """Loads the model and the encoder, which is otherwise done when it first reads.

        Raises:
            UserError: There is none, or it cannot be loaded, or was trained on another encoder.
        """
        _ = self._trained
        self._interaction.load()

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order."""
        refuse_pairs(inputs)
        self.load()
        return list(map(self._output, inputs))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the encoder's tokens of each text."""
        return self._interaction.tokens.count(texts)

    def learn(
        self, inputs: Sequence[Read], targets: Sequence[str], directory: Path
    ) -> Mapping[str, JSON]:
        """Trains a model of scikit-learn's, and writes it into the directory.

        Returns:
            The parameters of a reader with this model.

        Raises:
            UserError: There is too little to learn from.
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
        likely_of = dict(zip(map(str, model["classifier"].classes_), row, strict=True))
        label, scores = labelled(read.choices, likely_of)
        tokens = self._interaction.size([read.question, *texts])
        likely = likely_of[label]
        return Output(label, likely, scores, input_tokens=tokens, probability=likely)

    @cached_property
    def _interaction(self) -> LateInteraction:
        return LateInteraction(self.encoder, self.max_input_tokens, self.batch_size, self.device)

    @cached_property
    def _trained(self) -> Mapping[str, Any]:
        model, settings = load(self.model, "LateInteractionClassifier")
        if settings["encoder"] != model_fingerprint(self.encoder):
            raise UserError(
                f"model {self.model!r} was trained on the vectors of another encoder than"
                f" {self.encoder!r}; name that one, or train again"
            )
        values: Mapping[str, Any] = model
        return values


def _fit(questions: Sequence[str], near: Sequence[float], targets: Sequence[str]) -> dict[str, Any]:
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline

    usual = _usual(questions, near)
    over = [value - usual[question] for question, value in zip(questions, near, strict=True)]
    deviation = pstdev(over) or 1.0
    rows = [_features(q, value, usual, deviation) for q, value in zip(questions, near, strict=True)]
    # C was chosen with all else, by documents left out: docs/decisions/0026-training.md
    classifier = LogisticRegression(C=2.0, max_iter=1000)
    model = Pipeline([("features", DictVectorizer()), ("classifier", classifier)])
    return {"usual": usual, "deviation": deviation, "classifier": model.fit(rows, list(targets))}


def _usual(questions: Sequence[str], near: Sequence[float]) -> dict[str, float]:
    """Returns how near passages come to each question in the mean."""
    by_question: defaultdict[str, list[float]] = defaultdict(list)
    for question, value in zip(questions, near, strict=True):
        by_question[question].append(value)
    return {question: fmean(values) for question, values in by_question.items()}


def _features(
    question: str, near: float, usual: Mapping[str, float], deviation: float
) -> dict[str, str | float]:
    """Returns the question, and by how many deviations the passages come nearer than usual."""
    expected = usual.get(question)
    expected = fmean(usual.values()) if expected is None else expected
    return {"question": question, "nearer": (near - expected) / deviation}


def _texts(read: Read) -> list[str]:
    return list(map(passage_text, read.passages))
