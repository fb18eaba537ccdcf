"""Tests of the classifier of pairs, with features of style and with models of transformers."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import save_classifier

from leporello.api import UserError
from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.records import Document, Read, Span
from leporello.readers import PairClassifier
from leporello.readers.backends.pretrained import load_model
from leporello.readers.classical.pair_features import features, fit_profile
from leporello.readers.classical.stylometry import HABITS, measure

NOUNS = ("mill", "cat", "sea", "captain", "road", "letter", "king", "rain", "lamp", "garden")


def plain(chance: random.Random) -> str:
    return " ".join(f"The {chance.choice(NOUNS)} saw a {chance.choice(NOUNS)}." for _ in range(6))


def ornate(chance: random.Random) -> str:
    parts = (f"which, upon the {chance.choice(NOUNS)}—alas!—had never been" for _ in range(4))
    return f"“Whether {'; '.join(parts)}, I cannot, indeed, pretend to say,” he’d replied."


def pairs(count: int, seed: int = 0) -> tuple[list[Read], list[str]]:
    """Returns pairs of paragraphs by one author, and by two."""
    chance, authors = random.Random(seed), [plain, ornate]
    reads, targets = [], []
    for n in range(count):
        first, second = chance.choice(authors), chance.choice(authors)
        first, second = (plain, ornate) if n == 0 else (first, second)
        reads.append(Read((), pair=(first(chance), second(chance))))
        targets.append("same" if first is second else "different")
    return reads, targets


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("trained")
    assert PairClassifier().learn(*pairs(60), folder) == {"model": "./model"}
    return str(folder / "model")


def test_a_trained_classifier_distinguishes_authors_by_their_style(trained: str) -> None:
    reads, expected = pairs(40, seed=1)
    outputs = checked_read(PairClassifier(trained), reads)
    assert [output.text for output in outputs] == expected
    for output in outputs:
        assert output.score is not None
        assert (output.score >= 0.5) == (output.text == "same")
        assert 0 < output.score < 1


def test_scores_depend_neither_on_the_threshold_nor_on_the_order_of_a_pair(trained: str) -> None:
    reads, _ = pairs(30, seed=3)
    scores = [output.score for output in PairClassifier(trained).read(reads)]
    strict = PairClassifier(trained, threshold=1.0).read(reads)
    assert {output.text for output in strict} == {"different"}
    assert [output.score for output in strict] == scores
    reversed_reads = [Read((), pair=read.pair and read.pair[::-1]) for read in reads]
    outputs = PairClassifier(trained).read(reversed_reads)
    assert [output.score for output in outputs] == pytest.approx(scores, abs=1e-9)
    first, _ = reads[0].pair or ("", "")
    [equal] = PairClassifier(trained).read([Read((), pair=(first, first))])
    assert (equal.score or 0) > 0.9


def test_features_equal_a_direct_computation() -> None:
    """They are cosines of n-grams, Delta and cosines of rates, and distances of habits."""
    texts = ["The cat sat. The cat ran!", "A dog, and a cat.", "Nobody knew why; why?"]
    profile = fit_profile(texts)
    measures = measure(texts)
    [row] = features(profile, [(texts[0], texts[1])])
    rates = measures.dense["function_words"][:2]
    z = (rates - profile["function_words.mean"]) / profile["function_words.deviation"]
    z = np.clip(z, -4, 4)
    cosine = z[0] @ z[1] / np.linalg.norm(z[0]) / np.linalg.norm(z[1])
    shares = np.sqrt(rates)
    hellinger = shares[0] @ shares[1] / np.linalg.norm(shares[0]) / np.linalg.norm(shares[1])
    function_words = [np.abs(z[0] - z[1]).mean(), cosine, hellinger]
    assert row[[0, 3, 4, 5]] == pytest.approx([np.log1p(5), *function_words])
    assert row.shape == (1 + 2 + 3 + 3 + len(HABITS),)
    [unlike] = features(profile, [(texts[0], texts[2])])
    assert unlike[2] == 0  # no common word
    [same] = features(profile, [(texts[1], texts[1])])
    assert same[-len(HABITS) :] == pytest.approx(np.zeros(len(HABITS)))


def test_unsuitable_inputs_and_models_are_refused(trained: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="PairClassifier has no model"):
        PairClassifier().load()
    with pytest.raises(ValueError, match="use the combiner AssignAuthors or ClusterAuthors"):
        PairClassifier(trained).read([Read(("alone",))])
    reads, _ = pairs(6)
    with pytest.raises(UserError, match="the combiner's target is 'Hero'"):
        PairClassifier().learn(reads, ["Hero"] * 6, tmp_path)
    with pytest.raises(UserError, match="there is no such file or folder"):
        PairClassifier(str(tmp_path / "none")).load()


def _network(place: Path, name: str, *labels: str) -> str:
    save_classifier(name, place, labels or ("different", "same"))
    return str(place)


@pytest.mark.parametrize("name", ["bert", "roberta", "longformer"])
def test_a_transformers_model_reads_the_pair_as_two_segments(name: str, tmp_path: Path) -> None:
    model = _network(tmp_path, name)
    classifier = PairClassifier(model, max_input_tokens=120, device="cpu")
    texts = [
        ("The cat took the boots.", "Why?"),
        ("x", "The eldest took the mill, the second the donkey."),
    ]
    outputs = checked_read(classifier, [Read((), pair=pair) for pair in texts])
    network = load_model(model, "AutoModelForSequenceClassification", "float32", "cpu")
    for pair, output in zip(texts, outputs, strict=True):
        tokenizer = classifier.tokens.tokenizer
        options = {"return_token_type_ids": name == "bert", "return_tensors": "pt"}
        inputs = dict(tokenizer(*pair, **options))
        assert ("token_type_ids" in inputs) == (name == "bert")
        if name == "longformer":
            inputs["global_attention_mask"] = torch.zeros_like(inputs["input_ids"])
            inputs["global_attention_mask"][:, 0] = 1
        with torch.inference_mode():
            expected = network(**inputs).logits.softmax(-1)[0, 1].item()
        assert output.score == pytest.approx(expected, abs=1e-5)
        assert output.text == ("same" if expected >= 0.5 else "different")
        assert output.input_tokens == inputs["input_ids"].shape[1]


def test_a_pair_longer_than_the_input_window_is_cut(tmp_path: Path) -> None:
    model = _network(tmp_path, "bert")
    document = Document("d", "The cat took. " + "The eldest took the mill. " * 30)
    short, long = document.chunk(0, 13), document.chunk(14, len(document.text))
    read = Read((short, long), pair=(short.text, long.text))
    classifier = PairClassifier(model, max_input_tokens=60, device="cpu")
    [output] = checked_read(classifier, [read])
    assert 55 <= output.input_tokens <= 60
    assert output.read is not None
    assert output.read[0] == Span(0, 13)
    assert output.read[1].end + output.cut == len(document.text)
    assert classifier.render(read) == f"{short.text}\n\n{document.text[14 : output.read[1].end]}"
    with pytest.raises(ValueError, match="too few for one token of each text"):
        PairClassifier(model, max_input_tokens=4).read([read])


def test_the_label_same_is_recognised_by_its_name(tmp_path: Path) -> None:
    pair = [Read((), pair=("The cat took the boots.", "Why, said the cat."))]
    parameters: dict[str, Any] = {"max_input_tokens": 100, "device": "cpu"}
    with_names = _network(tmp_path / "with_names", "bert", "SAME", "different")
    without_names = _network(tmp_path / "without_names", "bert", "LABEL_0", "LABEL_1")
    [first] = PairClassifier(with_names, **parameters).read(pair)
    [second] = PairClassifier(without_names, **parameters).read(pair)
    assert first.score == pytest.approx(1 - (second.score or 0))
    entailment = _network(tmp_path / "other", "bert", "entailment", "neutral")
    with pytest.raises(UserError, match="but not `same`"):
        PairClassifier(entailment, **parameters).load()
