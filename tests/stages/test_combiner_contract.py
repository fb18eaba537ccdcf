"""Tests all combiners with the kit for authors of plug-ins."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from leporello import combiners
from leporello.chunkers import Parts, Whole
from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import Example
from leporello.retrievers import All
from leporello.testing import CombinerContract
from leporello.testing.contract import Maker
from leporello.testing.texts import DOCUMENTS, QUESTIONS, examples_on

MAKERS: Mapping[str, Maker] = {
    "BestOf": lambda: combiners.BestOf((combiners.Stuff(), combiners.MapReduce())),
    "ByRole": lambda: combiners.ByRole(combiners.Stuff(), "answer", hits=1),
    "Cascade": lambda: combiners.Cascade((combiners.Stuff(), combiners.ReadEach(keep="best"))),
    "ChainOfAgents": combiners.ChainOfAgents,
    "ChainOfNotes": combiners.ChainOfNotes,
    "Decompose": lambda: combiners.Decompose(combiners.Stuff()),
    "HyDE": lambda: combiners.HyDE(combiners.Stuff()),
    "Iterative": lambda: combiners.Iterative(combiners.Stuff()),
    "LineByLine": combiners.LineByLine,
    "MapReduce": combiners.MapReduce,
    "Mean": combiners.Mean,
    "MultiHop": lambda: combiners.MultiHop(combiners.Stuff()),
    "MultiQuery": lambda: combiners.MultiQuery(combiners.Stuff()),
    "NestedQuestions": combiners.NestedQuestions,
    "PlanThenRead": combiners.PlanThenRead,
    "ReadEach": combiners.ReadEach,
    "Refine": combiners.Refine,
    "Route": lambda: combiners.Route(
        (combiners.When(combiners.MapReduce(), kind=("who",)),), combiners.Stuff()
    ),
    "SelfConsistency": lambda: combiners.SelfConsistency(combiners.Stuff()),
    "StructuredMapReduce": combiners.StructuredMapReduce,
    "Stuff": combiners.Stuff,
    "Union": combiners.Union,
    "Verify": lambda: combiners.Verify(combiners.MapReduce(), threshold=0.9),
    "Walk": lambda: combiners.Walk(combiners.Stuff()),
    "When": lambda: combiners.When(combiners.Stuff()),
    "Count": combiners.Count,
    "Percentage": combiners.Percentage,
}
OF_PARTS: Mapping[str, Maker] = {
    "AssignAuthors": combiners.AssignAuthors,
    "ClusterAuthors": combiners.ClusterAuthors,
    "OrderByCoherence": combiners.OrderByCoherence,
    "OrderByPairs": combiners.OrderByPairs,
}


OTHERS = ("OrderByMatch", "Truncate", "TruncateMiddle")
OFFICIAL = OfficialPrompt("Read this. ", query="Who?", after=" Answer:", separator=" [cut] ")


def test_every_combiner_is_tested() -> None:
    """A new combiner needs an entry in one of the tables."""
    assert {*MAKERS, *OF_PARTS, *OTHERS} == {*combiners.__all__}


class TestCombiners(CombinerContract):
    """Combiners of hits from anywhere in a document."""

    huge = 100_000

    @pytest.fixture(params=MAKERS)
    def maker(self, request: pytest.FixtureRequest) -> Maker:
        """Maker of each combiner."""
        return MAKERS[request.param]


class TestOfParts(CombinerContract):
    """Combiners of all parts of a document."""

    huge = 100_000
    around: ClassVar[Mapping[str, Any]] = {"chunker": Parts(), "retriever": All()}

    @pytest.fixture(params=OF_PARTS)
    def maker(self, request: pytest.FixtureRequest) -> Maker:
        """Maker of each combiner."""
        return OF_PARTS[request.param]


class TestOrderByMatch(CombinerContract):
    """Combiner that puts choices in order."""

    make = combiners.OrderByMatch
    huge = 100_000
    examples = tuple(replace(e, choices=QUESTIONS) for e in examples_on(DOCUMENTS, QUESTIONS))

    def inputs_of(self, examples: Sequence[Example]) -> Any:
        return super().inputs_of([replace(e, choices=QUESTIONS) for e in examples])


class TestTruncate(CombinerContract):
    """Combiner for examples with an official prompt."""

    make: ClassVar[Maker] = combiners.Truncate
    huge = 100_000
    around: ClassVar[Mapping[str, Any]] = {"chunker": Whole(), "retriever": All()}
    examples = tuple(
        replace(e, metadata=OFFICIAL.metadata()) for e in examples_on(DOCUMENTS, QUESTIONS)
    )

    def inputs_of(self, examples: Sequence[Example]) -> Any:
        return super().inputs_of([replace(e, metadata=OFFICIAL.metadata()) for e in examples])


class TestTruncateMiddle(TestTruncate):
    """Combiner that cuts the middle of the document."""

    make = combiners.TruncateMiddle
