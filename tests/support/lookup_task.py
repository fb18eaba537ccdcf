"""Task of looking up one line of forty, and tiny models that learn it."""

import random
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from command_line import write_files
from tiny_encoders import whole_words
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForQuestionAnswering,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from leporello.api import Trained, train
from leporello.core.records import Read
from leporello.core.training import Training, TrainingPairs, TuningJob, TuningResult
from leporello.readers import CausalLM, Classifier, Extractive, Seq2Seq

ENDS = ("pad_token", "eos_token", "unk_token")
COLOURS = ("red", "green", "blue", "white")
NAMES = tuple(f"name{number}" for number in range(60))
WORDS = ("question", "context", ":", "the", "ball", "of", "is", *COLOURS, *NAMES)


def write_rows(folder: Path, sizes: dict[str, int]) -> None:
    """Writes splits with a number of documents each: forty lines, with two questions."""
    chance = random.Random(0)
    for split, count in sizes.items():
        rows = [row for number in range(count) for row in _rows(f"{split}{number}", chance)]
        write_files(folder, {f"{split}.jsonl": rows})


def _rows(document: str, chance: random.Random) -> list[dict[str, Any]]:
    names = chance.sample(NAMES, 40)
    colours = [chance.choice(COLOURS) for _ in names]
    text = "\n".join(f"the ball of {n} is {c}" for n, c in zip(names, colours, strict=True))
    places = chance.sample(range(40), 2)
    fields = [{"document": text}, {}]
    return [
        {"id": f"{document}-{place}", "document_id": document, **more_fields,
         "question": names[place], "references": [colours[place]]}
        for place, more_fields in zip(places, fields, strict=True)
    ]  # fmt: skip


def ended_words(words: Sequence[str]) -> PreTrainedTokenizerFast:
    """Returns a tokenizer of complete words that appends an end token."""
    special = ["<pad>", "</s>", "<unk>"]
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*special, *words])}, "<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # untyped in transformers
        tokenizer_object=core, **dict(zip(ENDS, special, strict=True))
    )


def save_t5(place: Path) -> None:
    """Saves an untrained tiny T5."""
    words = ended_words(WORDS)
    shape: dict[str, Any] = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 1, "num_heads": 2}
    torch.manual_seed(0)
    shape |= {"decoder_start_token_id": 0, "dropout_rate": 0.0}
    config = T5Config(**shape, vocab_size=len(words))
    T5ForConditionalGeneration(config).save_pretrained(place)
    words.save_pretrained(place)


def save_bert(place: Path, *, spans: bool = False) -> None:
    """Saves an untrained tiny BERT, without a head or with a head that marks answers."""
    words = whole_words(WORDS)
    shape: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    shape |= {"num_attention_heads": 2, "vocab_size": len(words), "pad_token_id": 0}
    shape |= {"initializer_range": 0.2}  # with smaller weights training takes longer
    torch.manual_seed(0)
    config = BertConfig(**shape, max_position_embeddings=64)
    (BertForQuestionAnswering(config) if spans else BertModel(config)).save_pretrained(place)
    words.save_pretrained(place)


def save_llama(place: Path) -> None:
    """Saves an untrained tiny Llama."""
    words = ended_words(WORDS)
    words.backend_tokenizer.post_processor = processors.TemplateProcessing("$A")
    shape: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": len(words)}
    shape |= {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": None}
    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**shape, max_position_embeddings=64)).save_pretrained(place)
    words.save_pretrained(place)


def save_models(folder: Path) -> None:
    """Saves the untrained tiny models of `CONFIG`."""
    save_t5(folder / "t5")
    save_bert(folder / "bert")
    save_bert(folder / "span", spans=True)
    save_llama(folder / "llama")


PROMPT = "question: {question} context: {context}"
CONFIG = f"""
pipelines:
  t5:
    chunker: {{class: Lines, size: 6}}
    retriever: {{class: TfIdf, k: 1}}
    reader:
      {{class: Seq2Seq, model: ./t5, max_input_tokens: 32, max_new_tokens: 4, prompt: "{PROMPT}"}}
    train: {{epochs: 3, learning_rate: 0.01, batch_size: 32}}
    placement: {{workers: 0}}
  bert:
    extends: t5
    reader: {{class: Classifier, model: ./bert, max_input_tokens: 32}}
    train: {{epochs: 4, learning_rate: 0.003}}
tasks:
  lookup: {{class: JsonLines, path: "{{split}}.jsonl", metrics: [exact_match]}}
"""
TEXTS = [(f"name{n}", COLOURS[n * 7 % 4]) for n in range(24)]
LESSONS = TrainingPairs(
    [Read((f"the ball of {name} is {colour}",), name) for name, colour in TEXTS],
    [colour for _, colour in TEXTS],
)
FEW = Training(epochs=4, learning_rate=0.003, batch_size=4, accumulate=2, seed=1)


def reader_of(kind: str, place: Path) -> Any:
    """Returns a reader with an untrained tiny model."""
    common: dict[str, Any] = {"model": str(place / kind), "max_input_tokens": 32}
    match kind:
        case "t5":
            return Seq2Seq(**common, prompt=PROMPT, max_new_tokens=4)
        case "llama":
            return CausalLM(**common, prompt=f"{PROMPT} :", max_new_tokens=4)
        case "bert":
            return Classifier(**common)
        case _:
            return Extractive(**common, stride=4)


def tuned(
    reader: Any,
    folder: Path,
    settings: Training = FEW,
    step: Callable[[], None] = lambda: None,
    lessons: TrainingPairs = LESSONS,
) -> TuningResult:
    """Fine-tunes the model of a reader as `train` does."""
    module, _, function = reader.trainer.partition(":")
    course = TuningJob(lessons, lessons, settings, folder, step)
    result: TuningResult = getattr(import_module(module), function)(reader, course)
    return result


def trained(place: Path, pipeline: str, out: Path, *sets: str) -> Trained:
    """Trains the pipeline on the task."""
    return train(pipeline, "lookup", config=[place / "mine.yaml"], overrides=sets, out=out)
