"""Reader that decides whether two texts have the same author, by style or with transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from leporello.core.errors import UserError
from leporello.core.protocols import Share
from leporello.core.records import JSON, Chunk, Output, Read, Span
from leporello.readers.classical.saved_model import check_targets, load, save
from leporello.readers.encoders.classification import TrainedClassifier
from leporello.readers.encoders.segments import Segments

LABELS = ("same", "different")
_UNNAMED = ("LABEL_0", "LABEL_1")  # labels of a checkpoint that does not name them


@dataclass(frozen=True)
class PairClassifier(TrainedClassifier):
    """Answers `same` or `different` to a pair of texts, with the probability of `same`.

    The model is either one that `train` writes, logistic regression over stylometric distances,
    which does not depend on the order of the pair; or a transformers model that reads the pair as
    two segments (Zhang et al. 2021 used BERT) and has a label `same`, or two labels without names,
    the second for `same`. A pair that does not fit is truncated, the longer text first. The
    probability assumes that both answers are equally frequent.

    Attributes:
        threshold: Least probability at which the answer is `same`.
    """

    window_size: ClassVar[int] = 4096  # a document has tens of thousands of pairs

    # Training has as many pairs of one author as of two, so 0.5 is the neutral threshold.
    threshold: Share = 0.5

    def load(self) -> None:
        """Loads the model now instead of on first use; raises UserError if it is unsuitable."""
        _ = self._index_of_same if self.is_network else self._style

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order; equal texts are measured once."""
        self.load()
        if not self.is_network:
            scored = zip(self._by_style([*map(_pair, inputs)]), inputs, strict=True)
            return [self._output(probability, read, _pair(read)) for probability, read in scored]
        fitting = [self._fitting(read) for read in inputs]
        replies, same = self._replies(prompt for prompt, _ in fitting), self._index_of_same
        return [
            self._output(replies[prompt].scores[same], read, texts, len(prompt.tokens))
            for (prompt, texts), read in zip(fitting, inputs, strict=True)
        ]

    def render(self, read: Read) -> str:
        """Returns the two texts that are compared, after truncation."""
        return "\n\n".join(self._fitting(read)[1] if self.is_network else _pair(read))

    def fit(self, read: Read) -> int:
        """Returns how many passages fit: all, since only the pair is read."""
        return len(read.passages)

    def learn(
        self, inputs: Sequence[Read], targets: Sequence[str], directory: Path
    ) -> Mapping[str, JSON]:
        """Trains a scikit-learn model, and writes it to the directory; see `Learns`."""
        check_targets("PairClassifier", targets, LABELS)
        pairs = list(map(_pair, inputs))
        return save(directory, "PairClassifier", _fit(pairs, targets, self.seed))

    def prompts(self, read: Read) -> list[Segments]:
        """Returns a transformers model's input for a pair."""
        return [self._fitting(read)[0]]

    @cached_property
    def _style(self) -> Mapping[str, Any]:
        """Profile of texts, and classifier of pairs."""
        model: Mapping[str, Any] = load(self.model, "PairClassifier")
        return model

    def _by_style(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns the probability of `same` for each pair."""
        if not pairs:
            return []
        from scipy.special import expit

        from leporello.readers.classical.pair_features import features  # imports numpy

        scale, regression = (step for _, step in self._style["classifier"].steps)
        # Not a matrix product, whose last digits depend on the number of pairs.
        weighted = scale.transform(features(self._style["profile"], pairs)) * regression.coef_[0]
        odds = weighted.sum(axis=1) + regression.intercept_[0]  # of `same`, the last label by name
        probabilities_of_same: list[float] = expit(odds).tolist()
        return probabilities_of_same

    @cached_property
    def _index_of_same(self) -> int:
        _ = self._network  # first, since it checks that the model predicts classes
        labels = self.declared_labels
        indices = [index for index, label in enumerate(labels) if label.casefold() == "same"]
        # Checkpoints without names follow the order of training: 1 is the positive class, `same`.
        if indices or labels == _UNNAMED:
            return indices[0] if indices else 1
        raise UserError(
            f"model {self.model!r} has the labels {', '.join(labels)[:200]}, but not `same`: it was"
            " trained for another task; choose another model, or name its label in config.json"
        )

    def _fitting(self, read: Read) -> tuple[Segments, tuple[str, str]]:
        """Returns the model's input for a pair, and its texts as far as they are in the input."""
        pair, limit = _pair(read), self.max_input_tokens
        prompt = self._encoded(*pair)
        if len(prompt.tokens) <= limit:
            return prompt, pair
        # The tokenizer truncates the longer text first.
        options = {"truncation": True, "max_length": limit, "return_offsets_mapping": True}
        encoded = self._tokenized(*pair, **options)
        ends = [0, 0]
        for (_, end), owner in zip(encoded["offset_mapping"], encoded.sequence_ids(), strict=True):
            if owner is not None:
                ends[owner] = max(ends[owner], end)
        if not all(ends):
            raise ValueError(f"max_input_tokens is {limit}, too few for one token of each text")
        # White space at the end has no tokens.
        first, second = (
            text[:end] if text[end:].strip() else text for text, end in zip(pair, ends, strict=True)
        )
        return self._segments(encoded), (first, second)

    def _output(self, same: float, read: Read, texts: tuple[str, str], tokens: int = 0) -> Output:
        pair = _pair(read)
        return Output(
            text=LABELS[same < self.threshold],
            score=same,
            # None means all passages, which is what a reader sees unless it cuts a text.
            read=None if texts == pair else _spans(read, texts),
            cut=sum(map(len, pair)) - sum(map(len, texts)),
            input_tokens=tokens or 0,
            probability=1 - same if same < self.threshold else same,
        )


def _fit(pairs: Sequence[tuple[str, str]], targets: Sequence[str], seed: int) -> dict[str, Any]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from leporello.readers.classical.pair_features import features, fit_profile

    profile = fit_profile(list(dict.fromkeys(text for pair in pairs for text in pair)))
    # Strong regularisation, since few features are informative; both classes have equal weight.
    # Gradient boosting gave no better result on unseen documents (0.687, not 0.690; decision 16).
    classifier = LogisticRegression(
        C=0.05, class_weight="balanced", max_iter=1000, random_state=seed
    )
    model = Pipeline([("scale", StandardScaler()), ("classifier", classifier)])
    model.fit(features(profile, pairs), list(targets))
    return {"profile": profile, "classifier": model}


def _pair(read: Read) -> tuple[str, str]:
    if read.pair is None:
        raise ValueError(
            "this reader compares pairs of texts, but got only passages: use the combiner"
            " AssignAuthors or ClusterAuthors"
        )
    return read.pair


def _spans(read: Read, texts: tuple[str, str]) -> tuple[Span, ...] | None:
    """Returns the spans that were read, if the passages are the texts of the pair."""
    chunks = [passage for passage in read.passages if isinstance(passage, Chunk)]
    # Other combiners may pair texts that are not slices; then no spans were read.
    if [len(text) for text in _pair(read)] != [len(chunk.span) for chunk in chunks]:
        return None
    return tuple(
        Span(chunk.start, chunk.start + len(text))
        for chunk, text in zip(chunks, texts, strict=True)
    )
