"""Tiny models with random weights, and a tokenizer trained on a story."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

CHAT = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
STORY = (
    "The miller had three sons, and when he died he left them a mill, a donkey and a cat. "
    "The eldest took the mill, the second the donkey, and the youngest had nothing but the cat. "
    "“Why,” said the cat, “give me a pair of boots and you shall see!” "
    "猫は長靴を履いた。 🐈👢 Ça y est."
)
SPECIAL = ["<pad>", "</s>", "<unk>", "<s>", "<|user|>", "<|system|>", "<|assistant|>"]
ENDS = ("pad_token", "eos_token", "bos_token")


def tokenizer(template: str, chat: bool) -> PreTrainedTokenizerFast:
    """Returns a byte-level tokenizer trained on the story."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator([STORY], trainer)
    pairs = [(token, core.token_to_id(token)) for token in ("<s>", "</s>")]
    both = f"{template} {template.replace('$A', '$B')}"
    core.post_processor = processors.TemplateProcessing(
        single=template, pair=both, special_tokens=pairs
    )
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # untyped in transformers
        tokenizer_object=core, **dict(zip(ENDS, ("<pad>", "</s>", "<s>"), strict=True))
    )
    fast.chat_template = CHAT if chat else None
    return fast


def network(name: str, vocabulary: int) -> PreTrainedModel:
    """Returns a tiny model with large random weights, so that its outputs differ between inputs."""
    ends = {"vocab_size": vocabulary, "bos_token_id": 3, "pad_token_id": 0, "eos_token_id": 1}
    bart: dict[str, Any] = {"d_model": 32, "init_std": 0.3, "decoder_start_token_id": 1}
    for half in ("encoder", "decoder"):
        bart |= {f"{half}_layers": 2, f"{half}_attention_heads": 2, f"{half}_ffn_dim": 64}
    bart |= {"forced_eos_token_id": None}
    shapes: dict[str, dict[str, Any]] = {
        "t5": {"d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 2, "d_model": 32,
               "initializer_factor": 2.0, "decoder_start_token_id": 0},
        "bart": {**bart, "max_position_embeddings": 256},
        "led": {**bart, "max_encoder_position_embeddings": 256, "attention_window": [16, 16],
                "max_decoder_position_embeddings": 64},
        "gpt2": {"n_positions": 256, "n_embd": 32, "n_layer": 2, "n_head": 2,
                 "initializer_range": 0.3},
        "llama": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                  "num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.3,
                  "max_position_embeddings": 4096},
    }  # fmt: skip
    kind = name if name in shapes else "llama"
    heads: Any = AutoModelForCausalLM if kind in ("gpt2", "llama") else AutoModelForSeq2SeqLM
    model: PreTrainedModel = heads.from_config(AutoConfig.for_model(kind, **ends, **shapes[kind]))
    return model


def encoder(kind: str, head: str, vocabulary: int, **shape: Any) -> PreTrainedModel:
    """Returns a tiny encoder, such as `bert`, with a head, such as `MaskedLM`, or without one."""
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
             "num_attention_heads": 2, "vocab_size": vocabulary, "initializer_range": 0.3,
             "pad_token_id": 0}  # fmt: skip
    if kind == "longformer":
        shape["attention_window"] = [16, 16]
    heads = getattr(transformers, f"AutoModelFor{head}" if head else "AutoModel")
    model: PreTrainedModel = heads.from_config(AutoConfig.for_model(kind, **{**sizes, **shape}))
    return model


def save(name: str, place: Path) -> None:
    """Saves a tiny model and its tokenizer; `chat` is a Llama with a chat template."""
    templates = {"t5": "$A </s>", "bart": "<s> $A </s>", "led": "<s> $A </s>"}
    words = tokenizer(templates.get(name, "<s> $A"), chat=name == "chat")
    torch.manual_seed(0)
    network(name, len(words)).save_pretrained(place)
    words.save_pretrained(place)


def save_classifier(name: str, place: Path, labels: Sequence[str]) -> None:
    """Saves a tiny BERT, RoBERTa or Longformer with a head for these labels, and a tokenizer."""
    words = tokenizer("<s> $A </s>", chat=False)
    pairs = [(token, words.convert_tokens_to_ids(token)) for token in ("<s>", "</s>")]
    words.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=pairs
    )
    torch.manual_seed(0)
    types, names = 1 + (name == "bert"), dict(enumerate(labels))
    model = encoder(name, "SequenceClassification", len(words), max_position_embeddings=130,
                    type_vocab_size=types, id2label=names)  # fmt: skip
    model.save_pretrained(place)
    words.save_pretrained(place)


def save_token_vectors(place: Path) -> None:
    """Saves a tiny ColBERT: prompts before texts, questions padded to 40 tokens, 16 dimensions."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    save_classifier("bert", place / "bert", ["near"])
    expansion: Any = {"strategy": "fixed", "attend": False, "length": 40}
    model = Transformer(str(place / "bert"), query_expansion=expansion, max_seq_length=60)
    torch.manual_seed(0)
    linear = Dense(32, 16, bias=False, activation_function=torch.nn.Identity(),
                   module_input_name="token_embeddings")  # fmt: skip
    modules = (MultiVectorMask(["."]), Normalize(module_input_name="token_embeddings"))
    prompts = {"query": "Q ", "document": "D "}
    encoder = MultiVectorEncoder(modules=[model, linear, *modules], prompts=prompts)
    encoder.save_pretrained(str(place / "colbert"))


def save_sparse(place: Path) -> None:
    """Saves a tiny masked language model, which can serve as a SPLADE model, and its tokenizer."""
    save_classifier("bert", place, ["near"])
    config = AutoConfig.from_pretrained(place)
    torch.manual_seed(0)
    heads: Any = AutoModelForMaskedLM
    heads.from_config(config).save_pretrained(place)


def save_masked(
    name: str, place: Path, words: PreTrainedTokenizerFast | None = None, positions: int = 130
) -> None:
    """Saves a tiny BERT or RoBERTa that fills in masks, and its tokenizer."""
    words = words or tokenizer("<s> $A </s>", chat=False)
    words.add_special_tokens({"mask_token": "<mask>"})
    torch.manual_seed(0)
    model = encoder(name, "MaskedLM", len(words), max_position_embeddings=positions)
    model.save_pretrained(place)
    words.save_pretrained(place)


def save_waves(name: str, place: Path) -> None:
    """Saves a tiny model with rough waves as weights, equal with all versions of the libraries."""
    save(name, place)
    model = type(network(name, 1)).from_pretrained(place)
    with torch.no_grad():
        for number, (_, weight) in enumerate(sorted(model.named_parameters())):
            angles = torch.arange(weight.numel(), dtype=torch.float64) * 12.9898 + number
            # The digits after the first four look random, so that every input counts.
            noise = (angles.sin() * 43758.5453).frac().reshape(weight.shape)
            weight.copy_(1 + 0.5 * noise if weight.dim() == 1 else 0.6 * noise)
    model.save_pretrained(place)
