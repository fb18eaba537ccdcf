"""Errors that users can fix: printed without a traceback, exit status 2."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

_Source = TypeVar("_Source")
_Result = TypeVar("_Result")
_LISTED = 30  # maximum number of allowed names in a message
_FEW = 5  # first names of a longer list
_REPORTED = 100  # maximum number of faults of a config: more are usually repetitions of one mistake
_SHORT = 3  # letters of a short name
_COMPARED, _LONGEST = 1_000, 100  # limits of names to compare and of letters, since this is slow


# Line breaks and tabs stay, and so do the direction marks that Arabic and Hebrew need.
_CONTROLS = {*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_ESCAPES = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 -- one byte
    for code in _CONTROLS - {ord("\n"), ord("\t")}
}


class UserError(Exception):
    """A mistake of the user; the message states what is wrong and how to fix it."""


class EmptySubsetError(UserError):
    """A file has rows, but none that belong to the task."""


class BudgetSpentError(UserError):
    """A reader has spent this process's budget; it can continue after the budget is raised."""


class Stopped(Exception):  # noqa: N818 -- not an error: the user asked for it
    """A run must end before it is complete; the message states the reason."""


class Interrupted(KeyboardInterrupt):
    """The user interrupted the program; a stage's own KeyboardInterrupt is a failure instead."""


class ReadError(Exception):
    """A failed read: thrown into the combiner that requested it, or sent to it as a value.

    Attributes:
        message: Reason, as text for users.
        trace: Traceback of the reader.
        answers: Answers to all requests of the same round, including this error.
    """

    def __init__(self, message: str, trace: str = "", answers: Sequence[object] = ()) -> None:
        super().__init__(message, trace)
        self.message, self.trace, self.answers = message, trace, answers

    def __str__(self) -> str:
        return self.message


def failed_reads(answers: Sequence[object]) -> list[ReadError]:
    """Returns the errors of the reads that failed; raises the first one if every read failed."""
    failed = [answer for answer in answers if isinstance(answer, ReadError)]
    if failed and len(failed) == len(answers):
        raise failed[0]
    return failed


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a file, with a suggestion and the allowed values."""

    file: Path | None  # None for the command line
    line: int  # 0 if no line applies
    text: str

    def __str__(self) -> str:
        line = f":{self.line}" if self.file and self.line else ""
        return f"{self.file or 'command line'}{line}: {self.text}"


class ConfigError(UserError):
    """All faults of a config, in the order of the file."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        unique = dict.fromkeys(faults)
        self.faults = tuple(sorted(unique, key=lambda f: (str(f.file or ""), f.line)))
        more = len(self.faults) - _REPORTED
        ellipsis = [f"… and {more:,} more"] if more > 0 else []
        super().__init__("\n".join([*map(str, self.faults[:_REPORTED]), *ellipsis]))


def build_all(sources: Iterable[_Source], build: Callable[[_Source], _Result]) -> list[_Result]:
    """Returns the results for all sources; raises one ConfigError with the faults of all."""
    results: list[_Result] = []
    faults: list[Fault] = []
    for source in sources:
        try:
            results.append(build(source))
        except ConfigError as error:
            faults += error.faults
    if faults:
        raise ConfigError(faults)
    return results


def is_out_of_memory(error: BaseException | None) -> bool:
    """Returns whether an error of Python, torch or onnxruntime means that memory is missing."""
    # By name, since this must not import torch; by message, since C++ and threads lack a class.
    texts = ("std::bad_alloc", "can't start new thread")
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or any(text in str(error) for text in texts)
    )


def check_list(name: str, values: object) -> None:
    """Raises UserError for a single text, path or mapping, whose parts would be its values."""
    if values is None or isinstance(values, str | Path | Mapping):
        raise UserError(f"{name} must be a list, such as [{values!r:.80}]")


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Returns `; did you mean 'x'; allowed: …` for a name that is not allowed."""
    choices = sorted(map(str, allowed))
    listed = f"; allowed: {', '.join(choices) or 'none'}" if len(choices) <= _LISTED else ""
    return likely(name, choices) + listed


def no_such(kind: str, name: str, names: Iterable[str]) -> str:
    """Returns `there is no KIND 'name'; did you mean …`."""
    more = f"; `list {kind}s` prints all" if kind in ("pipeline", "task") else ""
    return f"there is no {kind} {name!r}{did_you_mean(name, names)}{more}"


def likely(name: str, allowed: Iterable[str]) -> str:
    """Returns `; did you mean 'x'`, or an empty text if no allowed name is similar."""
    folded = {choice.casefold(): choice for choice in islice(allowed, _COMPARED)}
    cutoff = 0.5 if len(name) <= _SHORT else 0.7  # `f2` is half of `f1`
    word = name[:_LONGEST].casefold()
    near = difflib.get_close_matches(word, folded, n=1, cutoff=cutoff)
    near += [choice for choice in folded if len(word) > _SHORT and choice.startswith(word)]
    return f"; did you mean {folded[near[0]]!r}" if near else ""


def reworded(message: str) -> str:
    """Returns a message of pydantic without its own words."""
    message = message.partition(", unable to parse")[0]
    return message.replace("Input should", "must").replace("Value error, ", "")


def counted(count: int, noun: str) -> str:
    """Returns a count with its noun: `1 document`, `2 documents`, `3 entries`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def few(names: Sequence[str]) -> str:
    """Returns the first names of a list, for a message."""
    return ", ".join(names[:_FEW]) + (", …" if len(names) > _FEW else "")


def visible(text: str) -> str:
    """Returns a text with escapes for characters that could control the terminal that shows it."""
    return text if text.isprintable() else text.translate(_ESCAPES)
