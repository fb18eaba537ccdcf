"""The classifier of pairs: by style, as a transformers model, and what it refuses."""

from __future__ import annotations

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
from leporello.readers.classical.pair_features import PairFeatures, fit_profile
from leporello.readers.classical.stylometry import FAMILIES, HABITS, measure

NOUNS = ("mill", "cat", "sea", "captain", "road", "letter", "king", "rain", "lamp", "garden")


def plain(chance: random.Random) -> str:
    """Returns a paragraph of short sentences."""
    return " ".join(f"The {chance.choice(NOUNS)} saw a {chance.choice(NOUNS)}." for _ in range(6))


def ornate(chance: random.Random) -> str:
    """Returns a paragraph of one long sentence with dashes and quotes."""
    parts = (f"which, upon the {chance.choice(NOUNS)}—alas!—had never been" for _ in range(4))
    return f"“Whether {'; '.join(parts)}, I cannot, indeed, pretend to say,” he’d replied."


def pairs(count: int, seed: int = 0) -> tuple[list[Read], list[str]]:
    """Returns pairs of paragraphs by one author, and by two."""
    chance, made = random.Random(seed), {plain: 0, ornate: 0}
    reads, targets = [], []
    for n in range(count):
        one, other = chance.choice(list(made)), chance.choice(list(made))
        one, other = (plain, ornate) if n == 0 else (one, other)
        reads.append(Read((), pair=(one(chance), other(chance))))
        targets.append("same" if one is other else "different")
    return reads, targets


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a trained model."""
    folder = tmp_path_factory.mktemp("trained")
    assert PairClassifier().learn(*pairs(60), folder) == {"model": "./model"}
    return str(folder / "model")


def test_a_trained_classifier_tells_authors_apart_by_their_style(trained: str) -> None:
    """On paragraphs that it has not seen; the score is the probability of `same`."""
    reads, wanted = pairs(40, seed=1)
    outputs = checked_read(PairClassifier(trained), reads)
    assert [output.text for output in outputs] == wanted
    for output in outputs:
        assert output.score is not None
        assert (output.score >= 0.5) == (output.text == "same")
        assert 0 < output.score < 1


def test_the_threshold_decides_what_is_same(trained: str) -> None:
    """The probability itself stays."""
    reads, _ = pairs(10, seed=2)
    scores = [output.score for output in PairClassifier(trained).read(reads)]
    strict = PairClassifier(trained, threshold=1.0).read(reads)
    assert {output.text for output in strict} == {"different"}
    assert [output.score for output in strict] == scores


def test_a_pair_is_the_same_either_way_and_in_any_company(trained: str) -> None:
    """To the last digit that is written; a text is by its own author."""
    reads, _ = pairs(30, seed=3)
    turned = [Read((), pair=read.pair and read.pair[::-1]) for read in reads]
    scores = [output.score for output in PairClassifier(trained).read(reads)]
    assert [o.score for o in PairClassifier(trained).read(turned)] == pytest.approx(
        scores, abs=1e-9
    )
    classifier = PairClassifier(trained)
    alone = [classifier.read([read])[0].score for read in reads]
    assert alone == pytest.approx(scores, abs=1e-9)
    [own] = PairClassifier(trained).read([Read((), pair=(reads[0].pair or ("", ""))[:1] * 2)])
    assert own.score is not None
    assert own.score > 0.9


def test_features_are_those_of_the_families() -> None:
    """By hand: cosines of n-grams, Delta and cosines of rates, distances of habits."""
    texts = ["The cat sat. The cat ran!", "A dog, and a cat.", "Nobody knew why; why?"]
    profile = fit_profile(texts)
    found = measure(texts)
    [row] = PairFeatures(profile, ("function_words",)).features([(texts[0], texts[1])])
    rates = found.rates["function_words"][:2]
    z = (rates - profile["function_words.mean"]) / profile["function_words.deviation"]
    z = np.clip(z, -4, 4)
    cosine = z[0] @ z[1] / np.linalg.norm(z[0]) / np.linalg.norm(z[1])
    shares = np.sqrt(rates)
    hellinger = shares[0] @ shares[1] / np.linalg.norm(shares[0]) / np.linalg.norm(shares[1])
    assert row == pytest.approx([np.log1p(5), np.abs(z[0] - z[1]).mean(), cosine, hellinger])
    [words] = PairFeatures(profile, ("words",)).features([(texts[0], texts[2])])
    assert words[1] == 0
    [habits] = PairFeatures(profile, ("habits",)).features([(texts[1], texts[1])])
    assert habits[1:] == pytest.approx(np.zeros(len(HABITS)))
    everything = PairFeatures(profile, FAMILIES).features([(texts[0], texts[1])])
    assert everything.shape == (1, 1 + 2 + 3 + 3 + len(HABITS))


def test_families_can_be_left_out(tmp_path: Path) -> None:
    """The model knows what it was trained on, whatever the reader's parameter says later."""
    PairClassifier(features=("punctuation",)).learn(*pairs(60), tmp_path)
    classifier = PairClassifier(str(tmp_path / "model"))
    reads, wanted = pairs(20, seed=4)
    assert [output.text for output in classifier.read(reads)] == wanted
    assert classifier._style.pair_features.families == ("punctuation",)
    with pytest.raises(ValueError, match="without duplicates"):
        PairClassifier(features=("words", "words"))


def test_what_it_cannot_read_or_learn_is_told(trained: str, tmp_path: Path) -> None:
    """No model, no pair, labels of another task, one class, another reader's folder."""
    with pytest.raises(UserError, match="PairClassifier has no model"):
        PairClassifier().load()
    with pytest.raises(ValueError, match="use the combiner AssignAuthors or ClusterAuthors"):
        PairClassifier(trained).read([Read(("alone",))])
    reads, _ = pairs(6)
    with pytest.raises(UserError, match="the combiner's target is 'Hero'"):
        PairClassifier().learn(reads, ["Hero"] * 6, tmp_path)
    with pytest.raises(UserError, match="at least two classes"):
        PairClassifier().learn(reads, ["same"] * 6, tmp_path)
    with pytest.raises(UserError, match="there is no such file or folder"):
        PairClassifier(str(tmp_path / "none")).load()


def _network(
    place: Path, name: str = "bert", labels: tuple[str, ...] = ("different", "same")
) -> str:
    save_classifier(name, place, labels)
    return str(place)


@pytest.mark.parametrize("name", ["bert", "roberta", "longformer"])
def test_a_transformers_model_reads_the_pair_as_two_segments(name: str, tmp_path: Path) -> None:
    """It says what transformers says; pairs of different lengths share a batch."""
    model = _network(tmp_path, name)
    classifier = PairClassifier(model, max_input_tokens=120, device="cpu")
    given = [
        ("The cat took the boots.", "Why?"),
        ("x", "The eldest took the mill, the second the donkey."),
    ]
    outputs = checked_read(classifier, [Read((), pair=pair) for pair in given])
    network = load_model(model, "AutoModelForSequenceClassification", "float32", "cpu")
    for pair, output in zip(given, outputs, strict=True):
        tokenizer = classifier._network.tokens.tokenizer  # type: ignore[union-attr]
        typed = {"return_token_type_ids": name == "bert", "return_tensors": "pt"}
        inputs = dict(tokenizer(*pair, **typed))
        assert ("token_type_ids" in inputs) == (name == "bert")
        if name == "longformer":
            inputs["global_attention_mask"] = torch.zeros_like(inputs["input_ids"])
            inputs["global_attention_mask"][:, 0] = 1
        with torch.inference_mode():
            wanted = network(**inputs).logits.softmax(-1)[0, 1].item()
        assert output.score == pytest.approx(wanted, abs=1e-5)
        assert output.text == ("same" if wanted >= 0.5 else "different")
        assert output.input_tokens == inputs["input_ids"].shape[1]


def test_a_pair_beyond_the_window_is_cut_longer_text_first_or_refused(tmp_path: Path) -> None:
    """The ledger tells what was seen of the chunks that the texts are."""
    model = _network(tmp_path)
    document = Document("d", "The cat took. " + "The eldest took the mill. " * 30)
    one, other = document.chunk(0, 13), document.chunk(14, len(document.text))
    read = Read((one, other), pair=(one.text, other.text))
    classifier = PairClassifier(model, max_input_tokens=60, device="cpu")
    [output] = checked_read(classifier, [read])
    assert 55 <= output.input_tokens <= 60
    assert output.read is not None
    assert output.read[0] == Span(0, 13)
    assert output.read[1].end + output.cut == len(document.text)
    assert classifier.render(read) == f"{one.text}\n\n{document.text[14 : output.read[1].end]}"
    with pytest.raises(ValueError, match="on_overflow is 'error'"):
        PairClassifier(model, max_input_tokens=60, on_overflow="error").read([read])
    with pytest.raises(ValueError, match="too few for one token of each text"):
        PairClassifier(model, max_input_tokens=4).read([read])


def test_a_label_that_says_same_is_found_or_missed(tmp_path: Path) -> None:
    """By its name, whatever its place; of two without names the second is taken."""
    pair = [Read((), pair=("The cat took the boots.", "Why, said the cat."))]
    given: dict[str, Any] = {"max_input_tokens": 100, "device": "cpu"}
    named = _network(tmp_path / "named", labels=("SAME", "different"))
    unnamed = _network(tmp_path / "unnamed", labels=("LABEL_0", "LABEL_1"))
    [first], [second] = (PairClassifier(m, **given).read(pair) for m in (named, unnamed))
    assert first.score == pytest.approx(1 - (second.score or 0))
    other = _network(tmp_path / "other", labels=("entailment", "neutral"))
    with pytest.raises(UserError, match="but not `same`"):
        PairClassifier(other, **given).load()
