"""Encoder-decoder models: T5, BART, LED, Pegasus and their like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from leporello.core.protocols import BackendSource, Count, ModelSource, Positive
from leporello.core.records import Output, Read
from leporello.models.calibration import calibrated, read_calibration
from leporello.readers.backends.backend import Backend, Precision
from leporello.readers.backends.decoding import Decoding
from leporello.readers.backends.pretrained import Tokens, check_positions
from leporello.readers.backends.registry import backend_of
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import BatchTokens, MemoryProbe, TokenBudget
from leporello.readers.prompting.few_shot import FewShot, draw
from leporello.readers.prompting.prompted_model import PromptedModel
from leporello.readers.prompting.template import Template, passage_text
from leporello.readers.prompting.window import OnOverflow, Window
from leporello.text.typed.parse import written_schema

# T5's own form for questions (Raffel et al. 2020, appendix D); to its tokenizer a line break is a
# space. Summaries have neither question nor choices, and their lines fall away.
PROMPT = "{instruction}\nquestion: {question}\n{choices}\ncontext: {context}"


@dataclass(frozen=True)
class Seq2Seq:
    """Reads with an encoder-decoder model, by greedy or beam search, never sampling.

    With choices, each is scored by the mean log-probability of its tokens, the end token included
    as in training; the input is encoded once for all of them. LED looks globally at the first
    token, as in the official SCROLLS code.

    Attributes:
        model: Path or hub id; the weights must be safetensors.
        prompt: Template with `{question}`, `{context}`, `{choices}`, `{title}`, `{instruction}`;
            lines whose fields are all empty are left out.
        separator: Text between passages.
        max_input_tokens: Tokens of the window: prompt and special tokens.
        on_overflow: Rule for passages that do not fit: `fit` leaves out the last ones, `truncate`
            cuts in the middle of one, `split` reads the parts one by one and joins what it writes
            (scores by their mean), `slice` cuts between two tokens and keeps the last passage, as
            `Truncate` wants it, `error` fails the input.
        max_new_tokens: Number of tokens that are written at most.
        min_new_tokens: Number of tokens that are written at least.
        num_beams: Number of beams; 1 is greedy.
        length_penalty: Exponent of the length: beams are ranked by log-probability / length **
            length_penalty.
        early_stopping: Whether beam search ends once it has num_beams texts, even if a better one
            could come.
        no_repeat_ngram_size: Size of the n-grams of which none comes twice; 0 is no rule.
        repetition_penalty: Divisor of the scores of tokens that came before; 1 is none.
        batch_tokens: Tokens of a micro-batch, padding and tokens to come included; `auto` is as
            many as the GPU's memory holds, and 4096 on a CPU, where more gain nothing.
        backend: Library that computes: `transformers`, or `ctranslate2`, which is made for CPUs and
            converts the model once. Both give the same answers; what it cannot do so is refused. It
            needs the extra of its name.
        dtype: Type of the weights; `auto` is the checkpoint's own. The int8 kinds are
            ctranslate2's.
        device: Device as torch names it; `auto` is CUDA where there is any, else the CPU.
        examples: A JSON Lines file of worked examples that stand before what is asked, by the same
            template; they are never cut.
        shots: Number of examples that are drawn; all if there are fewer.
        seed: Seed of the draw.
        calibration: JSON file that `train --calibrate` wrote, from scores to probabilities.
    """

    window_size: ClassVar[int] = 64  # so that batches are even
    generates: ClassVar[bool] = True

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

    def check_files(self, data: str) -> None:
        """Reads the examples and the calibration; see `ChecksFiles`."""
        if self.calibration:
            read_calibration(self.calibration)
        self._prompts.check_data(data)

    def load(self) -> None:
        """Loads the model, which is otherwise done when it first reads."""
        _ = self._reader, self._model

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order.

        Raises:
            UserError: A worked example was drawn from a document of the inputs.
        """
        self._prompts.check_documents(inputs)
        return calibrated(self._reader.read(inputs), self.calibration)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the tokens of each text, special tokens left out."""
        return self._tokens.count(texts)

    def render(self, read: Read) -> str:
        """Returns the exact text that the model is given, after any cut."""
        return self._reader.render(read)

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit the window when rendered."""
        return self._reader.window.leading(read)

    def sliced(self, read: Read, behind: str) -> int:
        """Returns how many characters of the passages may stand before a text; see `Fit`."""
        fits = self.on_overflow == "slice" and self._size(behind) <= self.max_input_tokens
        return sum(len(passage_text(passage)) for passage in read.passages) if fits else -1

    @property
    def trainer(self) -> str:
        """What fine-tunes the model; see `FineTunes`."""
        return "leporello.readers.training.generation:seq2seq"

    @property
    def tokens(self) -> Tokens:
        """The model's tokenizer."""
        return self._tokens

    def training_examples(
        self, read: Read, target: str
    ) -> list[tuple[ModelInput, tuple[int, ...]]]:
        """Returns the model's prompt for each part of an input, and what it should write."""
        tokens = self._tokens.encode_target(target)
        parts = self._reader.window.parts(read)
        return [(prompt, tokens) for prompt in self._reader.prompts(read, parts)]

    @cached_property
    def _template(self) -> Template:
        return Template(self.prompt, self.separator)

    @cached_property
    def _prompts(self) -> FewShot:
        return FewShot(self._template, draw(self.examples, self.shots, self.seed))

    @cached_property
    def _decoding(self) -> Decoding:
        return Decoding(
            self.max_new_tokens,
            self.min_new_tokens,
            self.num_beams,
            self.length_penalty,
            self.no_repeat_ngram_size,
            self.repetition_penalty,
            early_stopping=self.early_stopping,
        )

    @cached_property
    def _tokens(self) -> Tokens:
        return Tokens(self.model, self.prompt)

    @cached_property
    def _reader(self) -> PromptedModel:
        names = ("max_encoder_position_embeddings", "max_position_embeddings")
        check_positions(self.model, self.max_input_tokens, names, "max_input_tokens")
        names = ("max_decoder_position_embeddings", "max_position_embeddings")
        check_positions(self.model, self.max_new_tokens, names, "max_new_tokens")
        nothing = self._prompts.render(Read(()))
        self._prompts.check_room(self._size, nothing, self.max_input_tokens)
        limit, rule = self.max_input_tokens, self.on_overflow
        window = Window(self._prompts.render, self._size, limit, rule, self._tokens.sliced)
        return PromptedModel(
            window,
            self._tokens.plain,
            self._prompt,
            self._write,
            self._score,
            self._decoding,
            self.batching,
        )

    @cached_property
    def batching(self) -> TokenBudget:
        """What its micro-batches may take, and what came of them."""
        return TokenBudget(self.batch_tokens, self._budget)

    def _budget(self) -> int:
        prompt = ModelInput((self._tokens.padding,) * self.max_input_tokens)
        beams, new = self.num_beams, self.max_new_tokens
        return MemoryProbe(prompt, self._write, self.device, self.window_size, beams, new).budget()

    @property
    def _backend(self) -> Backend:
        return backend_of(self.backend, "seq2seq")

    @cached_property
    def _model(self) -> Any:  # noqa: ANN401 -- its backend's own
        return self._backend.load(self.model, self.dtype, self.device)

    def _size(self, prompt: str) -> int:
        return len(self._tokens.encode(prompt))

    def _prompt(self, read: Read) -> ModelInput:
        choices = tuple(map(self._tokens.encode_target, read.choices))
        tokens = self._tokens.encode(self._prompts.render(read))
        return ModelInput(tokens, choices, written_schema(read.schema))

    def _write(self, prompts: Sequence[ModelInput]) -> list[Generation]:
        return self._backend.write(self._model, self._tokens, self._decoding, prompts)

    def _score(self, prompts: Sequence[ModelInput]) -> list[Generation]:
        return self._backend.score(self._model, self._tokens, prompts)
