"""Questions that a tiny encoder learns to answer in seconds, and settings of its training."""

import random
from pathlib import Path
from typing import Any

import torch
from tiny_encoders import network, whole_words
from transformers import ModernBertConfig, ModernBertModel, PreTrainedModel

COLOURS = ("red", "blue", "green", "white")
WORDS = tuple(f"w{number}" for number in range(60))
COLOUR_QUESTION = "what colour is it ?"
SETTINGS: dict[str, Any] = {
    "base": "./base",
    "questions": ["questions.jsonl"],
    "phases": [{"tokens": 4000, "learning_rate": 0.01, "shortest": 8, "longest": 24}],
    "warmup": 400,
    "batch": 400,
    "checkpoint_seconds": 0,
    "snapshot_steps": 2,
    "average": 2,
    "validation": 0.1,
}


def rows(count: int = 60) -> list[dict[str, Any]]:
    """Returns rows that ask for a colour, three per document, of which some ask for yes or no."""
    rng = random.Random(0)
    question_rows = []
    for number in range(count):
        words = rng.choices(WORDS, k=20)
        place, colour = rng.randrange(20), rng.choice(COLOURS)
        words[place] = colour
        row: dict[str, Any] = {"set": "colours", "document_id": f"d{number // 3}"}
        row |= {"question": COLOUR_QUESTION, "passage": " ".join(words), "yes_no": None}
        row["others"] = [" ".join(rng.choices(WORDS, k=20)) for _ in range(5)]
        row["answers"] = [[len(" ".join([*words[:place], ""])), colour]]
        if number % 5 == 0:
            row |= {"set": "asked", "question": "is it ?", "answers": [], "yes_no": "yes"}
        question_rows.append(row)
    return question_rows


def save_base(name: str, place: Path) -> None:
    """Saves a tiny encoder with random weights, such as `bert`, and the vocabulary of the rows."""
    words = whole_words([*COLOURS, *WORDS, *COLOUR_QUESTION.split(), "yes", "no"])
    torch.manual_seed(0)
    model = encoder(name, len(words))
    for parameter in model.parameters():
        if parameter.ndim > 1:  # the large weights of `network` mix words too much to learn
            parameter.data *= 0.1
    model.save_pretrained(place)
    words.save_pretrained(place)


def encoder(name: str, vocabulary: int) -> PreTrainedModel:
    """Returns a tiny encoder with random weights."""
    if name != "modernbert":
        return network(name, vocabulary)
    config = ModernBertConfig(  # type: ignore[call-arg]  # its stub lacks a parameter
        vocab_size=vocabulary, hidden_size=32, intermediate_size=64, num_hidden_layers=3,
        num_attention_heads=2, max_position_embeddings=128, global_attn_every_n_layers=3,
        local_attention=16, pad_token_id=0, bos_token_id=1, cls_token_id=1, eos_token_id=2,
        sep_token_id=2,
    )  # fmt: skip
    return ModernBertModel(config)
