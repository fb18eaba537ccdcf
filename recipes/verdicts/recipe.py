"""The recipe `verdicts`: trains a judge of claims and yes/no questions.

It trains the upper layers of the recipe `answers`' encoder to decide whether a text confirms or
contradicts a claim, or does neither. No data set for entailment has a licence that allows
publishing weights. So the training data are claims made from questions with right and wrong
answers (`claims`), and real yes/no questions.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy

from leporello.core.protocols import Count, Positive
from leporello.core.training import AboveZero, PartOf
from leporello.models.weights import Arrays, ModelFolder, unpack
from recipes.answers.base import encoder_of
from recipes.answers.names import restored, shipped_names
from recipes.answers.network import AnswerNetwork, collate
from recipes.answers.questions import Question, read_questions, split
from recipes.answers.windows import (
    LABELS,
    QUESTION,
    Group,
    LabelledWindow,
    in_batches,
)
from recipes.settings import exclusion
from recipes.verdicts.pairs import Pair, asked_pairs, claimed_pairs
from recipes.weights import pack, write_model

_LOG_EVERY = 50  # batches between two lines of the log
_HEAD = ("label.weight", "label.bias")


@dataclass(frozen=True)
class VerdictsSettings:
    """Settings that determine the result of a training."""

    encoder: Path  # folder of the recipe `answers`' encoder, a BERT
    questions: tuple[Path, ...]  # files of rows that the encoder was trained on
    claims: Count = 5000  # number of claims to train on
    asked: Count = 3000  # number of yes/no questions to train on
    frozen: Count = 6  # number of first layers that are not trained
    rank: Positive = 32  # rank of the stored changes of matrices
    learning_rate: AboveZero = 1.2e-4  # learning rate at the beginning, which falls to 0
    head_rate: AboveZero = 4.0  # learning rate of the head, as a multiple of `learning_rate`
    warmup: PartOf = 0.06  # share of the batches over which the rate rises
    batch: Positive = 1600  # maximum number of tokens of a batch
    text: Positive = 176  # maximum number of tokens of a text
    validation: PartOf = 0.03  # share of the documents for validation
    # Python file with `is_apart(text)`, which is run: texts are left out if it returns true.
    exclude: Path | None = None
    threads: Positive = 1  # number of threads
    seed: int = 1  # seed of the split, of random draws, and of the order


SETTINGS = VerdictsSettings


def train(settings: VerdictsSettings, out: Path) -> dict[str, Any]:
    """Trains and writes a judge; returns its scores and counts of the data."""
    training, validation = _pairs_of(settings)
    folder = ModelFolder(settings.encoder)
    weights = unpack(folder.checked("weights.safetensors"))
    graph = folder.checked("graph.onnx")
    network = AnswerNetwork(encoder_of(weights, graph), settings.frozen)
    network.load_state_dict(restored(weights, network.encoder.config.num_hidden_layers))
    windows = _PairReader(folder, settings)
    groups = [windows.of(pair) for pair in training]
    torch.manual_seed(settings.seed)
    _fit(network, in_batches(groups, settings.batch, (settings.seed,)), windows, settings, out)
    scores = _scores(lambda part: windows.predicted(network, part), validation)
    files = {
        "weights.safetensors": _packed(network, weights, settings.rank),
        "graph.onnx": graph,
    }
    config = folder.config()
    checksum = config.pop("sha256")["weights.safetensors"]
    config.pop("confidence", None)  # that of answers
    write_model(out, files, {**config, "base": checksum})
    return {
        "pairs": len(training),
        "sources": dict(Counter(pair.source for pair in training)),
        "labels": dict(Counter(pair.label for pair in training)),
        "validation": scores,
    }


def _pairs_of(settings: VerdictsSettings) -> tuple[list[Pair], list[Pair]]:
    """Returns the pairs for training, and those for validation, which are of other documents."""
    excluded = exclusion(settings.exclude)
    everything = [question for path in settings.questions for question in read_questions(path)]
    texts = {text for q in everything for text in (q.passage, *q.others)}
    apart = {text for text in texts if excluded(text)}
    free = [q for q in everything if apart.isdisjoint((q.passage, *q.others))]
    parts = split(free, settings.validation, settings.seed)
    training, validation = (_sample(part, settings) for part in parts)
    return training, validation


def _sample(questions: Sequence[Question], settings: VerdictsSettings) -> list[Pair]:
    random_ = random.Random(settings.seed)
    plain = [q for q in questions if not q.source.endswith("_options")]
    yes_no = [*asked_pairs(plain, settings.seed)]
    claims = [*claimed_pairs(random_.sample(plain, len(plain)), settings.seed)]
    chosen = random_.sample(yes_no, min(settings.asked, len(yes_no)))
    return [*chosen, *claims[: settings.claims]]


class _PairReader:
    """Turns pairs into windows, and predicts their labels with a network."""

    def __init__(self, folder: ModelFolder, settings: VerdictsSettings) -> None:
        config = folder.config()
        self.special = (config["cls"], config["sep"])
        self._tokenizer = Tokenizer.from_str(folder.checked("tokenizer.json").decode())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._settings = settings

    def of(self, pair: Pair) -> Group:
        """Returns a group with the window of a pair."""
        question, text = (
            self._tokenizer.encode(part, add_special_tokens=False).ids
            for part in (pair.claim, pair.text)
        )
        label = LABELS.index(pair.label)
        return (LabelledWindow(question[:QUESTION], text[: self._settings.text], label=label),)

    def predicted(self, network: AnswerNetwork, pairs: Sequence[Pair]) -> np.ndarray[Any, Any]:
        """Returns logits of the labels, shape (pairs, 4)."""
        network.eval()
        with torch.no_grad():
            rows = [collate([self.of(pair)], self.special) for pair in pairs]
            logits = [network(row.ids, row.types, row.mask)[1] for row in rows]
        return torch.cat(logits).numpy() if logits else np.zeros((0, len(LABELS)))


def _fit(
    network: AnswerNetwork,
    batches: Sequence[Sequence[Group]],
    windows: _PairReader,
    settings: VerdictsSettings,
    out: Path,
) -> None:
    """Trains the network, and writes the losses to a log beside the shipped folder."""
    torch.set_num_threads(settings.threads)
    body = [p for p in network.encoder.parameters() if p.requires_grad]
    head = [*network.label.parameters()]
    network.span.requires_grad_(False)
    optimizer = torch.optim.AdamW(
        [{"params": body, "scale": 1.0}, {"params": head, "scale": settings.head_rate}],
        lr=0.0,
        weight_decay=0.01,
    )
    out.mkdir(parents=True, exist_ok=True)
    losses = []
    for number, groups in enumerate(batches):
        progress = number / len(batches)
        warmup = min(1.0, (progress + 1e-3) / settings.warmup)
        rate = settings.learning_rate * warmup * (1 - progress)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        batch = collate(groups, windows.special)
        _, logits = network(batch.ids, batch.types, batch.mask)
        loss = cross_entropy(logits, batch.labels)
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no type for it
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(loss.detach()))
        if len(losses) % _LOG_EVERY == 0:
            mean = np.mean(losses[-_LOG_EVERY:])
            line = {"batch": number + 1, "of": len(batches), "loss": mean}
            with (out.parent / "log.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def _packed(network: AnswerNetwork, base: Arrays, rank: int) -> bytes:
    """Returns the changed weights; matrices as low-rank differences from the base."""
    layers = network.encoder.config.num_hidden_layers
    plain, differences = {}, {}
    for name, value in shipped_names(network.state_dict(), layers).items():
        difference = value - base[name]
        if name in _HEAD or (difference.ndim < 2 and difference.any()):  # noqa: PLR2004 -- a vector
            plain[name] = value
        elif difference.any():
            left, size, right = np.linalg.svd(difference, full_matrices=False)
            root = np.sqrt(size[:rank])
            differences[name] = (left[:, :rank] * root, root[:, None] * right[:rank])
    return pack(plain, differences)


def _scores(
    predicted: Callable[[Sequence[Pair]], np.ndarray[Any, Any]], pairs: Sequence[Pair]
) -> dict[str, float]:
    """Returns percentages of right verdicts on claims, and on questions by data set.

    Questions are scored only on yes and no; `always` is the share of the commonest label.
    `predicted` returns logits of the labels, shape (pairs, 4).
    """
    logits = predicted(pairs)
    columns = [LABELS.index(name) for name in ("null", "yes", "no")]
    groups: dict[str, list[int]] = defaultdict(list)
    for i, pair in enumerate(pairs):
        is_question = pair.claim.endswith("?") or not pair.claim.endswith(".")
        groups[pair.source if is_question else "claims"].append(i)
        if not is_question:
            groups[f"claims {pair.label}"].append(i)
    scores = {}
    for name, rows in groups.items():
        scored = [i for i in rows if name.startswith("claims") or pairs[i].label != "null"]
        if not scored:
            continue
        choices = columns if name.startswith("claims") else columns[1:]
        right = [
            LABELS[choices[int(logits[i, choices].argmax())]] == pairs[i].label for i in scored
        ]
        common = Counter(pairs[i].label for i in scored).most_common(1)[0][1]
        scores[name] = round(100 * float(np.mean(right)), 1)
        scores[f"{name} always"] = round(100 * common / len(scored), 1)
        scores[f"{name} count"] = len(scored)
    return scores
