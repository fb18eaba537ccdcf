"""What combiners and enrichers ask for: checked, and answered where no reader has to read."""

from __future__ import annotations

from collections.abc import Sequence

from leporello.config import Pipeline
from leporello.core.calls.contracts import check_size
from leporello.core.passages import fault_of, flat_read, whole_passages
from leporello.core.protocols import RendersPrompt
from leporello.core.records import Chunk, Document, Fit, Generates, Read, Request, Search


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
