"""How fast readers read and write, and what each backend gains.

    OMP_NUM_THREADS=1 python -m benchmarks.reading [--models t5-small bart-base llama-135m]
        [--inputs 64] [--rounds 3]

Models of these shapes with random weights; prompts of 50 to 512 tokens, 32 new tokens, a window of
512. Each round measures every way once, in CPU seconds; what is printed are medians over the rounds
of the ratios within a round, so that a busy machine shifts all alike. The ways:

- one by one: transformers, a prompt at a time; what the others are compared with.
- batched: the reader as it is, in micro-batches sorted by length.
- even: the reader given prompts that need no padding, of the same lengths on average.
- ctranslate2 float32, int8: the reader with that backend.
- choices: four options over one context at once; compared with scoring the four one by one.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any, TypeAlias

from leporello.records import Output, Read
from readers import CausalLM, Seq2Seq
from readers.batching import Prompt, batches

Reading: TypeAlias = Seq2Seq | CausalLM
NEW_TOKENS = 32
WORDS = ["the", "a", "miller", "mill", "cat", "donkey", "boots", "king"]
WORDS += ["said", "took", "left", "had", "nothing", "but", "three", "sons"]


def main() -> None:
    """Prints the ratios of each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=[*SHAPES], default=["t5-small", "bart-base"])
    parser.add_argument("--inputs", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
            os.environ["LEPORELLO_CACHE"] = cache  # where models are converted to
            SHAPES[name](folder)
            report(name, [measured(name, folder, options.inputs, i) for i in range(options.rounds)])


def report(name: str, rounds: Sequence[Mapping[str, float]]) -> None:
    """Prints, for each way, how many times as fast as what it is compared with it is."""
    print(f"{name}, median of {len(rounds)} rounds (least to most)")
    for way in rounds[0]:
        ratios = sorted(each[way] for each in rounds)
        print(f"  {way:42} {median(ratios):5.2f}  ({ratios[0]:.2f} to {ratios[-1]:.2f})")


def measured(name: str, folder: str, count: int, seed: int) -> dict[str, float]:
    """Returns the ratios of one round."""
    lengths = random.Random(seed).choices(range(50, 513), k=count)
    reads, even = inputs(lengths, seed), inputs(evened(lengths), seed)
    torch = reader(name, folder)
    alone = seconds(lambda: [torch.read([read]) for read in reads])
    batched = seconds(lambda: torch.read(reads))
    found = {"batched / one by one": alone / batched}
    found["batched / even (goal 0.90)"] = seconds(lambda: torch.read(even)) / batched
    few = reads[: count // 4]
    found["choices, four at once / one by one"] = choices(torch, few)
    for dtype in ("float32", "int8"):
        other = reader(name, folder, backend="ctranslate2", dtype=dtype)
        found[f"ctranslate2 {dtype} / one by one"] = alone / seconds(lambda: other.read(reads))  # noqa: B023 -- called at once
        found[f"ctranslate2 {dtype}, choices likewise"] = choices(other, few)
    return found


def reader(name: str, folder: str, **parameters: Any) -> Reading:  # noqa: ANN401 -- as the constructors
    """Returns a reader that is loaded and warm."""
    kind = CausalLM if name == "llama-135m" else Seq2Seq
    lengths: dict[str, Any] = {"max_input_tokens": 512, "max_new_tokens": NEW_TOKENS}
    lengths |= {"min_new_tokens": NEW_TOKENS}
    made: Reading = kind(folder, prompt="{context}", device="cpu", **lengths, **parameters)
    made.read(inputs([60, 50], 0))
    return made


def seconds(work: Callable[[], object]) -> float:
    """Returns the CPU seconds that this takes, of all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def choices(made: Reading, reads: Sequence[Read]) -> float:
    """Returns how many times as fast four options are at once as one by one."""
    options = [" ".join(WORDS[i : i + 6]) for i in range(0, 16, 4)]
    together = [Read(read.passages, choices=tuple(options)) for read in reads]
    apart = [[Read(read.passages, choices=(option,)) for option in options] for read in reads]
    outputs: list[Output] = []
    at_once = seconds(lambda: outputs.extend(made.read(together)))
    singly: list[list[Output]] = []
    one_by_one = seconds(lambda: singly.extend([made.read([o])[0] for o in own] for own in apart))
    for output, own in zip(outputs, singly, strict=True):
        pairs = zip(output.scores, own, strict=True)
        # In int8, which rounds coarsely, other batch mates tell more than in float32.
        assert all(abs(score - other.scores[0]) < 0.1 for score, other in pairs)
    return one_by_one / at_once


def inputs(lengths: Sequence[int], seed: int) -> list[Read]:
    """Returns passages of so many tokens: a word is one, and one ends or begins the prompt."""
    chance = random.Random(seed)
    return [Read((" ".join(chance.choices(WORDS, k=n - 1)),)) for n in lengths]


def evened(lengths: Sequence[int]) -> list[int]:
    """Returns the lengths with each micro-batch's own mean in place of its prompts' lengths."""
    prompts = [Prompt((0,) * length) for length in lengths]
    return [mean for batch in batches(prompts, 4096, 1, NEW_TOKENS) for mean in _means(batch)]


def _means(batch: Sequence[Prompt]) -> Iterator[int]:
    yield from [round(fmean(len(prompt.tokens) for prompt in batch))] * len(batch)


def save_words(folder: str, template: str) -> None:
    """Writes a tokenizer to which each word is a token."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    known = {word: i for i, word in enumerate(["<pad>", "</s>", "<unk>", *WORDS])}
    core = Tokenizer(models.WordLevel(known, unk_token="<unk>"))  # noqa: S106 -- no password
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    core.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[("</s>", 1)]
    )
    ends = {"pad_token": "<pad>", "eos_token": "</s>"}
    words = PreTrainedTokenizerFast(tokenizer_object=core, **ends)  # type: ignore[no-untyped-call]  # transformers leaves it so
    words.save_pretrained(folder)


def save_t5_small(folder: str) -> None:
    """Writes a T5 of 60 million weights."""
    from transformers import T5Config, T5ForConditionalGeneration

    save_words(folder, "$A </s>")
    ends: dict[str, Any] = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    T5ForConditionalGeneration(T5Config(**ends)).save_pretrained(folder)


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

if __name__ == "__main__":
    main()
