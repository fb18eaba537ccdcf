"""Worked examples before what is asked: a JSON Lines file, what is drawn of it, how it is shown."""

from __future__ import annotations

import codecs
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError, model_validator
from pydantic_core import ErrorDetails

from leporello.core.errors import ConfigError, Fault, UserError, did_you_mean
from leporello.core.files import opened
from leporello.core.records import Chunk, Read
from leporello.readers.prompting.template import Template, encodable

_CUE = "answer:"
_ELSEWHERE = "draw examples from another split, such as train"
_LISTED = 20  # faults; a file with more has usually one mistake in each row
_SHOWN = 60  # characters of a faulty value that a message repeats

_Answer = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


@dataclass(frozen=True, slots=True)
class Shot:
    """A worked example.

    Attributes:
        read: Input that was asked.
        answer: The right answer, one of the choices if there are any.
        id: Id of the task's example that it was made from; empty where that is not known.
        data: Fingerprint of that task's data; empty where that is not known.
        document: SHA-256 of that example's document; empty where that is not known.
    """

    read: Read
    answer: str
    id: str = ""
    data: str = ""
    document: str = ""


@dataclass(frozen=True)
class FewShot:
    """A template, and worked examples before what is asked.

    They are the same for every input. None of them is ever left out or cut: they count in the
    window like the rest of the template, and it is passages that give way.

    Attributes:
        template: Template of the examples and of what is asked.
        shots: Examples in the order in which they are shown.
    """

    template: Template
    shots: tuple[Shot, ...] = ()

    @cached_property
    def turns(self) -> tuple[tuple[str, str], ...]:
        """The examples' prompts and answers: earlier turns of a chat's user and assistant."""
        return tuple((self.template.render(s.read), encodable(s.answer)) for s in self.shots)

    def render(self, read: Read) -> str:
        """Returns one text for models that do not chat: the examples, then what is asked.

        Where the template ends in a field and not in words of its own, such as `Answer:`, the
        examples' answers and the one that is wanted are announced by a line.
        """
        if not self.shots:
            return self.template.render(read)
        asked = self._announced(self.template.render(read))
        return "\n\n".join([*self._solved, asked])

    def check_room(self, size: Callable[[str], int], prompt: str, limit: int) -> None:
        """Refuses examples that leave no room for anything else.

        Args:
            size: A function that returns the number of a prompt's tokens.
            prompt: Prompt of an input in which nothing is said.
            limit: Number of tokens of a prompt at most.

        Raises:
            UserError: No input would fit.
        """
        if self.shots and (taken := size(prompt)) > limit:
            raise UserError(
                f"{len(self.shots)} examples take {taken} tokens of the prompt, and"
                f" max_input_tokens is {limit}; examples are never cut or left out: lower shots,"
                " shorten the examples' contexts, or raise max_input_tokens"
            )

    def check_data(self, data: str) -> None:
        """Refuses examples that were drawn from the data that they are to be shown with.

        Args:
            data: Fingerprint of a task's data; empty where no task is known.

        Raises:
            UserError: One of them was.
        """
        if data and (shot := next((s for s in self.shots if s.data == data), None)):
            raise UserError(
                f"the worked example {shot.id!r} was drawn from the very data that is asked about:"
                f" {_ELSEWHERE}"
            )

    def check_documents(self, reads: Iterable[Read]) -> None:
        """Refuses examples that were drawn from a document that is asked about.

        Raises:
            UserError: One of them was.
        """
        # Equal passages would prove nothing: contracts and licences repeat each other.
        drawn = {shot.document: shot for shot in self.shots if shot.document}
        chunks = (p for read in reads if drawn for p in read.passages if isinstance(p, Chunk))
        for document in dict.fromkeys(chunk.document for chunk in chunks):
            if shot := drawn.get(document.sha256):
                raise UserError(
                    f"the worked example {shot.id!r} was drawn from document {document.id!r},"
                    f" which is asked about: {_ELSEWHERE}"
                )

    @cached_property
    def _solved(self) -> list[str]:
        announced = [(self._announced(prompt), answer) for prompt, answer in self.turns]
        return [
            f"{prompt}{answer}" if prompt[-1:].isspace() else f"{prompt} {answer}"
            for prompt, answer in announced
        ]

    def _announced(self, prompt: str) -> str:
        if self.template.ends_in_words:
            return prompt
        return f"{prompt}{_CUE}" if prompt.endswith("\n") or not prompt else f"{prompt}\n{_CUE}"


def draw(path: Path | None, shots: int, seed: int) -> tuple[Shot, ...]:
    """Returns examples of a file in an order that only the seed says; all of it is checked.

    Of two numbers of shots with one seed, the larger begins with the examples of the smaller.

    Args:
        path: Path of a JSON Lines file; None has no examples.
        shots: Number of examples; if the file has fewer, all.
        seed: Seed of the draw.

    Raises:
        UserError: The file cannot be read, or has no examples.
        ConfigError: All faults of its rows, with their lines.
    """
    if path is None:
        return ()
    # A number a row whatever `shots` is, so that more begin with the fewer (decision 20).
    numbers = random.Random(seed)
    return tuple(sorted(_load(path), key=lambda _: numbers.random())[:shots])


class _FewShotRow(BaseModel):
    """A row as it stands in the file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    answer: _Answer
    question: str = ""
    instruction: str = ""
    context: str | None = None
    passages: list[str] | None = None
    choices: list[str] = []
    title: str = ""
    id: str = ""
    data: str = ""
    document_sha256: str = ""

    @model_validator(mode="after")
    def _fits_together(self) -> _FewShotRow:
        if self.context is not None and self.passages is not None:
            raise ValueError("has both `context` and `passages`; give one of them")
        texts = [self.question, self.context or "", *(self.passages or ())]
        if not any(text.strip() for text in texts):
            raise ValueError("has neither question nor context: there is nothing to answer")
        if self.choices and self.answer not in self.choices:
            hint = did_you_mean(self.answer, self.choices)
            raise ValueError(f"answer {_shown(self.answer)} is none of the choices{hint}")
        return self

    def shot(self) -> Shot:
        context = () if self.context is None else (self.context,)
        read = Read(
            tuple(self.passages or ()) or context,
            self.question,
            self.instruction,
            tuple(self.choices),
            title=self.title,
        )
        return Shot(read, self.answer, self.id, self.data, self.document_sha256)


def _load(path: Path) -> list[Shot]:
    """Returns all examples of a file, in its order."""
    with opened(path) as file:
        lines = [(number, line) for number, line in enumerate(file, 1) if line.strip()]
    shots: list[Shot] = []
    faults: list[Fault] = []
    for number, line in lines:
        try:
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            shots.append(_FewShotRow.model_validate_json(text).shot())
        except ValidationError as error:
            messages = map(_message, error.errors(include_url=False))
            faults.extend(Fault(path, number, text) for text in messages)
    if more := faults[_LISTED:]:
        more = [Fault(path, more[0].line, f"… and {len(more)} more from here on")]
    if faults:
        raise ConfigError([*faults[:_LISTED], *more])
    if not shots:
        raise UserError(f"{path}: has no examples; a row is like {_EXAMPLE}")
    return shots


_EXAMPLE = '{"question": "Who …?", "context": "…", "answer": "…"}'


def _message(error: ErrorDetails) -> str:
    field = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "json_invalid":
            reason = str(error["ctx"]["error"]).replace("at line 1 column", "at character")
            return f"not JSON: {reason}; one object a line, like {_EXAMPLE}"
        case "model_type" | "model_attributes_type":
            return f"a row is an object like {_EXAMPLE}"
        case "extra_forbidden":
            return f"unknown field {field!r}{did_you_mean(field, _FewShotRow.model_fields)}"
        case "missing":
            return f"field {field!r} is missing"
        case "value_error":
            return str(error["ctx"]["error"])
    message = error["msg"]
    return f"{field}: {message[0].lower()}{message[1:]}, got {_shown(error['input'])}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
