"""Requests of combiners and enrichers: checked, allowed by a budget, answered without a reader."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from leporello.config import Pipeline
from leporello.core.calls.budget import Ledger
from leporello.core.calls.contracts import check_size
from leporello.core.errors import ReadError
from leporello.core.passages import fault_of, flat_read, whole_passages
from leporello.core.protocols import RendersPrompt
from leporello.core.records import (
    Chunk,
    Document,
    Fit,
    Generates,
    Output,
    Read,
    Reply,
    Request,
    Search,
)

_NOTHING = -1e9  # the score of an answer from nothing; JSON has no infinity


class Admission(Enum):
    """What becomes of a read now."""

    READ = "read"
    WAIT = "wait"  # until it is known what this question's reads cost
    REFUSE = "refuse"


class Allowance:
    """The budget of one question while it is answered.

    Attributes:
        stages: Pipeline, which has the budget, and whose readers count tokens.
    """

    def __init__(self, stages: Pipeline) -> None:
        """Begins with nothing spent."""
        self.stages = stages
        self._budget = stages.budget
        self._known = self._expected = Ledger()  # what was spent; with the reads under way

    def has_read(self, read: Read, reply: Reply) -> None:
        """Counts a read that is answered; a failed one costs nothing."""
        if isinstance(reply, Output) and not reply.over_budget:
            self._known += Ledger(
                1,
                reply.input_tokens or self._tokens(read),
                reply.output_tokens,
                reply.dollars or 0.0,
                reply.seconds or 0.0,
            )
        self._expected = self._known

    def ask(self, read: Read) -> Admission:
        """Returns what becomes of a read; counts it as under way if it is to be read."""
        tokens, known = self._tokens(read), self._known
        under_way = self._expected.reads > known.reads
        priced = self._budget.dollars is not None or self._budget.seconds is not None
        if priced and under_way and not known.tokens:
            return Admission.WAIT
        each = tokens / known.tokens if known.tokens else 0.0
        after = self._expected + Ledger(1, tokens, 0, each * known.dollars, each * known.seconds)
        if self._budget.is_exceeded(after):
            return Admission.REFUSE
        self._expected = after
        return Admission.READ

    def refusal(self, read: Read) -> Reply:
        """Returns what comes of a read that is over the budget: nothing was seen of it.

        A budget that has not room for the first read of a question is no budget: that read fails.
        """
        if self._expected.reads:
            cut = sum(len(p.text if isinstance(p, Chunk) else p) for p in read.passages)
            scores = (_NOTHING,) * len(read.choices)
            return Output("", _NOTHING, scores=scores, read=(), cut=cut, over_budget=True)
        return ReadError(
            f"the budget ({self._budget}) is too small for one read of"
            f" {self._tokens(read):,} tokens"
        )

    def _tokens(self, read: Read) -> int:
        """Returns how many tokens a read has."""
        reader = self.stages.reader_of(read.role)
        if self._budget.row().keys() <= {"reads"}:
            return 0
        if isinstance(reader, RendersPrompt):
            texts = [reader.render(read)]
        else:
            passages = [p.text if isinstance(p, Chunk) else p for p in read.passages]
            texts = [*passages, read.question, read.instruction, *read.choices]
        return sum(self.stages.reader_of(read.role).count(texts))


def checked(requests: object, document: Document, stages: Pipeline) -> Sequence[Request]:
    """Returns what a generator yielded, if it is a list of requests about this document.

    Raises:
        TypeError: It is something else.
        StageError: A read asks a role that no reader has.
    """
    if not isinstance(requests, (list, tuple)) or not all(
        isinstance(request, (Read, Search, Fit, Generates)) for request in requests
    ):
        text = f"{requests!r:.200}"
        kinds = "Read, Search, Fit or Generates"
        raise TypeError(f"a combiner must yield a list of {kinds}, got {text}")
    for request in requests:
        if isinstance(request, (Read, Fit)):
            _check_read(request.read if isinstance(request, Fit) else request, document)
        stages.reader_of(role_of(request))
    return requests


def role_of(request: Request) -> str:
    """Returns the role of the reader that a request is for."""
    read = request.read if isinstance(request, Fit) else request
    return "" if isinstance(read, Search) else read.role


def _check_read(read: Read, document: Document) -> None:
    for passage in read.passages:
        fault = ""
        if not isinstance(passage, (str, Chunk)) or (
            isinstance(passage, Chunk) and (fault := fault_of(passage, document))
        ):
            raise TypeError(
                f"a passage must be text or a chunk of the example's own document,"
                f" got {fault or repr(passage):.200}"
            )
        if isinstance(passage, str):
            check_size(passage, "a passage of a read")
    for name in ("question", "instruction", "title", "role", "schema"):
        if not isinstance(getattr(read, name), str):
            raise TypeError(f"a Read's {name} must be text, got {getattr(read, name)!r:.200}")
    for name in ("choices", "pair"):
        if not all(isinstance(text, str) for text in getattr(read, name) or ()):
            raise TypeError(f"a Read's {name} must be texts, got {getattr(read, name)!r:.200}")


def told(stages: Pipeline, request: Fit | Generates) -> int:
    """Returns what a reader tells of itself: whether it writes, or what fits its window."""
    reader = stages.reader_of(role_of(request))
    if isinstance(request, Generates):
        return bool(getattr(reader, "generates", False))
    if not isinstance(reader, RendersPrompt):
        return len(request.read.passages)  # no window is known: all of it fits
    read = flat_read(request.read)
    if request.behind is None:
        return whole_passages(request.read, reader.fit(read))
    sliced = getattr(reader, "sliced", None)
    return int(sliced(read, request.behind)) if sliced else -1
