"""Sentence-transformers models, and texts cut to their windows so that nothing is lost in them."""

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
from leporello.models.safety import refuse_pickles, refused_code

if TYPE_CHECKING:
    from sentence_transformers import (
        CrossEncoder,
        MultiVectorEncoder,
        SentenceTransformer,
        SparseEncoder,
    )

SentenceModel: TypeAlias = "SentenceTransformer | CrossEncoder | MultiVectorEncoder | SparseEncoder"

# Files on the hub that are pickles or code, or hold the weights once more for other libraries.
_NOT_LOADED = [
    *("*.bin", "*.ckpt", "*.joblib", "*.np[yz]", "*.pickle", "*.pkl", "*.pt", "*.pth", "*.py"),
    *("*.gguf", "*.h5", "*.msgpack", "*.onnx*", "*.ot", "openvino/*"),
]


@lru_cache(maxsize=2)
def load_embedder(model: str) -> SentenceTransformer:
    """Returns the model, loaded once a process however many retrievers of a sweep name it."""
    embedder: SentenceTransformer = _load("SentenceTransformer", model)
    return embedder


@lru_cache(maxsize=2)
def load_cross_encoder(model: str) -> CrossEncoder:
    """Returns the model, loaded once a process; it gives one score a pair.

    Raises:
        UserError: It cannot be loaded, or gives more than one score a pair.
    """
    encoder: CrossEncoder = _load("CrossEncoder", model)
    if encoder.num_labels != 1:
        raise UserError(
            f"model {model!r} gives {encoder.num_labels} scores a pair; to rank, name a"
            " cross-encoder that gives one"
        )
    return encoder


@lru_cache(maxsize=2)
def load_multi_vector(model: str) -> MultiVectorEncoder:
    """Returns the model, loaded once a process; it gives a vector a token.

    Raises:
        UserError: It cannot be loaded, or was trained to give one vector a text.
    """
    if not _trained(model, ("MultiVectorEncoder", "ColBERT"), ("ColBERT", "ForRetrieval")):
        raise UserError(
            f"model {model!r} was not trained to give a vector a token; name a ColBERT, such as"
            " 'answerai-colbert-small'"
        )
    encoder: MultiVectorEncoder = _load("MultiVectorEncoder", model)
    return encoder


@lru_cache(maxsize=2)
def load_sparse(model: str) -> SparseEncoder:
    """Returns the model, loaded once a process; it gives weights of the vocabulary's words.

    Raises:
        UserError: It cannot be loaded, or is neither a sparse encoder nor a masked language model.
    """
    if not _trained(model, ("SparseEncoder",), ("ForMaskedLM",)):
        raise UserError(
            f"model {model!r} gives no weights of words; name a sparse encoder, such as a SPLADE"
        )
    encoder: SparseEncoder = _load("SparseEncoder", model)
    return encoder


def _trained(model: str, kinds: tuple[str, ...], architectures: tuple[str, ...]) -> bool:
    """Says whether a model is of such a kind; to another the library would add random weights."""
    folder = _folder(model)
    saved = _json(folder / "config_sentence_transformers.json").get("model_type")
    named = _json(folder / "config.json").get("architectures") or ()
    return saved in kinds or any(str(name).endswith(architectures) for name in named)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}  # what cannot be read, the library tells better
    return content if isinstance(content, dict) else {}


def _load(kind: str, model: str) -> Any:  # noqa: ANN401 -- the class of that name
    require(f"model {model!r}", "sentence_transformers")
    import sentence_transformers
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    # Half precision, where a model is saved in it, is several times slower than float32 on a CPU.
    dtype = "auto" if torch.cuda.is_available() else torch.float32
    folder = _folder(model)
    convert = f"from sentence_transformers import {kind} as M; M({str(folder)!r})"
    below = (path for path in folder.rglob("*") if path.is_dir())
    refuse_pickles(model, [folder, *below], f"{convert}.save_pretrained('converted')")
    options = {"dtype": dtype, "use_safetensors": True}
    make = getattr(sentence_transformers, kind)
    try:
        return make(str(folder), trust_remote_code=False, model_kwargs=options)
    except Exception as error:  # a damaged file makes it raise whatever it trips over
        message = f"model {model!r} cannot be loaded: {error}"
        raise refused_code(model, error) or UserError(message) from error


def _folder(model: str) -> Path:
    """Returns the model's folder; one on the hub is fetched, without what would not be loaded.

    Raises:
        UserError: It is not there, or cannot be fetched.
    """
    folder = Path(loadable(model))
    if folder.is_dir():
        return folder
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, ignore_patterns=_NOT_LOADED))
    except Exception as error:  # its HTTP library's own errors differ from version to version
        raise UserError(
            f"model {model!r} is no folder, and cannot be had from the hub: {error}"
        ) from error


def room(
    model: SentenceModel, empty: str | tuple[str, str], prompt: str = "", **task: str
) -> float:
    """Returns how many tokens of text fit the model's window; infinite if it has none.

    Args:
        model: An embedder or a cross-encoder.
        empty: Input with no text in it: prompt, template and special tokens count.
        prompt: Prompt put before the text.
        task: Keyword `task="query"` or `task="document"`, for embedders that tell them apart.

    Raises:
        UserError: The prompt leaves no room.
    """
    window = model.max_seq_length
    if window is None or window == math.inf:
        return math.inf
    taken = model.preprocess([empty], prompt=prompt, **task)["input_ids"].shape[-1]
    if taken >= window:
        raise UserError(
            f"{prompt!r} is put before every text, and leaves no room for text in the {window}"
            " tokens of the model's window; shorten it, or take another model"
        )
    return float(window - taken)


def token_room(model: MultiVectorEncoder, task: Literal["query", "document"]) -> float:
    """Returns how many tokens of text fit what a model of token vectors takes of a text.

    A question has the places up to which it is filled with masks; behind them it would be cut. One
    stays free: the library takes a question that fills all of them for one that was cut.
    """
    encoder: Any = model[0]
    expansion = encoder.query_expansion if task == "query" else None
    own = encoder.query_length if task == "query" else encoder.document_length
    window = expansion["length"] if expansion else own or model.max_seq_length or math.inf
    taken = len(model.tokenizer(model.prompts.get(task) or "")["input_ids"]) + bool(expansion)
    if taken >= window:
        raise UserError(f"a window of {window} tokens leaves no room for the text of a {task}")
    return float(window - taken)


def cut(model: SentenceModel, texts: Sequence[str], room: float) -> list[list[str]]:
    """Returns each text as pieces of at most `room` tokens, of about one size.

    Pieces are counted again, since cutting can change tokens. Lone surrogates, which no tokenizer
    takes, become question marks.
    """
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    if room == math.inf or not texts:
        return [[text] for text in texts]
    return [
        [text] if size <= room else _pieces(model, text, room, size)
        for text, size in zip(texts, count(model, texts), strict=True)
    ]


def count(model: SentenceModel, texts: Sequence[str]) -> list[int]:
    """Returns how many tokens each text has, special ones left out."""
    tokens = model.tokenizer(
        list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False
    )
    return [len(ids) for ids in tokens["input_ids"]]


def _pieces(model: SentenceModel, text: str, room: float, size: int) -> list[str]:
    parts = _divide(text, math.ceil(size / room))
    if len(parts) == 1:  # one character; no window is too small for it
        return parts
    written = [part for part in parts if not part.isspace()]
    return list(chain.from_iterable(cut(model, written or parts[:1], room)))


def _divide(text: str, parts: int) -> list[str]:
    """Returns the text in equal parts; a bound moves back to a blank, if one is near."""
    parts = min(parts, len(text))
    bounds = [0]
    for end in (len(text) * i // parts for i in range(1, parts)):
        near = max(bounds[-1] + 1, end - len(text) // parts // 4)
        blank = text.rfind(" ", near, end)
        bounds.append(end if blank < 0 else blank)
    return [text[start:end] for start, end in pairwise([*bounds, len(text)])]
