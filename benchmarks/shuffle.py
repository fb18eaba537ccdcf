"""Measures the speed of the Shuffle Test's scoring.

    python -m benchmarks.shuffle    # ratios of paired runs, medians

Speed is measured with random weights. For a text of 512 tokens and a masked model, the reader is
compared with forward passes over the same rows in batches of the same size, with the last layer
over all words at every place, and without it, which is a lower bound for any scoring. For growing
chunks and a generative model, the reader, which reads common beginnings of chunks only once, is
compared with one forward pass per chunk.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from leporello import Document, Read
from leporello.chunkers import Windows
from leporello.core.calls.stage_calls import divide
from leporello.readers import LogLikelihood, PseudoLogLikelihood
from leporello.readers.backends.pretrained import load_model

SHAPE: Mapping[str, Any] = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
WORDS = 8000


def main() -> None:
    """Prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="pairs of runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        masked_speed(Path(folder), arguments.rounds)
    with tempfile.TemporaryDirectory() as folder:
        generative_speed(Path(folder), arguments.rounds)


def masked_speed(folder: Path, rounds: int) -> None:
    """Prints the ratio of a reader's time to the time of the model's forward passes."""
    from transformers import BertConfig, BertForMaskedLM

    shape = {**SHAPE, "intermediate_size": 512, "vocab_size": WORDS}
    BertForMaskedLM(BertConfig(**shape)).save_pretrained(folder)
    _save_words(folder)
    reader = PseudoLogLikelihood(str(folder))
    text = _text(512)
    reader.read([Read((text[: len(text) // 32],))])
    model: Any = load_model(str(folder), "AutoModelForMaskedLM", "float32", "auto")
    ids = reader.ids(Read((text,)))
    batch = reader.batching.tokens // len(ids)
    functions: dict[str, Callable[[], object]] = {
        "the reader": lambda: reader.read([Read((text,))]),
        "forward passes": lambda: _passes(model, ids, batch),
        "without the last layer": lambda: _passes(model.base_model, ids, batch),
    }
    times = paired(functions, rounds)
    print(f"masked model, a text of {len(ids)} tokens, batches of {batch} rows")
    for name in ("forward passes", "without the last layer"):
        print(f"  the reader takes {_ratio(times, 'the reader', name)} of {name}")


def _passes(model: Any, ids: Sequence[int], batch: int) -> None:  # noqa: ANN401 -- any model
    """Reads one row per token, in which the token is masked, by a plain loop over batches."""
    import torch

    with torch.inference_mode():
        for start in range(0, len(ids), batch):
            rows = torch.tensor([ids] * len(ids[start : start + batch]), device=model.device)
            places = torch.arange(len(rows), device=model.device)
            rows[places, start + places] = 4
            model(input_ids=rows)


def generative_speed(folder: Path, rounds: int) -> None:
    """Prints the ratio of a reader's time to the time of one forward pass per chunk."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_embd=128, n_layer=4, n_head=4, vocab_size=WORDS, bos_token_id=0, eos_token_id=0
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    _save_words(folder)
    reader = LogLikelihood(str(folder))
    documents = [Document(str(seed), _text(1000, seed)) for seed in range(6)]
    windows = Windows(1024, 512, str(folder), growing=True)
    reads = [Read((chunk,)) for document in documents for chunk in divide(windows, document)]
    reader.read(reads[:1])
    model: Any = load_model(str(folder), "AutoModelForCausalLM", "float32", "auto")
    rows = [torch.tensor([reader.ids(read)], device=model.device) for read in reads]

    def passes() -> None:
        with torch.inference_mode():
            for row in rows:
                model(input_ids=row, use_cache=False).logits.log_softmax(-1)

    times = paired({"the reader": lambda: reader.read(reads), "passes": passes}, rounds)
    print(f"generative model, {len(reads)} growing chunks of {len(documents)} texts")
    print(f"  the reader takes {_ratio(times, 'the reader', 'passes')} of one pass per chunk")


def paired(
    functions: Mapping[str, Callable[[], object]], rounds: int
) -> Mapping[str, Sequence[float]]:
    """Returns the times of functions in each round; the first function changes per round."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds):
        names = list(functions)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            start = time.perf_counter()
            functions[name]()
            times[name].append(time.perf_counter() - start)
    return times


def _ratio(times: Mapping[str, Sequence[float]], first: str, second: str) -> str:
    ratios = [a / b for a, b in zip(times[first], times[second], strict=True)]
    return f"{median(ratios):.2f} (from {min(ratios):.2f} to {max(ratios):.2f})"


def _text(tokens: int, seed: int = 0) -> str:
    generator = random.Random(seed)
    return " ".join(f"w{generator.randrange(5, WORDS)}" for _ in range(tokens))


def _save_words(folder: Path) -> None:
    """Saves a tokenizer with the words `w5` to `w7999`."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*special, *(f"w{number}" for number in range(len(special), WORDS))]
    vocabulary = {word: number for number, word in enumerate(words)}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106 -- not a password
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, **names)  # type: ignore[no-untyped-call]  # transformers has no type for it
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main()
