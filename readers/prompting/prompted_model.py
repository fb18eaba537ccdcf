"""From inputs to outputs: readers with a language model that runs here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Literal

from leporello.core.protocols import BackendSource, Count, ModelSource, Positive
from leporello.core.records import Output, Read
from leporello.models.calibration import calibrated
from leporello.readers.backends.backend import Backend, Precision
from leporello.readers.backends.decoding import Decoding
from leporello.readers.backends.pretrained import Tokens
from leporello.readers.backends.registry import backend_of, packs
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import BatchTokens, TokenBudget, memory_budget
from leporello.readers.prompting.prompted_reader import PROMPT, PromptedReader
from leporello.readers.prompting.template import seen, split_reasoning
from leporello.readers.prompting.window import OnOverflow, Window


@dataclass(frozen=True)
class PromptedModel(PromptedReader):
    """Base of the readers with a language model that one of the backends runs.

    They declare how a prompt becomes tokens.

    Attributes:
        max_new_tokens: Number of tokens that are written at most.
        min_new_tokens: Number of tokens that are written at least.
        num_beams: Number of beams; 1 is greedy.
        length_penalty: Exponent of the length: beams are ranked by log-probability / length **
            length_penalty.
        early_stopping: Whether beam search ends once it has num_beams texts, even if a better one
            could come.
        batch_tokens: Tokens of a micro-batch, padding and tokens to come included; `auto` is as
            many as the GPU's memory holds, and 4096 on a CPU, where more gain nothing.
        dtype: Type of the weights; `auto` is the checkpoint's own. The int8 kinds are
            ctranslate2's.
        device: Device as torch names it; `auto` is CUDA where there is any, else the CPU.
    """

    window_size: ClassVar[int] = 64  # so that batches are even
    generates: ClassVar[bool] = True
    _form: ClassVar[Literal["causal", "seq2seq"]]

    model: ModelSource
    prompt: str = PROMPT
    separator: str = "\n\n"
    max_input_tokens: Positive = 512
    on_overflow: OnOverflow | Literal["slice"] = "fit"
    max_new_tokens: Positive = 64
    min_new_tokens: Count = 0
    num_beams: Positive = 1
    length_penalty: float = 1.0
    early_stopping: bool = False
    no_repeat_ngram_size: Count = 0
    repetition_penalty: float = 1.0
    batch_tokens: BatchTokens = 4096
    backend: BackendSource = "transformers"
    dtype: Precision = "float32"
    device: str = "auto"
    examples: Path | None = None
    shots: Count = 4
    seed: Count = 0
    calibration: Path | None = None

    def __post_init__(self) -> None:
        _ = self._template, self._decoding  # which check themselves
        self._backend.check(self.model, self.dtype, self._decoding)

    def load(self) -> None:
        """Loads the model, which is otherwise done when it first reads."""
        _ = self._window, self._model

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order; equal prompts are read once.

        Raises:
            UserError: A worked example was drawn from a document of the inputs.
        """
        parts = self._parts(inputs)
        prompts = [*map(self._model_inputs, inputs, parts)]
        replies = self._replies(dict.fromkeys(chain.from_iterable(prompts)))
        outputs = [
            _output(read, own_parts, asked, [replies[prompt] for prompt in asked])
            for read, own_parts, asked in zip(inputs, parts, prompts, strict=True)
        ]
        return calibrated(outputs, self.calibration)

    def render(self, read: Read) -> str:
        """Returns the exact text that the model is given, after any cut; parts one by one."""
        return "\n\n".join(self._as_given(self._render(part)) for part in self._window.parts(read))

    @property
    def tokens(self) -> Tokens:
        """The model's tokenizer."""
        return self._tokens

    @property
    def schedules_itself(self) -> bool:
        """Whether the backend packs prompts itself, and wants all that wait in one call."""
        return packs(self.backend)

    @cached_property
    def batching(self) -> TokenBudget | None:
        """What its micro-batches may take, and what came of them; the backend may make its own."""
        return None if self.schedules_itself else TokenBudget(self.batch_tokens, self._budget)

    def _budget(self) -> int:
        prompt = ModelInput((self._tokens.padding,) * self.max_input_tokens)
        most, rows, new = self.window_size, self.num_beams, self.max_new_tokens
        return memory_budget(prompt, self._write, self.device, most, rows=rows, new_tokens=new)

    @cached_property
    def _decoding(self) -> Decoding:
        names = {field.name for field in fields(Decoding)} & {field.name for field in fields(self)}
        return Decoding(**{name: getattr(self, name) for name in names})

    @cached_property
    def _tokens(self) -> Tokens:
        return Tokens(self.model, self.prompt)

    @cached_property
    def _window(self) -> Window:
        self._check_positions()
        limit = self.max_input_tokens
        self._prompts.check_room(self._size, self._render(Read(())), limit)
        return Window(self._render, self._size, limit, self.on_overflow, self._tokens.sliced)

    @property
    def _backend(self) -> Backend:
        return backend_of(self.backend, self._form)

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 -- its backend's own
        return self._backend.load(self.model, self.dtype, self.device)

    def _check_positions(self) -> None:
        """Raises `UserError` where the model has too few positions for what it is to read."""
        raise NotImplementedError

    def _prompt(self, read: Read) -> ModelInput:
        """Returns the tokens of an input that fits, and of its choices."""
        raise NotImplementedError

    def _as_given(self, prompt: str) -> str:
        """Returns what the model sees of a prompt: itself, or a chat around it."""
        return self._tokens.plain(prompt)

    def _encode(self, prompt: str) -> tuple[int, ...]:
        return self._tokens.encode(prompt)

    def _size(self, prompt: str) -> int:
        return len(self._encode(prompt))

    def _model_inputs(self, read: Read, parts: Sequence[Read]) -> list[ModelInput]:
        """Returns the tokens of each part of an input."""
        if self.on_overflow == "slice" and parts != [read]:
            return [ModelInput(self._window.sliced(read)[0])]
        return [self._prompt(part) for part in parts]

    def _replies(self, prompts: dict[ModelInput, None]) -> dict[ModelInput, Generation]:
        if self.batching:
            return self.batching.read(prompts, self.num_beams, self.max_new_tokens, self._answer)
        replies: dict[ModelInput, Generation] = {}
        for scored in (True, False):
            if alike := [prompt for prompt in prompts if bool(prompt.choices) == scored]:
                replies |= zip(alike, self._answer(alike), strict=True)
        return replies

    def _answer(self, alike: Sequence[ModelInput]) -> list[Generation]:
        """Returns the replies to prompts that all have choices, or none of them."""
        if alike[0].choices:
            return self._backend.score(self._model, self._tokens, alike)
        return self._write(alike)

    def _write(self, prompts: Sequence[ModelInput]) -> list[Generation]:
        return self._backend.write(self._model, self._tokens, self._decoding, prompts)


def _output(
    read: Read, parts: Sequence[Read], prompts: Sequence[ModelInput], replies: Sequence[Generation]
) -> Output:
    """Joins the replies to the parts of an input: texts line by line, scores by their mean."""
    scores = tuple(map(fmean, zip(*(reply.scores for reply in replies), strict=True)))
    best = max(scores, default=fmean(reply.score for reply in replies))
    thoughts, texts = zip(*(split_reasoning(reply.text) for reply in replies), strict=True)
    written = "\n".join(filter(None, texts))
    spans, cut = seen(read, parts)
    return Output(
        text=read.choices[scores.index(best)] if scores else written,
        score=best,
        scores=scores,
        read=spans,
        cut=cut,
        input_tokens=sum(len(prompt.tokens) for prompt in prompts),
        output_tokens=sum(reply.output_tokens for reply in replies),
        reasoning="\n".join(filter(None, thoughts)) or None,
    )
