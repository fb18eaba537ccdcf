"""Base of the readers that prompt a language model, local or on a server, and chats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from leporello.core.records import Read
from leporello.models.calibration import TakesCalibration
from leporello.readers.backends.pretrained import Tokens
from leporello.readers.prompting.few_shot import FewShot, draw
from leporello.readers.prompting.template import Template, refuse_pairs
from leporello.readers.prompting.window import Window


def messages(system: str, turns: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Returns a chat's messages before the last turn of the user."""
    pairs = [[("user", prompt), ("assistant", answer)] for prompt, answer in turns]
    contents = [("system", system)] * bool(system) + [turn for pair in pairs for turn in pair]
    return [{"role": role, "content": content} for role, content in contents]


class Chat:
    """Chat before the answer: system message, worked examples, and the user's turn."""

    def __init__(self, tokens: Tokens, system: str, turns: Sequence[tuple[str, str]]) -> None:
        self._tokens = tokens
        # Examples are turns that never change, so servers can reuse the prefix (decision 20).
        self._before = messages(system, turns)

    def text(self, prompt: str) -> str:
        """Returns the text of the chat up to the answer."""
        chat: str = self._apply(prompt, tokenize=False)
        return chat

    def encode(self, prompt: str) -> tuple[int, ...]:
        """Returns the chat's ids; control tokens in a document are read as plain text."""
        # A document may contain `<|im_end|>`, which would end the user's turn for the model.
        options = {"sanitize_control_tokens": True, "return_dict": False}
        return tuple(self._apply(prompt, tokenize=True, **options))

    def _apply(self, prompt: str, **options: bool) -> Any:  # noqa: ANN401 -- text or ids
        messages = [*self._before, {"role": "user", "content": prompt}]
        tokenizer = self._tokens.tokenizer
        return tokenizer.apply_chat_template(messages, add_generation_prompt=True, **options)


# The instructions are on the line of the question, so that they are omitted with it. The last line
# is for models without chat, which continue it.
PROMPT = """\
{instruction}

{context}

Answer in a few words, from the text above. Question: {question}
{choices}
Answer:"""


class PromptedReader(TakesCalibration):
    """Base of the readers that prompt a language model; they declare these parameters.

    Attributes:
        prompt: Template with `{question}`, `{context}`, `{choices}`, `{title}`, `{instruction}`;
            lines whose fields are all empty are omitted.
        separator: Text between passages.
        max_input_tokens: Size of the input window, for the complete prompt: with the system message
            and chat template, if any, and special tokens.
        on_overflow: Rule for passages that do not fit: `fit` omits the last ones, `truncate` cuts
            within a passage, `split` reads the parts one by one and joins the answers (for choices,
            takes the mean of scores, or without scores the most frequent choice), `error` fails the
            input, `slice` (only encoder-decoders) cuts between two tokens and keeps the last
            passage, for the combiner `Truncate`.
        examples: JSON Lines file of worked examples, which precede the question in the same
            template, or as earlier turns of a chat; they are never cut.
        shots: Number of examples to draw; all if there are fewer.
        seed: Seed for drawing examples.
        calibration: JSON file that `train --calibrate` wrote, from scores to probabilities.
    """

    prompt: str
    separator: str
    examples: Path | None
    shots: int
    seed: int  # only of the draw, not of a server's sampling
    calibration: Path | None = None

    @property
    def _chats(self) -> bool:
        """Whether the prompt is a turn of a chat, after the turns of the examples."""
        return False

    @property
    def _tokens(self) -> Any:  # noqa: ANN401 -- a tokenizer, or an estimate of one
        raise NotImplementedError

    @property
    def _window(self) -> Window:
        raise NotImplementedError

    def check_files(self, data: str) -> None:
        """Reads the examples and the calibration; see `ChecksFiles`."""
        super().check_files(data)
        # Before any work: examples from the test data would reveal their answers (decision 20).
        self._prompts.check_data(data)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text, without special tokens."""
        counts: list[int] = self._tokens.count(texts)
        return counts

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit the input window when rendered."""
        return self._window.leading(read)

    def _parts(self, inputs: Sequence[Read]) -> list[list[Read]]:
        """Returns the parts of each input to read; raises `UserError` for a forbidden example."""
        window = self._window
        refuse_pairs(inputs)
        self._prompts.check_documents(inputs)
        return [window.parts(read) for read in inputs]

    @cached_property
    def _template(self) -> Template:
        return Template(self.prompt, self.separator)

    @cached_property
    def _prompts(self) -> FewShot:
        return FewShot(self._template, draw(self.examples, self.shots, self.seed))

    @property
    def _render(self) -> Callable[[Read], str]:
        """Function that renders the prompt, or in a chat the last turn of the user."""
        # Not a method, since the window would then keep the reader in memory.
        return (self._template if self._chats else self._prompts).render
