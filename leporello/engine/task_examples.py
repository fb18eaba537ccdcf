"""Checks the examples and metrics of tasks, which may be plug-ins."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TypeAlias

from leporello.core.environment.user_code import user_code_errors
from leporello.core.errors import UserError
from leporello.core.protocols import MetricEntry, Task
from leporello.core.records import Document, Example, Span

# Converts answers to the form that the metrics of a task expect.
Normalizer: TypeAlias = Callable[[str, Example], str]

_TEXTS = ("headers", "choices", "references")


def task_errors(name: str) -> AbstractContextManager[None]:
    """Turns errors of a task into a `UserError` that names the task and the line."""
    return user_code_errors(f"task {name!r}", GeneratorExit)  # raised if an iteration stops early


def checked_metrics(task: Task) -> tuple[MetricEntry, ...]:
    """Returns the metrics of a task; raises UserError if they are not names and mappings."""
    entries: object = task.metrics
    if isinstance(entries, (tuple, list)) and all(isinstance(e, (str, Mapping)) for e in entries):
        return tuple(entries)
    kind = type(task).__name__
    raise UserError(f"{kind}.metrics must be a tuple of names, got {entries!r:.80}")


def no_answer_of(task: Task) -> str:
    """Returns the reference of a task for "the document has no answer"; empty without one."""
    return str(getattr(task, "no_answer", ""))


def normalizer_of(task: Task, *, wanted: bool = True) -> Normalizer | None:
    """Returns a task's `normalise` with checks of its results; None if absent or not `wanted`."""
    # An answer is scored as it was given. Only a pipeline can choose to change it first, as that
    # changes what is submitted to a leaderboard (decision 45).
    normalise = getattr(task, "normalise", None) if wanted else None
    if normalise is None:
        return None

    def checked(text: str, example: Example) -> str:
        answer = normalise(text, example)
        if not isinstance(answer, str):
            kind = type(task).__name__
            raise TypeError(f"{kind}.normalise must return text, got {answer!r:.80}")
        return answer

    return checked


def examples_of(task: Task, name: str) -> Iterator[Example]:
    """Yields a task's examples; raises UserError if one is invalid or has the id of another."""
    ids: set[str] = set()
    for example in checked(task.examples, name):
        if example.id in ids:
            raise UserError(f"task {name!r} yields the id {example.id!r} twice")
        ids.add(example.id)
        yield example


def checked(examples: Callable[[], Iterable[object]], name: str) -> Iterator[Example]:
    """Yields the examples of a task's method; raises UserError if it fails or one is invalid."""
    with task_errors(name):
        for example in examples():
            if problem := _problem(example):
                raise UserError(f"task {name!r} {problem}")
            assert isinstance(example, Example)
            yield example


def _problem(example: object) -> str:
    if not isinstance(example, Example):
        return f"yields {example!r:.80}, which is not an Example"
    texts = (example.id, example.question, example.fault)
    if not (_are_texts(texts) and example.id):
        return f"yields an example whose id, question or fault is not a text: {example.id!r:.80}"
    if not isinstance(example.document, Document):
        return f"yields example {example.id!r} with a document that is not a Document"
    for field in _TEXTS:
        if not _are_texts(getattr(example, field)):
            return f"yields example {example.id!r} whose {field} are not a tuple of texts"
    length = len(example.document.text)
    for span in example.evidence:
        if not isinstance(span, Span) or span.end > length:
            return f"yields example {example.id!r} with evidence {span!r} outside its document"
    return ""


def _are_texts(value: object) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(item, str) for item in value)
