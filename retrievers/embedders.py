"""Loads sentence-transformers models, and splits texts so that they fit the input windows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.models.locate import loadable
from leporello.models.weights import refuse_pickles, refused_code

if TYPE_CHECKING:
    from sentence_transformers import (
        CrossEncoder,
        MultiVectorEncoder,
        SentenceTransformer,
        SparseEncoder,
    )


SentenceModel: TypeAlias = "SentenceTransformer | CrossEncoder | MultiVectorEncoder | SparseEncoder"

# Files on the hub that are pickles or code, or contain the weights for other libraries.
_NOT_LOADED = [
    *("*.bin", "*.ckpt", "*.joblib", "*.np[yz]", "*.pickle", "*.pkl", "*.pt", "*.pth", "*.py"),
    *("*.gguf", "*.h5", "*.msgpack", "*.onnx*", "*.ot", "openvino/*"),
]


# The library adds random weights to other models than those of these kinds, or with these ends of
# the names of architectures.
_REQUIRED = {
    "MultiVectorEncoder": (
        ("MultiVectorEncoder", "ColBERT"),
        ("ColBERT", "ForRetrieval"),
        "was not trained to return one vector per token; use a ColBERT, such as"
        " 'answerdotai/answerai-colbert-small-v1'",
    ),
    "SparseEncoder": (
        ("SparseEncoder",),
        ("ForMaskedLM",),
        "does not return word weights; use a sparse encoder, such as a SPLADE",
    ),
}


@lru_cache(maxsize=4)
def load_encoder(kind: str, model: str) -> Any:  # noqa: ANN401 -- the class of that name
    """Returns a model of a class of sentence-transformers; raises UserError for other models.

    It is loaded once per process, for all retrievers of a sweep.
    """
    if kind in _REQUIRED:
        kinds, architectures, advice = _REQUIRED[kind]
        folder = _folder(model)
        model_kind = _json(folder / "config_sentence_transformers.json").get("model_type")
        names = _json(folder / "config.json").get("architectures") or ()
        if model_kind not in kinds and not any(str(name).endswith(architectures) for name in names):
            raise UserError(f"model {model!r} {advice}")
    encoder = _load(kind, model)
    if kind == "CrossEncoder" and encoder.num_labels != 1:
        raise UserError(
            f"model {model!r} returns {encoder.num_labels} scores per pair; for ranking, use a"
            " cross-encoder that returns one"
        )
    return encoder


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}  # the library reports unreadable files in more detail
    return content if isinstance(content, dict) else {}


def _load(kind: str, model: str) -> Any:  # noqa: ANN401 -- the class of that name
    require(f"model {model!r}", "sentence_transformers")
    import sentence_transformers
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers has no types
    # On a CPU, models saved in half precision are several times slower than in float32.
    dtype = "auto" if torch.cuda.is_available() else torch.float32
    folder = _folder(model)
    convert = f"from sentence_transformers import {kind} as M; M({str(folder)!r})"
    below = (path for path in folder.rglob("*") if path.is_dir())
    refuse_pickles(model, [folder, *below], f"{convert}.save_pretrained('converted')")
    options = {"dtype": dtype, "use_safetensors": True}
    make = getattr(sentence_transformers, kind)
    try:
        return make(str(folder), trust_remote_code=False, model_kwargs=options)
    except Exception as error:  # a damaged file can raise any error
        message = f"model {model!r} cannot be loaded: {error}"
        raise refused_code(model, error) or UserError(message) from error


def _folder(model: str) -> Path:
    """Returns the model's folder; downloads the files to load of a model on the hub."""
    folder = Path(loadable(model))
    if folder.is_dir():
        return folder
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, ignore_patterns=_NOT_LOADED))
    except Exception as error:  # the errors of its HTTP library differ between versions
        raise UserError(
            f"model {model!r} is not a folder, and cannot be downloaded from the hub: {error}"
        ) from error


def room(
    model: SentenceModel, empty: str | tuple[str, str], prompt: str = "", **task: str
) -> float:
    """Returns the number of tokens of text that fit the model's input window, or infinity.

    `empty` is an input without text, whose prompt, template and special tokens are counted. Keyword
    `task` is `query` or `document`, for embedders that distinguish them. Raises UserError if the
    prompt leaves no room.
    """
    window = model.max_seq_length
    if window is None or window == math.inf:
        return math.inf
    overhead = model.preprocess([empty], prompt=prompt, **task)["input_ids"].shape[-1]
    if overhead >= window:
        raise UserError(
            f"the prefix {prompt!r} leaves no room for text in the {window} tokens of the model's"
            " input window; shorten it, or use another model"
        )
    return float(window - overhead)


def token_room(model: MultiVectorEncoder, task: Literal["query", "document"]) -> float:
    """Returns the number of tokens of text that fit a model of token vectors.

    A question is padded with mask tokens to a fixed length, and would be truncated beyond it. One
    token stays free, because the library treats a question of full length as truncated.
    """
    encoder: Any = model[0]
    expansion = encoder.query_expansion if task == "query" else None
    limit = encoder.query_length if task == "query" else encoder.document_length
    window = expansion["length"] if expansion else limit or model.max_seq_length or math.inf
    overhead = len(model.tokenizer(model.prompts.get(task) or "")["input_ids"]) + bool(expansion)
    if overhead >= window:
        raise UserError(
            f"an input window of {window} tokens leaves no room for the text of a {task}; use"
            " another model"
        )
    return float(window - overhead)


def cut(model: SentenceModel, texts: Sequence[str], room: float) -> list[list[str]]:
    """Splits each text into pieces of at most `room` tokens, of about equal size.

    Tokens of the pieces are counted again, since splitting can change tokens. Lone surrogates,
    which no tokenizer accepts, become question marks.
    """
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    if room == math.inf or not texts:
        return [[text] for text in texts]
    return [
        [text] if size <= room else _pieces(model, text, room, size)
        for text, size in zip(texts, count(model, texts), strict=True)
    ]


def count(model: SentenceModel, texts: Sequence[str]) -> list[int]:
    """Returns the number of tokens of each text, without special tokens."""
    tokens = model.tokenizer(
        list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False
    )
    return [len(ids) for ids in tokens["input_ids"]]


def _pieces(model: SentenceModel, text: str, room: float, size: int) -> list[str]:
    parts = min(math.ceil(size / room), len(text))
    if parts == 1:  # one character, which cannot be split
        return [text]
    bounds = [0]
    for end in (len(text) * i // parts for i in range(1, parts)):
        # Back to a blank, but a quarter of a piece at most, since pieces are of about equal length.
        blank = text.rfind(" ", max(bounds[-1] + 1, end - len(text) // parts // 4), end)
        bounds.append(end if blank < 0 else blank)
    pieces = [text[start:end] for start, end in pairwise([*bounds, len(text)])]
    nonblank = [piece for piece in pieces if not piece.isspace()]
    return list(chain.from_iterable(cut(model, nonblank or pieces[:1], room)))
