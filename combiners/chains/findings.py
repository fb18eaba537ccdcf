"""What a chunk was found to say: fields as a model writes them, read with patience."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import regex

from leporello.combiners.chains.said import answer_key, confidence, evidence, says_nothing
from leporello.core.records import Document, Output

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
