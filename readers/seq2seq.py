"""Reader with encoder-decoder models: T5, BART, LED, Pegasus and others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from leporello.core.records import Read
from leporello.readers.backends.backend import Form
from leporello.readers.backends.pretrained import check_positions
from leporello.readers.batching.micro_batches import ModelInput
from leporello.readers.prompting.prompted_model import PromptedModel
from leporello.readers.prompting.template import passage_text
from leporello.text.typed.parse import written_schema

# T5's format for questions (Raffel et al. 2020, appendix D); its tokenizer reads a line break as a
# space. Summaries have neither question nor choices, so these lines are omitted.
PROMPT = "{instruction}\nquestion: {question}\n{choices}\ncontext: {context}"


@dataclass(frozen=True)
class Seq2Seq(PromptedModel):
    """Reads with an encoder-decoder model, by greedy or beam search, without sampling.

    Choices are scored by the mean log-probability of their tokens, including the end token as in
    training; the input is encoded once for all of them. LED's first token attends globally, as in
    the official SCROLLS code.

    Attributes:
        model: Path or hub id; the weights must be safetensors.
        max_input_tokens: Size of the input window: prompt and special tokens.
        on_overflow: Rule for passages that do not fit: `fit` omits the last ones, `truncate` cuts
            within a passage, `split` reads the parts one by one and joins the answers (with the
            mean of their scores), `slice` cuts between two tokens and keeps the last passage, for
            the combiner `Truncate`, `error` fails the input.
        no_repeat_ngram_size: Size of n-grams that may not be repeated; 0 allows repetition.
        repetition_penalty: Divisor of the scores of earlier tokens; 1 has no effect.
        backend: Library that runs the model: `transformers`, or a user's class.
        examples: JSON Lines file of worked examples, which precede the question in the same
            template; they are never cut.
    """

    _form: ClassVar[Form] = "seq2seq"

    # T5 was pretrained on this form. The question is in front, where it is never cut (decision 17).
    prompt: str = PROMPT

    def sliced(self, read: Read, behind: str) -> int:
        """Returns how many characters of the passages fit before a text; see `Fit`."""
        fits = self.on_overflow == "slice" and self._size(behind) <= self.max_input_tokens
        return sum(len(passage_text(passage)) for passage in read.passages) if fits else -1

    @property
    def trainer(self) -> str:
        """Name of the function that fine-tunes the model; see `FineTunes`."""
        return "leporello.readers.training.fine_tuning:seq2seq"

    def training_examples(
        self, read: Read, target: str
    ) -> list[tuple[ModelInput, tuple[int, ...]]]:
        """Returns the prompt of each part of an input, with the tokens to generate."""
        # As a target: some tokenizers (mBART) write answers with another language code.
        tokens = self._tokens.encode_target(target)
        prompts = self._model_inputs(read, self._window.parts(read))
        # Every part has the same target, although the answer may be in only one of them.
        return [(prompt, tokens) for prompt in prompts]

    def _check_positions(self) -> None:
        names = ("max_encoder_position_embeddings", "max_position_embeddings")
        check_positions(self.model, self.max_input_tokens, names)
        names = ("max_decoder_position_embeddings", "max_position_embeddings")
        check_positions(self.model, self.max_new_tokens, names, "max_new_tokens")

    def _prompt(self, read: Read) -> ModelInput:
        choices = tuple(map(self._tokens.encode_target, read.choices))
        return ModelInput(self._encode(self._render(read)), choices, written_schema(read.schema))
