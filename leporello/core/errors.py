"""Errors that the user can mend: printed without a traceback, exit status 2."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

_Thing = TypeVar("_Thing")
_Made = TypeVar("_Made")
_LISTED = 30  # names that a message may list
_TOLD = 100  # faults of a config: more is one mistake many times
_COMPARED, _LONGEST = 1_000, 100  # names that one is compared with, and its letters: each is slow


class UserError(Exception):
    """A mistake of the user's; its text says what is wrong and what to do."""


class EmptySubsetError(UserError):
    """A file has rows, and none of them is of the task."""


class BudgetSpentError(UserError):
    """A reader has spent what this process may spend; it goes on once it is given more."""


class Stopped(Exception):  # noqa: N818 -- no error: what the user asked for
    """A run is to end before it is complete; the text says why."""


class Interrupted(KeyboardInterrupt):
    """The user wants the program to end; what a stage raises of itself is its fault."""


class ReadError(Exception):
    """A read that failed: thrown into the combiner that asked for it, or sent to it as a value.

    Attributes:
        message: Reason, for the person who reads it.
        trace: Traceback of the reader.
        answers: Answers to all requests of the round in which it was thrown, itself among them.
    """

    def __init__(self, message: str, trace: str = "", answers: Sequence[object] = ()) -> None:
        super().__init__(message, trace)
        self.message, self.trace, self.answers = message, trace, answers

    def __str__(self) -> str:
        return self.message


def failed_reads(answers: Sequence[object]) -> list[ReadError]:
    """Returns the errors of the reads that failed.

    Raises:
        ReadError: Every read failed; the error of the first.
    """
    failed = [answer for answer in answers if isinstance(answer, ReadError)]
    if failed and len(failed) == len(answers):
        raise failed[0]
    return failed


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a file: where it stands and what it is.

    Attributes:
        file: The file, or None for the command line.
        line: 1-based line, 0 where no line applies.
        text: Message: what is wrong, what was likely meant, what is allowed.
    """

    file: Path | None
    line: int
    text: str

    def __str__(self) -> str:
        place = "command line" if self.file is None else str(self.file)
        return f"{place}:{self.line}: {self.text}" if self.line else f"{place}: {self.text}"


class ConfigError(UserError):
    """All faults that were found, in the order of the file."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        unique = dict.fromkeys(faults)
        self.faults = tuple(sorted(unique, key=lambda f: (str(f.file or ""), f.line)))
        more = len(self.faults) - _TOLD
        rest = [f"… and {more:,} more"] if more > 0 else []
        super().__init__("\n".join([*map(str, self.faults[:_TOLD]), *rest]))


def made_of_all(things: Iterable[_Thing], make: Callable[[_Thing], _Made]) -> list[_Made]:
    """Returns what is made of each thing.

    Raises:
        ConfigError: The faults of all of them.
    """
    made: list[_Made] = []
    faults: list[Fault] = []
    for thing in things:
        try:
            made.append(make(thing))
        except ConfigError as error:
            faults += error.faults
    if faults:
        raise ConfigError(faults)
    return made


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Returns `; did you mean 'x'; allowed: …` for a name that is not among the allowed."""
    choices = sorted(map(str, allowed))
    hint = likely(name, choices)
    if len(choices) > _LISTED:
        return f"{hint}; there are {len(choices):,}"
    return f"{hint}; allowed: {', '.join(choices) or 'none'}"


def no_such(kind: str, name: str, names: Iterable[str]) -> str:
    """Returns `there is no KIND 'name'; did you mean …`."""
    return f"there is no {kind} {name!r}{did_you_mean(name, names)}"


def likely(name: str, allowed: Iterable[str]) -> str:
    """Returns `; did you mean 'x'`, or nothing where no allowed name is near."""
    folded = {choice.casefold(): choice for choice in islice(allowed, _COMPARED)}
    near = difflib.get_close_matches(name[:_LONGEST].casefold(), folded, n=1, cutoff=0.6)
    return f"; did you mean {folded[near[0]]!r}" if near else ""
