"""Tiny models with random weights that mark answers, and tokenizers trained on the story."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tiny_models import STORY, encoder
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedModel, PreTrainedTokenizerFast

SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
POSITIONS = 128  # number of positions of the models


def wordpieces(texts: Iterable[str], size: int = 300) -> PreTrainedTokenizerFast:
    """Returns a tokenizer like BERT's with the most frequent beginnings and endings of words.

    The trainer of the library learns other pieces each time, so a test might fail now and then.
    """
    blank = whole_words([]).backend_tokenizer
    counts: Counter[str] = Counter()
    for text in texts:
        for word, _ in blank.pre_tokenizer.pre_tokenize_str(blank.normalizer.normalize_str(text)):
            counts.update(word[:end] for end in range(1, len(word) + 1))
            counts.update("##" + word[start:] for start in range(1, len(word)))
            counts.update("##" + letter for letter in word[1:-1])
    one_letter = {piece for piece in counts if len(piece.removeprefix("##")) == 1}
    ranked = sorted(counts, key=lambda piece: (piece not in one_letter, -counts[piece], piece))
    return whole_words(ranked[: size - len(SPECIAL)])


def whole_words(words: Iterable[str]) -> PreTrainedTokenizerFast:
    """Returns a tokenizer like BERT's whose vocabulary consists of these lower-case words."""
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    core = Tokenizer(models.WordPiece(vocabulary, unk_token=SPECIAL[3]))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 1))
    return _fast(core)


def byte_pairs(texts: Iterable[str], name: str) -> PreTrainedTokenizerFast:
    """Returns a byte-pair tokenizer like RoBERTa's, or like DeBERTa's with two segments.

    The tokens of the latter include the white space before them, also in their offsets.
    """
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator(texts, trainer)
    segments = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> $B:1 </s>:1",
        special_tokens=[("<s>", 1), ("</s>", 2)],
    )
    no_segments = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    core.post_processor = segments if name == "deberta" else no_segments
    return _fast(core)


def _fast(core: Tokenizer) -> PreTrainedTokenizerFast:
    names = ("pad_token", "cls_token", "sep_token", "unk_token")
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # untyped in transformers
        tokenizer_object=core,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **dict(zip(names, SPECIAL, strict=True)),
    )


def network(name: str, vocabulary: int) -> PreTrainedModel:
    """Returns a tiny model with large random weights, so that its outputs differ between inputs."""
    shape: dict[str, Any] = {"sep_token_id": 2, "max_position_embeddings": POSITIONS}
    if name in ("roberta", "longformer"):
        shape |= {"max_position_embeddings": POSITIONS + 1, "type_vocab_size": 1}
    elif name == "distilbert":
        shape |= {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 2}
    elif name == "deberta":
        shape |= {"relative_attention": True}
    kind = "deberta-v2" if name == "deberta" else name
    return encoder(kind, "QuestionAnswering", vocabulary, **shape)


def save(name: str, place: Path) -> None:
    """Saves a tiny model, such as `bert`, and its tokenizer."""
    like_bert = name in ("bert", "distilbert")
    words = wordpieces([STORY]) if like_bert else byte_pairs([STORY], name)
    torch.manual_seed(0)
    network(name, len(words)).save_pretrained(place)
    words.save_pretrained(place)
