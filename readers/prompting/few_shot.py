"""Worked examples in prompts: reading a JSON Lines file, drawing from it, rendering."""

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

from leporello.core.errors import ConfigError, Fault, UserError, did_you_mean, reworded
from leporello.core.files import opened
from leporello.core.records import Chunk, Read
from leporello.readers.prompting.template import Template, encodable

# In small letters, like `question:` and `context:` of T5's prompt, which ends in a field.
_CUE = "answer:"
_ADVICE = "draw examples from another split, such as train"

_Answer = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Shot(BaseModel):
    """A worked example; its id, its task's fingerprint and its document's SHA-256 may be empty."""

    # Forbidden, since a misspelt `context` would silently give an example without one.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    answer: _Answer
    question: str = ""
    instruction: str = ""
    context: str = ""  # a passage before `passages`
    passages: list[str] = []
    choices: list[str] = []
    title: str = ""
    id: str = ""
    data: str = ""
    document_sha256: str = ""

    @model_validator(mode="after")
    def _fits_together(self) -> Shot:
        if not any(text.strip() for text in (self.question, self.context, *self.passages)):
            raise ValueError("has neither question nor context")
        # A model learns the form of answers from examples, so other texts would mislead it.
        if self.choices and self.answer not in self.choices:
            hint = did_you_mean(self.answer, self.choices)
            raise ValueError(f"answer {self.answer!r:.60} is not one of the choices{hint}")
        return self

    @property
    def read(self) -> Read:
        """The input of the example."""
        return Read(
            tuple(filter(None, (self.context, *self.passages))),
            self.question,
            self.instruction,
            tuple(self.choices),
            title=self.title,
        )


@dataclass(frozen=True)
class FewShot:
    """A template with worked examples before the question, which are never omitted or cut."""

    template: Template
    shots: tuple[Shot, ...] = ()

    @cached_property
    def turns(self) -> tuple[tuple[str, str], ...]:
        """Prompts and answers of the examples, as earlier turns of user and assistant."""
        # The task's instruction is absent, so that the text is equal for all inputs and caches
        # of prefixes can use it (decision 20).
        return tuple((self.template.render(s.read), encodable(s.answer)) for s in self.shots)

    def render(self, read: Read) -> str:
        """Returns one text for models without chat: the examples, then the input."""
        if not self.shots:
            return self.template.render(read)
        # The input needs the cue too; otherwise only the examples would have an answer's form.
        prompt = self._with_cue(self.template.render(read))
        return "\n\n".join([*self._solved, prompt])

    def check_room(self, size: Callable[[str], int], prompt: str, limit: int) -> None:
        """Checks that the examples leave room for an input."""
        # An error for the run: fewer examples for long inputs would mix experiments (decision 20).
        if self.shots and (length := size(prompt)) > limit:
            raise UserError(
                f"{len(self.shots)} examples take {length} tokens of the prompt, but"
                f" max_input_tokens is {limit}; examples are never cut or omitted: lower shots,"
                " shorten the examples' contexts, or raise max_input_tokens"
            )

    def check_data(self, data: str) -> None:
        """Checks that no example was drawn from the data of the task."""
        # By the data's fingerprint: a task of another name can have the same rows.
        if data and (shot := next((s for s in self.shots if s.data == data), None)):
            raise UserError(
                f"the worked example {shot.id!r} was drawn from the data of the task itself:"
                f" {_ADVICE}"
            )

    def check_documents(self, reads: Iterable[Read]) -> None:
        """Checks that no example was drawn from a document of the inputs."""
        # Documents, not passages, since contracts and licences share passages.
        shots = {shot.document_sha256: shot for shot in self.shots if shot.document_sha256}
        chunks = (p for read in reads if shots for p in read.passages if isinstance(p, Chunk))
        for document in dict.fromkeys(chunk.document for chunk in chunks):
            if shot := shots.get(document.sha256):
                raise UserError(
                    f"the worked example {shot.id!r} was drawn from document {document.id!r},"
                    f" which the question is about: {_ADVICE}"
                )

    @cached_property
    def _solved(self) -> list[str]:
        pairs = [(self._with_cue(prompt), answer) for prompt, answer in self.turns]
        return [
            f"{prompt}{answer}" if prompt[-1:].isspace() else f"{prompt} {answer}"
            for prompt, answer in pairs
        ]

    def _with_cue(self, prompt: str) -> str:
        if self.template.ends_in_words:
            return prompt
        return f"{prompt}{_CUE}" if prompt.endswith("\n") or not prompt else f"{prompt}\n{_CUE}"


# Not random.sample, whose draws for different numbers of shots need not share a beginning.
def draw(path: Path | None, shots: int, seed: int) -> tuple[Shot, ...]:
    """Returns examples of a file in an order that depends only on the seed; checks all rows.

    With the same seed, a larger number of shots begins with the examples of a smaller one. Raises
    UserError if the file cannot be read or is empty, ConfigError with the faults of all rows.
    """
    if path is None:
        return ()
    # A number for every row, so that the order does not depend on `shots` (decision 20).
    numbers = random.Random(seed)
    return tuple(sorted(_load(path), key=lambda _: numbers.random())[:shots])


def _load(path: Path) -> list[Shot]:
    with opened(path) as file:
        lines = [(number, line) for number, line in enumerate(file, 1) if line.strip()]
    shots: list[Shot] = []
    faults: list[Fault] = []
    for number, line in lines:
        try:
            # Some editors on Windows write this mark, and JSON does not allow it.
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            shots.append(Shot.model_validate_json(text))
        except ValidationError as error:
            messages = map(_message, error.errors(include_url=False))
            faults.extend(Fault(path, number, text) for text in messages)
    if faults:
        raise ConfigError(faults)
    if not shots:
        raise UserError(f"{path}: has no examples; a row must look like {_EXAMPLE}")
    return shots


_EXAMPLE = '{"question": "Who …?", "context": "…", "answer": "…"}'


def _message(error: ErrorDetails) -> str:
    field, text = ".".join(map(str, error["loc"])), reworded(error["msg"])
    if not field:
        return f"{text}; each line must be an object like {_EXAMPLE}"
    is_unknown = error["type"] == "extra_forbidden"
    return f"{field}: {text}{did_you_mean(field, Shot.model_fields) if is_unknown else ''}"
