"""Tries pipelines on a tiny document, so that problems show up before a long run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from leporello.config import Pipeline, PipelineSpec
from leporello.config.specs import StageFactory
from leporello.core.calls.contracts import check_files, load_models
from leporello.core.errors import UserError
from leporello.core.official_prompt import OfficialPrompt
from leporello.core.records import Document, Example, Span
from leporello.core.secrets import is_set
from leporello.engine.shard_rows import rows_of

_TEXT = "Who lives in the mill?\n\nThe cat lives in the mill.\n\nThe king lives in his castle."


def trials(pipelines: Iterable[PipelineSpec]) -> Iterator[tuple[str, str]]:
    """Yields each pipeline's name and its problem, empty if it works.

    A trial loads models, runs every stage on a tiny document and sends requests to endpoints.
    """
    factory = StageFactory()
    for pipeline in pipelines:
        unset = [variable for variable in pipeline.variables() if not is_set(variable)]
        if unset:
            yield pipeline.name, f"the environment has no {', '.join(unset)}"
            continue
        try:
            problem = _problem(factory.build(pipeline))
        except (UserError, ValueError) as error:  # constructors raise ValueError
            problem = str(error)
        yield pipeline.name, " ".join(problem.split())


def _problem(stages: Pipeline) -> str:
    """Returns the first failure if all examples fail; empty if one succeeds."""
    for stage in stages.all():
        check_files(stage)
        load_models(stage)
    problems = []
    for example in _examples():
        [row] = rows_of(None, [example], stages, metrics=())
        if (failure := row.get("failure")) is None:
            return ""
        problems.append(f"the {failure['stage']} failed: {failure['error']}")
    return problems[0]


def _examples() -> Iterator[Example]:
    """Yields a question, a multiple-choice question and an official prompt of a benchmark.

    A pipeline works if it answers one of them, because each task has only one of these kinds.
    """
    parts = (Span(0, 22), Span(24, 50), Span(52, len(_TEXT)))
    example = Example("tried", Document("tried", _TEXT, parts=parts), "Who lives in the castle?")
    yield example
    yield replace(example, choices=("the cat", "the king"))
    yield replace(example, metadata=OfficialPrompt("Read:\n", "\n\n", example.question).metadata())
