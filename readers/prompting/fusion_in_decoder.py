"""Reader with encoder-decoder models that encodes passages apart and fuses them in the decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from leporello.core.errors import UserError
from leporello.core.protocols import Count, Positive, Share
from leporello.core.records import Read
from leporello.readers.backends.pretrained import read_config
from leporello.readers.batching.micro_batches import ModelInput, Segment
from leporello.readers.prompting.fused import Fused, FusedChunks, FusedPassages
from leporello.readers.seq2seq import Seq2Seq
from leporello.text.typed.parse import written_schema


@dataclass(frozen=True)
class FusionInDecoder(Seq2Seq):
    """Encodes passages apart, each with the question; the decoder attends to all their states.

    So a model with a short input window reads long inputs, at a cost that grows linearly. With
    `on_overflow: slice` it is SLED (Ivgi et al. 2022): the passages are one list of tokens, which
    is read as overlapping chunks after the text before `{context}`, and literal passages before a
    chunk belong to this text. With the other rules it is Fusion-in-Decoder (Izacard and Grave
    2021): every passage has the prompt around it, and the rule is for each passage.

    Attributes:
        max_input_tokens: Size of the encoder's input window: question and one passage or chunk.
        max_fused_tokens: Maximum number of tokens that the decoder attends to; the last ones are
            omitted.
        on_overflow: Rule for a passage that does not fit with the prompt: `fit` and `truncate` cut
            it, `split` encodes its parts apart, `error` fails the input; `slice` is above.
        chunk_tokens: Number of tokens per chunk (`slice`).
        window_fraction: Share of a chunk whose states are used; the tokens at its ends are context
            only (`slice`).
        prefix_tokens: Number of tokens that the text before the chunks is padded to, as SLED's
            authors do; longer text is not cut (`slice`).
    """

    max_fused_tokens: Positive = 16384
    chunk_tokens: Positive = 256
    window_fraction: Share = 0.5
    prefix_tokens: Count = 0

    _form = "fusion"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_fused_tokens < self.max_input_tokens:
            raise ValueError(
                f"max_fused_tokens ({self.max_fused_tokens}) is below max_input_tokens"
                f" ({self.max_input_tokens}), so not even one passage would fit"
            )
        if not self.window_fraction:
            raise ValueError("window_fraction must be above 0, or no state of a chunk is used")

    def sliced(self, read: Read, behind: str) -> int:
        """Returns how many characters of the passages fit before a text; see `Fit`."""
        # A text after the document would be the end of the last chunk, not of each prefix.
        return -1 if behind else super().sliced(read, behind)

    @cached_property
    def _window(self) -> Fused:
        window = super()._window
        common = (window.render, window.size, window.limit, window.on_overflow, window.slice)
        if self.on_overflow != "slice":
            return FusedPassages(
                *common, encode=self._encode, fused=self.max_fused_tokens, alone=window
            )
        return FusedChunks(
            *common,
            encode=self._encode,
            fused=self.max_fused_tokens,
            separator=self.separator,
            chunk=self.chunk_tokens,
            margin=int(self.chunk_tokens * (1 - self.window_fraction) / 2),
            padded=self.prefix_tokens,
        )

    def _check_positions(self) -> None:
        if not read_config(self.model).is_encoder_decoder:
            raise UserError(
                f"model {self.model!r} is not an encoder-decoder: without cross-attention, its"
                " decoder cannot fuse passages; set model to a T5 or BART"
            )
        super()._check_positions()

    def _model_inputs(self, read: Read, parts: Sequence[Read]) -> list[ModelInput]:  # noqa: ARG002 -- the segments show which parts are read
        choices = tuple(map(self._tokens.encode_target, read.choices))
        return [_fused(self._window.segments(read), choices, written_schema(read.schema))]

    def _longest(self, token: int) -> ModelInput:
        tokens = (token,) * self.max_input_tokens
        count = self.max_fused_tokens // self.max_input_tokens
        return _fused((Segment(tokens, 0, len(tokens)),) * count)


def _fused(
    segments: tuple[Segment, ...], choices: tuple[tuple[int, ...], ...] = (), schema: str = ""
) -> ModelInput:
    visible = chain.from_iterable(
        segment.tokens[segment.start : segment.end] for segment in segments
    )
    return ModelInput(tuple(visible), choices, schema, segments)
