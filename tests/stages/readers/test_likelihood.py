"""Tests of likelihoods of passages, of the chunker Windows, and of the combiner Mean."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from command_line import GOLDEN
from one_example import drive
from tiny_encoders import wordpieces
from tiny_models import STORY, save, save_masked
from transformers import AutoTokenizer

from leporello.chunkers import Whole, Windows
from leporello.combiners import Mean
from leporello.core.calls.stage_calls import divide
from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.errors import UserError
from leporello.core.protocols import RendersPrompt
from leporello.core.records import Chunk, Document, Example, Hit, Output, Read
from leporello.readers import LogLikelihood, PseudoLogLikelihood
from leporello.readers.backends.pretrained import load_model

CASES = json.loads((GOLDEN / "shuffle_test.json").read_text(encoding="utf-8"))
WINDOWS = [case for case in CASES if "windows" in case]
POSITIONS = 66  # positions of masked models; RoBERTa counts them after the padding, which is 0


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    places = {name: tmp_path_factory.mktemp(name) for name in ("gpt2", "chat", "bert", "roberta")}
    for name in ("gpt2", "chat"):
        save(name, places[name])
    save_masked("bert", places["bert"], wordpieces([STORY], 90), POSITIONS)
    save_masked("roberta", places["roberta"], positions=POSITIONS)
    return {name: str(place) for name, place in places.items()}


def _ids(model: str, text: str) -> list[int]:
    words: Any = AutoTokenizer.from_pretrained(model)
    ids: list[int] = words(text, add_special_tokens=False)["input_ids"]
    return ids


def plain_log_likelihood(model: str, ids: Sequence[int]) -> list[float]:
    """Returns the log-probabilities of tokens after the first, by one forward pass per token."""
    network = load_model(model, "AutoModelForCausalLM", "float32", "cpu")
    log_probabilities = []
    with torch.inference_mode():
        for place in range(1, len(ids)):
            logits = network(torch.tensor([ids[:place]])).logits[0, -1]
            log_probabilities.append(float(logits.log_softmax(-1)[ids[place]]))
    return log_probabilities


def plain_pseudo_log_likelihood(model: str, ids: Sequence[int], mask: int) -> list[float]:
    """Returns the log-probabilities of masked tokens, by one forward pass per token."""
    network = load_model(model, "AutoModelForMaskedLM", "float32", "cpu")
    log_probabilities = []
    with torch.inference_mode():
        for place in range(len(ids)):
            row = torch.tensor([ids])
            row[0, place] = mask
            logits = network(row).logits[0, place]
            log_probabilities.append(float(logits.log_softmax(-1)[ids[place]]))
    return log_probabilities


def _scores(reader: Any, reads: Sequence[Read]) -> list[float]:
    outputs = checked_read(reader, reads)
    scores = [output.score for output in outputs if output.score is not None]
    assert len(scores) == len(outputs)
    return scores


def _generative(model: str, **options: Any) -> LogLikelihood:
    return LogLikelihood(model, max_input_tokens=250, device="cpu", **options)


def _masked(model: str, **options: Any) -> PseudoLogLikelihood:
    return PseudoLogLikelihood(model, max_input_tokens=64, device="cpu", **options)


TEXTS = (STORY, STORY[:90], STORY[40:200], "The cat", "猫 🐈", STORY[:90])


@pytest.mark.parametrize("name", ["gpt2", "chat"])
@pytest.mark.parametrize("per_token", [False, True])
def test_log_likelihoods_equal_a_plain_loop(
    folders: dict[str, str], name: str, per_token: bool
) -> None:
    model = folders[name]
    reads = [Read((text,), "A question?", "An instruction.") for text in TEXTS]
    outputs = checked_read(_generative(model, per_token=per_token), reads)
    for text, output in zip(TEXTS, outputs, strict=True):
        ids = _ids(model, text)
        log_probabilities = plain_log_likelihood(model, ids)
        expected = sum(log_probabilities) / (len(log_probabilities) if per_token else 1)
        assert output.score == pytest.approx(expected, abs=1e-3 if not per_token else 1e-5)
        assert output.text == f"{output.score:.6f}"
        assert (output.input_tokens, output.output_tokens) == (len(ids), 0)


@contextmanager
def rows_read(model: str, architecture: Any) -> Iterator[list[int]]:
    """Yields a list that receives the lengths of all rows that the model reads in the block."""
    network, rows = load_model(model, architecture, "float32", "cpu"), []

    def note(_: object, __: object, inputs: Mapping[str, torch.Tensor]) -> None:
        rows.extend([inputs["input_ids"].shape[1]] * inputs["input_ids"].shape[0])

    hook = network.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield rows
    finally:
        hook.remove()


def test_equal_passages_and_prefixes_are_read_once(folders: dict[str, str]) -> None:
    """Growing chunks are prefixes of each other; the longest one has the scores of all."""
    model = folders["gpt2"]
    document = Document("d", STORY)
    spans = list(Windows(60, 20, model, growing=True).chunk(document))
    reads = [Read((document.chunk(span.start, span.end),)) for span in spans]
    with rows_read(model, "AutoModelForCausalLM") as rows:
        together = _scores(_generative(model, batch_tokens=64), [*reads, *reads])
    assert len(rows) == len(spans) - 2  # 20 and 40 tokens are prefixes of the chunk of 60
    assert together[: len(spans)] == together[len(spans) :]
    separate = [_scores(_generative(model), [read])[0] for read in reads]
    assert together[: len(spans)] == pytest.approx(separate, abs=1e-3)


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_pseudo_log_likelihoods_equal_a_plain_loop(folders: dict[str, str], name: str) -> None:
    model = folders[name]
    words: Any = AutoTokenizer.from_pretrained(model)
    texts = [STORY[:60], "The cat took the mill", "three sons", STORY[:60]]
    reader = _masked(model, per_token=False, batch_tokens=200)
    outputs = checked_read(reader, [Read((text,)) for text in texts])
    for text, output in zip(texts, outputs, strict=True):
        ids = words(text, add_special_tokens=False)["input_ids"]
        log_probabilities = plain_pseudo_log_likelihood(model, ids, words.mask_token_id)
        assert output.score == pytest.approx(sum(log_probabilities), abs=1e-3)
        assert output.input_tokens == len(ids)
    [mean] = _scores(_masked(model), [Read((texts[0],))])
    assert outputs[0].score is not None
    assert mean == pytest.approx(outputs[0].score / outputs[0].input_tokens, abs=1e-5)


@pytest.mark.parametrize("make", [_generative, _masked])
def test_inputs_other_than_a_single_passage_are_refused(
    folders: dict[str, str], make: Callable[[str], Any]
) -> None:
    reader = make(folders["gpt2" if make is _generative else "bert"])
    for read, message in (
        (Read(("a", "b")), "one passage, but the input has 2"),
        (Read(()), "the input has 0"),
        (Read(("",)), "no tokens"),
        (Read((), pair=("a", "b")), "pair classifier"),
        (Read((STORY * 40,)), "divide the document with the chunker Windows"),
    ):
        with pytest.raises(ValueError, match=message):
            reader.read([read])
    assert isinstance(make("any"), RendersPrompt)
    assert reader.render(Read(("The cat",))) == "The cat"
    fits = [reader.fit(Read(passages)) for passages in ((), ("The", "cat"), (STORY * 40,))]
    assert fits == [0, 1, 0]
    assert reader.count(["The cat", ""])[1] == 0


def test_unsuitable_models_are_refused(folders: dict[str, str]) -> None:
    with pytest.raises(UserError, match="has no mask token"):
        PseudoLogLikelihood(folders["gpt2"], max_input_tokens=64).load()
    with pytest.raises(UserError, match=r"has 256 positions, but max_input_tokens needs 257"):
        LogLikelihood(folders["gpt2"], max_input_tokens=257).load()
    with pytest.raises(UserError, match="has 65 positions, but"):
        PseudoLogLikelihood(folders["roberta"], max_input_tokens=66).load()
    PseudoLogLikelihood(folders["bert"], max_input_tokens=66).load()


class _Letters:
    """Tokenizer with one token per character."""

    def offsets(self, text: str) -> Any:
        return np.stack([np.arange(len(text)), np.arange(1, len(text) + 1)]).T.astype(np.int64)


@pytest.mark.parametrize("case", WINDOWS, ids=lambda case: str(case["id"]))
def test_growing_chunks_equal_the_windows_of_the_authors_code(
    case: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have 1024 tokens with stride 512 for GPT-2, and half of that for masked models."""
    letters = _Letters()
    monkeypatch.setattr("leporello.chunkers.fixed_tokens.tokenizer", lambda _: letters)
    monkeypatch.setattr("leporello.combiners.read_each.tokenizer", lambda _: letters)
    size = 1024 if case["id"].startswith("gpt2") else 512
    document = Document("d", "x" * case["n_tokens"])
    chunks = divide(Windows(size, size // 2, growing=True), document)
    windows = case["windows"]
    assert [(c.start, c.end) for c in chunks] == [(w["begin"], w["end"]) for w in windows]
    if "weight" in windows[0]:
        losses = [1.0 + place for place in range(len(windows))]
        total = sum(w["weight"] * loss for w, loss in zip(windows, losses, strict=True))
        perplexity = _driven(Mean(perplexity=True), document, chunks, [-loss for loss in losses])
        assert perplexity == pytest.approx(-math.exp(total / windows[-1]["end"]))


def _driven(
    combiner: Mean, document: Document, chunks: Sequence[Chunk], scores: Sequence[float | None]
) -> Any:
    """Returns the value of a combiner for scores of chunks, in document order."""
    hits, remaining = [Hit(chunk, 0.0) for chunk in reversed(chunks)], iter(scores)
    example = Example("e", document)
    value, [reads] = drive(combiner, lambda _: Output("", next(remaining)), example, hits)
    assert [read.passages[0] for read in reads] == list(chunks)
    return value


def test_a_chunk_has_the_tokens_of_its_document(folders: dict[str, str]) -> None:
    """Its text may have other tokens, as it may begin in the middle of a word."""
    for name, make in (("gpt2", _generative), ("bert", _masked)):
        model = folders[name]
        document, ids = Document("d", STORY), _ids(folders[name], STORY)
        reader: Any = make(model)
        chunks = divide(Windows(8, 3, model), document)
        tokens = [reader.ids(Read((window,))) for window in chunks]
        assert tokens == [tuple(ids[3 * n : 3 * n + 8]) for n in range(len(chunks))]
        retokenised = [tuple(_ids(model, window.text)) for window in chunks]
        assert (tokens == retokenised) == (name == "gpt2")
        [chunk_of_all] = divide(Whole(), Document("w", f" {STORY} "))
        assert len(reader._ids(chunk_of_all)) in range(len(ids), len(ids) + 2)


def test_the_perplexity_equals_that_of_the_authors(folders: dict[str, str]) -> None:
    """It is computed by plain loops over slices of the document's tokens."""
    model, size, stride = folders["gpt2"], 40, 20
    document, ids = Document("d", STORY), _ids(folders["gpt2"], STORY)
    chunks = divide(Windows(size, stride, model, growing=True), document)
    scores = _scores(_generative(model, per_token=True), [Read((c,)) for c in chunks])
    combiner = Mean(perplexity=True, tokenizer=model)
    perplexity = _driven(combiner, document, chunks, scores)
    total, end = 0.0, 0
    for start in range(0, len(ids), stride):
        end = min(start + stride, len(ids))
        window = ids[max(start + stride - size, 0) : end]
        log_probabilities = plain_log_likelihood(model, window)
        total -= sum(log_probabilities) / len(log_probabilities) * (end - start)
    assert perplexity == pytest.approx(-math.exp(total / end), rel=1e-5)


def test_the_mean_of_scores_is_read_in_one_round() -> None:
    document = Document("d", "abc")
    chunks = [document.chunk(0, 1), document.chunk(1, 3)]
    assert _driven(Mean(), document, chunks, [-1.0, -4.0]) == -2.5
    example, output = Example("e", document), Output("shuffled", 0.75, (0.25, 0.75))
    assert drive(Mean(), lambda _: output, example, [])[0] is None
    assert drive(Mean(), lambda _: output, example, [Hit(chunks[0], 0.0)])[0] == 0.25


def test_the_mean_requires_scores() -> None:
    document = Document("d", "abc")
    chunks = [document.chunk(0, 3)]
    with pytest.raises(ValueError, match="needs a reader that returns scores"):
        _driven(Mean(), document, chunks, [None])
    with pytest.raises(ValueError, match="set per_token: true for the reader"):
        _driven(Mean(perplexity=True), document, chunks, [-1500.0])
