"""The base encoder: one that transformers knows, or a quantised cross-encoder in ONNX."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from leporello.core.errors import UserError
from leporello.models.locate import loadable, locate
from leporello.models.safety import keep_token_here, refuse_pickles
from leporello.training.recipes.answers.settings import AnswersSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_QUANTISED = "_quantized"


@dataclass(frozen=True)
class Base:
    """An encoder that is trained further, with its tokenizer.

    Attributes:
        encoder: Encoder without dropout.
        tokenizer: Tokenizer that neither cuts nor pads.
        special: Numbers of the tokens that open a window and close each of its parts.
        longest: Tokens of a window at most.
    """

    encoder: PreTrainedModel
    tokenizer: Tokenizer
    special: tuple[int, int]
    longest: int


def load_base(settings: AnswersSettings) -> Base:
    """Loads the base of a training.

    Raises:
        UserError: It cannot be had, or is no encoder that can be trained here.
    """
    if settings.base.endswith(".onnx"):
        encoder: PreTrainedModel = _quantised_bert(Path(locate(settings.base)), settings)
        tokenizer, ids = _tokenizer_file(settings.tokenizer)
    else:
        encoder, tokenizer, ids = _pretrained(settings.base, settings.tokenizer)
    cls, sep = ids
    if cls is None or sep is None:
        raise UserError(
            f"base {settings.base!r}: its tokenizer has no tokens that open a text and part two"
            " ([CLS], [SEP]); choose an encoder, such as BERT, DeBERTa or ModernBERT"
        )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return Base(encoder, tokenizer, (cls, sep), min(settings.window, _positions(encoder)))


def _pretrained(base: str, tokenizer: str) -> tuple[PreTrainedModel, Tokenizer, tuple[Any, Any]]:
    # By name: no room imports a stage.
    pretrained: Any = import_module("leporello.readers.backends.pretrained")
    config = pretrained.read_config(base)
    if config.is_encoder_decoder:
        raise UserError(f"base {base!r} is an encoder with a decoder; choose an encoder")
    for name, value in vars(config).items():  # so that a step depends on its batch alone
        if "dropout" in name and isinstance(value, float):
            setattr(config, name, 0.0)
    keep_token_here()
    with pretrained.faults_explained(base), pretrained.quiet():
        place = loadable(base)
        refuse_pickles(base, [Path(place)], pretrained.CONVERT.format("AutoModel", place))
        encoder, report = AutoModel.from_pretrained(
            place, config=config, dtype=torch.float32, use_safetensors=True,
            trust_remote_code=False, output_loading_info=True,
        )  # fmt: skip
        fast = AutoTokenizer.from_pretrained(loadable(tokenizer or base), trust_remote_code=False)
    if missing := sorted(key for key in report["missing_keys"] if "pooler" not in key):
        raise UserError(f"base {base!r} lacks weights of its own encoder ({missing[0]})")
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    if not fast.is_fast:
        raise UserError(f"base {base!r} has no fast tokenizer, which tells where tokens stand")
    core = Tokenizer.from_str(fast.backend_tokenizer.to_str())
    return encoder, core, (fast.cls_token_id, fast.sep_token_id)


def _tokenizer_file(file: str) -> tuple[Tokenizer, tuple[int | None, int | None]]:
    if not file:
        raise UserError("a base in ONNX needs the setting `tokenizer`, its tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(locate(file))
    except Exception as error:  # tokenizers raises nothing more precise
        raise UserError(f"tokenizer {file!r} cannot be read: {error}") from None
    return tokenizer, (tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]"))


def _positions(encoder: PreTrainedModel) -> int:
    """Returns the number of tokens that an encoder reads at most."""
    embeddings = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    padding = getattr(embeddings, "padding_idx", None)  # RoBERTa counts positions from there
    taken = 0 if padding is None else padding + 1
    return int(encoder.config.max_position_embeddings) - taken


def _quantised_bert(path: Path, settings: AnswersSettings) -> BertModel:
    """Loads the encoder of a quantised cross-encoder, back in floating point."""
    weights = _dequantised(path)
    try:
        words, wide = (
            weights[f"bert.{name}.weight"].shape
            for name in ("embeddings.word_embeddings", "encoder.layer.0.intermediate.dense")
        )
        layers = {name.split(".")[3] for name in weights if name.startswith("bert.encoder.layer.")}
        config = BertConfig(
            vocab_size=words[0],
            hidden_size=words[1],
            num_hidden_layers=len(layers),
            num_attention_heads=settings.attention_heads,
            intermediate_size=wide[0],
            max_position_embeddings=len(weights["bert.embeddings.position_embeddings.weight"]),
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        encoder = BertModel(config, add_pooling_layer=False)
        wanted = encoder.state_dict().keys()
        encoder.load_state_dict({name: weights[f"bert.{name}"] for name in wanted})
    except (KeyError, ValueError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise UserError(
            f"base {path}: is not a quantised BERT that is known here: {first}"
        ) from None
    return encoder


def _dequantised(path: Path) -> dict[str, torch.Tensor]:
    """Returns every weight of a quantised graph in floating point, under its name in PyTorch."""
    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:  # protobuf has its own, without types
        raise UserError(f"base {path}: is no ONNX graph: {error}") from None
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = {
        name: torch.from_numpy(np.array(value, dtype=np.float32))
        for name, value in stored.items()
        if value.dtype == np.float32 and not name.endswith("_scale")
    }
    products = _product_names(graph)
    for name, value in stored.items():
        if not name.endswith(_QUANTISED):
            continue
        stem = name.removesuffix(_QUANTISED)
        shift = stored[f"{stem}_zero_point"].astype(np.float32)
        plain = (value.astype(np.float32) - shift) * stored[f"{stem}_scale"]
        if stem in products:  # a product's right side lies transposed to what PyTorch keeps
            plain = np.ascontiguousarray(plain.T)
        weights[products.get(stem, stem)] = torch.from_numpy(plain)
    return weights


def _product_names(graph: onnx.GraphProto) -> dict[str, str]:
    """Returns the PyTorch name of each weight that a product of matrices reads.

    The exporter names most of these by number, so the name is taken from the product's output,
    such as `/bert/encoder/layer.0/attention/self/query/MatMul_output_0_quantized`.
    """
    names = {}
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            stem = node.input[1].removesuffix(_QUANTISED)
            place = node.output[0].split("/MatMul")[0].strip("/").replace("/", ".")
            names[stem] = stem if stem.endswith(".weight") else f"{place}.weight"
    return names
