"""Reads every hit into fields and merges them; confidence decides between contradictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import regex

from leporello.combiners.chains.outputs import (
    answer_key,
    confidence,
    evidence,
    has_no_answer,
    most_trusted,
)
from leporello.combiners.map_reduce import groups_that_fit
from leporello.combiners.stuff import chunks_of, read_of, read_with, wants_short_answer
from leporello.core.records import Asking, Combination, Document, Example, Hit, Output, Read

_FIELD = regex.compile(
    r"^[^\p{L}\n]{0,9}(extracted information|information|rationale|answer|confidence)(?: score)?"
    r"[^\p{L}\p{N}\n]{0,3}:[*_ ]*",
    regex.IGNORECASE | regex.MULTILINE,
)
_NUMBER = regex.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,9})?)\s*(%?)")
_NAMES = {"information": "Extracted information"}
_MOST = 5.0  # highest confidence on the instruction's scale


@dataclass(frozen=True, slots=True)
class Finding:
    """Fields of one read, any of which may be empty; `written` if the reader wrote one of them."""

    information: str
    answer: str
    confidence: float
    text: str  # the fields that are not empty as lines, or the sentence of a copied answer
    written: bool = False

    def __bool__(self) -> bool:
        return not (has_no_answer(self.answer) and has_no_answer(self.information))


def finding(output: Output, document: Document) -> Finding:
    """Parses an output leniently; without fields, the complete text is the answer."""
    parts = _FIELD.split(output.text)
    default = confidence(output.score)
    if len(parts) == 1:
        answer = output.text.strip()
        information = "" if has_no_answer(answer) else evidence(output, document)
        return Finding(information, answer, default, information)
    fields = dict.fromkeys(("information", "rationale", "answer", "confidence"), "")
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        fields[name.casefold().split()[-1]] = text.strip()
    number = _confidence(fields["confidence"], default)
    fields["confidence"] = f"{number * _MOST:.1f}"
    lines = (f"{_NAMES.get(name, name.title())}: {text}" for name, text in fields.items() if text)
    return Finding(fields["information"], fields["answer"], number, "\n".join(lines), written=True)


def _confidence(text: str, default: float) -> float:
    """Parses a confidence such as `4`, `4/5` or `80 %`."""
    number = _NUMBER.search(text)
    return min(float(number[1]) / (100 if number[2] else _MOST), 1.0) if number else default


_FIELDS = (
    " Write four lines:\nExtracted information: what the text says that matters for it\n"
    "Rationale: how the answer follows\nAnswer: the answer, or none\n"
    "Confidence: a number from 1 (a guess) to 5 (the text says so)"
)
MAP = "The text is a part of a longer one. Do the following as far as this part allows." + _FIELDS
COLLAPSE = (
    "These were found in several parts of a text. Bring them into one; where they contradict each"
    " other, follow the one with the higher confidence." + _FIELDS
)
REDUCE = (
    "These were found in several parts of a text, each with its confidence from 1 to 5. Answer from"
    " them; where they contradict each other, follow the one with the higher confidence."
)


@dataclass(frozen=True)
class StructuredMapReduce:
    """Reads every hit into fields, collapses them in groups that fit, and resolves conflicts.

    Zhou et al. ("LLM×MapReduce", 2024): each hit gives information, a rationale, an answer and a
    confidence from 1 to 5, by which the last read resolves contradictions. Fields that the reader
    does not write are empty; a missing confidence is derived from `Output.score`. Empty findings
    are dropped; if all are empty, the first answer is returned, or with choices a read of only the
    question.

    If the reader writes no fields, as extractive readers, nothing is collapsed: equal answers add
    up their confidence, and the greatest sum wins. For summaries and with choices, the sentences
    that contain the answers are read together instead.

    Attributes:
        map: Instruction for reads of hits, before the task's.
        collapse: Instruction for merging groups of findings, before the task's.
        reduce: Instruction for the last read, before the task's.
    """

    map: str = MAP
    collapse: str = COLLAPSE
    reduce: str = REDUCE

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a round for the hits, one for each level of collapsing, and the last read."""
        outputs: list[Output] = yield [
            self._read(example, self.map, (chunk,)) for chunk in chunks_of(hits)
        ]
        findings = [*filter(None, (finding(output, example.document) for output in outputs))]
        if outputs and not findings and not example.choices:
            return outputs[0].text
        if not findings:
            [output] = yield [read_of(example, [])]
            return str(output.text)
        if wants_short_answer(example) and not any(parsed.written for parsed in findings):
            return most_trusted((answer_key(f.answer), f.answer, f.confidence) for f in findings)
        texts = yield from self._collapsed(example, findings)
        [output] = yield [
            dataclasses.replace(self._read(example, self.reduce, texts), choices=example.choices)
        ]
        last = finding(output, example.document)
        return last.answer if last.written and last.answer else str(output.text)

    def _collapsed(self, example: Example, findings: Sequence[Finding]) -> Asking[tuple[str, ...]]:
        """Merges the findings until their texts fit the input window."""
        texts = tuple(parsed.text for parsed in findings)
        read = self._read(example, self.collapse, ())
        while len(groups := (yield from groups_that_fit(read, texts))) > 1:
            outputs = yield [dataclasses.replace(read, passages=group) for group in groups]
            merged = (finding(output, example.document) for output in outputs)
            # If the reader loses everything, the last read still has the first group.
            texts = tuple(parsed.text for parsed in merged if parsed) or groups[0]
        return texts

    def _read(self, example: Example, instruction: str, passages: tuple[Any, ...]) -> Read:
        both = f"{instruction} {example.instruction}".strip()
        return dataclasses.replace(read_with(example, passages), instruction=both, choices=())
