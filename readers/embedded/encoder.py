"""Encoder with heads that runs on onnxruntime, from tokens to scores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leporello.core.errors import UserError
from leporello.models.weights import Arrays, ModelFolder, unpack
from leporello.readers.prompting.template import encodable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_WEIGHTS = "weights.safetensors"
_SPECIAL = 3  # special tokens of a pair
_NOT_TRANSPOSED = frozenset({"words", "positions", "types.weight"})


@dataclass(frozen=True)
class TokenizedText:
    """A tokenized text.

    Attributes:
        ids: Ids of the tokens.
        offsets: Start and end of each token, in characters.
    """

    ids: list[int]
    offsets: list[tuple[int, int]]


@dataclass(frozen=True)
class TextPair:
    """A question and a text that may answer it, which the encoder reads together.

    Attributes:
        question: Ids of the question.
        text: Ids of the text.
    """

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

    Args:
        path: Folder of the encoder.
        difference: Folder of other heads, stored as the difference to this encoder's weights; None
            for the heads of the encoder itself.
        threads: Number of threads; None is `OMP_NUM_THREADS`, which a run sets, or all cores.
        budget: Maximum number of tokens per batch, including padding.

    Raises:
        UserError: A file is missing or damaged, or the difference is from other weights.
    """

    def __init__(
        self,
        path: Path,
        difference: Path | None = None,
        threads: int | None = None,
        budget: int = 768,
    ) -> None:
        folder = ModelFolder(path)
        weights = unpack(folder.checked(_WEIGHTS))
        top = folder
        if difference is not None:
            top = ModelFolder(difference)
            if top.config().get("base") not in (None, folder.config()["sha256"][_WEIGHTS]):
                raise UserError(
                    f"{difference} is a difference from other weights than {path}; train it again"
                )
            weights = unpack(top.checked(_WEIGHTS), weights)
        self.config = top.config()
        self.longest: int = self.config["longest"]
        self._special: tuple[int, int] = (self.config["cls"], self.config["sep"])
        self._budget = budget
        self._tokenizer: Any = _tokenizer(folder.checked("tokenizer.json"))
        self._session, self._weights = _session(top.checked("graph.onnx"), weights, threads)
        self._heads = [output.name for output in self._session.get_outputs()]

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Returns the tokens of texts, with their offsets.

        Args:
            texts: Texts of any length.
        """
        # The tokenizer needs valid UTF-8, but broken files have lone surrogates.
        valid = [encodable(text) for text in texts]
        encodings = self._tokenizer.encode_batch(valid, add_special_tokens=False)
        return [TokenizedText(encoding.ids, encoding.offsets) for encoding in encodings]

    def scores(self, windows: Sequence[TextPair]) -> list[dict[str, NDArray[np.float32]]]:
        """Returns the output of each head for each pair.

        A head for tokens returns a row per token, including special ones; a head for pairs returns
        one row. Pairs of similar length are computed together, which does not change the outputs.

        Args:
            windows: Pairs of at most `longest` tokens.

        Raises:
            ValueError: A pair is longer.
        """
        scores: list[dict[str, NDArray[np.float32]]] = [{} for _ in windows]
        for rows in self.batches(windows):
            outputs = self.compute([windows[row] for row in rows])
            for place, row in enumerate(rows):
                for name, batch in zip(self._heads, outputs, strict=True):
                    output = batch[place]
                    scores[row][name] = output[: len(windows[row])] if output.ndim > 1 else output
        return scores

    def compute(self, windows: Sequence[TextPair]) -> list[NDArray[np.float32]]:
        """Returns the padded outputs of the heads for a batch of pairs."""
        outputs: list[NDArray[np.float32]] = self._session.run(self._heads, self.tensors(windows))
        return outputs

    def tensors(self, windows: Sequence[TextPair]) -> dict[str, NDArray[np.int32]]:
        """Returns the ids, types and mask of pairs, each of shape (pairs, longest pair)."""
        cls, sep = self._special
        shape = (len(windows), max(map(len, windows)))
        inputs = {name: np.zeros(shape, dtype=np.int32) for name in ("ids", "types", "mask")}
        for row, pair in enumerate(windows):
            inputs["ids"][row, : len(pair)] = [cls, *pair.question, sep, *pair.text, sep]
            inputs["types"][row, pair.first : len(pair)] = 1
            inputs["mask"][row, : len(pair)] = 1
        return inputs

    def batches(self, windows: Sequence[TextPair]) -> Iterator[list[int]]:
        """Yields the indices of pairs that are computed together, short ones first.

        Raises:
            ValueError: A pair is longer than `longest`.
        """
        rows: list[int] = []
        for row in sorted(range(len(windows)), key=lambda i: len(windows[i])):
            if len(windows[row]) > self.longest:
                raise ValueError(
                    f"a pair has {len(windows[row])} tokens; the encoder reads {self.longest}"
                )
            if rows and (len(rows) + 1) * len(windows[row]) > self._budget:
                yield rows
                rows = []
            rows.append(row)
        if rows:
            yield rows


def _tokenizer(content: bytes) -> Any:  # noqa: ANN401 -- tokenizers has no types
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(content.decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _session(
    graph: bytes, weights: Arrays, threads: int | None
) -> tuple[InferenceSession, list[Any]]:
    """Returns a session and its weights, which must stay in memory as long as the session."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or int(os.environ.get("OMP_NUM_THREADS", "0"))
    # Operators run one after the other, so a second pool of threads would only take memory.
    options.inter_op_num_threads = 1
    # Spinning threads slow each other down as soon as another process is busy (decision 4).
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    values = {}
    for name, array in weights.items():
        matrix = array.T if array.ndim > 1 and name not in _NOT_TRANSPOSED else array
        values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(matrix))
    options.add_external_initializers(list(values), list(values.values()))
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    return session, list(values.values())
