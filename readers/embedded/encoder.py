"""An encoder with heads on onnxruntime: tokens in, scores out."""

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
    """A text as the encoder reads it.

    Attributes:
        ids: Numbers of the tokens.
        offsets: First character of each token, and one past its last.
    """

    ids: list[int]
    offsets: list[tuple[int, int]]


@dataclass(frozen=True)
class TextPair:
    """Two texts that are read together: a question, and what may answer it.

    Attributes:
        question: TokenizedText of the question.
        text: TokenizedText of the text.
    """

    question: Sequence[int]
    text: Sequence[int]

    def __len__(self) -> int:
        return len(self.question) + len(self.text) + _SPECIAL

    @property
    def first(self) -> int:
        """Place of the text's first token in the window."""
        return len(self.question) + 2


class Encoder:
    """A shipped encoder.

    Args:
        path: Folder that it was shipped in.
        difference: Folder of a further head that was shipped as what it adds to this encoder, or
            None for the encoder's own heads.
        threads: Number of threads that compute; None is `OMP_NUM_THREADS`, which a run sets, else
            all cores.
        budget: Number of tokens that are computed at once, padding included.

    Raises:
        UserError: If a file is missing or is not what was shipped, or the difference is
            from other weights.
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
        """Returns the tokens of texts, with the characters that each comes from.

        Args:
            texts: Texts of any length.
        """
        # The tokenizer takes UTF-8 alone, and broken files have lone surrogates.
        whole = [encodable(text) for text in texts]
        encodings = self._tokenizer.encode_batch(whole, add_special_tokens=False)
        return [TokenizedText(encoding.ids, encoding.offsets) for encoding in encodings]

    def scores(self, windows: Sequence[TextPair]) -> list[dict[str, NDArray[np.float32]]]:
        """Returns what each head gives for each window.

        A head that reads every token gives one row for each, special ones included; one that
        reads the whole window gives one row. Windows of like length are computed together, and
        none depends on which.

        Args:
            windows: Windows of `longest` tokens at most.

        Raises:
            ValueError: If a window is longer.
        """
        found: list[dict[str, NDArray[np.float32]]] = [{} for _ in windows]
        for rows in self.batches(windows):
            outputs = self.compute([windows[row] for row in rows])
            for place, row in enumerate(rows):
                for name, value in zip(self._heads, outputs, strict=True):
                    whole = value[place]
                    found[row][name] = whole[: len(windows[row])] if whole.ndim > 1 else whole
        return found

    def compute(self, windows: Sequence[TextPair]) -> list[NDArray[np.float32]]:
        """Returns what the heads give for windows that are computed together, padded."""
        outputs: list[NDArray[np.float32]] = self._session.run(self._heads, self.tensors(windows))
        return outputs

    def tensors(self, windows: Sequence[TextPair]) -> dict[str, NDArray[np.int32]]:
        """Returns the ids, types and mask of windows, each of shape (windows, longest of them)."""
        cls, sep = self._special
        shape = (len(windows), max(map(len, windows)))
        fed = {name: np.zeros(shape, dtype=np.int32) for name in ("ids", "types", "mask")}
        for row, window in enumerate(windows):
            fed["ids"][row, : len(window)] = [cls, *window.question, sep, *window.text, sep]
            fed["types"][row, window.first : len(window)] = 1
            fed["mask"][row, : len(window)] = 1
        return fed

    def batches(self, windows: Sequence[TextPair]) -> Iterator[list[int]]:
        """Yields the indices of windows that are computed together, short ones first.

        Raises:
            ValueError: If a window is longer than `longest`.
        """
        rows: list[int] = []
        for row in sorted(range(len(windows)), key=lambda i: len(windows[i])):
            if len(windows[row]) > self.longest:
                raise ValueError(f"a window of {len(windows[row])} pieces, {self.longest} can be")
            if rows and (len(rows) + 1) * len(windows[row]) > self._budget:
                yield rows
                rows = []
            rows.append(row)
        if rows:
            yield rows


def _tokenizer(content: bytes) -> Any:  # noqa: ANN401 -- its types are not told
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(content.decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _session(
    graph: bytes, weights: Arrays, threads: int | None
) -> tuple[InferenceSession, list[Any]]:
    """Returns a session, and the weights that it reads, which must live as long."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or int(os.environ.get("OMP_NUM_THREADS", "0"))
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    held = {}
    for name, value in weights.items():
        turned = value.T if value.ndim > 1 and name not in _NOT_TRANSPOSED else value
        held[name] = onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(turned))
    options.add_external_initializers(list(held), list(held.values()))
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    return session, list(held.values())
