"""Scores citations: whether passages entail the sentences that cite them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from leporello.core.protocols import Role
from leporello.core.records import Asking, Example, Output, Prediction, Read
from leporello.metrics.own import MetricError
from leporello.metrics.protocol import Averaged, Statistics
from leporello.text.sentences import sentence_spans

CHECK = "Does the text say so? Answer with one of the choices."
_MARK = re.compile(r"\s?\[(\d{1,4})\]")
_FULL = 100.0
_MOST = 3  # citations per sentence
_LABELS = ("Entailment", "Contradiction", "Not mentioned")

# A sentence without its marks, and the texts that it cites; None if a number has no hit.
_Sentence = tuple[str, tuple[str, ...] | None]


@dataclass(frozen=True)
class Citations(Averaged):
    """Citation recall and precision, and claim recall, of ALCE, each 0 to 100.

    A sentence cites hits by rank, such as `[1][2]`, of which the first three count; in an answer
    without marks, each sentence cites the best three hits. `citations` is the share of sentences
    that their cited texts together entail. `citation_precision` is the share of citations that are
    needed: the cited text entails the sentence alone, or the other cited texts do not entail it; a
    sentence that is not entailed has no needed citation. `claim_recall` is the share of claims that
    the answer entails: `claims` in the example's metadata, or the sentences of the first reference.

    Source: Gao et al., "Enabling Large Language Models to Generate Text with Citations", EMNLP
    2023, and `compute_autoais` and `compute_claims` of its official `eval.py`.

    Attributes:
        role: Role of the reader that decides whether sentences follow from a text.
    """

    name = "citations"

    role: Role = "judge"

    @cached_property
    def signature(self) -> str:
        """Options of the computation."""
        options = f"role:{self.role}|most:{_MOST}|labels:{','.join(_LABELS)}"
        return f"citations|{options}|average:mean|version:1"

    def measured(self, text: str, example: Example) -> Statistics:  # noqa: ARG002 -- as all metrics
        """Returns the statistics of an empty answer; other answers need a reader."""
        if text:
            raise MetricError("citations asks a reader: only `run` can compute its scores")
        return _percentages([], [], [])

    def ask(self, prediction: Prediction, example: Example) -> Asking[Statistics | None]:
        """Yields two rounds of reads: cited texts together and claims; then single citations."""
        if not example.references or not prediction.prediction:
            return self.statistics(prediction, example)
        sentences = self._sentences(prediction, example)
        cited = [(texts, sentence) for sentence, texts in sentences if texts]
        answer = _MARK.sub("", prediction.prediction)
        claims = [((answer,), claim) for claim in _claims(example)]
        verdicts = self._entailed((yield [self._read(*pair) for pair in [*cited, *claims]]))
        entailed = dict(zip(cited, verdicts, strict=False))
        several = [pair for pair in cited if entailed[pair] and len(pair[0]) > 1]
        pairs = [
            (texts, sentence)
            for cites, sentence in several
            for place in range(len(cites))
            for texts in ((cites[place],), cites[:place] + cites[place + 1 :])
        ]
        checked = self._entailed((yield [self._read(*pair) for pair in pairs])) if pairs else []
        needed = iter(
            by_itself or not by_others
            for by_itself, by_others in zip(checked[::2], checked[1::2], strict=True)
        )
        precise = [
            next(needed) if pair in several else entailed[pair] for pair in cited for _ in pair[0]
        ]
        recalled = [bool(texts and entailed[texts, sentence]) for sentence, texts in sentences]
        return _percentages(recalled, precise, verdicts[len(cited) :])

    def _sentences(self, prediction: Prediction, example: Example) -> list[_Sentence]:
        source, text = example.document.text, prediction.prediction
        hits = [" ".join(source[s.start : s.end] for s in spans) for spans in prediction.hit_spans]
        marked = _MARK.search(text) is not None
        sentences: list[_Sentence] = []
        for start, end in sentence_spans(text):
            numbers = [int(number) for number in _MARK.findall(text[start:end])]
            are_valid = all(0 < number <= len(hits) for number in numbers)
            texts = [hits[number - 1] for number in numbers] if are_valid and marked else hits
            cites = tuple(dict.fromkeys(texts))[:_MOST]
            sentence = _MARK.sub("", text[start:end]).strip()
            if sentence:
                sentences.append((sentence, cites if are_valid else None))
        return sentences

    def _read(self, texts: tuple[str, ...], sentence: str) -> Read:
        return Read(texts, sentence, CHECK, _LABELS, role=self.role)

    def _entailed(self, outputs: Sequence[Output]) -> list[bool]:
        return [output.text.strip().casefold() == _LABELS[0].casefold() for output in outputs]


def _claims(example: Example) -> list[str]:
    claims = example.metadata.get("claims")
    if isinstance(claims, list) and claims:
        return [str(claim) for claim in claims]
    reference = example.references[0]
    return [reference[start:end] for start, end in sentence_spans(reference)]


def _percentages(
    recalled: Sequence[bool], precise: Sequence[bool], claims: Sequence[bool]
) -> Statistics:
    by_name = {"citations": recalled, "citation_precision": precise, "claim_recall": claims}
    return {name: _FULL * fmean(flags) if flags else 0.0 for name, flags in by_name.items()}
