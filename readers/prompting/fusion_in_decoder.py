"""Reader with encoder-decoder models that encodes passages apart and fuses them in the decoder.

Fusion-in-Decoder (Izacard and Grave 2021) encodes each passage with the question, SLED (Ivgi et al.
2022) overlapping chunks of a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise, takewhile

from leporello.core.errors import UserError
from leporello.core.protocols import Count, Positive, Share
from leporello.core.records import Chunk, Read
from leporello.readers.backends.pretrained import read_config
from leporello.readers.batching.micro_batches import MASKED, ModelInput, Segment
from leporello.readers.language_models import Seq2Seq
from leporello.readers.prompting.template import encodable, passage_text
from leporello.readers.prompting.window import Window, first_characters
from leporello.text.typed.parse import written_schema


@dataclass(frozen=True, kw_only=True)
class FusedPassages(Window):
    """Windows of passages that are encoded apart, each with the prompt around it."""

    encode: Callable[[str], tuple[int, ...]]  # returns the tokens of a text, with special tokens
    fused: int  # maximum number of tokens that the decoder attends to
    alone: Window  # window of one passage

    def leading(self, read: Read) -> int:
        """Returns how many leading passages fit."""
        tokens = 0
        for count, alone in enumerate(_apart(read)):
            if self.on_overflow != "split" and not self.alone.leading(alone):
                return count
            tokens += sum(map(self._size, self.alone.parts(alone)))
            if tokens > self.fused:
                return count
        return len(read.passages)

    def parts(self, read: Read) -> list[Read]:
        """Returns the inputs of the encoder, one or several per passage; may raise ValueError."""
        if not read.passages:
            return self.alone.parts(read)
        parts: list[Read] = []
        tokens = 0
        for part in chain.from_iterable(map(self.alone.parts, _apart(read))):
            tokens += self._size(part)
            if tokens > self.fused:
                break
            parts.append(part)
        if tokens > self.fused and self.on_overflow == "error":
            raise ValueError(
                f"only {len(parts)} of the {len(read.passages)} passages fit in"
                f" max_fused_tokens={self.fused}, and on_overflow is 'error'"
            )
        return parts

    def segments(self, read: Read) -> tuple[Segment, ...]:
        """Returns a segment per passage; see `parts`."""
        rows = [self.encode(self.render(part)) for part in self.parts(read)]
        return tuple(Segment(row, 0, len(row)) for row in rows)

    def _size(self, part: Read) -> int:
        return self.size(self.render(part))


@dataclass(frozen=True, kw_only=True)
class FusedChunks(Window):
    """Windows of overlapping chunks of the passages' tokens, each after the tokens of the prompt.

    The prompt, and literal passages before the first chunk of a document, are the prefix. It is
    encoded alone too, and the decoder sees the states of that.
    """

    encode: Callable[[str], tuple[int, ...]]  # returns the tokens of a text, with special tokens
    fused: int  # maximum number of tokens that the decoder attends to
    separator: str  # text between passages
    chunk: int  # number of tokens per chunk
    margin: int  # number of states that are dropped at either end of a chunk
    padded: int  # number of tokens that a shorter prefix is padded to

    def leading(self, read: Read) -> int:
        """Returns how many leading passages fit."""
        [part] = self.parts(read)
        shown = zip(read.passages, part.passages, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], shown))

    def parts(self, read: Read) -> list[Read]:
        """Returns the input with the passages that are encoded; may raise ValueError."""
        prefix, text, fixed = self._prefixed(read)
        _, end = self._tokens_after(prefix, text)
        if end >= len(text.rstrip()):
            return [read]
        is_chunk = [not isinstance(read.passages[i], str) for i in (fixed, -1)]
        if is_chunk == [True, False] and read.passages[-1]:
            raise ValueError(
                "max_fused_tokens would cut the text after the document, which is never cut: use a"
                " combiner that shortens the document"
            )
        shown = first_characters(read.passages[fixed:], end, len(self.separator))
        return [replace(read, passages=(*read.passages[:fixed], *shown))]

    def segments(self, read: Read) -> tuple[Segment, ...]:
        """Returns the prefix, and each chunk after it."""
        prefix, text, _ = self._prefixed(read)
        ids, _ = self._tokens_after(prefix, text)
        return tuple(self.overlapping(self.encode(prefix) if prefix else (), ids))

    def overlapping(self, head: tuple[int, ...], ids: tuple[int, ...]) -> Iterator[Segment]:
        """Yields the prefix, and each chunk after it; every state is seen once."""
        if head:
            padding = (MASKED,) * (self.padded - len(head))
            yield Segment((*head, *padding), 0, len(head))
            head = (*head, *padding)
        last = max(len(ids) - self.chunk, 0)
        starts = [*range(0, last, self.chunk - 2 * self.margin), last]
        # The last chunk is complete too, so it may overlap the one before by more.
        ends = [0, *(start + self.chunk - self.margin for start in starts[:-1]), len(ids)]
        for start, (begin, end) in zip(starts, pairwise(ends), strict=True):
            chunk = ids[start : start + self.chunk]
            shift = len(head) - start
            yield Segment((*head, *chunk), shift + begin, shift + end)

    def _prefixed(self, read: Read) -> tuple[str, str, int]:
        """Returns the prefix, the text after it, and how many passages are in the prefix."""
        is_chunk = [isinstance(passage, Chunk) for passage in read.passages]
        fixed = is_chunk.index(True) if True in is_chunk else 0
        texts = filter(None, map(passage_text, read.passages[fixed:]))
        prompt, text = self.render(read), encodable(self.separator.join(texts))
        if not prompt.endswith(text):
            raise ValueError("on_overflow 'slice' needs a prompt that ends with {context}")
        return prompt.removesuffix(text), text, fixed

    def _tokens_after(self, prefix: str, text: str) -> tuple[tuple[int, ...], int]:
        """Returns the tokens of the text after the prefix, and how many characters they are."""
        size = len(self.encode(prefix)) if prefix else 0
        padded = max(size, self.padded) if prefix else 0
        if padded + self.chunk > self.limit:
            raise ValueError(
                f"instruction and question have {padded} tokens and a chunk chunk_tokens="
                f"{self.chunk}, which exceeds max_input_tokens={self.limit}: raise"
                " max_input_tokens, or lower chunk_tokens"
            )
        assert self.slice
        ids, end = self.slice(text, prefix, self.fused - padded + size)
        return ids[: len(ids) - size], end


def _apart(read: Read) -> Iterator[Read]:
    return (replace(read, passages=(passage,)) for passage in read.passages)


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
    def _window(self) -> FusedPassages | FusedChunks:
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

    def _largest(self) -> ModelInput:
        tokens = (self.tokens.padding,) * self.max_input_tokens
        count = self.max_fused_tokens // self.max_input_tokens
        return _fused((Segment(tokens, 0, len(tokens)),) * count)


def _fused(
    segments: tuple[Segment, ...], choices: tuple[tuple[int, ...], ...] = (), schema: str = ""
) -> ModelInput:
    visible = chain.from_iterable(
        segment.tokens[segment.start : segment.end] for segment in segments
    )
    return ModelInput(tuple(visible), choices, schema, segments)
