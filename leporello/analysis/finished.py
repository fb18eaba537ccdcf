"""Finished examples of a run beside the examples of its task, which are read once."""

from __future__ import annotations

from leporello.core.errors import UserError
from leporello.core.records import Example
from leporello.jobs.files import ExampleFiles, JobFiles

_HINT = "put the data back, or run again with --update"


class FinishedExamples:
    """The finished examples of one pipeline on one task, which are taken in task order.

    Attributes:
        next: Example that is taken next; None at the end.
    """

    def __init__(self, files: JobFiles) -> None:
        """Reads the first example."""
        self._examples = files.examples()
        self.next = next(self._examples, None)

    def take(self, example_id: str) -> ExampleFiles | None:
        """Returns the next example if it has this id."""
        if self.next is None or self.next.statistics.id != example_id:
            return None
        example, self.next = self.next, next(self._examples, None)
        return example

    def check_end(self, name: str) -> None:
        """Compares the examples with the data, all of which were offered.

        Raises:
            UserError: An example is not in the data, or in another place; the message begins with
                the name.
        """
        if self.next:
            raise UserError(
                f"{name}: the data are not what they were when the run was made: they have no"
                f" example {self.next.statistics.id!r} in its place; {_HINT}"
            )


def check_document(name: str, example: Example, finished: ExampleFiles) -> None:
    """Compares the document of an example with the one that the run read.

    Raises:
        UserError: It has another text; the message begins with the name.
    """
    if finished.statistics.document not in ("", example.document.sha256):
        raise UserError(
            f"{name}: document {example.document.id!r} is not what it was when the run was made;"
            f" {_HINT}"
        )
