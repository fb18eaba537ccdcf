"""Reader that classifies passages, with a scikit-learn model that `train` fits or transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from leporello.core.records import JSON, Output, Read
from leporello.readers.classical.saved_model import check_targets, labelled, load, save
from leporello.readers.encoders.classification import TrainedClassifier
from leporello.readers.encoders.segments import Segments
from leporello.readers.prompting.template import encodable, passage_text, refuse_pairs, seen
from leporello.readers.prompting.window import OnOverflow, Window

# Hashed, so the model's file contains no words of the user's documents.
_BUCKETS = 2**18  # of hashed n-grams, which need no vocabulary


def fit_ngrams(texts: Sequence[str], labels: Sequence[str], seed: int) -> Any:  # noqa: ANN401 -- scikit-learn has no types
    """Returns a fitted pipeline; all classes have equal weight, however rare."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import FeatureUnion, Pipeline

    words = {"token_pattern": r"(?u)\b\w+\b", "ngram_range": (1, 2)}
    characters = {"analyzer": "char_wb", "ngram_range": (2, 5)}
    counted = FeatureUnion([("words", _tf_idf(words)), ("characters", _tf_idf(characters))])
    # Balanced, as the tasks' F1 gives all classes equal weight (decision 26).
    classifier = LogisticRegression(
        C=10.0, class_weight="balanced", max_iter=1000, random_state=seed
    )
    model = Pipeline([("features", counted), ("classifier", classifier)])
    return model.fit(list(map(encodable, texts)), list(labels))


def _tf_idf(counting: dict[str, Any]) -> Any:  # noqa: ANN401 -- as above
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
    from sklearn.pipeline import Pipeline

    counts = HashingVectorizer(n_features=_BUCKETS, norm=None, alternate_sign=False, **counting)
    return Pipeline([("counts", counts), ("weights", TfidfTransformer(sublinear_tf=True))])


@dataclass(frozen=True)
class Classifier(TrainedClassifier):
    """Answers with the label of the passages.

    The model is either one that `train` writes: logistic regression over TF-IDF of words and
    character n-grams, with an unlimited input window; or a transformers model with a classification
    head, in which Longformer's first token attends globally. The score is the label's probability.
    With choices, the answer is the most probable one, and each has the probability of its label.

    Attributes:
        separator: Text between passages.
        on_overflow: Rule of a transformers model for passages that do not fit: `fit` omits the last
            ones, `truncate` cuts within a passage, `split` classifies the parts and takes the mean
            of their probabilities, `error` fails the input.
    """

    separator: str = "\n\n"
    on_overflow: OnOverflow = "fit"

    def load(self) -> None:
        """Loads the model, which `read` otherwise does on first use."""
        _ = self._labels

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order."""
        refuse_pairs(inputs)
        self.load()
        parts = [*map(self._parts, inputs)]
        flat = [*chain.from_iterable(parts)]
        results = iter(self._classify(flat))
        return [
            self._output(read, read_parts, [next(results) for _ in read_parts])
            for read, read_parts in zip(inputs, parts, strict=True)
        ]

    def render(self, read: Read) -> str:
        """Returns the exact text that is classified; the parts of a split input in turn."""
        return "\n\n".join(map(self._text, self._parts(read)))

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit; all, without an input window."""
        return self._window.leading(read) if self._window else len(read.passages)

    def learn(
        self, inputs: Sequence[Read], targets: Sequence[str], directory: Path
    ) -> Mapping[str, JSON]:
        """Trains a scikit-learn model, and writes it to the directory; see `Learns`."""
        refuse_pairs(inputs)
        check_targets("Classifier", targets)
        pipeline = fit_ngrams(list(map(self._text, inputs)), targets, self.seed)
        return save(directory, "Classifier", pipeline)

    def prompts(self, read: Read) -> list[Segments]:
        """Returns a transformers model's input for each part of an input."""
        refuse_pairs([read])
        return [self._encoded(self._text(part)) for part in self._parts(read)]

    @cached_property
    def _ngrams(self) -> Any:  # noqa: ANN401 -- scikit-learn has no types
        return load(self.model, "Classifier")

    @cached_property
    def _window(self) -> Window | None:
        if not self.is_network:
            return None
        return Window(self._text, self._size, self.max_input_tokens, self.on_overflow)

    @cached_property
    def _labels(self) -> tuple[str, ...]:
        if not self.is_network:
            return tuple(map(str, self._ngrams.classes_))
        _ = self._network  # first, since it checks that the model predicts classes
        return self.declared_labels

    def _parts(self, read: Read) -> list[Read]:
        return self._window.parts(read) if self._window else [read]

    def _text(self, read: Read) -> str:
        return self.separator.join(filter(None, map(passage_text, read.passages)))

    def _size(self, text: str) -> int:
        return len(self._encoded(text).tokens)

    def _classify(self, parts: Sequence[Read]) -> list[tuple[tuple[float, ...], int]]:
        """Returns the probabilities of each part, and how many of its tokens the model read."""
        if not self.is_network:
            texts = [encodable(self._text(part)) for part in parts]
            rows = self._ngrams.predict_proba(texts).tolist() if texts else []
            return [(tuple(row), 0) for row in rows]
        prompts = [self._encoded(self._text(part)) for part in parts]
        replies = self._replies(prompts)
        return [(replies[prompt].scores, len(prompt.tokens)) for prompt in prompts]

    def _output(
        self, read: Read, parts: Sequence[Read], classified: Sequence[tuple[tuple[float, ...], int]]
    ) -> Output:
        """Returns the output of an input, from the mean probabilities of its parts."""
        probabilities, tokens = zip(*classified, strict=True)
        # The mean of probabilities, so that a short last part cannot decide alone by its logits.
        means = dict(zip(self._labels, map(fmean, zip(*probabilities, strict=True)), strict=True))
        label, scores = labelled(read.choices, means)
        spans, cut = seen(read, parts)
        return Output(
            text=label,
            score=means[label],
            scores=scores,
            probability=means[label],
            read=spans,
            cut=cut,
            input_tokens=sum(tokens),
        )
