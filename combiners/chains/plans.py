"""Plans: the questions to answer on the way to one, as a model wrote them or by rule."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from leporello.text.english.clauses import clause_spans
from leporello.text.english.questions import named_choices

_STEP = regex.compile(r"^\W{0,4}(?:step )?\d{1,2}\s?[.):]\W{0,4}(\S.*)$", regex.I | regex.M)
_ANSWER = regex.compile(r"#(\d{1,2})(?!\d)")
# "the spouse of", "the actress that": what must be known before the rest can be answered.
_UNKNOWN = regex.compile(
    r"\bthe(?:\s[\w'’-]+){1,4}?\s"
    r"(?:that|who|whose|whom|which|where|when|of|by|in|from|with|containing)\s",
    regex.IGNORECASE,
)
_BARE = regex.compile(r"\W*+(?:what|who|which)\s+(?:is|are|was|were)\s*", regex.IGNORECASE)
_ENDS = " \t\r\n.?!"


def written_plan(text: str, steps: int) -> list[str]:
    """Returns the numbered lines of a text, at most so many; none where it has no such."""
    return [line.strip() for line in _STEP.findall(text)][:steps]


def plan_by_rule(question: str, steps: int) -> list[str]:
    """Returns what an English question leaves open inside itself, the innermost first.

    "Who is the spouse of the actress who plays Scarlett?" becomes "What is the actress who plays
    Scarlett?" and "Who is the spouse of #1?"; one that names two things to choose from, a question
    on each; several questions, these. Empty for a question of one clause, which needs no plan.

    Args:
        question: Question.
        steps: Number of steps at most.
    """
    if names := named_choices(question):
        stem = question[: question.find(names[0])].rstrip(" ,:")
        return [f"{stem} {name}?" for name in names][:steps]
    asked = [question[start:end] for start, end in clause_spans(question)]
    asked = [clause for clause in asked if clause.endswith("?")]
    if len(asked) > 1:
        return asked[:steps]
    bare = question.strip(_ENDS)
    starts = [found.start() for found in _UNKNOWN.finditer(bare, overlapped=True)]
    # What only `what is` stands before is the question itself.
    inner = [start for start in reversed(starts) if not _BARE.fullmatch(bare, 0, start)]
    tails = [bare[start:] for start in inner][: steps - 1]
    plan: list[str] = []
    for number, tail in enumerate(tails):
        plan.append(f"What is {_known(tail, tails[:number])}?")
    return [*plan, f"{_known(bare, tails)}?"] if plan else []


def _known(text: str, tails: Sequence[str]) -> str:
    """Returns a text with the answer to the last step in place of what that asked for."""
    return text.removesuffix(tails[-1]) + f"#{len(tails)}" if tails else text


def filled(step: str, answers: Sequence[str]) -> str:
    """Returns a step with the answers that it refers to; of steps without one, nothing."""

    def answer(found: regex.Match[str]) -> str:
        number = int(found[1])
        return answers[number - 1] if 0 < number <= len(answers) else found[0]

    return " ".join(_ANSWER.sub(answer, step).split())
