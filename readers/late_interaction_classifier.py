"""Classifier for recurring questions, fitted to the similarity of question and passages."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from leporello.core.errors import UserError
from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import JSON, Output, Read
from leporello.models.locate import model_fingerprint
from leporello.readers.backends.pretrained import quiet
from leporello.readers.backends.rows import padded
from leporello.readers.batching.memo import remembered
from leporello.readers.classical.saved_model import check_targets, labelled, load, save
from leporello.readers.encoders.batched_model import LoadedModel
from leporello.readers.prompting.template import passage_text, refuse_pairs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_CACHE_SIZE = 2048  # texts of about 100 kB
_DIGITS = 5  # the other texts of a batch change the sixth digit of a cosine


@dataclass(frozen=True)
class LateInteraction(LoadedModel):
    """Compares questions with passages, with a bounded cache of encoded texts."""

    _architecture = "AutoModel"
    dtype = "float32"

    model: str
    max_input_tokens: int
    batch_size: int
    device: str
    _cached: OrderedDict[str, NDArray[np.float32]] = field(default_factory=OrderedDict, repr=False)

    def weights(self, passages: Iterable[str]) -> NDArray[np.float64]:
        """Returns the weight of each token of the vocabulary, its squared idf, shape (tokens,)."""
        import numpy as np

        distinct = dict.fromkeys(passages)
        counts = np.zeros(len(self.tokens.tokenizer))
        # Equal passages count once: chunks of one document recur with each of its questions.
        for passage in distinct:
            counts[sorted(set(self._ids(passage)))] += 1
        # Squared idf gained 3 to 7 points, idf 4 to 6, equal weights 0 to 3 (decision 26).
        weights: NDArray[np.float64] = np.log((len(distinct) + 1) / (counts + 1)) ** 2
        return weights

    def nearest(
        self, question: str, passages: Sequence[str], weights: NDArray[np.float64]
    ) -> float:
        """Returns the similarity of the most similar passage, at most 1; 0 without any text."""
        [question_vectors, *passage_vectors] = self._vectors([question, *passages])
        question_weights = weights[[*self._ids(question)]]
        passage_vectors = [vectors for vectors in passage_vectors if len(vectors)]
        if not passage_vectors or not question_weights.any():
            return 0.0
        # The best passage, not the mean: an answer is in one place.
        nearest = max(
            (vectors @ question_vectors.T).max(axis=0) @ question_weights
            for vectors in passage_vectors
        )
        return round(float(nearest / question_weights.sum()), _DIGITS)

    def size(self, texts: Sequence[str]) -> int:
        """Returns the number of tokens of these texts, without special tokens."""
        return sum(map(len, self._vectors(texts)))

    def _ids(self, text: str) -> tuple[int, ...]:
        return self.tokens.once(lambda: _text_tokens(self._segments(text)), "own", text)

    def _segments(self, text: str) -> list[list[tuple[int, bool]]]:
        """Returns the tokens of each segment, and whether each is part of the text."""
        with quiet():
            encoded = self.tokens.tokenizer(
                self.tokens.plain(text),
                truncation=True,
                max_length=self.max_input_tokens,
                return_overflowing_tokens=True,
                split_special_tokens=True,
            )
        return [
            [(token, not added) for token, added in zip(e.ids, e.special_tokens_mask, strict=True)]
            for e in encoded.encodings
        ]

    def _vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Returns the unit vectors of each text's tokens, of shape (tokens, dimensions)."""
        return remembered(self._cached, texts, self._encoded, _CACHE_SIZE)

    def _encoded(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        import numpy as np

        segments = [self._segments(text) for text in texts]
        for text, text_segments in zip(texts, segments, strict=True):
            self.tokens.once(partial(_text_tokens, text_segments), "own", text)
        flat, size = list(chain.from_iterable(segments)), self.batch_size
        batches = (flat[start : start + size] for start in range(0, len(flat), size))
        rows = chain.from_iterable(map(self._encode, batches))
        return [np.concatenate([next(rows) for _ in text_segments]) for text_segments in segments]

    def _encode(self, segments: Sequence[list[tuple[int, bool]]]) -> list[NDArray[np.float32]]:
        import torch

        network = self._network
        ids = [[token for token, _ in segment] for segment in segments]
        input_ids, mask = padded(ids, self.tokens.padding, network.device)
        with torch.inference_mode():
            states: Any = network(input_ids=input_ids, attention_mask=mask).last_hidden_state
            unit = torch.nn.functional.normalize(states.float(), dim=-1).cpu().numpy()
        inner = [[i for i, (_, in_text) in enumerate(segment) if in_text] for segment in segments]
        return [vectors[indices] for vectors, indices in zip(unit, inner, strict=True)]


def _text_tokens(segments: Sequence[Sequence[tuple[int, bool]]]) -> list[int]:
    return [token for segment in segments for token, in_text in segment if in_text]


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
        """Loads model and encoder now instead of on first use; raises UserError if they differ."""
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
        """Trains a scikit-learn model, and writes it to the directory; see `Learns`."""
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
        # Similarities of another encoder have another scale, and would give wrong labels.
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
