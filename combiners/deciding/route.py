"""Chooses one of several combiners by the question and the length of the document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.calls.answers import with_way
from leporello.core.calls.contracts import run_combiner
from leporello.core.protocols import Combiner, Count
from leporello.core.records import Combination, Example, Hit
from leporello.text.english.questions import QuestionKind, kind_of


@dataclass(frozen=True)
class When:
    """A route of `Route`: a combiner, and conditions on examples; outside `Route` it always runs.

    An example must meet all given conditions.

    Attributes:
        combiner: Combiner to run.
        kind: Kinds of English questions: `who`, `how_many`, `either` (one of two names),
            `statement`, `none` (without a question).
        group: Groups of the task's examples.
        choices: Whether examples must have choices (true) or must not (false).
        shortest: Minimum number of characters of the document.
        longest: Maximum number of characters of the document; 0 for no limit.
    """

    combiner: Combiner
    kind: tuple[QuestionKind, ...] = ()
    group: tuple[str, ...] = ()
    choices: bool | None = None
    shortest: Count = 0
    longest: Count = 0

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the combiner's rounds."""
        return (yield from run_combiner(self.combiner, example, hits))

    def matches(self, example: Example) -> bool:
        """Returns whether an example meets the conditions."""
        length = len(example.document.text)
        return (
            (not self.kind or kind_of(example.question) in self.kind)
            and (not self.group or example.group in self.group)
            and (self.choices is None or self.choices == bool(example.choices))
            and self.shortest <= length <= (self.longest or length)
        )

    def __str__(self) -> str:
        conditions = {
            "kind": "|".join(self.kind),
            "group": "|".join(self.group),
            "choices": "" if self.choices is None else str(self.choices),
            "shortest": self.shortest,
            "longest": self.longest,
        }
        return ", ".join(f"{name} {value}" for name, value in conditions.items() if value) or "all"


@dataclass(frozen=True)
class Route:
    """Runs the combiner of the first route whose conditions are met.

    Attributes:
        routes: Routes (`When`), in the order in which they are tried.
        otherwise: Combiner if no route matches.
    """

    routes: tuple[Combiner, ...]
    otherwise: Combiner

    def __post_init__(self) -> None:
        if not self.routes:
            raise ValueError("routes is empty: add at least one `When`")
        for number, route in enumerate(self.routes, 1):
            if not isinstance(route, When):
                kind = type(route).__name__
                raise ValueError(  # noqa: TRY004 -- an error in the config
                    f"route {number} is a {kind}, not a When: write"
                    f" {{class: When, kind: […], combiner: {kind}}}, or another condition"
                )
            if str(route) == "all":
                raise ValueError(f"route {number} has no condition: make it `otherwise`")

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the rounds of the chosen combiner."""
        routes = (when for when in self.routes if isinstance(when, When) and when.matches(example))
        route = next(routes, self.otherwise)
        answer = yield from run_combiner(route, example, hits)
        return with_way(answer, str(route) if isinstance(route, When) else "otherwise")
