"""Prompt templates, which render the text of a `Read`, and helpers for passages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from string import Formatter, ascii_uppercase

from leporello.core.records import Chunk, Read, Span

_NONE = "\0"  # an omitted line
_OMITTED = re.compile(rf"\n*{_NONE}[\n{_NONE}]*")
FIELDS = ("question", "context", "choices", "title", "instruction")

_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")  # occurs in broken files


@dataclass(frozen=True)
class Template:
    """A prompt with fields, in the syntax of `str.format`.

    Lines whose fields are all empty are omitted, and the blank lines around them merge, so that the
    same template serves questions, summaries and multiple choice.
    """

    text: str  # with `{question}`, `{context}`, `{choices}`, `{title}`, `{instruction}`
    separator: str = "\n\n"  # text between passages

    def __post_init__(self) -> None:
        if "context" not in _fields(self.text):
            raise ValueError("prompt has no {context}, so the passages would never be read")

    def render(self, read: Read) -> str:
        """Returns the prompt of an input, including its passages."""
        values = {
            "question": read.question,
            "context": self.separator.join(filter(None, map(passage_text, read.passages))),
            "choices": "\n".join(f"({_letter(i)}) {text}" for i, text in enumerate(read.choices)),
            "title": read.title,
            "instruction": read.instruction,
        }
        filled = {name for name, value in values.items() if value.strip()}
        # An empty `Question:` would make a model invent one.
        lines = (_NONE if fields and not fields & filled else line for line, fields in self._lines)
        return encodable(_OMITTED.sub(_closed_up, "\n".join(lines)).format_map(values))

    @cached_property
    def ends_in_words(self) -> bool:
        """Whether the template ends in words, such as `Answer:`, not in a field."""
        *_, (_, last, _, _) = Formatter().parse(self.text.rstrip())
        return last is None

    @cached_property
    def _lines(self) -> list[tuple[str, frozenset[str]]]:
        return [(line, _fields(line)) for line in self.text.split("\n")]


def passage_text(passage: Chunk | str) -> str:
    """Returns the characters of a chunk or of a literal passage."""
    return passage if isinstance(passage, str) else passage.text


def spans_of(passages: Iterable[Chunk | str]) -> tuple[Span, ...]:
    """Returns the spans of the passages that are chunks; a literal passage has no span."""
    return tuple(passage.span for passage in passages if isinstance(passage, Chunk))


def span_in(passage: Chunk | str, start: int, end: int) -> Span | None:
    """Returns the span of a part of a passage in the document; None for a literal passage."""
    if isinstance(passage, str):
        return None
    return Span(passage.start + start, passage.start + end)


def seen(read: Read, parts: Iterable[Read]) -> tuple[tuple[Span, ...], int]:
    """Returns the spans that the parts of an input contain, and how many characters were cut."""
    shown = [passage for part in parts for passage in part.passages]
    lengths = (sum(len(passage_text(p)) for p in passages) for passages in (read.passages, shown))
    return spans_of(shown), next(lengths) - next(lengths)


def refuse_pairs(inputs: Iterable[Read]) -> None:
    """Raises ValueError for a pair of texts, which needs a classifier of pairs."""
    if any(read.pair for read in inputs):
        raise ValueError("this reader reads passages; a pair of texts needs a pair classifier")


def encodable(text: str) -> str:
    """Returns a text of the same length without lone surrogates, which tokenizers reject."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def _fields(template: str) -> frozenset[str]:
    """Returns the names of a template's fields; raises ValueError for an invalid template."""
    try:
        parsed = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"prompt: {error}; write literal braces twice, {{{{ or }}}}") from None
    for _, name, spec, conversion in parsed:
        if name is not None and name not in FIELDS:
            allowed = ", ".join(f"{{{field}}}" for field in FIELDS)
            raise ValueError(f"prompt: unknown field {{{name}}}; allowed: {allowed}")
        if spec or conversion:
            raise ValueError(f"prompt: field {{{name}}} takes no format: write only {{{name}}}")
    return frozenset(name for _, name, _, _ in parsed if name is not None)


def _closed_up(run: re.Match[str]) -> str:
    """Returns the longest of the line breaks around omitted lines; none at either end."""
    is_between = run.start() > 0 and run.end() < len(run.string)
    return max(run[0].split(_NONE), key=len) if is_between else ""


def _letter(index: int) -> str:
    """Returns A, B, … Z, AA, AB, … for 0, 1, and so on."""
    head, last = divmod(index, len(ascii_uppercase))
    return (_letter(head - 1) if head else "") + ascii_uppercase[last]
