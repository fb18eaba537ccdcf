"""Every hit read into fields, which are brought together; where they differ, confidence decides.

The fields are parsed from lines that a model writes, with patience for their form.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import regex

from leporello.combiners.chains.said import (
    answer_key,
    asks_shortly,
    confidence,
    evidence,
    says_nothing,
)
from leporello.combiners.map_reduce import groups_that_fit
from leporello.combiners.stuff import asked, chunks_of, read_of
from leporello.core.records import Asking, Combination, Document, Example, Hit, Output, Read

_FIELD = regex.compile(
    r"^[^\p{L}\n]{0,9}(extracted information|information|rationale|answer|confidence)(?: score)?"
    r"[^\p{L}\p{N}\n]{0,3}:[*_ ]*",
    regex.IGNORECASE | regex.MULTILINE,
)
_NUMBER = regex.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,9})?)\s*(%?)")
_WORDS = {"low": 0.25, "medium": 0.5, "moderate": 0.5, "high": 0.75}
_MOST = 5.0  # the surest, as the instruction counts


@dataclass(frozen=True, slots=True)
class Finding:
    """What one read came to.

    Attributes:
        information: What was taken from the text.
        rationale: Why the answer follows from it.
        answer: The answer; may be empty.
        confidence: Confidence in it, 0 to 1.
        written: Whether the reader wrote any of these fields as such.
    """

    information: str
    rationale: str
    answer: str
    confidence: float
    written: bool

    def __bool__(self) -> bool:
        return not (says_nothing(self.answer) and says_nothing(self.information))

    def __str__(self) -> str:
        """Returns the fields that are not empty, a line each; of a copied answer its sentence."""
        if not self.written:
            return self.information
        fields = {
            "Extracted information": self.information,
            "Rationale": self.rationale,
            "Answer": self.answer,
            "Confidence": f"{self.confidence * _MOST:.1f}",
        }
        return "\n".join(f"{name}: {text}" for name, text in fields.items() if text)


def finding(output: Output, document: Document) -> Finding:
    """Returns what an output says; all of it is the answer where it has no fields.

    A confidence that is missing, or cannot be read, is that of the output's score.
    """
    parts = _FIELD.split(output.text)
    sure = confidence(output.score)
    if len(parts) == 1:
        answer = output.text.strip()
        return Finding(
            "" if says_nothing(answer) else evidence(output, document),
            "",
            answer,
            sure,
            written=False,
        )
    fields = {
        n.casefold().split()[-1]: t.strip() for n, t in zip(parts[1::2], parts[2::2], strict=True)
    }
    return Finding(
        fields.get("information", ""),
        fields.get("rationale", ""),
        fields.get("answer", ""),
        _confidence(fields.get("confidence", ""), sure),
        written=True,
    )


def _confidence(text: str, otherwise: float) -> float:
    """Returns a confidence as it was written: `4`, `4/5`, `80 %`, `high`."""
    if number := _NUMBER.search(text):
        value = float(number[1])
        return min(value / (100 if number[2] else _MOST), 1.0)
    words = regex.findall(r"\p{L}+", text.casefold())
    return next((_WORDS[word] for word in words if word in _WORDS), otherwise)


def most_trusted(findings: Sequence[Finding]) -> str:
    """Returns the answer whose confidence, summed over all findings that give it, is greatest."""
    trust: dict[str, float] = defaultdict(float)
    answers: dict[str, str] = {}
    for each in findings:
        key = answer_key(each.answer)
        trust[key] += each.confidence
        answers.setdefault(key, each.answer)
    return answers[max(trust, key=trust.__getitem__)]


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

    As Zhou et al. describe ("LLM×MapReduce", 2024): of each hit its information, a rationale, an
    answer and a confidence from 1 to 5 go on, by which the last read tells which answer to trust.
    A field that a reader does not write is empty; a confidence is then that of `Output.score`. What
    says nothing goes no further; if all is such, the first answer is returned, or with choices the
    question read alone.

    Where a reader writes no field at all, as those do that copy their answers, there is nothing to
    collapse: equal answers sum up their confidence, and the greatest sum wins. For summaries, and
    with choices, the sentences that answers were copied from are read together instead.

    Attributes:
        map: Instruction under which hits are read, in front of the task's.
        collapse: Instruction under which groups are brought together, likewise.
        reduce: Instruction of the last read, likewise.
    """

    map: str = MAP
    collapse: str = COLLAPSE
    reduce: str = REDUCE

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a round for the hits, one a level of collapsing, each of fewer, and the last.

        Without hits the question is read alone.
        """
        reads = [self._read(example, self.map, (chunk,)) for chunk in chunks_of(hits)]
        outputs: list[Output] = (yield reads) if reads else []
        findings = [each for one in outputs if (each := finding(one, example.document))]
        if outputs and not findings and not example.choices:
            return outputs[0].text
        if not findings:
            [output] = yield [read_of(example, [])]
            return str(output.text)
        if asks_shortly(example) and not any(each.written for each in findings):
            return most_trusted(findings)
        texts = yield from self._collapsed(example, findings)
        [output] = yield [
            dataclasses.replace(self._read(example, self.reduce, texts), choices=example.choices)
        ]
        last = finding(output, example.document)
        return last.answer if last.written and last.answer else str(output.text)

    def _collapsed(self, example: Example, findings: Sequence[Finding]) -> Asking[tuple[str, ...]]:
        """Returns as few texts as fit one window."""
        texts = tuple(map(str, findings))
        read = self._read(example, self.collapse, ())
        while len(groups := (yield from groups_that_fit(read, texts))) > 1:
            outputs = yield [dataclasses.replace(read, passages=group) for group in groups]
            found = (finding(output, example.document) for output in outputs)
            texts = tuple(str(each) for each in found if each) or groups[0]
        return texts

    def _read(self, example: Example, instruction: str, passages: tuple[Any, ...]) -> Read:
        told = f"{instruction} {example.instruction}".strip()
        return dataclasses.replace(asked(example, passages), instruction=told, choices=())
