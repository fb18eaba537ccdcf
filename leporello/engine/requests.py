"""Checks requests of combiners and enrichers, applies budgets, answers requests without reads."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import count
from typing import Any

from leporello.config import Pipeline
from leporello.core.calls.budget import Ledger
from leporello.core.calls.contracts import StageError, check_size, resumption
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

# Reading a book passage by passage takes some 5,000.
_MOST_ROUNDS = 20_000  # per example or enriched document
_LOWEST_SCORE = -1e9  # of an answer without a read; JSON has no infinity


class QuestionBudget:
    """Budget of one question, and the amounts spent so far."""

    def __init__(self, stages: Pipeline) -> None:
        self.stages = stages
        self._budget = stages.budget
        self._spent = self._expected = Ledger()  # `_expected` includes reads without a reply

    def charge(self, read: Read, reply: Reply) -> None:
        """Counts an answered read; a failed read costs nothing."""
        if isinstance(reply, Output) and not reply.over_budget:
            self._spent += Ledger(
                1,
                # Some readers report no token counts.
                reply.input_tokens or self._tokens(read),
                reply.output_tokens,
                reply.dollars or 0.0,
                reply.seconds or 0.0,
            )
        self._expected = self._spent

    def admit(self, read: Read) -> bool | None:
        """Returns whether a read may be read now, and adds it to the expected costs.

        None means that it must wait until the first reads of the question show their cost.
        """
        tokens, spent = self._tokens(read), self._spent
        is_reading = self._expected.reads > spent.reads
        has_price = self._budget.dollars is not None or self._budget.seconds is not None
        if has_price and is_reading and not spent.tokens:
            # The first read shows a token's price; a round could exceed the budget before.
            return None
        share = tokens / spent.tokens if spent.tokens else 0.0
        total = self._expected + Ledger(1, tokens, 0, share * spent.dollars, share * spent.seconds)
        if self._budget.is_exceeded(total):
            return False
        self._expected = total
        return True

    def refusal(self, read: Read) -> Reply:
        """Returns an empty output for a read over the budget, or an error for the first read."""
        # Empty rather than failed, so that a combiner continues with the outputs that it has.
        # Without any output it would answer from nothing, so the first read fails (decision 47).
        if self._expected.reads:
            cut = sum(len(p.text if isinstance(p, Chunk) else p) for p in read.passages)
            scores = (_LOWEST_SCORE,) * len(read.choices)
            return Output("", _LOWEST_SCORE, scores=scores, read=(), cut=cut, over_budget=True)
        return ReadError(
            f"the budget ({self._budget}) is too small for one read of"
            f" {self._tokens(read):,} tokens"
        )

    def _tokens(self, read: Read) -> int:
        """Returns the number of tokens of a read; 0 if the budget only limits reads."""
        # Tokenizing takes time, and a limit of reads does not need it.
        if self._budget.row().keys() <= {"reads"}:
            return 0
        reader = self.stages.reader_of(read.role)
        if isinstance(reader, RendersPrompt):
            texts = [reader.render(read)]
        else:
            passages = [p.text if isinstance(p, Chunk) else p for p in read.passages]
            texts = [*passages, read.question, read.instruction, *read.choices]
        return sum(reader.count(texts))


def checked(requests: object, document: Document, stages: Pipeline) -> Sequence[Request]:
    """Returns the requests that a generator yielded; raises TypeError or StageError if invalid."""
    if not isinstance(requests, (list, tuple)) or not all(
        isinstance(request, (Read, Search, Fit, Generates)) for request in requests
    ):
        kinds = "Read, Search, Fit or Generates"
        raise TypeError(f"a combiner must yield a list of {kinds}, got {requests!r:.200}")
    # Reads share passages: n paragraphs have n² / 2 pairs.
    checked_ids: set[int] = set()
    for request in requests:
        if isinstance(request, (Read, Fit)):
            _check_read(
                request.read if isinstance(request, Fit) else request, document, checked_ids
            )
    for role in dict.fromkeys(map(role_of, requests)):
        stages.reader_of(role)
    return requests


def rounds_of(
    generator: Generator[Any, list[Any], Any],
    name: str,
    check: Callable[[object], Sequence[Request]],
    answer: Callable[[Any], Any],
    resuming: Callable[[], AbstractContextManager[object]],
) -> Generator[Sequence[Read], Sequence[Reply] | None, Any]:
    """Yields the reads of each round of a generator, receives their replies, returns its value.

    `check` returns the requests that the generator yielded, `answer` the answer to one without a
    read; the generator is resumed within `resuming`.
    """
    requests: Sequence[Request] = ()
    replies: Iterator[Reply] = iter(())
    for number in count():
        with resuming():
            # Time limits apply to single calls, so they never end a generator that yields forever.
            if number == _MOST_ROUNDS:
                raise StageError(f"{name} yielded {number:,} times without returning")
            answers = [next(replies) if isinstance(r, Read) else answer(r) for r in requests]
            resume = resumption(generator, answers) if number else partial(next, generator)
            try:
                requests = check(resume())
            except StopIteration as stop:
                return stop.value
        if reads := [request for request in requests if isinstance(request, Read)]:
            replies = iter((yield reads) or ())


def role_of(request: Request) -> str:
    """Returns the role of the reader that a request is for."""
    read = request.read if isinstance(request, Fit) else request
    return "" if isinstance(read, Search) else read.role


def _check_read(read: Read, document: Document, checked_ids: set[int]) -> None:
    """Checks a read, except for passages in `checked_ids`; adds those that it checks."""
    for passage in read.passages:
        if id(passage) in checked_ids:
            continue
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
        checked_ids.add(id(passage))
    for name in ("question", "instruction", "title", "role", "schema"):
        if not isinstance(getattr(read, name), str):
            raise TypeError(f"a Read's {name} must be text, got {getattr(read, name)!r:.200}")
    for name in ("choices", "pair"):
        if not all(isinstance(text, str) for text in getattr(read, name) or ()):
            raise TypeError(f"a Read's {name} must be texts, got {getattr(read, name)!r:.200}")


def reader_property(stages: Pipeline, request: Fit | Generates) -> int:
    """Returns whether a reader generates text, or how many passages fit its input window."""
    reader = stages.reader_of(role_of(request))
    if isinstance(request, Generates):
        return bool(getattr(reader, "generates", False))
    if not isinstance(reader, RendersPrompt):
        return len(request.read.passages)  # without an input window everything fits
    read = flat_read(request.read)
    if request.behind is None:
        return whole_passages(request.read, reader.fit(read))
    sliced = getattr(reader, "sliced", None)
    return int(sliced(read, request.behind)) if sliced else -1
