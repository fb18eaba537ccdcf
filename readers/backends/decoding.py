"""Writing: greedy or beam search, never sampling, with the probability of what was written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leporello.readers.backends.fitting_tokens import FittingTokens
from leporello.readers.backends.pretrained import Tokens, quiet
from leporello.readers.batching.micro_batches import Generation

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Decoding:
    """How a model writes; the same for every model that is given the same.

    Attributes:
        max_new_tokens: Number of tokens that are written at most.
        min_new_tokens: Number of tokens that are written at least.
        num_beams: Number of beams; 1 is greedy.
        length_penalty: Exponent of the length: beams are ranked by log-probability / length **
            length_penalty.
        no_repeat_ngram_size: Size of the n-grams of which none comes twice; 0 is no rule.
        repetition_penalty: Divisor of the scores of tokens that came before; 1 is none.
        stop: Strings at the first of which writing ends; it is cut off, and white space that the
            answer begins with does not count.
        early_stopping: Whether beam search ends once it has num_beams texts, even if a better one
            could come.
    """

    max_new_tokens: int
    min_new_tokens: int
    num_beams: int
    length_penalty: float
    no_repeat_ngram_size: int
    repetition_penalty: float
    stop: tuple[str, ...] = ()
    early_stopping: bool = False

    def __post_init__(self) -> None:
        if self.min_new_tokens > self.max_new_tokens:
            raise ValueError(
                f"min_new_tokens ({self.min_new_tokens}) exceeds"
                f" max_new_tokens ({self.max_new_tokens})"
            )
        if self.repetition_penalty <= 0:
            raise ValueError(f"repetition_penalty must be above 0, got {self.repetition_penalty}")
        if "" in self.stop:
            raise ValueError("stop has an empty string, which would end every text at once")

    def write(
        self,
        model: PreTrainedModel,
        tokens: Tokens,
        start: int,
        inputs: Mapping[str, Any],
        schemas: Sequence[str] = (),
    ) -> list[Generation]:
        """Returns what the model writes for a batch.

        Args:
            model: A transformers model.
            tokens: Tokenizer of the model.
            start: Number of leading tokens of each returned sequence that were given to the model.
            inputs: Inputs of `generate`: ids and mask, or encoder outputs and mask.
            schemas: JSON Schema of what is written to each input; empty for any text.

        Raises:
            UserError: There is a schema, and the extra `typed` is not installed.
        """
        ends = frozenset(end_tokens(model.generation_config))
        rows = [schema for schema in schemas for _ in range(self.num_beams)]
        fitting: list[Any] = [FittingTokens(tokens, rows, start, ends)] if any(rows) else []

        greedy = self.num_beams == 1
        chosen = _Chosen()
        with quiet():
            result = model.generate(  # type: ignore[operator]  # typed as any module attribute
                **inputs,
                do_sample=False,
                num_beams=self.num_beams,
                max_new_tokens=self.max_new_tokens,
                min_new_tokens=self.min_new_tokens or None,
                length_penalty=self.length_penalty,
                early_stopping=self.early_stopping,
                no_repeat_ngram_size=self.no_repeat_ngram_size,
                repetition_penalty=self.repetition_penalty,
                pad_token_id=tokens.padding,
                return_dict_in_generate=True,
                # Every step's scores over the whole vocabulary are kept only where beams need it.
                output_scores=not greedy,
                logits_processor=[*fitting, *([chosen] if greedy else [])],
                stopping_criteria=[self._stopper(tokens, start)] if self.stop else [],
            )
        written = [self.trimmed(row, tokens, ends) for row in result.sequences[:, start:].tolist()]
        if greedy:
            scores = chosen.means([len(ids) for ids in written])
        else:
            scores = result.sequences_scores.float().tolist()
        return [
            Generation(self.cut_off(tokens.decode(ids)), score, output_tokens=len(ids))
            for ids, score in zip(written, scores, strict=True)
        ]

    def _stopper(self, tokens: Tokens, start: int) -> Callable[..., torch.Tensor]:
        import torch

        def stopped(ids: torch.Tensor, _: object, **__: object) -> torch.Tensor:
            rows = ids[:, start:].tolist()
            return torch.tensor([self.stops(row, tokens) for row in rows], device=ids.device)

        return stopped

    def stops(self, ids: Sequence[int], tokens: Tokens) -> bool:
        """Says whether a stop string stands in what was written."""
        text = tokens.decode(ids).lstrip()
        return any(stop in text for stop in self.stop)

    def trimmed(self, ids: list[int], tokens: Tokens, ends: frozenset[int]) -> list[int]:
        """Returns the tokens up to the end token or the stop string, it included."""
        length = next((n for n, token in enumerate(ids, 1) if token in ends), len(ids))
        if self.stops(ids[:length], tokens):
            while self.stops(ids[: length - 1], tokens):
                length -= 1
        return ids[:length]

    def cut_off(self, text: str) -> str:
        """Returns what stands before the first stop string, without white space at its end."""
        text = text.lstrip() if self.stop else text
        for stop in self.stop:
            text = text.partition(stop)[0]
        return text.rstrip()


class _Chosen:
    """Keeps the log-probability of each greedily chosen token, and no step's whole scores."""

    def __init__(self) -> None:
        self.steps: list[torch.Tensor] = []

    def __call__(self, _: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.steps.append(scores.float().log_softmax(-1).amax(-1))
        return scores

    def means(self, lengths: Sequence[int]) -> list[float]:
        """Returns the mean over each row's first tokens, as many as `lengths` says."""
        import torch

        rows = torch.stack(self.steps, dim=1).tolist()
        return [sum(row[:n]) / n if n else 0.0 for row, n in zip(rows, lengths, strict=True)]


def end_tokens(config: Any) -> tuple[int, ...]:  # noqa: ANN401 -- any of transformers'
    """Returns the ids that end a text by a configuration: it has one, several or none."""
    eos = config.eos_token_id
    return tuple(eos) if isinstance(eos, list) else () if eos is None else (eos,)
