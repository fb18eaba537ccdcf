"""Generation of text: greedy or beam search, optionally with a schema, and its probability."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leporello.core.environment.extras import require
from leporello.readers.backends.pretrained import Tokens, quiet
from leporello.readers.batching.micro_batches import Generation

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


# JSON with common spacing; flexible white space would let a model generate it endlessly.
_SPACING: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


@dataclass(frozen=True)
class Decoding:
    """Settings of the generation, as `CausalLM` and `Seq2Seq` describe them."""

    max_new_tokens: int
    min_new_tokens: int
    num_beams: int
    length_penalty: float
    no_repeat_ngram_size: int
    repetition_penalty: float
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Contradictory: no text could have both lengths.
        if self.min_new_tokens > self.max_new_tokens:
            raise ValueError(
                f"min_new_tokens ({self.min_new_tokens}) exceeds"
                f" max_new_tokens ({self.max_new_tokens})"
            )
        if self.repetition_penalty <= 0:
            raise ValueError(f"repetition_penalty must be above 0, got {self.repetition_penalty}")
        if "" in self.stop:
            raise ValueError("stop contains an empty string, which would end every text at once")

    def write(
        self,
        model: PreTrainedModel,
        tokens: Tokens,
        start: int,
        inputs: Mapping[str, Any],
        schemas: Sequence[str] = (),
    ) -> list[Generation]:
        """Returns the texts that the model generates for a batch.

        `inputs` are those of `generate`; `start` is the number of leading tokens of each returned
        sequence that are part of the input. `schemas` has the JSON Schema of each answer, empty for
        any text.
        """
        # Only the model's ids: its other defaults must not change answers (decision 18).
        ends = frozenset(end_tokens(model.generation_config))
        rows = [schema for schema in schemas for _ in range(self.num_beams)]
        fitting: list[Any] = [FittingTokens(tokens, rows, start, ends)] if any(rows) else []

        greedy = self.num_beams == 1
        chosen = _ChosenScores()
        with quiet():
            result = model.generate(  # type: ignore[operator]  # typed as any module attribute
                **inputs,
                do_sample=False,
                num_beams=self.num_beams,
                max_new_tokens=self.max_new_tokens,
                min_new_tokens=self.min_new_tokens or None,
                length_penalty=self.length_penalty,
                no_repeat_ngram_size=self.no_repeat_ngram_size,
                repetition_penalty=self.repetition_penalty,
                pad_token_id=tokens.padding,
                return_dict_in_generate=True,
                # The scores of the complete vocabulary take much memory, and only beams need them.
                output_scores=not greedy,
                logits_processor=[*fitting, *([chosen] if greedy else [])],
                stopping_criteria=[self._stopper(tokens, start)] if self.stop else [],
            )
        texts = [self.trimmed(row, tokens, ends) for row in result.sequences[:, start:].tolist()]
        # transformers returns scores of sequences only for beams.
        if greedy:
            scores = chosen.means([len(ids) for ids in texts])
        else:
            scores = result.sequences_scores.float().tolist()
        return [
            Generation(self.cut_off(tokens.decode(ids)), score, output_tokens=len(ids))
            for ids, score in zip(texts, scores, strict=True)
        ]

    def _stopper(self, tokens: Tokens, start: int) -> Callable[..., torch.Tensor]:
        import torch

        def stopped(ids: torch.Tensor, _: object, **__: object) -> torch.Tensor:
            rows = ids[:, start:].tolist()
            return torch.tensor([self.stops(row, tokens) for row in rows], device=ids.device)

        return stopped

    def stops(self, ids: Sequence[int], tokens: Tokens) -> bool:
        """Returns whether the generated tokens contain a stop string."""
        # Decoded as a whole, since a stop string can begin and end within tokens.
        text = tokens.decode(ids).lstrip()
        return any(stop in text for stop in self.stop)

    def trimmed(self, ids: list[int], tokens: Tokens, ends: frozenset[int]) -> list[int]:
        """Returns the tokens up to and including the end token or the stop string."""
        length = next((n for n, token in enumerate(ids, 1) if token in ends), len(ids))
        if self.stops(ids[:length], tokens):
            # Step by step backwards: all backends then count the same tokens (decision 18).
            while self.stops(ids[: length - 1], tokens):
                length -= 1
        return ids[:length]

    def cut_off(self, text: str) -> str:
        """Returns the text before the first stop string, without white space at its end."""
        # Many models begin with a line break, which as a stop string would leave an empty answer.
        text = text.lstrip() if self.stop else text
        for stop in self.stop:
            text = text.partition(stop)[0]
        return text.rstrip()


class _ChosenScores:
    """Stores only the log-probability of each greedily chosen token."""

    def __init__(self) -> None:
        self.steps: list[torch.Tensor] = []

    def __call__(self, _: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        # The largest is the chosen one in greedy search; the vocabulary need not be stored.
        self.steps.append(scores.float().log_softmax(-1).amax(-1))
        return scores

    def means(self, lengths: Sequence[int]) -> list[float]:
        """Returns the mean over the first `lengths` tokens of each row."""
        import torch

        rows = torch.stack(self.steps, dim=1).tolist()
        # Rows that end early continue with padding, which must not count.
        return [sum(row[:n]) / n if n else 0.0 for row, n in zip(rows, lengths, strict=True)]


def end_tokens(config: Any) -> tuple[int, ...]:  # noqa: ANN401 -- any class of transformers
    """Returns the ids of a configuration that end a text: one, several or none."""
    eos = config.eos_token_id
    return tuple(eos) if isinstance(eos, list) else () if eos is None else (eos,)


class FittingTokens:
    """Logits processor of transformers that follows schemas, with Microsoft's llguidance.

    Schemas or tokenizers that llguidance does not support are ignored: all answers are checked
    later. A row has a schema, empty for any text, and `start` leading tokens of the input; one of
    `ends` ends its text.
    """

    def __init__(
        self, tokens: Tokens, schemas: Sequence[str], start: int, ends: frozenset[int]
    ) -> None:
        require("answers of a type", "llguidance")
        self._schemas, self._start, self._ends = schemas, start, ends
        self._tokens = tokens.tokenizer
        self._ignored = {*tokens.tokenizer.all_special_ids} - ends
        self._matchers: dict[str, Any] | None = None

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Returns the scores, minus infinity for tokens with which the text would not fit."""
        import numpy as np
        import torch

        if self._matchers is None:
            self._matchers = self._loaded(scores.shape[-1])
        allowed = np.ones(tuple(scores.shape), dtype=bool)
        for row, generated in enumerate(ids[:, self._start :].tolist()):
            matcher = self._matchers.get(self._schemas[row])
            # From the first token on, since beams change places; this is fast.
            if not matcher or not matcher.reset():
                continue
            written = [token for token in generated if token not in self._ignored]
            if matcher.try_consume_tokens(written) < len(written) and not matcher.is_stopped():
                continue  # any text is allowed
            allowed[row, :] = False
            if matcher.is_stopped():
                allowed[row, [*self._ends]] = True
                continue
            bias = np.frombuffer(matcher.compute_logit_bias(), dtype=np.uint8)[: scores.shape[-1]]
            allowed[row, : len(bias)] = bias > 0
        mask = torch.from_numpy(~allowed).to(scores.device)
        masked = scores.masked_fill(mask, -torch.inf)
        # A token that the model enforces, such as BART's first one, takes precedence.
        return torch.where(masked.isneginf().all(-1, keepdim=True), scores, masked)

    def _loaded(self, size: int) -> dict[str, Any]:
        """Returns the matchers of schemas; `size` is the number of tokens with scores."""
        from llguidance import LLMatcher
        from llguidance.hf import from_tokenizer

        try:
            tokenizer = from_tokenizer(
                self._tokens, n_vocab=max(size, len(self._tokens)), eos_token=[*self._ends] or None
            )
        except Exception:  # unsupported tokenizers raise any exception
            return {}
        matchers = {}
        for schema in {*self._schemas} - {""}:
            grammar = LLMatcher.grammar_from_json_schema(json.loads(schema), overrides=_SPACING)
            matcher = LLMatcher(tokenizer, grammar)
            if not matcher.is_error():
                matchers[schema] = matcher
        return matchers
