"""Encoder-decoder models: T5, BART, LED, Pegasus and their like."""

from __future__ import annotations

from dataclasses import dataclass

from leporello.core.records import Read
from leporello.readers.backends.pretrained import check_positions
from leporello.readers.batching.micro_batches import ModelInput
from leporello.readers.prompting.prompted_model import PromptedModel
from leporello.readers.prompting.template import passage_text
from leporello.text.typed.parse import written_schema

# T5's own form for questions (Raffel et al. 2020, appendix D); to its tokenizer a line break is a
# space. Summaries have neither question nor choices, and their lines fall away.
PROMPT = "{instruction}\nquestion: {question}\n{choices}\ncontext: {context}"


@dataclass(frozen=True)
class Seq2Seq(PromptedModel):
    """Reads with an encoder-decoder model, by greedy or beam search, never sampling.

    With choices, each is scored by the mean log-probability of its tokens, the end token included
    as in training; the input is encoded once for all of them. LED looks globally at the first
    token, as in the official SCROLLS code.

    Attributes:
        model: Path or hub id; the weights must be safetensors.
        max_input_tokens: Tokens of the window: prompt and special tokens.
        on_overflow: Rule for passages that do not fit: `fit` leaves out the last ones, `truncate`
            cuts in the middle of one, `split` reads the parts one by one and joins what it writes
            (scores by their mean), `slice` cuts between two tokens and keeps the last passage, as
            `Truncate` wants it, `error` fails the input.
        no_repeat_ngram_size: Size of the n-grams of which none comes twice; 0 is no rule.
        repetition_penalty: Divisor of the scores of tokens that came before; 1 is none.
        backend: Library that computes: `transformers`, or `ctranslate2`, which is made for CPUs and
            converts the model once. Both give the same answers; what it cannot do so is refused. It
            needs the extra of its name.
        examples: A JSON Lines file of worked examples that stand before what is asked, by the same
            template; they are never cut.
    """

    _form = "seq2seq"

    prompt: str = PROMPT

    def sliced(self, read: Read, behind: str) -> int:
        """Returns how many characters of the passages may stand before a text; see `Fit`."""
        fits = self.on_overflow == "slice" and self._size(behind) <= self.max_input_tokens
        return sum(len(passage_text(passage)) for passage in read.passages) if fits else -1

    @property
    def trainer(self) -> str:
        """What fine-tunes the model; see `FineTunes`."""
        return "leporello.readers.training.fine_tuning:seq2seq"

    def training_examples(
        self, read: Read, target: str
    ) -> list[tuple[ModelInput, tuple[int, ...]]]:
        """Returns the model's prompt for each part of an input, and what it should write."""
        tokens = self._tokens.encode_target(target)
        prompts = self._model_inputs(read, self._window.parts(read))
        return [(prompt, tokens) for prompt in prompts]

    def _check_positions(self) -> None:
        names = ("max_encoder_position_embeddings", "max_position_embeddings")
        check_positions(self.model, self.max_input_tokens, names)
        names = ("max_decoder_position_embeddings", "max_position_embeddings")
        check_positions(self.model, self.max_new_tokens, names, "max_new_tokens")

    def _prompt(self, read: Read) -> ModelInput:
        choices = tuple(map(self._tokens.encode_target, read.choices))
        return ModelInput(self._encode(self._render(read)), choices, written_schema(read.schema))
