"""Loads the base: an encoder of transformers, a quantised cross-encoder, or a trained folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
import torch
from tokenizers import Tokenizer
from transformers import AutoTokenizer, BertConfig, BertModel

from leporello.core.errors import UserError
from leporello.models.locate import loadable, locate
from leporello.models.weights import Arrays, ModelFolder, unpack
from leporello.readers.backends import pretrained
from recipes.answers.names import restored
from recipes.answers.settings import AnswersSettings
from recipes.quantised import quantised_bert

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_WEIGHTS = "weights.safetensors"


@dataclass(frozen=True)
class Base:
    """Encoder to train further, with its tokenizer."""

    encoder: PreTrainedModel  # encoder without dropout
    tokenizer: Tokenizer  # tokenizer without truncation and padding
    # Ids of the token at the beginning of a window, and of the token after each part.
    special: tuple[int, int]
    longest: int  # maximum number of tokens of a window
    # Weights of the complete network, by name, if an earlier training is continued.
    trained: Mapping[str, torch.Tensor] = field(default_factory=dict)


def load_base(settings: AnswersSettings) -> Base:
    """Loads the base of a training; raises UserError if it is not an encoder to train here."""
    if (folder := Path(locate(settings.base))).joinpath(_WEIGHTS).is_file():
        return _trained(folder, settings.window)
    if settings.base.endswith(".onnx"):
        encoder: PreTrainedModel = quantised_bert(
            Path(locate(settings.base)), settings.attention_heads
        )
        tokenizer, ids = _tokenizer_file(settings.tokenizer)
    else:
        encoder, tokenizer, ids = _pretrained(settings.base, settings.tokenizer)
    cls, sep = ids
    if cls is None or sep is None:
        raise UserError(
            f"base {settings.base!r}: its tokenizer has no [CLS] and [SEP] tokens; choose an"
            " encoder, such as BERT, DeBERTa or ModernBERT"
        )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return Base(encoder, tokenizer, (cls, sep), min(settings.window, _positions(encoder)))


def _trained(path: Path, window: int) -> Base:
    """Returns the network of a folder that this recipe shipped, with its heads."""
    folder = ModelFolder(path)
    config, weights = folder.config(), unpack(folder.checked(_WEIGHTS))
    encoder = encoder_of(weights, folder.checked("graph.onnx"))
    tokenizer = Tokenizer.from_str(folder.checked("tokenizer.json").decode())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    special = (config["cls"], config["sep"])
    trained = restored(weights, encoder.config.num_hidden_layers)
    return Base(encoder, tokenizer, special, min(window, _positions(encoder)), trained)


def encoder_of(weights: Arrays, graph: bytes) -> BertModel:
    """Returns an encoder of the size of shipped weights, without these weights.

    The weights have the names of `shipped_names`; the number of attention heads is in the graph of
    the same folder.
    """
    nodes = onnx.load_from_string(graph).graph.node
    heads = (a.i for node in nodes if node.op_type == "Attention" for a in node.attribute)
    config = BertConfig(
        vocab_size=len(weights["words"]),
        hidden_size=len(weights["norm.bias"]),
        num_hidden_layers=sum(name.endswith(".wide.bias") for name in weights),
        num_attention_heads=int(next(heads)),
        intermediate_size=len(weights["layer.0.wide.bias"]),
        max_position_embeddings=len(weights["positions"]),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertModel(config, add_pooling_layer=False)


def _pretrained(base: str, tokenizer: str) -> tuple[PreTrainedModel, Tokenizer, tuple[Any, Any]]:
    config = pretrained.read_config(base)
    if config.is_encoder_decoder:
        raise UserError(f"base {base!r} is an encoder with a decoder; choose an encoder")
    for name, value in vars(config).items():  # so that a step depends only on its batch
        if "dropout" in name and isinstance(value, float):
            setattr(config, name, 0.0)
    encoder: Any
    encoder, missing = pretrained.read_weights(
        base, "AutoModel", config=config, dtype=torch.float32
    )
    with pretrained.faults_explained(base), pretrained.quiet():
        fast = AutoTokenizer.from_pretrained(loadable(tokenizer or base), trust_remote_code=False)
    if missing := [key for key in missing if "pooler" not in key]:
        raise UserError(f"base {base!r} lacks weights of its encoder ({missing[0]})")
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    if not fast.is_fast:
        raise UserError(f"base {base!r} has no fast tokenizer, which is needed for offsets")
    core = Tokenizer.from_str(fast.backend_tokenizer.to_str())
    return encoder, core, (fast.cls_token_id, fast.sep_token_id)


def _tokenizer_file(file: str) -> tuple[Tokenizer, tuple[int | None, int | None]]:
    if not file:
        raise UserError("a base in ONNX needs the setting `tokenizer`, its tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(locate(file))
    except Exception as error:  # tokenizers raises no more precise class
        raise UserError(f"tokenizer {file!r} cannot be read: {error}") from None
    return tokenizer, (tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]"))


def _positions(encoder: PreTrainedModel) -> int:
    """Returns the size of an encoder's input window in tokens."""
    embeddings = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    padding = getattr(embeddings, "padding_idx", None)  # RoBERTa's positions begin after it
    unused = 0 if padding is None else padding + 1
    return int(encoder.config.max_position_embeddings) - unused
