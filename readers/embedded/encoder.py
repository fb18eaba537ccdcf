"""Encoder with heads that runs on onnxruntime, from tokens to scores."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from leporello.core.environment.platform import cores
from leporello.core.errors import UserError
from leporello.models.weights import Arrays, ModelFolder, unpack
from leporello.readers.prompting.template import encodable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_WEIGHTS = "weights.safetensors"
_GRAPH, _INT8_GRAPH = "graph.onnx", "graph.int8.onnx"
# Units that add products of 8 bits in 32 bits; without them, onnxruntime's sums overflow on x86.
_INT8_UNITS = frozenset({"avx512_vnni", "avx_vnni"})
_SPECIAL = 3  # special tokens of a pair
_NOT_TRANSPOSED = frozenset({"words", "positions", "types.weight"})


@dataclass(frozen=True)
class TokenizedText:
    """A tokenized text."""

    ids: list[int]
    offsets: list[tuple[int, int]]

    def between(self, start: int, end: int) -> range:
        """Returns the tokens between two characters; none if `end` is not after `start`."""
        first = bisect_right(self.offsets, start, key=lambda offset: offset[1])
        return range(first, bisect_left(self.offsets, end, key=lambda offset: offset[0]))


@dataclass(frozen=True)
class TextPair:
    """A question and a text that may answer it, which the encoder reads together."""

    question: Sequence[int]
    text: Sequence[int]

    def __len__(self) -> int:
        return len(self.question) + len(self.text) + _SPECIAL

    @property
    def first(self) -> int:
        """Position of the text's first token in the pair."""
        return len(self.question) + 2


class Encoder:
    """An encoder of the package.

    Each text is computed alone, so its scores do not depend on other texts, and nothing is padded.
    `difference` is a folder of other heads, stored as the difference to this encoder's weights.
    `OMP_NUM_THREADS`, which a run sets, or the number of processors is the number of texts that are
    computed at the same time. The precision `auto` multiplies in 8 bits if the
    processor has units for this and the folder has a graph for it; `float32` never does. Raises
    UserError if a file is missing or damaged, or the difference is from other weights.
    """

    def __init__(
        self,
        path: Path,
        difference: Path | None = None,
        precision: Literal["auto", "float32"] = "auto",
    ) -> None:
        folder = ModelFolder(path)
        top = ModelFolder(difference or path)
        self.config = top.config()
        content, graph = folder.checked(_WEIGHTS), _GRAPH
        if difference is not None:
            if self.config.get("base") not in (None, folder.config()["sha256"][_WEIGHTS]):
                raise UserError(
                    f"{difference} is a difference from other weights than {path}; train it again"
                )
            weights = unpack(top.checked(_WEIGHTS), unpack(content))
        elif precision == "auto" and _INT8_GRAPH in self.config["sha256"] and has_int8_units():
            graph, weights = _INT8_GRAPH, unpack(content, int8="layer.")
        else:
            weights = unpack(content)
        self.longest: int = self.config["longest"]
        self._beginning: int = self.config["cls"]
        self.separator: int = self.config["sep"]
        self._threads = int(os.environ.get("OMP_NUM_THREADS", "0")) or cores()
        self._tokenizer: Any = _tokenizer(folder.checked("tokenizer.json"))
        self._session, self._weights = _session(top.checked(graph), weights)
        self._heads = [output.name for output in self._session.get_outputs()]

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Returns the tokens of texts, with their offsets."""
        # The tokenizer needs valid UTF-8, but broken files have lone surrogates.
        valid = [encodable(text) for text in texts]
        encodings = self._tokenizer.encode_batch(valid, add_special_tokens=False)
        return [TokenizedText(encoding.ids, encoding.offsets) for encoding in encodings]

    def scores(self, windows: Sequence[TextPair]) -> list[dict[str, NDArray[np.float32]]]:
        """Returns the output of each head for each pair.

        A head for tokens returns a row per token, including special ones; a head for pairs returns
        one row.
        """
        length = max(map(len, windows), default=0)
        if length > self.longest:
            raise ValueError(f"a pair has {length} tokens; the encoder reads {self.longest}")
        if min(self._threads, len(windows)) < 2:  # noqa: PLR2004 -- threads that share the texts
            return [*map(self._scores, windows)]
        # Texts in parallel, since threads within a text wait for each other at every operator.
        with ThreadPoolExecutor(min(self._threads, len(windows))) as pool:
            return [*pool.map(self._scores, windows)]

    def _scores(self, pair: TextPair) -> dict[str, NDArray[np.float32]]:
        sep = self.separator
        ids = np.array([[self._beginning, *pair.question, sep, *pair.text, sep]], np.int32)
        types = np.zeros_like(ids)
        types[:, pair.first :] = 1
        inputs = {"ids": ids, "types": types, "mask": np.ones_like(ids)}
        outputs = self._session.run(self._heads, inputs)
        return {name: output[0] for name, output in zip(self._heads, outputs, strict=True)}


def _tokenizer(content: bytes) -> Any:  # noqa: ANN401 -- tokenizers has no types
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(content.decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # `[SEP]` in a text is text
    return tokenizer


def has_int8_units() -> bool:
    """Returns whether the processor is known to multiply in 8 bits fast and without overflow."""
    try:
        words = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split()
    except OSError:  # not Linux
        return False
    return not _INT8_UNITS.isdisjoint(words)


def _session(graph: bytes, weights: Arrays) -> tuple[InferenceSession, list[Any]]:
    """Returns a session and its weights, which must stay in memory as long as the session."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    values = {}
    for name, array in weights.items():
        matrix = array.T if array.ndim > 1 and name not in _NOT_TRANSPOSED else array
        values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(matrix))
    options.add_external_initializers(list(values), list(values.values()))
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    return session, list(values.values())
