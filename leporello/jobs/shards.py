"""Splits a task into shards of consecutive documents, and reads the documents of a shard."""

import dataclasses
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Self

from leporello.core.errors import UserError
from leporello.core.protocols import Sharded, Task
from leporello.core.records import DocumentRows, Example
from leporello.engine.selection import by_document
from leporello.engine.task_examples import checked, examples_of, task_errors


@dataclass(frozen=True, slots=True)
class Shard:
    """A run of consecutive documents of a task."""

    number: int  # number of the shard, from 0
    first_document: int  # number of its first document in the task
    first_example: int  # number of its first example in the task
    documents: tuple[DocumentRows, ...]  # a limit may reduce the examples of the last one

    @property
    def examples(self) -> int:
        """Number of examples."""
        return sum(document.examples for document in self.documents)

    def part(self, begin: int, end: int) -> Self:
        """Returns the shard with some of its documents, which keep their numbers in the task."""
        document = self.first_document + begin
        example = self.first_example + sum(document.examples for document in self.documents[:begin])
        return type(self)(self.number, document, example, self.documents[begin:end])


def cut(
    layout: Iterable[DocumentRows],
    # With 64 to 256 examples, batches of 32 are 88 to 100 % full; only a shard's last one is short.
    shard_examples: int = 128,
    shard_bytes: int = 32_000_000,
    limit: int | None = None,
) -> Iterator[Shard]:
    """Splits a task into shards while its layout is iterated.

    A shard ends with the document that reaches its number of examples or of bytes of rows. A limit
    of examples affects only the last shard.
    """
    number = first_document = first_example = examples = size = 0
    documents: list[DocumentRows] = []
    for document in _limited(layout, limit):
        documents.append(document)
        examples += document.examples
        size += document.bytes
        # Cut by the data alone, so one worker and a thousand give the same bytes (decision 29).
        if examples >= shard_examples or size >= shard_bytes:
            yield Shard(number, first_document, first_example, tuple(documents))
            number += 1
            first_document += len(documents)
            first_example += examples
            documents, examples, size = [], 0, 0
    if documents:
        yield Shard(number, first_document, first_example, tuple(documents))


def _limited(layout: Iterable[DocumentRows], limit: int | None) -> Iterator[DocumentRows]:
    remaining = sys.maxsize if limit is None else limit
    for document in layout if remaining else ():
        # A limit shortens the last document, so a limited run is the beginning of a complete one.
        if document.examples >= remaining:
            yield dataclasses.replace(document, examples=remaining)
            return
        remaining -= document.examples
        yield document


def layout_of(task: Task, name: str) -> Iterator[DocumentRows]:
    """Yields the layout of any task.

    A task that is not `Sharded` is iterated, which opens all of its documents and checks that ids
    are unique.
    """
    if not _is_sharded(task):
        for _, group in by_document(examples_of(task, name)):
            size = len(group[0].document.text.encode(errors="surrogatepass"))
            yield DocumentRows(len(group), size)
        return
    sharded: Any = task
    with task_errors(name):
        for document in sharded.layout():
            if not isinstance(document, DocumentRows) or document.examples < 1:
                text = f"{document!r:.80}, not a DocumentRows with examples"
                raise UserError(f"task {name!r} yields a layout with {text}")
            yield document


def _is_sharded(task: Task) -> bool:
    """Returns whether a task is `Sharded`, and its `layout` fits its `examples`."""
    # The `layout` of the parent does not fit a subclass that only overrides `examples`.
    names = ("layout", "examples_of", "examples")
    layout, examples_of, examples = (
        next((i for i, c in enumerate(type(task).__mro__) if name in vars(c)), -1) for name in names
    )
    return isinstance(task, Sharded) and examples >= max(layout, examples_of)


class TaskReader:
    """Reads the documents of shards; a task that is not `Sharded` stays open between shards."""

    def __init__(self, task: Task, name: str) -> None:
        """Takes a task, and its name for messages."""
        self._task: Any = task
        self._name = name
        self._is_sharded = _is_sharded(task)
        # The next number and examples of a task that is not `Sharded`
        self._idle: tuple[int, Iterator[Example]] = sys.maxsize, iter(())

    def documents(
        self, shard: Shard, closed: Mapping[int, str] | None = None
    ) -> Iterator[tuple[Example, ...]]:
        """Yields the examples on each document of a shard after checking them.

        Ids must be unique in a shard; `layout_of` and `Summary` check them in the complete task.
        `closed` contains faults of documents that must not be opened, by their numbers in the
        shard; their examples receive this fault.
        """
        begin = 0
        for number, fault in sorted((closed or {}).items()):
            yield from self._documents(shard.part(begin, number))
            yield self._closed(shard.part(number, number + 1), fault)
            begin = number + 1
        yield from self._documents(shard.part(begin, len(shard.documents)))

    def _closed(self, shard: Shard, fault: str) -> tuple[Example, ...]:
        """Returns the examples on a shard's only document without opening it."""
        if not hasattr(self._task, "closed"):
            raise UserError(
                f"task {self._name!r}: document {shard.first_document + 1} cannot be opened:"
                f" {fault}; remove it from the data"
            )
        [document] = shard.documents
        # Its examples still count, as failures, so totals stay the same.
        examples = checked(lambda: self._task.closed(document, fault), self._name)
        return tuple(islice(examples, document.examples))

    def _documents(self, shard: Shard) -> Iterator[tuple[Example, ...]]:
        if self._is_sharded:
            read = partial(self._task.examples_of, shard.documents, shard.first_document)
            examples = checked(read, self._name)
        else:
            examples = self._from(shard.first_example)
        ids: set[str] = set()
        for document in shard.documents:
            on_document = tuple(islice(examples, document.examples))
            for example in on_document:
                if example.id in ids:
                    raise UserError(f"task {self._name!r} yields the id {example.id!r} twice")
                ids.add(example.id)
            # Two documents in one entry would shift all later numbers without an error.
            documents = {id(example.document) for example in on_document}
            if len(on_document) < document.examples or len(documents) > 1:
                raise UserError(
                    f"task {self._name!r}: examples belong to other documents than when they were"
                    " counted, so its data have changed; run again"
                )
            yield on_document
        if not self._is_sharded:
            self._idle = shard.first_example + shard.examples, examples

    def _from(self, first: int) -> Iterator[Example]:
        """Returns the examples of a task that is not `Sharded`, from a number on."""
        position, examples = self._idle
        # Taken while it is used: a shard that is open at the same time iterates the task again.
        self._idle = sys.maxsize, examples
        if position > first:
            position, examples = 0, checked(self._task.examples, self._name)
        deque(islice(examples, first - position), maxlen=0)
        return examples
