"""From inputs to outputs: what every reader with a language model does around the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from leporello.core.records import Chunk, Output, Read
from leporello.readers.backends.decoding import Decoding
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import TokenBudget
from leporello.readers.prompting.reasoning import split_reasoning
from leporello.readers.prompting.template import passage_text
from leporello.readers.prompting.window import Window


@dataclass(frozen=True)
class PromptedModel:
    """A model with all that its reader knows: how to prompt it, what fits, how it answers.

    Attributes:
        window: Window that renders, measures and cuts.
        as_given: A function that returns what the model sees of a prompt: itself, or a chat around
            it.
        prompt: A function that returns the tokens of an input that fits, and of its choices.
        write: A function that answers a batch of prompts in the model's own words.
        score: A function that answers a batch of prompts with a score for each of their choices.
        decoding: Settings of the writing.
        batching: Budget of a micro-batch; None for a model that packs prompts itself, and is given
            all of them.
    """

    window: Window
    as_given: Callable[[str], str]
    prompt: Callable[[Read], ModelInput]
    write: Callable[[Sequence[ModelInput]], list[Generation]]
    score: Callable[[Sequence[ModelInput]], list[Generation]]
    decoding: Decoding
    batching: TokenBudget | None

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order; equal prompts are read once."""
        refuse_pairs(inputs)
        parts = [self.window.parts(read) for read in inputs]
        prompts = [*map(self.prompts, inputs, parts)]
        replies = self._replies(dict.fromkeys(chain.from_iterable(prompts)))
        return [
            _output(read, seen, asked, [replies[prompt] for prompt in asked])
            for read, seen, asked in zip(inputs, parts, prompts, strict=True)
        ]

    def render(self, read: Read) -> str:
        """Returns the text that the model is given; the parts of a split input one by one."""
        prompts = map(self.window.render, self.window.parts(read))
        return "\n\n".join(map(self.as_given, prompts))

    def prompts(self, read: Read, parts: Sequence[Read]) -> list[ModelInput]:
        """Returns the tokens of each part of an input."""
        if self.window.on_overflow == "slice" and parts != [read]:
            return [ModelInput(self.window.sliced(read)[0])]
        return [self.prompt(part) for part in parts]

    def _replies(self, prompts: dict[ModelInput, None]) -> dict[ModelInput, Generation]:
        if self.batching:
            rows, new_tokens = self.decoding.num_beams, self.decoding.max_new_tokens
            return self.batching.read(prompts, rows, new_tokens, self._answer)
        replies: dict[ModelInput, Generation] = {}
        for scored in (True, False):
            if alike := [prompt for prompt in prompts if bool(prompt.choices) == scored]:
                replies |= zip(alike, self._answer(alike), strict=True)
        return replies

    def _answer(self, alike: Sequence[ModelInput]) -> list[Generation]:
        """Returns what the model says to prompts that all have choices, or none of them."""
        return self.score(alike) if alike[0].choices else self.write(alike)


def refuse_pairs(inputs: Sequence[Read]) -> None:
    """Raises ValueError for a pair of texts, which takes a classifier of pairs."""
    if any(read.pair for read in inputs):
        raise ValueError("this reader reads passages; a pair of texts takes a pair classifier")


def _output(
    read: Read, parts: Sequence[Read], prompts: Sequence[ModelInput], replies: Sequence[Generation]
) -> Output:
    """Joins the replies to the parts of an input: texts line by line, scores by their mean."""
    seen = [passage for part in parts for passage in part.passages]
    length = sum(len(passage_text(passage)) for passage in read.passages)
    scores = tuple(map(fmean, zip(*(reply.scores for reply in replies), strict=True)))
    best = max(scores, default=fmean(reply.score for reply in replies))
    thoughts, texts = zip(*(split_reasoning(reply.text) for reply in replies), strict=True)
    written = "\n".join(filter(None, texts))
    return Output(
        text=read.choices[scores.index(best)] if scores else written,
        score=best,
        scores=scores,
        read=tuple(passage.span for passage in seen if isinstance(passage, Chunk)),
        cut=length - sum(len(passage_text(passage)) for passage in seen),
        input_tokens=sum(len(prompt.tokens) for prompt in prompts),
        output_tokens=sum(reply.output_tokens for reply in replies),
        reasoning="\n".join(filter(None, thoughts)) or None,
    )
