"""Measures memory and CPU time per chunk: SLED's fusion against LED, on tiny random models.

    OMP_NUM_THREADS=1 python -m benchmarks.fusion [--tokens 4096 16384]

Both have BART's shape with a width of 64, two layers, and generate eight tokens. Each measurement
is a process of its own: the growth of its peak memory, and the CPU seconds of its second read.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from leporello.core.records import Read
from leporello.readers import FusionInDecoder, Seq2Seq

CHUNK = 256
READERS: Mapping[str, Callable[..., Seq2Seq]] = {
    "LED": lambda place, tokens: Seq2Seq(
        place, prompt="{context}", separator="", max_input_tokens=tokens, on_overflow="slice",
        max_new_tokens=8, min_new_tokens=8, device="cpu",
    ),
    "SLED": lambda place, tokens: FusionInDecoder(
        place, prompt="{context}", separator="", max_input_tokens=CHUNK, max_fused_tokens=tokens,
        on_overflow="slice", chunk_tokens=CHUNK, max_new_tokens=8, min_new_tokens=8, device="cpu",
    ),
}  # fmt: skip


def main() -> None:
    """Prints a table with a row for each model and length."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", nargs="+", type=int, default=[4096, 16384])
    print("| model | tokens | peak memory, MB | CPU seconds | per 256 tokens, ms |")
    print("|---|---|---|---|---|")
    for tokens in parser.parse_args().tokens:
        for name in READERS:
            with get_context("spawn").Pool(1) as pool:
                memory, seconds = pool.apply(measure, (name, tokens))
            share = 1000 * seconds * CHUNK / tokens
            print(f"| {name} | {tokens:,} | {memory:.0f} | {seconds:.2f} | {share:.1f} |")


def measure(name: str, tokens: int) -> tuple[float, float]:
    """Returns the growth of peak memory in MB, and CPU seconds, of one read."""
    with tempfile.TemporaryDirectory() as folder:
        save(name, Path(folder))
        reader = READERS[name](folder, tokens)
        texts = [" ".join(f"w{i * step % 400}" for i in range(tokens + 9)) for step in (3, 7)]
        reader.read([Read((texts[0][:100], ""))])  # loads the model
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        reader.read([Read((texts[0], ""))])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        start = time.process_time()
        [output] = reader.read([Read((texts[1], ""))])
        assert output.input_tokens == tokens
        return memory / 1024, time.process_time() - start


def save(name: str, place: Path) -> None:
    """Saves a random model and a tokenizer of words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import (
        BartConfig,
        BartForConditionalGeneration,
        LEDConfig,
        LEDForConditionalGeneration,
        PreTrainedTokenizerFast,
    )

    words = ["<pad>", "</s>", "<unk>", *(f"w{i}" for i in range(400))]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=core, **ends).save_pretrained(place)  # type: ignore[no-untyped-call]
    shape: dict[str, Any] = {"vocab_size": len(words), "d_model": 64, "decoder_start_token_id": 1}
    shape |= {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": None}
    for half in ("encoder", "decoder"):
        shape |= {f"{half}_layers": 2, f"{half}_attention_heads": 4, f"{half}_ffn_dim": 256}
    if name == "SLED":
        BartForConditionalGeneration(BartConfig(**shape)).save_pretrained(place)
        return
    window: dict[str, Any] = {"attention_window": [1024, 1024]}  # as in led-base-16384
    LEDForConditionalGeneration(LEDConfig(**shape, **window)).save_pretrained(place)


if __name__ == "__main__":
    main()
