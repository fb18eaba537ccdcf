"""Measures the speed of readers, the growth of memory, and the packing of batches.

    OMP_NUM_THREADS=1 python -m benchmarks.reading [--models t5-small bart-base llama-135m]
        [--inputs 64] [--rounds 2] [--parts speed rate memory packing]

speed: models of these shapes with random weights; prompts of 50 to 512 tokens, 32 new tokens, an
input window of 512. Each round measures every way once, in CPU seconds. Printed are medians over
rounds of the ratios within a round, which a busy machine does not change. The ways:

- one by one: transformers with one prompt at a time; the reference of the others.
- batched: the reader with its micro-batches, sorted by length.
- even: the reader with prompts that need no padding, of the same mean lengths.
- choices: four options over one context at once, compared with scoring the options one by one.

rate: tokens that the default reader reads and writes per CPU second.
memory: growth of a tiny model's process after 1,000 and 10,000 inputs.
packing: CPU seconds to pack 16,384 inputs into micro-batches, for several lengths and budgets.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeAlias

from leporello.core.records import Read
from leporello.readers import CausalLM, Seq2Seq
from leporello.readers.batching.micro_batches import ModelInput, batches

Reading: TypeAlias = Seq2Seq | CausalLM
NEW_TOKENS = 32
WINDOW = Seq2Seq.window_size
PACKED = 16_384  # inputs
WORDS = ["the", "a", "miller", "mill", "cat", "donkey", "boots", "king"]
WORDS += ["said", "took", "left", "had", "nothing", "but", "three", "sons"]


def main() -> None:
    """Prints the measurements of the chosen parts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=[*SHAPES], default=["t5-small", "bart-base"])
    parser.add_argument("--inputs", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--parts", nargs="+", choices=[*PARTS], default=[*PARTS])
    options = parser.parse_args()
    for part in options.parts:
        PARTS[part](options)


# -- speed ---------------------------------------------------------------------------------------


def speed(options: argparse.Namespace) -> None:
    """Prints for each model the speed of each way, relative to its reference."""
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            SHAPES[name](folder)
            model = reader(name, folder)
            rounds = [measured(model, options.inputs, seed) for seed in range(options.rounds)]
        print(f"{name}, median of {len(rounds)} rounds (minimum to maximum)", flush=True)
        for way in rounds[0]:
            ratios = sorted(round_[way] for round_ in rounds)
            text = f"{median(ratios):5.2f}  ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            print(f"  {way:42} {text}", flush=True)


def measured(model: Reading, count: int, seed: int) -> dict[str, float]:
    """Returns the ratios of one round."""
    lengths = random.Random(seed).choices(range(50, 513), k=count)
    reads, even = inputs(lengths, seed), inputs(evened(lengths), seed)
    before = seconds(lambda: model.read(reads))
    perfect = seconds(lambda: model.read(even))
    batched = fmean([before, seconds(lambda: model.read(reads))])  # the first time is colder
    single = seconds(lambda: [model.read([read]) for read in reads])
    ratios = {"batched / one by one (goal 1.35)": single / batched}
    ratios["batched / even (goal 0.90)"] = perfect / batched
    ratios["choices, four at once / one by one (2.50)"] = choices(model, reads[: count // 4])
    return ratios


def choices(reader_: Reading, reads: Sequence[Read]) -> float:
    """Returns the speed of scoring four options at once, relative to one by one."""
    options = [" ".join(WORDS[i : i + 6]) for i in range(0, 16, 4)]
    together = [Read(read.passages, choices=tuple(options)) for read in reads]
    separate = [Read(read.passages, choices=(option,)) for read in reads for option in options]
    at_once, one_by_one = seconds(lambda: reader_.read(together)), 0.0
    for read in separate:
        one_by_one += seconds(lambda: reader_.read([read]))  # noqa: B023 -- called at once
    return one_by_one / at_once


# -- rate, memory, packing -----------------------------------------------------------------------


def rate(_: argparse.Namespace) -> None:
    """Prints the numbers of tokens that the default reader reads and writes per second."""
    lengths = [500, 450, 400, 350, 300, 250, 200, 150]
    times = {}
    for new in (1, 1 + NEW_TOKENS):
        model = CausalLM(prompt="{context}", device="cpu", max_new_tokens=new, min_new_tokens=new)
        model.read(inputs([60], 0))
        reads = inputs(lengths, 0)
        times[new] = median(seconds(lambda: model.read(reads)) for _ in range(2))  # noqa: B023 -- called at once
        tokens = sum(output.input_tokens for output in model.read(reads))
    reading, both = times[1], times[1 + NEW_TOKENS]
    written = NEW_TOKENS * len(lengths) / (both - reading)
    print(
        f"{model.model}: {tokens / reading:,.0f} tokens/s read, {written:,.0f} written", flush=True
    )


def memory(_: argparse.Namespace) -> None:
    """Prints the memory of the process after 1,000 and 10,000 inputs, written and scored."""
    with tempfile.TemporaryDirectory() as folder:
        save_tiny(folder)
        model = Seq2Seq(folder, prompt="{context}", device="cpu", max_new_tokens=4)
        sizes = {}
        for start in range(0, 10_000, WINDOW):
            generator = random.Random(start)
            reads = inputs([generator.randrange(10, 100) for _ in range(WINDOW)], start)
            half = [Read(read.passages, choices=("mill", "cat")) for read in reads[::2]]
            model.read([*reads[1::2], *half])
            sizes[start + WINDOW] = resident()
        first = min(count for count in sizes if count >= 1_000)
        last = max(sizes)
        text = ", ".join(f"{sizes[n]:,.0f} MB after {n:,} inputs" for n in (first, last))
        print(f"memory: {text}", flush=True)


def packing(options: argparse.Namespace) -> None:
    """Prints the time of packing the largest batches that a reader requests."""
    shapes = {"short texts": (5, 30, 8192, 0), "pairs": (20, 128, 8192, 0)}
    shapes |= {"prompts": (50, 512, 4096, NEW_TOKENS), "a GPU": (50, 512, 500_000, NEW_TOKENS)}
    for name, (shortest, longest, budget, new) in shapes.items():
        times = []
        for seed in range(max(3, options.rounds)):
            lengths = random.Random(seed).choices(range(shortest, longest + 1), k=PACKED)
            prompts = [ModelInput((0,) * length) for length in lengths]
            times.append(seconds(lambda: list(batches(prompts, budget, 1, new))))  # noqa: B023 -- called at once
        text = f"packing {PACKED:,} inputs, {name} of {shortest} to {longest} tokens"
        print(f"{text}, in {budget:,}: {median(times):.3f} s (goal 0.3)", flush=True)


# -- readers and inputs --------------------------------------------------------------------------


def reader(name: str, folder: str, **parameters: Any) -> Reading:  # noqa: ANN401 -- parameters of the constructors
    """Returns a reader after its first read."""
    kind = CausalLM if name == "llama-135m" else Seq2Seq
    lengths: dict[str, Any] = {"max_input_tokens": 512, "max_new_tokens": NEW_TOKENS}
    lengths |= {"min_new_tokens": NEW_TOKENS}
    model: Reading = kind(folder, prompt="{context}", device="cpu", **lengths, **parameters)
    model.read(inputs([60, 50], 0))
    return model


def seconds(work: Callable[[], object]) -> float:
    """Returns the CPU seconds of a function, over all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def resident() -> float:
    """Returns the resident memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def inputs(lengths: Sequence[int], seed: int) -> list[Read]:
    """Returns reads of the given numbers of tokens: words, and one special token."""
    generator = random.Random(seed)
    return [Read((" ".join(generator.choices(WORDS, k=n - 1)),)) for n in lengths]


def evened(lengths: Sequence[int]) -> list[int]:
    """Returns the lengths, with each length replaced by the mean of its micro-batch."""
    prompts = [ModelInput((0,) * length) for length in lengths]
    return [mean for batch in batches(prompts, 4096, 1, NEW_TOKENS) for mean in _means(batch)]


def _means(batch: Sequence[ModelInput]) -> Iterator[int]:
    yield from [round(fmean(len(prompt.tokens) for prompt in batch))] * len(batch)


def save_words(folder: str, template: str) -> None:
    """Writes a tokenizer with one token per word."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(["<pad>", "</s>", "<unk>", *WORDS])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))  # noqa: S106 -- not a password
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[("</s>", 1)]
    )
    ends = {"pad_token": "<pad>", "eos_token": "</s>"}
    words = PreTrainedTokenizerFast(tokenizer_object=core, **ends)  # type: ignore[no-untyped-call]  # transformers has no type for it
    words.save_pretrained(folder)


def save_t5_small(folder: str) -> None:
    """Writes a T5 of 60 million weights."""
    from transformers import T5Config, T5ForConditionalGeneration

    save_words(folder, "$A </s>")
    ends: dict[str, Any] = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    T5ForConditionalGeneration(T5Config(**ends)).save_pretrained(folder)


def save_tiny(folder: str) -> None:
    """Writes a tiny T5."""
    from transformers import T5Config, T5ForConditionalGeneration

    save_words(folder, "$A </s>")
    shape: dict[str, Any] = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    shape |= {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    T5ForConditionalGeneration(T5Config(**shape)).save_pretrained(folder)


def save_bart_base(folder: str) -> None:
    """Writes a BART of 139 million weights."""
    from transformers import BartConfig, BartForConditionalGeneration

    save_words(folder, "$A </s>")
    shape: dict[str, Any] = {"d_model": 768, "forced_eos_token_id": None}
    for half in ("encoder", "decoder"):
        shape |= {f"{half}_layers": 6, f"{half}_ffn_dim": 3072, f"{half}_attention_heads": 12}
    ends: dict[str, Any] = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1}
    ends |= {"decoder_start_token_id": 1}
    BartForConditionalGeneration(BartConfig(**shape, **ends)).save_pretrained(folder)


def save_llama(folder: str) -> None:
    """Writes a Llama of 135 million weights, in the shape of SmolLM2."""
    from transformers import LlamaConfig, LlamaForCausalLM

    save_words(folder, "</s> $A")
    shape: dict[str, Any] = {"hidden_size": 576, "intermediate_size": 1536, "vocab_size": 49152}
    shape |= {"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3}
    ends: dict[str, Any] = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1}
    ends |= {"tie_word_embeddings": True}
    LlamaForCausalLM(LlamaConfig(**shape, **ends)).save_pretrained(folder)


SHAPES: Mapping[str, Callable[[str], None]] = {
    "t5-small": save_t5_small,
    "bart-base": save_bart_base,
    "llama-135m": save_llama,
}

PARTS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "speed": speed,
    "rate": rate,
    "memory": memory,
    "packing": packing,
}

if __name__ == "__main__":
    main()
