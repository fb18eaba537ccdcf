"""How fast readers read and write: `python benchmarks/reading.py [--smollm2]`.

T5 at the size of t5-small, with random weights, in sorted micro-batches against one input at a
time, on the same inputs in turns; with `--smollm2` also the default CausalLM's tokens a second
(its first use converts the weights, for a minute). Set OMP_NUM_THREADS to what a worker has.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from statistics import median

from leporello.records import Output, Read
from leporello.stages import Reader
from readers import CausalLM, Seq2Seq

WORDS = [
    "the",
    "a",
    "miller",
    "mill",
    "cat",
    "donkey",
    "boots",
    "king",
    "said",
    "took",
    "left",
    "had",
    "nothing",
    "but",
    "three",
    "sons",
]


def inputs(count: int, seed: int = 0) -> list[Read]:
    """Returns passages of 30 to 300 words with a question each."""
    chance = random.Random(seed)
    lengths = [chance.randint(30, 300) for _ in range(count)]
    return [Read((" ".join(chance.choices(WORDS, k=n)),), "Who had the cat?") for n in lengths]


def timed(reader: Reader, windows: list[list[Read]]) -> tuple[float, list[Output]]:
    """Returns seconds and outputs of windows that are read one after another."""
    start = time.perf_counter()
    outputs = [output for window in windows for output in reader.read(window)]
    return time.perf_counter() - start, outputs


def make_t5_small(folder: str) -> None:
    """Writes a model of t5-small's shape, with random weights and a small tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        special_tokens=["<pad>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator([" ".join(WORDS)], trainer)
    core.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    ends = {"pad_token": "<pad>", "eos_token": "</s>"}
    words = PreTrainedTokenizerFast(tokenizer_object=core, **ends)  # type: ignore[no-untyped-call]  # transformers leaves it so
    words.save_pretrained(folder)
    config = T5Config(pad_token_id=0, eos_token_id=1)
    config.decoder_start_token_id = 0
    T5ForConditionalGeneration(config).save_pretrained(folder)


def batched_against_single(rounds: int = 3) -> None:
    """Prints the ratio of one-by-one time to batched time, paired by round."""
    with tempfile.TemporaryDirectory() as folder:
        make_t5_small(folder)
        reader = Seq2Seq(folder, min_new_tokens=16, max_new_tokens=16)
        reader.read(inputs(1))
        ratios = []
        for seed in range(rounds):
            reads = inputs(24, seed)
            batched, together = timed(reader, [reads])
            single, alone = timed(reader, [[read] for read in reads])
            same = sum(a.text == b.text for a, b in zip(together, alone, strict=True))
            ratios.append(single / batched)
            print(f"t5-small, 24 inputs: batched {batched:.2f} s, one by one {single:.2f} s")
            print(f"  ratio {ratios[-1]:.2f}, {same} of 24 texts equal")
    print(f"median ratio {median(ratios):.2f}")


def smollm2() -> None:
    """Prints the default CausalLM's speed of reading, and of writing in a batch."""
    short = CausalLM(max_new_tokens=1)
    short.read(inputs(1))
    reads = inputs(8)
    reading, outputs = timed(short, [reads])
    read = sum(output.input_tokens for output in outputs)
    long = CausalLM(min_new_tokens=32, max_new_tokens=32)
    both, _ = timed(long, [reads])
    print(f"SmolLM2: reads {read / reading:.0f} tokens/s ({read} in {reading:.1f} s)")
    print(f"SmolLM2: writes {31 * 8 / (both - reading):.0f} tokens/s, 8 inputs in a batch budget")


if __name__ == "__main__":
    batched_against_single()
    if "--smollm2" in sys.argv:
        smollm2()
