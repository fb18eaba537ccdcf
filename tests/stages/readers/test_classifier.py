"""Tests of the classifier of passages, with a trained model and with models of transformers."""

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import save_classifier

from leporello.api import UserError
from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.records import Document, Read
from leporello.readers import Classifier
from leporello.readers.backends.pretrained import load_model

HEROIC = ("he saved the village", "she rescued the child", "the knight defended the weak")
WICKED = ("he poisoned the well", "she betrayed the king", "the tyrant burned the village")
LABELS = ("Hero", "Villain")


def _inputs() -> tuple[list[Read], list[str]]:
    texts = [f"In chapter {n} {text}." for n in range(4) for text in (*HEROIC, *WICKED)]
    return [Read((text,)) for text in texts], [label for label in LABELS for _ in HEROIC] * 4


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    assert Classifier().learn(*_inputs(), folder) == {"model": "./model"}
    return folder / "model"


def test_a_trained_classifier_recognises_its_labels_in_new_sentences(trained: Path) -> None:
    reads = [
        Read(("The hero rescued the weak and saved a child.",)),
        Read(("He betrayed and burned.",)),
    ]
    hero, villain = checked_read(Classifier(str(trained)), reads)
    assert (hero.text, villain.text) == LABELS
    assert hero.score is not None
    assert 0.5 < hero.score < 1
    assert hero.scores == ()


def test_choices_have_the_probabilities_of_their_labels(trained: Path) -> None:
    classifier, text = Classifier(str(trained)), ("She betrayed the king.",)
    [both, single] = checked_read(
        classifier, [Read(text, choices=("Villain", "Hero")), Read(text, choices=("Hero",))]
    )
    assert both.text == "Villain"
    assert sum(both.scores) == pytest.approx(1)
    assert both.scores[0] == both.score
    assert (single.text, single.scores) == ("Hero", (both.scores[1],))
    with pytest.raises(ValueError, match="'Clown' is not a label of the model"):
        classifier.read([Read(text, choices=("Hero", "Clown"))])


def test_a_model_that_is_trained_again_gives_the_same_outputs(
    trained: Path, tmp_path: Path
) -> None:
    inputs, targets = _inputs()
    Classifier().learn(inputs, targets, tmp_path)
    again = Classifier(str(tmp_path / "model"))
    assert again.read(inputs) == Classifier(str(trained)).read(inputs)


def test_the_error_of_an_untrained_classifier_shows_how_to_train_it() -> None:
    for call in (Classifier().load, lambda: Classifier().read([Read(("x",))])):
        with pytest.raises(UserError, match=r"run_pipeline\.py train PIPELINE --task TASK"):
            call()
    assert Classifier().fit(Read(("a", "b"))) == 2


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (["Hero"] * 6, "at least two classes, but all of its 6 examples are 'Hero' 6"),
        (["Hero"] * 5 + ["Villain"], "too few of 'Villain'"),
        ([], "but has no examples"),
    ],
)
def test_too_few_examples_are_refused(tmp_path: Path, targets: list[str], message: str) -> None:
    reads = [Read((f"text {n}",)) for n in range(len(targets))]
    with pytest.raises(UserError, match=message):
        Classifier().learn(reads, targets, tmp_path)
    assert not list(tmp_path.iterdir())


def test_pairs_are_refused(trained: Path) -> None:
    with pytest.raises(ValueError, match="pair classifier"):
        Classifier(str(trained)).read([Read((), pair=("a", "b"))])


def test_a_pickle_in_place_of_a_model_is_not_loaded(trained: Path, tmp_path: Path) -> None:
    for name, spoil in {"pickle": _as_pickle, "type": _with_foreign_type}.items():
        place = tmp_path / name
        place.mkdir()
        (place / "settings.json").write_bytes((trained / "settings.json").read_bytes())
        spoil(trained / "model.skops", place / "model.skops")
        with pytest.raises(UserError, match=r"could not be loaded|can run code"):
            Classifier(str(place)).load()
    assert not (tmp_path / "ran").exists()


class _Runs:
    """Object whose unpickling creates its file."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.place,)


def _as_pickle(_: Path, place: Path) -> None:
    place.write_bytes(pickle.dumps(_Runs(place.parent.parent / "ran")))


def _with_foreign_type(model: Path, place: Path) -> None:
    with zipfile.ZipFile(model) as original, zipfile.ZipFile(place, "w") as changed:
        for name in original.namelist():
            content = original.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                schema["__class__"], schema["__module__"] = "Popen", "subprocess"
                content = json.dumps(schema).encode()
            changed.writestr(name, content)


def test_other_and_damaged_models_are_refused(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "model.skops").write_bytes(b"")
    with pytest.raises(UserError, match=r"settings\.json is missing or damaged"):
        Classifier(str(tmp_path)).load()
    settings = json.loads((trained / "settings.json").read_text())
    (tmp_path / "settings.json").write_text(json.dumps(settings | {"reader": "PairClassifier"}))
    with pytest.raises(UserError, match="was trained for PairClassifier"):
        Classifier(str(tmp_path)).load()
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match="train it again"):
        Classifier(str(tmp_path)).load()


@pytest.mark.parametrize("name", ["bert", "longformer"])
def test_scores_equal_those_of_transformers(name: str, tmp_path: Path) -> None:
    """Longformer attends globally to the first token, as in its training."""
    save_classifier(name, tmp_path, LABELS)
    network = load_model(str(tmp_path), "AutoModelForSequenceClassification", "float32", "cpu")
    texts = ["The cat took the boots.", "Why, said the cat, and the miller had three sons.", "x"]
    classifier = Classifier(str(tmp_path), max_input_tokens=120, device="cpu")
    outputs = classifier.read([Read((text,), choices=LABELS) for text in texts])
    tokenizer = classifier.tokens.tokenizer
    for text, output in zip(texts, outputs, strict=True):
        inputs = tokenizer(text, return_tensors="pt")
        if name == "longformer":
            inputs["global_attention_mask"] = torch.eye(1, inputs["input_ids"].shape[1])
        with torch.inference_mode():
            logits = network(**inputs).logits[0]
        assert output.scores == pytest.approx(logits.softmax(-1).tolist(), abs=1e-5)
        assert output.input_tokens == inputs["input_ids"].shape[1]


@pytest.mark.parametrize("name", ["bert", "roberta", "longformer"])
def test_a_text_that_is_too_long_is_cut_split_or_refused(name: str, tmp_path: Path) -> None:
    save_classifier(name, tmp_path, LABELS)
    document = Document("d", "The eldest took the mill. " * 40)
    read = Read((document.chunk(0, len(document.text)),), question="Which?")
    parameters: dict[str, Any] = {"max_input_tokens": 60, "device": "cpu"}
    [cut] = checked_read(Classifier(str(tmp_path), on_overflow="truncate", **parameters), [read])
    assert cut.input_tokens <= 60
    assert cut.read is not None
    assert cut.read[0].end + cut.cut == len(document.text)
    [split] = checked_read(Classifier(str(tmp_path), on_overflow="split", **parameters), [read])
    assert (split.cut, split.read and split.read[-1].end) == (0, len(document.text))
    with pytest.raises(ValueError, match="on_overflow is 'error'"):
        Classifier(str(tmp_path), on_overflow="error", **parameters).read([read])


def test_models_of_other_tasks_and_sizes_are_refused(
    tmp_path: Path, tiny: Callable[[str], str]
) -> None:
    save_classifier("bert", tmp_path, LABELS)
    with pytest.raises(UserError, match="has 130 positions"):
        Classifier(str(tmp_path), max_input_tokens=200).load()
    with pytest.raises(UserError, match="trained for another task"):
        Classifier(tiny("gpt2"), max_input_tokens=100).load()
