"""Reader that decides whether two texts have the same author, by style or with transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from leporello.core.errors import UserError
from leporello.core.protocols import Share
from leporello.core.records import JSON, Chunk, Output, Read, Span
from leporello.readers.classical.saved_model import check_targets, load, save
from leporello.readers.encoders.batched_model import Segments
from leporello.readers.encoders.classification import TrainedClassifier

if TYPE_CHECKING:
    from leporello.readers.classical.pair_features import PairFeatures

LABELS = ("same", "different")
_UNNAMED = ("LABEL_0", "LABEL_1")  # labels of a checkpoint that does not name them


@dataclass(frozen=True)
class PairClassifier(TrainedClassifier):
    """Answers `same` or `different` to a pair of texts, with the probability of `same`.

    The model is either one that `train` writes, logistic regression over stylometric distances,
    which does not depend on the order of the pair; or a transformers model that reads the pair as
    two segments (Zhang et al. 2021 used BERT) and has a label `same`, or two labels without names,
    the second for `same`. The probability assumes that both answers are equally frequent.

    Attributes:
        threshold: Least probability at which the answer is `same`.
        on_overflow: Rule of a transformers model for a pair that does not fit: `truncate` cuts the
            longer text first, `error` fails the input.
    """

    window_size: ClassVar[int] = 4096  # a document has tens of thousands of pairs

    # Training has as many pairs of one author as of two, so 0.5 is the neutral threshold.
    threshold: Share = 0.5
    on_overflow: Literal["truncate", "error"] = "truncate"

    def load(self) -> None:
        """Loads the model now instead of on first use; raises UserError if it is unsuitable."""
        _ = self._index_of_same if self.is_network else self._style

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order; features of texts are cached."""
        self.load()
        pairs = list(map(_pair, inputs))
        if not self.is_network:
            scored = zip(self._by_style(pairs), inputs, strict=True)
            return [self._output(probability, read, read.pair) for probability, read in scored]
        fitting = list(map(self._cut_to_window, pairs))
        prompts = [self._encoded(*texts) for texts in fitting]
        replies, same = self._replies(prompts), self._index_of_same
        return [
            self._output(replies[prompt].scores[same], read, texts, len(prompt.tokens))
            for prompt, read, texts in zip(prompts, inputs, fitting, strict=True)
        ]

    def render(self, read: Read) -> str:
        """Returns the two texts that are compared, after truncation."""
        pair = _pair(read)
        return "\n\n".join(self._cut_to_window(pair) if self.is_network else pair)

    def fit(self, read: Read) -> int:
        """Returns how many passages fit: all, since only the pair is read."""
        return len(read.passages)

    def learn(
        self, inputs: Sequence[Read], targets: Sequence[str], directory: Path
    ) -> Mapping[str, JSON]:
        """Trains a scikit-learn model, and writes it to the directory; see `Learns`."""
        check_targets("PairClassifier", targets, LABELS)
        pairs = list(map(_pair, inputs))
        return save(directory, "PairClassifier", _fit(pairs, targets, self.seed), {})

    def prompts(self, read: Read) -> list[Segments]:
        """Returns a transformers model's input for a pair."""
        return [self._encoded(*self._cut_to_window(_pair(read)))]

    @cached_property
    def _style(self) -> tuple[PairFeatures, Any]:
        """Features of pairs, and their classifier."""
        from leporello.readers.classical.pair_features import PairFeatures  # imports numpy

        model, _ = load(self.model, "PairClassifier")
        return PairFeatures(model["profile"]), model["classifier"]

    def _by_style(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Returns the probability of `same` for each pair."""
        if not pairs:
            return []
        from scipy.special import expit

        features, classifier = self._style
        scale, regression = (step for _, step in classifier.steps)
        # Not a matrix product, whose last digits depend on the number of pairs.
        weighted = scale.transform(features.features(pairs)) * regression.coef_[0]
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

    def _cut_to_window(self, pair: tuple[str, str]) -> tuple[str, str]:
        """Returns the pair, truncated at tokens to fit the input window, the longer text first."""
        limit = self.max_input_tokens
        if (size := self._length(*pair)) <= limit:
            return pair
        if self.on_overflow == "error":
            raise ValueError(
                f"the pair takes {size} tokens, max_input_tokens is {limit}, on_overflow is 'error'"
            )
        ends = [self._ends(text) for text in pair]
        # Token by token, because a cut text may have more tokens than its part of the whole.
        for room in range(limit - self._length("", ""), 1, -1):
            first, second = map(len, ends)
            # The shorter text keeps all its tokens as long as the longer one can give up some.
            counts = max(room // 2, room - second), max(room - room // 2, room - first)
            shorter = tuple(
                text[: text_ends[min(count, len(text_ends)) - 1]] if text_ends else text
                for text, text_ends, count in zip(pair, ends, counts, strict=True)
            )
            if self._length(*shorter) <= limit:
                return shorter[0], shorter[1]
        raise ValueError(f"max_input_tokens is {limit}, too few for one token of each text")

    def _output(
        self, same: float, read: Read, texts: tuple[str, str] | None, tokens: int = 0
    ) -> Output:
        assert read.pair
        assert texts
        return Output(
            text=LABELS[same < self.threshold],
            score=same,
            # None means all passages, which is what a reader sees unless it cuts a text.
            read=None if texts == read.pair else _spans(read, texts),
            cut=sum(map(len, read.pair)) - sum(map(len, texts)),
            input_tokens=tokens or 0,
            probability=1 - same if same < self.threshold else same,
        )


def _fit(pairs: Sequence[tuple[str, str]], targets: Sequence[str], seed: int) -> dict[str, Any]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from leporello.readers.classical.pair_features import PairFeatures, fit_profile

    profile = fit_profile(list(dict.fromkeys(text for pair in pairs for text in pair)))
    # Strong regularisation, since few features are informative; both classes have equal weight.
    # Gradient boosting gave no better result on unseen documents (0.687, not 0.690; decision 16).
    classifier = LogisticRegression(
        C=0.05, class_weight="balanced", max_iter=1000, random_state=seed
    )
    model = Pipeline([("scale", StandardScaler()), ("classifier", classifier)])
    model.fit(PairFeatures(profile).features(pairs), list(targets))
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
    assert read.pair
    chunks = [passage for passage in read.passages if isinstance(passage, Chunk)]
    # Other combiners may pair texts that are not slices; then no spans were read.
    if [len(text) for text in read.pair] != [len(chunk.span) for chunk in chunks]:
        return None
    return tuple(
        Span(chunk.start, chunk.start + len(text))
        for chunk, text in zip(chunks, texts, strict=True)
    )
