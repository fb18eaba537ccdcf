"""Calls stages with the arguments that their methods take, and checks their results."""

import dataclasses
import inspect
import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import islice
from numbers import Integral, Real
from operator import attrgetter, is_
from typing import Any

from leporello.core.calls import derived
from leporello.core.calls.answers import rounded
from leporello.core.calls.contracts import (
    PARAMETERS,
    StageError,
    WrongCountError,
    asks_question,
    check_size,
    has_index,
    sees_gold,
)
from leporello.core.coverage import merge, outside
from leporello.core.errors import counted
from leporello.core.files import in_utf8
from leporello.core.passages import Passage, fault_of
from leporello.core.protocols import Chunker, Reader
from leporello.core.records import Chunk, Document, Example, Hit, Output, Read, Span

_EXPECTED = "one list of Hit per question"
_FIELDS = tuple(field.name for field in dataclasses.fields(Document) if field.init)
_RECORD = attrgetter(*_FIELDS)
# A chunker that never ends would fill the memory before any time limit (decision 40).
_CHUNKS = (1_000, 10)  # maximum number of chunks: a constant, plus a number per character


def retrieve(
    retriever: Any,  # noqa: ANN401 -- has `retrieve`, or `index` and `search`
    examples: Sequence[Example],
    chunks: Sequence[Chunk],
) -> list[list[Hit]]:
    """Returns the hits of each example, best first, with scores as floats.

    If the retriever has `index` and `search`, these are called instead of `retrieve`: one index
    serves all calls with the same chunks, and all retrievers whose index would be the same. Gold
    is hidden unless the retriever declares `sees_gold`. It is not called without chunks. Raises
    StageError for an invalid result.
    """
    if not examples or not chunks:
        return [[] for _ in examples]
    kind, document = retriever.__class__, examples[0].document
    method = "search" if has_index(kind) else "retrieve"
    values: dict[str, Callable[[], Any]] = {
        "questions": lambda: [example.question for example in examples],
        # A retriever that uses the evidence by mistake would look excellent.
        "examples": lambda: [e if sees_gold(retriever) else e.without_gold() for e in examples],
        "chunks": lambda: chunks,
        "index": lambda: derived.index(document, retriever, chunks),
    }
    # Only what it takes, so examples need no gold-free copies unless a retriever asks for them.
    names = _parameters(kind, method)
    title = f"{kind.__name__}.{method}"
    with stage_call(title, document):
        arguments = {name: values[name]() for name in names}
        returned = getattr(retriever, method)(**arguments)
    return _checked(title, returned, len(examples), document)


@cache
def _parameters(kind: type, method: str) -> tuple[str, ...]:
    """Returns the parameter names of a retriever's method, which the config has checked."""
    required, optional = PARAMETERS[method]
    parameters = inspect.signature(getattr(kind, method)).parameters
    return tuple(name for name in parameters if name in (*required, *optional))


def _checked(name: str, returned: object, questions: int, document: Document) -> list[list[Hit]]:
    if not isinstance(returned, list | tuple):
        raise StageError(f"{name} returned {_show(returned)}; it must return {_EXPECTED}")
    if len(returned) != questions:
        raise StageError(
            f"{name} returned {counted(len(returned), 'list')} for"
            f" {counted(questions, 'question')}; it must return {_EXPECTED}"
        )
    for hits in returned:
        if not isinstance(hits, list | tuple):
            raise StageError(f"{name} returned {_show(hits)} as hits; it must return {_EXPECTED}")
    length = len(document.text)
    return [
        [h if _is_valid(h, document, length) else _checked_hit(name, h, document) for h in hits]
        for hits in returned
    ]


def _is_valid(hit: object, document: Document, length: int) -> bool:
    """Returns whether a hit needs no further check; this fast path covers most hits."""
    # Not `isinstance`: subclasses such as `Passage` need the complete check.
    if type(hit) is not Hit or type(hit.chunk) is not Chunk or type(hit.score) is not float:
        return False
    chunk = hit.chunk
    if type(chunk.start) is not int or type(chunk.end) is not int:
        return False
    inside = chunk.document is document and 0 <= chunk.start <= chunk.end <= length
    return inside and -math.inf < hit.score < math.inf


def _checked_hit(name: str, hit: object, document: Document) -> Hit:
    if not isinstance(hit, Hit) or not isinstance(hit.chunk, Chunk):
        raise StageError(f"{name} returned {_show(hit)} as a hit; it must be a Hit(chunk, score)")
    if fault := fault_of(hit.chunk, document):
        raise StageError(
            f"{name} returned {fault}; hits must be made from the chunks and passages it received"
        )
    if not isinstance(hit.score, Real) or not math.isfinite(hit.score):
        raise StageError(f"{name} gave a hit the score {hit.score!r}; it must be a finite number")
    is_passage = isinstance(hit.chunk, Passage)
    chunk = hit.chunk if is_passage else document.chunk(hit.chunk.start, hit.chunk.end)
    return Hit(chunk, float(hit.score))


def _show(value: object) -> str:
    """Returns a short description of a value; the `repr` of a hit may contain its document."""
    plain = value is None or isinstance(value, bool | int | float | str)
    return reprlib.repr(value) if plain else f"a {type(value).__name__}"


class stage_call:  # noqa: N801 -- called like a function; a generator takes twice as long
    """Raises an error if a stage changes documents, which it restores, or raises GeneratorExit."""

    def __init__(self, name: str, *documents: Document) -> None:
        self._name = name
        self._before = [(document, _RECORD(document)) for document in documents]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, GeneratorExit):  # the engine would take it for the end of the run
            raise StageError(f"{self._name} raised GeneratorExit") from None
        if error is None:
            # Documents are shared by pipelines: a changed field would change all later results.
            for document, values in self._before:
                # By identity: comparing the text of a book would take longer than many stages.
                if not all(same := [*map(is_, _RECORD(document), values)]):
                    for name, value in zip(_FIELDS, values, strict=True):
                        object.__setattr__(document, name, value)
                    field = _FIELDS[same.index(False)]
                    raise StageError(
                        f"{self._name} changed the {field} of document {document.id!r}"
                    )


def divide(chunker: Chunker, document: Document, question: str = "") -> tuple[Chunk, ...]:
    """Returns the chunks of a document."""
    arguments = {"question": question} if asks_question(chunker) else {}
    name, limit = f"{type(chunker).__name__}.chunk", _CHUNKS[0] + _CHUNKS[1] * len(document.text)
    with stage_call(name, document):
        spans = chunker.chunk(document, **arguments)
        if not hasattr(spans, "__iter__"):
            raise StageError(f"{name} returned {_show(spans)}; it must yield Span(start, end)")
        # A generator that never ends would fill the memory before any time limit.
        chunks = tuple(_chunk(name, document, span) for span in islice(spans, limit + 1))
    if len(chunks) > limit:
        raise StageError(f"{name} yielded more than {limit:,} spans of document {document.id!r}")
    return chunks


def _chunk(name: str, document: Document, span: object) -> Chunk:
    if not isinstance(span, Span):
        raise StageError(f"{name} yielded {_show(span)}; it must yield Span(start, end)")
    # `int` first: a check against an abstract class takes as long as all others of a span.
    if not (isinstance(span.start, (int, Integral)) and isinstance(span.end, (int, Integral))):
        raise StageError(f"{name} yielded ({span.start}, {span.end}); a span has whole numbers")
    if span.end > len(document.text):
        raise StageError(
            f"{name} yielded ({span.start}, {span.end}), outside document {document.id!r}"
            f" of {len(document.text)} characters"
        )
    return document.chunk(span.start, span.end)


def read(reader: Reader, inputs: Sequence[Read]) -> list[Output]:
    """Returns a reader's outputs, one per read; raises StageError if one is invalid or missing."""
    name = type(reader).__name__
    documents = (p.document for read in inputs for p in read.passages if isinstance(p, Chunk))
    # A copy, so that a reader that sorts its list does not reorder the engine's.
    batch = [*inputs]
    with stage_call(f"{name}.read", *dict.fromkeys(documents)):
        outputs = reader.read(batch)
    # After a sort in place, for example, outputs could not be matched to reads.
    if [*map(id, batch)] != [*map(id, inputs)]:
        raise WrongCountError(f"{name}.read changed the list of inputs that it was given")
    if not isinstance(outputs, (list, tuple)) or len(outputs) != len(inputs):
        count = len(outputs) if isinstance(outputs, (list, tuple)) else _show(outputs)
        raise WrongCountError(
            f"{name}.read returned {count} for {counted(len(inputs), 'input')};"
            " it must return a list with one Output per input"
        )
    return [_checked_output(name, *pair) for pair in zip(outputs, inputs, strict=True)]


def _checked_output(name: str, output: object, read: Read) -> Output:
    """Returns the output with plain, rounded numbers, so that it can be written as JSON."""
    if not isinstance(output, Output) or not isinstance(output.text, str):
        raise StageError(f"{name}.read returned {_show(output)}; it must return Output(text)")
    for text in (output.text, output.reasoning or ""):
        check_size(text, f"the text that {name}.read returned")
    scores = tuple([rounded(_number(name, "scores", score)) for score in output.scores])
    if scores and len(scores) != len(read.choices):
        raise StageError(f"{name}.read gave {len(scores)} scores for {len(read.choices)} choices")
    numbers = {
        field: check(name, field, value)
        for field, check in _NUMBERS.items()
        if (value := getattr(output, field)) is not None
    }
    return Output(
        text=in_utf8(output.text),
        scores=scores,
        read=None if output.read is None else _seen_spans(name, output.read, read),
        span=None if output.span is None else _answer_span(name, output.span, read),
        reasoning=None if output.reasoning is None else in_utf8(output.reasoning),
        **numbers,
    )


def _probability(name: str, field: str, value: object) -> float:
    probability = rounded(_number(name, field, value))
    if not 0 <= probability <= 1:
        raise StageError(f"{name}.read gave the {field} {probability:g}; it must be 0 to 1")
    return probability


def _number(name: str, field: str, value: object) -> float:
    if not math.isfinite(number := _real(name, field, value)):
        raise StageError(f"{name}.read gave the {field} {_show(value)}; it must be a number")
    return number


def _score(name: str, field: str, value: object) -> float | None:
    score = _real(name, field, value)
    # Rounded: digits that differ between machines would decide ties. JSON has no infinity.
    return rounded(score) if math.isfinite(score) else None


def _real(name: str, field: str, value: object) -> float:
    # The type first: a check against an abstract class takes as long as all others of an output.
    if type(value) is not float and not isinstance(value, Real):
        raise StageError(f"{name}.read gave the {field} {_show(value)}; it must be a number")
    return float(value)


def _count(name: str, field: str, value: object) -> int:
    if (type(value) is not int and not isinstance(value, Integral)) or not 0 <= int(value) < 2**63:
        raise StageError(f"{name}.read gave the {field} {_show(value)}; it must be a count")
    return int(value)


# Numeric fields of an output with their checks; None is allowed for unknown numbers.
_NUMBERS: Mapping[str, Callable[[str, str, object], Any]] = {
    "score": _score,
    "dollars": _number,
    "probability": _probability,
    **dict.fromkeys(("cut", "input_tokens", "output_tokens", "reasoning_tokens"), _count),
}


def _answer_span(name: str, span: object, read: Read) -> Span:
    """Returns the span of an answer, checked to be within one chunk of the read."""
    if not isinstance(span, Span):
        raise StageError(f"{name}.read gave the span {_show(span)}; it must be a Span or None")
    chunks = (passage for passage in read.passages if isinstance(passage, Chunk))
    if not any(chunk.start <= span.start and span.end <= chunk.end for chunk in chunks):
        raise StageError(
            f"{name}.read gave the span ({span.start}, {span.end}),"
            " which is not within one of the chunks that it was given"
        )
    return Span(int(span.start), int(span.end))


def _seen_spans(name: str, spans: object, read: Read) -> tuple[Span, ...]:
    """Returns the spans that a reader reports as seen, checked to be within chunks of the read."""
    if not isinstance(spans, (tuple, list)) or not all(isinstance(span, Span) for span in spans):
        raise StageError(f"{name}.read gave the read {_show(spans)}; it must be a tuple of Span")
    chunks = [passage for passage in read.passages if isinstance(passage, Chunk)]
    # Most readers see complete passages, and may read tens of thousands of pairs of a document.
    if len(spans) == len(chunks) and all(
        span.start == chunk.start and span.end == chunk.end
        for span, chunk in zip(spans, chunks, strict=True)
    ):
        return tuple(chunk.span for chunk in chunks)
    passages = merge(chunk.span for chunk in chunks)
    for span in spans:
        if any(outside(span, passages)):
            raise StageError(
                f"{name}.read reported ({span.start}, {span.end}) as read,"
                " which is not within the passages that it was given"
            )
    return tuple(Span(int(span.start), int(span.end)) for span in spans)
