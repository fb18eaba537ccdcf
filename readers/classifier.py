"""Classes of passages: a model of scikit-learn's that `train` makes, or one of transformers'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

from leporello.core.errors import UserError
from leporello.core.records import JSON, Output, Read
from leporello.readers.classical.labels import check_targets, labelled
from leporello.readers.classical.ngrams import NGramModel, fit_ngrams
from leporello.readers.classical.saved_model import load, save
from leporello.readers.encoders.batched_model import Segments
from leporello.readers.encoders.trained_classifier import TrainedClassifier
from leporello.readers.prompting.template import passage_text, refuse_pairs, seen
from leporello.readers.prompting.window import OnOverflow, Window


@dataclass(frozen=True)
class Classifier(TrainedClassifier):
    """Answers with the label of the passages.

    The model is either what `train` writes, words and n-grams of characters weighed by TF-IDF and
    logistic regression, whose window has no end; or a transformers model with a head for classes,
    whose first token Longformer attends to globally. The score is the label's probability; with
    choices, the likeliest of them is the answer, and each has the probability of its label.

    Attributes:
        question: Whether the question is read too: as the first of two segments by a transformers
            model, before the passages by the other.
        separator: Text between passages.
        on_overflow: Rule of a transformers model for passages that do not fit. `fit` leaves out the
            last ones, `truncate` cuts in the middle of one, `split` classifies the parts and takes
            the mean of their probabilities, `error` fails the input.
    """

    _trainer = "classifier"

    question: bool = False
    separator: str = "\n\n"
    on_overflow: OnOverflow = "fit"

    def load(self) -> None:
        """Loads the model, which is otherwise done when it first reads.

        Raises:
            UserError: There is none, or it cannot be loaded.
        """
        _ = self._labels

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order; equal texts are classified once."""
        refuse_pairs(inputs)
        self.load()
        parts = [self._window.parts(read) if self._window else [read] for read in inputs]
        flat = [part for own_parts in parts for part in own_parts]
        classified = dict(zip(map(id, flat), self._classify(flat), strict=True))
        return [
            self._output(read, own_parts, [classified[id(part)] for part in own_parts])
            for read, own_parts in zip(inputs, parts, strict=True)
        ]

    def render(self, read: Read) -> str:
        """Returns the exact text that is classified; the parts of a split input one by one."""
        parts = self._window.parts(read) if self._window else [read]
        return "\n\n".join(map(self._whole, parts))

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit the window: all, without one."""
        return self._window.leading(read) if self._window else len(read.passages)

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
        check_targets("Classifier", targets)
        pipeline = fit_ngrams(list(map(self._whole, inputs)), targets, self.seed)
        return save(directory, "Classifier", pipeline, {"question": self.question})

    def prompts(self, read: Read) -> list[Segments]:
        """Returns what a transformers model is given for each part of an input."""
        refuse_pairs([read])
        assert self._window
        return [self._model_input(part) for part in self._window.parts(read)]

    @cached_property
    def _ngrams(self) -> NGramModel:
        pipeline, settings = load(self.model, "Classifier")
        if settings["question"] != self.question:
            raise UserError(
                f"model {self.model!r} was trained with question: {_yaml(settings['question'])},"
                f" and the reader has question: {_yaml(self.question)}; make them the same"
            )
        return NGramModel(pipeline)

    @cached_property
    def _window(self) -> Window | None:
        if not self._network:
            return None
        return Window(self._whole, self._size, self.max_input_tokens, self.on_overflow)

    @cached_property
    def _labels(self) -> tuple[str, ...]:
        return (self._network or self._ngrams).labels

    def _whole(self, read: Read) -> str:
        return "\n".join(filter(None, self._segments(read)))

    def _segments(self, read: Read) -> tuple[str, str]:
        """Returns the question, if it is read, and the passages."""
        texts = filter(None, map(passage_text, read.passages))
        return read.question if self.question else "", self.separator.join(texts)

    def _model_input(self, part: Read) -> Segments:
        question, text = self._segments(part)
        return self.network.segments(*((question, text) if question else (text,)))

    def _size(self, text: str) -> int:
        """Measures what is classified; the question is a line above, and a segment of its own."""
        assert self._network
        first, line_break, rest = text.partition("\n") if self.question else (text, "", "")
        return self._network.size(first, rest) if line_break else self._network.size(first)

    def _classify(self, parts: Sequence[Read]) -> list[tuple[tuple[float, ...], int]]:
        """Returns the probabilities of each part, and how many tokens the model read of it."""
        if not self._network:
            texts = list(map(self._whole, parts))
            return [(row, 0) for row in self._ngrams.probabilities(texts)]
        prompts = list(map(self._model_input, parts))
        probabilities = self._network.probabilities(prompts)
        return [(probabilities[prompt], len(prompt.tokens)) for prompt in prompts]

    def _output(
        self, read: Read, parts: Sequence[Read], classified: Sequence[tuple[tuple[float, ...], int]]
    ) -> Output:
        """Joins what was said of the parts of an input: the mean of their probabilities."""
        probabilities, tokens = zip(*classified, strict=True)
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


def _yaml(value: bool) -> str:
    return "true" if value else "false"
