"""Tests of late interaction between questions and passages, and of the classifier with it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_encoders import whole_words
from tiny_models import encoder as tiny_encoder

from leporello.api import UserError
from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.records import Read
from leporello.readers import LateInteractionClassifier
from leporello.readers.backends.pretrained import load_model
from leporello.readers.late_interaction_classifier import LateInteraction

WORDS = ["the", "a", "dog", "cat", "cow", "in", "yard", "house", "barn", "sleeps", "eats", "old"]
WORDS += ["young", "it", "and", "no", "one"]
DOG, CAT = (f"a {animal} sleeps" for animal in ("dog", "cat"))
LABELS = ("yes", "no")


def save_encoder(place: Path, seed: int = 0) -> None:
    """Saves a tiny BERT whose vectors do not depend on positions."""
    words = whole_words(WORDS)
    torch.manual_seed(seed)
    shape = {"num_hidden_layers": 1, "max_position_embeddings": 32, "initializer_range": 0.02}
    network = tiny_encoder("bert", "", len(words), **shape)
    network.get_parameter("embeddings.position_embeddings.weight").data.zero_()
    network.save_pretrained(place)
    words.save_pretrained(place)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("encoder")
    save_encoder(place)
    return str(place)


def interaction(encoder: str, batch_size: int = 4) -> LateInteraction:
    return LateInteraction(encoder, 16, batch_size, "cpu")


def farm(animal: str, place: str) -> tuple[str, ...]:
    """Returns the passages of a document about one animal."""
    return (f"a {animal} sleeps in the {place}", "it eats in the yard", f"no one in the {place}")


def lessons() -> tuple[list[Read], list[str]]:
    """Returns two questions about each of 18 documents, with few dogs and many cats."""
    inputs, targets = [], []
    for animal in ("dog", "cat", "cat", "cow", "cat", "cat"):
        for place in ("house", "barn", "yard"):
            for question in (DOG, CAT):
                inputs.append(Read(farm(animal, place), question))
                targets.append(LABELS[animal not in question])
    return inputs, targets


@pytest.fixture(scope="module")
def trained(encoder: str, tmp_path_factory: pytest.TempPathFactory) -> LateInteractionClassifier:
    folder = tmp_path_factory.mktemp("trained")
    blank = LateInteractionClassifier(encoder=encoder, max_input_tokens=16)
    assert blank.learn(*lessons(), folder) == {"model": "./model"}
    return LateInteractionClassifier(str(folder / "model"), encoder, max_input_tokens=16)


def test_the_similarity_of_the_nearest_passage_follows_the_formula(encoder: str) -> None:
    """It is the best weighted mean of the tokens' best cosines in a passage."""
    network = load_model(encoder, "AutoModel", "float32", "cpu")
    compared = interaction(encoder)

    def vectors(text: str) -> torch.Tensor:
        with torch.inference_mode():
            inputs = compared.tokens.tokenizer(text, return_tensors="pt")
            states = network(**inputs).last_hidden_state[0, 1:-1]
            return torch.nn.functional.normalize(states, dim=1)

    passages = farm("cow", "barn")
    weights = np.arange(len(compared.tokens.tokenizer), dtype=np.float64)
    question_weights = torch.tensor(compared.tokens.encode(DOG)[1:-1]).float()
    cosines = (vectors(DOG) @ vectors(text).T for text in passages)
    means = [best.max(dim=1).values @ question_weights / question_weights.sum() for best in cosines]
    assert compared.nearest(DOG, passages, weights) == pytest.approx(float(max(means)), abs=2e-5)


def test_words_of_all_passages_have_weight_zero(encoder: str) -> None:
    compared = interaction(encoder)
    weights = compared.weights(["the dog", "the dog", "the cat", "the old cat"])
    ids = compared.tokens.tokenizer.convert_tokens_to_ids
    the, cat, dog, cow = (weights[ids(word)] for word in ("the", "cat", "dog", "cow"))
    assert 0 == the < cat < dog < cow
    assert dog == pytest.approx(np.log(4 / 2) ** 2)


def test_a_text_longer_than_the_input_window_is_read_to_its_end(encoder: str) -> None:
    compared = interaction(encoder)
    long = " ".join(["the cat eats"] * 20)
    assert compared.size([long]) == 60
    weights = np.ones(len(compared.tokens.tokenizer))
    similarity = compared.nearest(DOG, [f"{long} a dog sleeps"], weights)
    assert similarity > compared.nearest(DOG, [long], weights)


def test_a_trained_reader_answers_about_new_documents(trained: LateInteractionClassifier) -> None:
    reads = [
        Read((f"a young {animal} sleeps in the house", "it eats"), question, choices=LABELS)
        for animal, question in (("dog", DOG), ("cow", DOG), ("cat", CAT), ("cow", CAT))
    ]
    outputs = checked_read(trained, reads)
    assert [output.text for output in outputs] == ["yes", "no", "yes", "no"]
    for output in outputs:
        assert sum(output.scores) == pytest.approx(1)
        assert output.score == max(output.scores) > 0.5
        assert output.input_tokens == 12


def test_unsuitable_models_and_inputs_are_refused(
    trained: LateInteractionClassifier, encoder: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="LateInteractionClassifier has no model"):
        LateInteractionClassifier().read([Read(("a dog",), DOG)])
    save_encoder(tmp_path, seed=1)
    with pytest.raises(UserError, match="trained with another encoder"):
        LateInteractionClassifier(trained.model, str(tmp_path), 16).load()
    with pytest.raises(ValueError, match="choice 'maybe' is not a label of the model"):
        trained.read([Read(("a dog",), DOG, choices=("maybe",))])
    with pytest.raises(ValueError, match="reads passages"):
        trained.read([Read((), pair=("a dog", "a cat"))])
    with pytest.raises(UserError, match="has 32 positions, but max_input_tokens needs 64"):
        LateInteractionClassifier(trained.model, encoder, 64).load()
    with pytest.raises(UserError, match="needs examples of at least two classes"):
        trained.learn([Read(("a dog",), DOG)], ["yes"], tmp_path)
