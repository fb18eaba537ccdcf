"""Whether passages entail the sentences that cite them, and answers the claims of the reference."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import ClassVar

from leporello.core.protocols import Positive, Role
from leporello.core.records import Example, Output, Prediction, Read
from leporello.metrics.own import MetricError
from leporello.metrics.protocol import Averaged, Statistics
from leporello.text.sentences import sentence_spans

CHECK = "Does the text say so? Answer with one of the choices."
_MARK = re.compile(r"\s?\[(\d{1,4})\]")
_FULL = 100.0

# A sentence without its marks, and the texts that it cites; None where it cites what is not there.
_Sentence = tuple[str, tuple[str, ...] | None]


@dataclass(frozen=True)
class Citations(Averaged):
    """Citation recall and precision, and claim recall, of ALCE, each 0 to 100.

    A sentence cites by `[1][2]`, numbers of hits from the best; an answer without any such mark
    cites the best `most` hits in each sentence. `citations` is the share of sentences which what
    they cite entails, taken together. `citation_precision` is the share of citations of such
    sentences that are needed: which entail the sentence alone, or without which the others do not;
    of others none is. `claim_recall` is the share of claims that the answer entails: those under
    `claims` in the example's metadata, or the sentences of the first reference.

    Source: Gao et al., "Enabling Large Language Models to Generate Text with Citations", EMNLP
    2023, and `compute_autoais` and `compute_claims` of its official `eval.py`.

    Attributes:
        role: Role of the reader that says whether a text entails a sentence.
        most: Number of citations of a sentence that count, from the first.
        labels: Labels that the reader chooses from; the first is entailment.
    """

    name: ClassVar[str] = "citations"

    role: Role = "judge"
    most: Positive = 3
    labels: tuple[str, ...] = ("Entailment", "Contradiction", "Not mentioned")

    @cached_property
    def signature(self) -> str:
        """What is asked."""
        asked = f"role:{self.role}|most:{self.most}|labels:{','.join(self.labels)}"
        return f"citations|{asked}|average:mean|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns those of an empty answer; all else takes reading.

        Raises:
            MetricError: There is a prediction.
        """
        if not example.references:
            return None
        if prediction.prediction:
            raise MetricError("citations asks a reader: its scores are made by `run` alone")
        return _told([], [], [])

    def ask(
        self, prediction: Prediction, example: Example
    ) -> Generator[Sequence[Read], Sequence[Output], Statistics | None]:
        """Yields two rounds of reads: what is cited together and claims, then what is needed."""
        if not example.references or not prediction.prediction:
            return self.statistics(prediction, example)
        sentences = self._sentences(prediction, example)
        cited = [(texts, sentence) for sentence, texts in sentences if texts]
        answer = _MARK.sub("", prediction.prediction)
        claims = [((answer,), claim) for claim in _claims(example)]
        said = self._entailed((yield [self._read(*pair) for pair in [*cited, *claims]]))
        entailed = dict(zip(cited, said, strict=False))
        several = [pair for pair in cited if entailed[pair] and len(pair[0]) > 1]
        asked = [
            (texts, sentence)
            for cites, sentence in several
            for place in range(len(cites))
            for texts in ((cites[place],), cites[:place] + cites[place + 1 :])
        ]
        found = self._entailed((yield [self._read(*pair) for pair in asked])) if asked else []
        needed = iter(
            alone or not rest for alone, rest in zip(found[::2], found[1::2], strict=True)
        )
        precise = [
            next(needed) if pair in several else entailed[pair] for pair in cited for _ in pair[0]
        ]
        recalled = [bool(texts and entailed[texts, sentence]) for sentence, texts in sentences]
        return _told(recalled, precise, said[len(cited) :])

    def _sentences(self, prediction: Prediction, example: Example) -> list[_Sentence]:
        whole, text = example.document.text, prediction.prediction
        hits = [" ".join(whole[s.start : s.end] for s in spans) for spans in prediction.hit_spans]
        marked = _MARK.search(text) is not None
        sentences: list[_Sentence] = []
        for start, end in sentence_spans(text):
            numbers = [int(number) for number in _MARK.findall(text[start:end])]
            known = all(0 < number <= len(hits) for number in numbers)
            texts = [hits[number - 1] for number in numbers] if known and marked else hits
            cites = tuple(dict.fromkeys(texts))[: self.most]
            own = _MARK.sub("", text[start:end]).strip()
            if own:
                sentences.append((own, cites if known else None))
        return sentences

    def _read(self, texts: tuple[str, ...], sentence: str) -> Read:
        return Read(texts, sentence, CHECK, self.labels, role=self.role)

    def _entailed(self, outputs: Sequence[Output]) -> list[bool]:
        label = self.labels[0].casefold()
        return [output.text.strip().casefold() == label for output in outputs]


def _claims(example: Example) -> list[str]:
    claims = example.metadata.get("claims")
    if isinstance(claims, list) and claims:
        return [str(claim) for claim in claims]
    reference = example.references[0]
    return [reference[start:end] for start, end in sentence_spans(reference)]


def _told(recalled: Sequence[bool], precise: Sequence[bool], claims: Sequence[bool]) -> Statistics:
    return {
        name: _FULL * fmean(found) if found else 0.0
        for name, found in (
            ("citations", recalled),
            ("citation_precision", precise),
            ("claim_recall", claims),
        )
    }
