"""Constrained decoding: at each step only tokens with which the text can still fit its schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leporello.core.environment.extras import require
from leporello.readers.backends.pretrained import Tokens

if TYPE_CHECKING:
    import torch

# JSON as models have seen it, without room for white space without end.
_SPACING: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


class FittingTokens:
    """A logits processor of transformers, by llguidance (Microsoft's, as in its guidance).

    A schema with keywords that llguidance does not know, and a tokenizer that it cannot take, are
    not held to: what is written is checked later in any case.

    Args:
        tokens: Tokenizer of the model.
        schemas: JSON Schema of each row; empty for any text.
        start: Number of leading tokens of a row that the model did not write.
        ends: Tokens that end a text.

    Raises:
        UserError: The extra `typed` is not installed.
    """

    def __init__(
        self, tokens: Tokens, schemas: Sequence[str], start: int, ends: frozenset[int]
    ) -> None:
        require("writing what fits a type", "llguidance")
        self._schemas, self._start, self._ends = schemas, start, ends
        self._tokens = tokens.tokenizer
        self._silent = {*tokens.tokenizer.all_special_ids} - ends
        self._known: dict[tuple[str, tuple[int, ...]], Any] = {}
        self._first: dict[str, Any] | None = None

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Returns the scores, minus infinity where the text could not fit any more."""
        import numpy as np
        import torch

        if self._first is None:
            self._first = self._matchers(scores.shape[-1])
        known: dict[tuple[str, tuple[int, ...]], Any] = {}
        allowed = np.ones(tuple(scores.shape), dtype=bool)
        for row, whole in enumerate(ids[:, self._start :].tolist()):
            key = self._schemas[row], tuple(whole)
            matcher = known[key] = known.get(key) or self._after(*key)
            if matcher is None:
                continue
            allowed[row, :] = False
            if matcher.is_stopped():
                allowed[row, [*self._ends]] = True
                continue
            bias = np.frombuffer(matcher.compute_logit_bias(), dtype=np.uint8)[: scores.shape[-1]]
            allowed[row, : len(bias)] = bias > 0
        self._known = known
        mask = torch.from_numpy(~allowed).to(scores.device)
        masked = scores.masked_fill(mask, -torch.inf)
        # A token that the model's own rules want, as the first of BART's, stands above the schema.
        return torch.where(masked.isneginf().all(-1, keepdim=True), scores, masked)

    def _matchers(self, size: int) -> dict[str, Any]:
        from llguidance import LLMatcher
        from llguidance.hf import from_tokenizer

        try:
            tokenizer = from_tokenizer(
                self._tokens, n_vocab=max(size, len(self._tokens)), eos_token=[*self._ends] or None
            )
        except Exception:  # whatever it cannot take
            return {}
        found = {}
        for schema in {*self._schemas} - {""}:
            grammar = LLMatcher.grammar_from_json_schema(json.loads(schema), overrides=_SPACING)
            matcher = LLMatcher(tokenizer, grammar)
            if not matcher.is_error():
                found[schema] = matcher
        return found

    def _after(self, schema: str, written: tuple[int, ...]) -> Any:  # noqa: ANN401 -- of llguidance
        """Returns the matcher that has seen what was written; None where nothing is held to."""
        assert self._first is not None
        if not written:
            return self._first.get(schema) and self._first[schema].deep_copy()
        before = self._known.get((schema, written[:-1]))
        if before is None or before.is_stopped() or written[-1] in self._silent:
            return before
        after = before.deep_copy()
        return after if after.consume_token(written[-1]) else None
