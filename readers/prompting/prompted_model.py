"""Base of the readers with a local language model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Literal

from leporello.core.protocols import BackendSource, Count, ModelSource, Positive
from leporello.core.records import Output, Read
from leporello.models.calibration import calibrated
from leporello.readers.backends.backend import Backend, Form, backend_of, packs
from leporello.readers.backends.decoding import Decoding
from leporello.readers.backends.pretrained import TRAINER, DType, Tokens
from leporello.readers.batching.batched_model import BatchedModel
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import BatchTokens, Beams, TokenBudget
from leporello.readers.prompting.prompted_reader import PROMPT, PromptedReader
from leporello.readers.prompting.reasoning import split_reasoning
from leporello.readers.prompting.template import seen
from leporello.readers.prompting.window import OnOverflow, Window
from leporello.text.typed.parse import written_schema


@dataclass(frozen=True)
class PromptedModel(PromptedReader, BatchedModel):
    """Base of the readers with a language model that a backend runs.

    Subclasses define how a prompt becomes tokens.

    Attributes:
        max_new_tokens: Maximum number of generated tokens.
        min_new_tokens: Minimum number of generated tokens.
        num_beams: Number of beams; 1 is greedy.
        length_penalty: Exponent of the length: beams are ranked by log-probability / length **
            length_penalty.
        no_repeat_ngram_size: Size of n-grams that may not be repeated, by decoder-only models also
            not from the prompt; 0 allows repetition.
        repetition_penalty: Divisor of the scores of earlier tokens, for decoder-only models
            including those of the prompt; 1 has no effect.
        batch_tokens: Maximum number of tokens per micro-batch, including padding and new tokens;
            `auto` fills the GPU's memory, or is 4096 on a CPU, where larger batches are not
            faster.
        dtype: Type of the weights; `auto` is that of the checkpoint.
        device: Device as torch names it; `auto` is CUDA if available, otherwise the CPU.
    """

    window_size: ClassVar[int] = 64  # so that batches are even
    generates: ClassVar[bool] = True
    trainer = TRAINER
    _form: ClassVar[Form]
    _most = window_size

    model: ModelSource
    prompt: str = PROMPT
    separator: str = "\n\n"
    max_input_tokens: Positive = 512
    on_overflow: OnOverflow | Literal["slice"] = "fit"
    max_new_tokens: Positive = 64
    min_new_tokens: Count = 0
    num_beams: Positive = 1
    length_penalty: float = 1.0
    no_repeat_ngram_size: Count = 0
    repetition_penalty: float = 1.0
    batch_tokens: BatchTokens = 4096
    # It runs all models, and other backends are compared with it (decision 18).
    backend: BackendSource = "transformers"
    dtype: DType = "float32"
    device: str = "auto"
    examples: Path | None = None
    # Four examples with contexts of 100 words take some 600 tokens of each input (decision 20).
    shots: Count = 4
    seed: Count = 0
    calibration: Path | None = None

    def __post_init__(self) -> None:
        _ = self._template, self._decoding  # their constructors check the parameters
        # Refused before any work: another backend must give the same answers or none (decision 18).
        self._backend.check(self.model, self.dtype, self._decoding)

    def load(self) -> None:
        """Loads the model, which `read` otherwise does on first use."""
        _ = self._window, self._network

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order; equal prompts are read once."""
        parts = self._parts(inputs)
        prompts = [*map(self._model_inputs, inputs, parts)]
        replies = self._replies(chain.from_iterable(prompts))
        outputs = [
            _output(read, read_parts, read_prompts, [replies[prompt] for prompt in read_prompts])
            for read, read_parts, read_prompts in zip(inputs, parts, prompts, strict=True)
        ]
        return calibrated(outputs, self.calibration)

    def render(self, read: Read) -> str:
        """Returns the exact text that the model receives, after truncation; parts in turn."""
        parts = self._window.parts(read)
        return "\n\n".join(self._model_text(self._render(part)) for part in parts)

    def training_examples(
        self, read: Read, target: str
    ) -> list[tuple[ModelInput, tuple[int, ...]]]:
        """Returns the prompt of each part of an input, with the tokens to generate."""
        parts = self._window.parts(read)
        # Parts that are encoded apart and fused are one input.
        inputs = zip(self._model_inputs(read, parts), parts, strict=False)
        return [(prompt, self._target(self._render(part), target)) for prompt, part in inputs]

    @property
    def schedules_itself(self) -> bool:
        """Whether the backend makes its own micro-batches, and takes all prompts in one call."""
        return packs(self.backend)

    @property
    def batching(self) -> TokenBudget | None:
        """Token budget of the micro-batches, with their counts; None if the backend makes them."""
        return None if self.schedules_itself else self._batches

    @property
    def _beams(self) -> Beams:
        return self.num_beams, self.max_new_tokens

    @cached_property
    def _decoding(self) -> Decoding:
        names = {field.name for field in fields(Decoding)} & {field.name for field in fields(self)}
        return Decoding(**{name: getattr(self, name) for name in names})

    @property
    def _tokens(self) -> Tokens:
        return self.tokens

    def _load_tokens(self) -> Tokens:
        return Tokens(self.model, self.prompt)

    @cached_property
    def _window(self) -> Window:
        self._check_positions()
        limit = self.max_input_tokens
        # With an empty input: if the examples alone are too long, no input fits (decision 20).
        self._prompts.check_room(self._size, self._render(Read(())), limit)
        return Window(self._render, self._size, limit, self.on_overflow, self._tokens.sliced)

    @property
    def _backend(self) -> Backend:
        return backend_of(self.backend, self._form)

    @cached_property
    def _network(self) -> Any:  # noqa: ANN401 -- any type of the backend
        return self._backend.load(self.model, self.dtype, self.device)

    def _check_positions(self) -> None:
        """Raises `UserError` if the model has too few positions for the input window."""
        raise NotImplementedError

    def _choice(self, prompt: str, choice: str) -> tuple[int, ...]:
        """Returns the tokens of an answer to a prompt."""
        raise NotImplementedError

    def _target(self, prompt: str, text: str) -> tuple[int, ...]:
        """Returns the tokens that a training teaches as the answer to a prompt."""
        return self._choice(prompt, text)

    def _prompt(self, read: Read) -> ModelInput:
        prompt = self._render(read)
        tokens = self._encode(prompt)
        if not tokens:
            raise ValueError("the prompt is empty")
        choices = tuple(self._choice(prompt, choice) for choice in read.choices)
        return ModelInput(tokens, choices, written_schema(read.schema))

    def _model_text(self, prompt: str) -> str:
        """Returns the text that the model receives: the prompt, or a chat around it."""
        return self._tokens.plain(prompt)

    def _encode(self, prompt: str) -> tuple[int, ...]:
        return self._tokens.encode(prompt)

    def _size(self, prompt: str) -> int:
        return len(self._encode(prompt))

    def _model_inputs(self, read: Read, parts: Sequence[Read]) -> list[ModelInput]:
        if self.on_overflow == "slice" and parts != [read]:
            return [ModelInput(self._window.sliced(read)[0])]
        return [self._prompt(part) for part in parts]

    def _replies(self, prompts: Iterable[ModelInput]) -> dict[ModelInput, Generation]:
        if self.batching:
            return super()._replies(prompts)
        distinct, replies = dict.fromkeys(prompts), dict[ModelInput, Generation]()
        # Separately, since a backend either scores or generates a complete batch.
        for has_choices in (True, False):
            if batch := [prompt for prompt in distinct if bool(prompt.choices) == has_choices]:
                replies |= zip(batch, self._answer(batch), strict=True)
        return replies

    def _answer(self, batch: Sequence[ModelInput]) -> list[Generation]:
        """Returns the replies to prompts; either all or none of them have choices."""
        if batch[0].choices:
            return self._backend.score(self._network, self.tokens, batch)
        return self._backend.write(self._network, self.tokens, self._decoding, batch)


def _output(
    read: Read, parts: Sequence[Read], prompts: Sequence[ModelInput], replies: Sequence[Generation]
) -> Output:
    """Joins the replies to the parts of an input: texts as lines, scores by their mean."""
    # Means, not maxima: a long input has many parts, and one of them is always extreme.
    scores = tuple(map(fmean, zip(*(reply.scores for reply in replies), strict=True)))
    best = max(scores, default=fmean(reply.score for reply in replies))
    thoughts, texts = zip(*(split_reasoning(reply.text) for reply in replies), strict=True)
    text = "\n".join(filter(None, texts))
    spans, cut = seen(read, parts)
    return Output(
        # The first choice in a tie, so that the order of choices is the only rule.
        text=read.choices[scores.index(best)] if scores else text,
        score=best,
        scores=scores,
        read=spans,
        cut=cut,
        input_tokens=sum(len(prompt.tokens) for prompt in prompts),
        output_tokens=sum(reply.output_tokens for reply in replies),
        reasoning="\n".join(filter(None, thoughts)) or None,
    )
