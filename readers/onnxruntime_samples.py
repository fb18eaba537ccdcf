"""What an exported language model is compared with its original by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from readers.backends import Engine
from readers.batching import Prompt
from readers.decoding import Decoding
from readers.pretrained import Tokens

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["told_by"]

_LENGTHS = (120, 90)
_WRITING = Decoding(4, 4, 1, 1.0, 0, 1.0)


def told_by(engine: Engine) -> Callable[[PreTrainedModel, Tokens], list[float]]:
    """Returns what scores choices and writes, and tells the scores; prompts differ in length."""

    def told(model: PreTrainedModel, tokens: Tokens) -> list[float]:
        vocabulary = model.config.vocab_size

        def ids(count: int, step: int) -> tuple[int, ...]:
            return tuple(3 + i * step % (vocabulary - 3) for i in range(1, count + 1))

        asked = [ids(length, 7919) for length in _LENGTHS]
        choices = (ids(5, 101), ids(3, 977))
        scored = engine.score(model, tokens, [Prompt(each, choices) for each in asked])
        written = engine.write(model, tokens, _WRITING, [Prompt(each) for each in asked])
        return [score for reply in scored for score in reply.scores] + [r.score for r in written]

    return told
