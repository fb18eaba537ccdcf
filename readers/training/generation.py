"""Fine-tuning of models that write or score: encoder-decoders and decoder-only ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from leporello.core.training import TrainingPairs, TuningJob, TuningResult
from leporello.readers.backends.pretrained import Architecture
from leporello.readers.batching.micro_batches import ModelInput
from leporello.readers.causal_lm import CausalLM
from leporello.readers.log_likelihood import LogLikelihood
from leporello.readers.seq2seq import Seq2Seq
from leporello.readers.training import collators
from leporello.readers.training.examples import TrainingExample
from leporello.readers.training.hardware import check  # noqa: F401 -- asked for beside the trainer
from leporello.readers.training.trainer import ModelToTune, fine_tune


def seq2seq(reader: Seq2Seq, job: TuningJob) -> TuningResult:
    """Fine-tunes an encoder-decoder to write the targets."""
    return _fine_tune(reader, "AutoModelForSeq2SeqLM", collators.translations, job)


def causal_lm(reader: CausalLM, job: TuningJob) -> TuningResult:
    """Fine-tunes a decoder-only model to continue its prompts with the targets, and end there."""
    return _fine_tune(reader, "AutoModelForCausalLM", collators.continuations, job)


def log_likelihood(reader: LogLikelihood, job: TuningJob) -> TuningResult:
    """Fine-tunes a decoder-only model on passages as they stand, a language model of their domain.

    Of an example with choices, a passage is learnt where the first one is right: its likelihood is
    what counts, so that nothing shuffled is learnt.
    """
    model = ModelToTune(
        reader.model, "AutoModelForCausalLM", reader.tokens, reader.device, collators.continuations
    )
    return fine_tune(model, job, partial(_passages, reader))


def _passages(
    reader: LogLikelihood, pairs: TrainingPairs, counts: Counter[str]
) -> list[TrainingExample]:
    rows = {
        reader.training_row(read): None
        for read, target in zip(pairs.inputs, pairs.targets, strict=True)
        if not read.choices or target == read.choices[0]
    }
    examples = [TrainingExample(ModelInput(row[:1]), row[1:]) for row in rows if len(row) > 1]
    counts["learnt"] += len(examples)
    counts["left out, not the first choice or met before"] += len(pairs.inputs) - len(examples)
    return examples


def _fine_tune(
    reader: CausalLM | Seq2Seq,
    architecture: Architecture,
    collator: Callable[[Any, int], collators.Collator],
    job: TuningJob,
) -> TuningResult:
    model = ModelToTune(reader.model, architecture, reader.tokens, reader.device, collator)
    return fine_tune(model, job, partial(_training_examples, reader))


def _training_examples(
    reader: CausalLM | Seq2Seq, pairs: TrainingPairs, counts: Counter[str]
) -> list[TrainingExample]:
    """Returns what is learnt; a target that is longer than the reader may write is cut."""
    examples = []
    for read, target in zip(pairs.inputs, pairs.targets, strict=True):
        parts = reader.training_examples(read, target)
        if len(parts) > 1:  # which part of the target belongs to which is not known
            counts["split, and left out"] += 1
            continue
        for prompt, tokens in parts:
            counts["learnt"] += 1
            counts["targets cut"] += len(tokens) > reader.max_new_tokens
            examples.append(TrainingExample(prompt, tokens[: reader.max_new_tokens]))
    return examples
