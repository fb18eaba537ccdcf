"""One of several combiners, by what is asked and of how long a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regex

from leporello.core.calls.answers import with_way
from leporello.core.calls.contracts import check_files, run_combiner
from leporello.core.errors import UserError
from leporello.core.protocols import Combiner, Count
from leporello.core.records import Combination, Example, Hit
from leporello.text.english.questions import QuestionKind, kind_of
from leporello.text.word_classifier import read_word_classifier

_MATCH_SECONDS = 10.0  # of a pattern: one that goes back and forth may take for ever


@dataclass(frozen=True)
class When:
    """A route of `Route`: a combiner, and which examples it is for; alone it runs for all.

    What is left out holds of every example; all that is given must hold.

    Attributes:
        combiner: Combiner that is run.
        kind: Kinds of question, in English: `who`, `how_many`, `either` (one of two names),
            `statement`, `none` (no question is asked).
        question: Regular expression that is found in the question, in upper or lower case.
        group: Groups of the task's examples.
        choices: Whether there must be choices (true), or must be none (false).
        shortest: Characters of the document at least.
        longest: Characters of the document at most; 0 is no limit.
    """

    combiner: Combiner
    kind: tuple[QuestionKind, ...] = ()
    question: str = ""
    group: tuple[str, ...] = ()
    choices: bool | None = None
    shortest: Count = 0
    longest: Count = 0

    def __post_init__(self) -> None:
        try:
            regex.compile(self.question)
        except regex.error as error:
            raise ValueError(f"question is no regular expression: {error}") from None
        if self.longest and self.longest < self.shortest:
            raise ValueError(
                f"no document is {self.shortest:,} characters long at least and"
                f" {self.longest:,} at most: this route can never match"
            )

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the combiner's rounds."""
        return (yield from run_combiner(self.combiner, example, hits))

    def matches(self, example: Example) -> bool:
        """Returns whether an example goes this way."""
        length = len(example.document.text)
        return (
            (not self.kind or kind_of(example.question) in self.kind)
            and (not self.group or example.group in self.group)
            and (self.choices is None or self.choices == bool(example.choices))
            and self.shortest <= length <= (self.longest or length)
            and (not self.question or self._is_found(example.question))
        )

    def _is_found(self, text: str) -> bool:
        try:
            found = regex.search(self.question, text, regex.IGNORECASE, timeout=_MATCH_SECONDS)
        except TimeoutError:
            raise ValueError(
                f"the route's pattern {self.question!r} takes more than {_MATCH_SECONDS:g} s"
            ) from None
        return found is not None

    def __str__(self) -> str:
        told: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("kind", "question", "group", "choices", "shortest", "longest")
        }
        texts = (
            f"{name} {'|'.join(value) if isinstance(value, tuple) else value}"
            for name, value in told.items()
            if value is not None and (value or value is False)
        )
        return ", ".join(texts) or "all"


@dataclass(frozen=True)
class Route:
    """Runs the first of several combiners that is for an example.

    Attributes:
        routes: Routes, each a `When`, in the order in which they are tried.
        otherwise: Combiner where none of them matches.
    """

    routes: tuple[Combiner, ...]
    otherwise: Combiner

    def __post_init__(self) -> None:
        if not self.routes:
            raise ValueError("routes is empty: it needs a `When` at least")
        for number, route in enumerate(self.routes, 1):
            if not isinstance(route, When):
                kind = type(route).__name__
                raise ValueError(  # noqa: TRY004 -- a fault of the config
                    f"route {number} is a {kind}, and must be"
                    f" {{class: When, kind: […], combiner: {kind}}}, or another condition"
                )
            if str(route) == "all":
                raise ValueError(f"route {number} has no condition: it is `otherwise`")

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the rounds of the combiner whose way the example goes."""
        routes = (one for one in self.routes if isinstance(one, When) and one.matches(example))
        route = next(routes, self.otherwise)
        answer = yield from run_combiner(route, example, hits)
        return with_way(answer, str(route) if isinstance(route, When) else "otherwise")


@dataclass(frozen=True)
class LearntRoute:
    """Runs that of several combiners which did best on questions of such words.

    The recipe `routes` of a checkout learns the weights from a run of the combiners, each as a
    pipeline (docs/deciding.md).

    Attributes:
        routes: Combiners, in the order of the pipelines that were learnt from.
        model: JSON file with weights of words.
    """

    routes: tuple[Combiner, ...]
    model: Path

    def __post_init__(self) -> None:
        if len(self.routes) < 2:  # noqa: PLR2004
            raise ValueError(f"it needs two routes at least, got {len(self.routes)}")

    def check_files(self, data: str) -> None:
        """Reads the weights; see `ChecksFiles`.

        Raises:
            UserError: They are missing, damaged, or for another number of routes.
        """
        classes = len(read_word_classifier(self.model).bias)
        if classes != len(self.routes):
            raise UserError(
                f"{self.model} is for {classes} routes, and there are {len(self.routes)}"
            )
        for route in self.routes:
            check_files(route, data)

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the rounds of the combiner that is chosen."""
        number = read_word_classifier(self.model).class_of(example.question)
        answer = yield from run_combiner(self.routes[number], example, hits)
        return with_way(answer, f"route {number + 1} of {len(self.routes)}")
