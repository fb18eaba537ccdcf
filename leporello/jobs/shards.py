"""Shards: runs of a task's documents, cut by its data alone; each is read by itself."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from leporello.core.errors import UserError
from leporello.core.protocols import Sharded, Task
from leporello.core.records import JSON, DocumentRows, Example
from leporello.engine.selection import by_document
from leporello.engine.task_examples import checked, examples_of, task_errors
from leporello.tasks.layouts import ForwardReader, cached_documents


@dataclass(frozen=True, slots=True)
class Shard:
    """A run of consecutive documents of a task.

    Attributes:
        number: Number of the shard, from 0.
        first_document: Number of its first document in the task.
        first_example: Number of its first example in the task.
        documents: Documents of the shard; at a limit's border the last has only the examples that
            count.
    """

    number: int
    first_document: int
    first_example: int
    documents: tuple[DocumentRows, ...]

    @property
    def examples(self) -> int:
        """Number of examples."""
        return sum(document.examples for document in self.documents)

    def part(self, begin: int, end: int) -> Shard:
        """Returns some of its documents, in their places in the task."""
        before = sum(document.examples for document in self.documents[:begin])
        return Shard(
            self.number,
            self.first_document + begin,
            self.first_example + before,
            self.documents[begin:end],
        )


def cut(
    layout: Iterable[DocumentRows],
    shard_examples: int = 128,
    shard_bytes: int = 32_000_000,
    limit: int | None = None,
) -> Iterator[Shard]:
    """Yields the shards of a task, as its layout is iterated.

    Args:
        layout: Layout of the task.
        shard_examples: Examples with which a shard ends, behind the document that has the last.
        shard_bytes: Bytes of rows with which a shard ends likewise.
        limit: Examples of the task at most; cuts the last document, not the order of shards.
    """
    shard, size = Shard(0, 0, 0, ()), 0
    documents: list[DocumentRows] = []
    examples = 0
    for document in _limited(layout, limit):
        documents.append(document)
        examples += document.examples
        size += document.bytes
        if examples >= shard_examples or size >= shard_bytes:
            yield dataclasses.replace(shard, documents=tuple(documents))
            shard = Shard(
                shard.number + 1,
                shard.first_document + len(documents),
                shard.first_example + examples,
                (),
            )
            documents, examples, size = [], 0, 0
    if documents:
        yield dataclasses.replace(shard, documents=tuple(documents))


def _limited(layout: Iterable[DocumentRows], limit: int | None) -> Iterator[DocumentRows]:
    wanted = sys.maxsize if limit is None else limit
    for document in layout if wanted else ():
        if document.examples >= wanted:
            yield dataclasses.replace(document, examples=wanted)
            return
        wanted -= document.examples
        yield document


def layout_of(task: Task, name: str, key: JSON = None) -> Iterator[DocumentRows]:
    """Yields the layout of any task.

    One that is not `Sharded` is gone through, all of its documents opened, and no id may come
    twice; `bytes` is the size of a document's text in UTF-8.

    Args:
        task: The task whose data it is.
        name: Name of the task, for messages.
        key: JSON that its examples depend on: the layout of one that is not `Sharded` is then kept
            between runs, once it has been gone through to its end. None keeps nothing.

    Raises:
        UserError: The task fails, or yields what is no example, or an id twice.
    """
    if _is_sharded(task):
        return _sharded_layout(task, name)
    documents = _iterated_layout(task, name)
    return documents if key is None else cached_documents(key, documents)


def _is_sharded(task: Task) -> bool:
    """Says whether a task's own methods find its documents: not if only `examples` is another."""
    # A subclass that only overrides `examples` would be passed over by its parent's `layout`.
    names = ("layout", "examples_of", "examples")
    layout, examples_of, examples = (
        next((i for i, c in enumerate(type(task).__mro__) if name in vars(c)), -1) for name in names
    )
    return isinstance(task, Sharded) and examples >= max(layout, examples_of)


def _sharded_layout(task: Any, name: str) -> Iterator[DocumentRows]:  # noqa: ANN401 -- Task and Sharded
    with task_errors(name):
        for document in task.layout():
            if not isinstance(document, DocumentRows) or document.examples < 1:
                text = f"{document!r:.80}, no DocumentRows with examples"
                raise UserError(f"task {name!r} yields a layout of {text}")
            yield document


def _iterated_layout(task: Task, name: str) -> Iterator[DocumentRows]:
    for _, examples in by_document(examples_of(task, name)):
        text = examples[0].document.text
        yield DocumentRows(len(examples), len(text.encode("utf-8", "surrogatepass")))


class TaskReader:
    """Reads the documents of shards, in any order, of several at once if need be.

    A task that is not `Sharded` is gone through, and stays open between shards: quick as long as
    their numbers grow.
    """

    def __init__(self, task: Task, name: str) -> None:
        """Takes a task, and its name for messages."""
        self._task: Any = task
        self._name = name
        self._is_sharded = _is_sharded(task)
        self._forward = ForwardReader(lambda: checked(task.examples, name))

    def documents(
        self, shard: Shard, closed: Mapping[int, str] | None = None
    ) -> Iterator[tuple[Example, ...]]:
        """Yields all examples on each document of a shard, in the task's order, each checked.

        No id may come twice in a shard; over all of a task, `layout_of` and `Summary` compare.

        Args:
            shard: The shard whose documents are yielded.
            closed: Reasons why documents are not to be opened, by their numbers in the shard: their
                examples have this fault.

        Raises:
            UserError: The task fails, or yields what is no example; or its data have changed; or
                its examples are not known without opening their documents.
        """
        begin = 0
        for number, fault in sorted((closed or {}).items()):
            yield from self._documents(shard.part(begin, number))
            yield self._closed(shard.part(number, number + 1), fault)
            begin = number + 1
        yield from self._documents(shard.part(begin, len(shard.documents)))

    def _closed(self, shard: Shard, fault: str) -> tuple[Example, ...]:
        """Returns the examples on a shard's only document, which is not opened."""
        if not hasattr(self._task, "closed"):
            raise UserError(
                f"task {self._name!r}: document {shard.first_document + 1} cannot be opened:"
                f" {fault}; leave it out of the data"
            )
        [document] = shard.documents
        examples = checked(lambda: self._task.closed(document, fault), self._name)
        return tuple(islice(examples, document.examples))

    def _documents(self, shard: Shard) -> Iterator[tuple[Example, ...]]:
        examples = self._examples(shard)
        ids: set[str] = set()
        for document in shard.documents:
            together = tuple(islice(examples, document.examples))
            for example in together:
                if example.id in ids:
                    raise UserError(f"task {self._name!r} yields the id {example.id!r} twice")
                ids.add(example.id)
            shared = {id(example.document) for example in together}
            if len(together) < document.examples or len(shared) > 1:
                raise UserError(
                    f"task {self._name!r}: examples stand on other documents than when they were"
                    " counted; its data have changed, run again"
                )
            yield together

    def _examples(self, shard: Shard) -> Iterator[Example]:
        if self._is_sharded:
            read = partial(self._task.examples_of, shard.documents, shard.first_document)
            return checked(read, self._name)
        first = shard.first_example
        return self._forward.items(range(first, first + shard.examples))
