"""The recipe `answers`: from files of questions to a folder that the reader `Embedded` reads."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import read_lines, write_files
from onnxruntime.quantization import quantize_dynamic
from tiny_encoders import network
from tiny_questions import SETTINGS, rows, save_base
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from transformers import AutoModelForSequenceClassification

from leporello.core.errors import UserError
from leporello.core.records import Document, Read
from leporello.engine.progress import Progress
from leporello.models.weights import unpack
from leporello.readers import Embedded
from leporello.readers.embedded.encoder import Encoder, TextPair
from recipes.answers.base import Base, load_base
from recipes.answers.names import restored
from recipes.answers.network import AnswerNetwork
from recipes.answers.settings import AnswersSettings, Phase
from recipes.answers.ship import ship
from recipes.command import run_recipe

PHASE = Phase(tokens=100, learning_rate=1e-3)


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """Returns a folder with a tiny base, questions and settings."""
    save_base("bert", tmp_path / "base")
    write_files(tmp_path, {"questions.jsonl": rows()})
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS))
    return tmp_path


def test_what_a_recipe_leaves_answers_what_it_was_trained_on(folder: Path) -> None:
    """The recipe trains, and the reader finds the colour in a passage that it never saw."""
    phase = {**SETTINGS["phases"][0], "tokens": 30_000, "learning_rate": 0.003}
    settings = {**SETTINGS, "phases": [phase], "batch": 300, "average": 1}
    settings |= {"checkpoint_seconds": 60, "snapshot_steps": 300}
    write_files(folder, {"questions.jsonl": rows(200)})
    (folder / "settings.json").write_text(json.dumps(settings))
    done = run_recipe("answers", folder / "settings.json", folder / "made")
    assert (done["parameter"], done["folder"]) == ("reader.model", str(folder / "made"))
    assert not (folder / "made.unfinished").exists()
    document = Document("d", "w1 w2 w3 w4 w5 green w6 w7")
    read = Read((document.chunk(0, len(document.text)),), "what colour is it ?")
    [output] = Embedded(model=str(folder / "made")).read([read])
    assert output.text == "green"
    assert "colours | " in (folder / "made/answers/card.md").read_text()
    with pytest.raises(UserError, match="--update replaces it"):
        run_recipe("answers", folder / "settings.json", folder / "made")


def test_a_training_that_was_stopped_ends_as_one_that_was_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights are the same to the last bit, and every step stands once in the log."""
    settings = folder / "settings.json"
    whole = run_recipe("answers", settings, folder / "whole")
    count = 0

    def stop(self: Progress, failed: bool = False) -> None:  # noqa: ARG001 -- as the method's own
        nonlocal count
        count += 1
        if count == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Progress, "example", stop)
        with pytest.raises(KeyboardInterrupt):
            run_recipe("answers", settings, folder / "parts")
    assert len(read_lines(folder / "parts.unfinished/steps/log.jsonl")) == 5
    run_recipe("answers", settings, folder / "parts")
    one, other = (
        (folder / name / "answers/weights.safetensors").read_bytes() for name in ("whole", "parts")
    )
    assert one == other
    logged = read_lines(folder / "parts/log.jsonl")
    assert [line["steps"] for line in logged] == list(range(1, whole["steps"] + 1))


def shipped(base: Base, folder: Path) -> AnswerNetwork:
    """Ships a network with random heads, and returns it with the weights that were shipped."""
    torch.manual_seed(0)
    trained = AnswerNetwork(base.encoder)
    for parameter in trained.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    ship(trained, base, folder, "# Card")
    if weights := unpack((folder / "weights.safetensors").read_bytes()):
        layers = base.encoder.config.num_hidden_layers
        trained.load_state_dict(restored(weights, layers))
    return trained.eval()


@pytest.mark.parametrize(
    "name",
    [
        "bert",
        "deberta",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("roberta", "modernbert", "distilbert")),
    ],
)
def test_shipped_logits_are_those_of_torch(name: str, tmp_path: Path) -> None:
    """Windows of several lengths, read together, give what each gives alone in torch."""
    save_base(name, tmp_path / "base")
    settings = AnswersSettings(str(tmp_path / "base"), (Path("unread"),), (PHASE,))
    base = load_base(settings)
    trained = shipped(base, tmp_path / "shipped")
    encoder = Encoder(tmp_path / "shipped")
    assert encoder.longest == 128
    rng = np.random.default_rng(0)
    lengths = (1, 9, 30, 4, base.longest - 6)
    windows = [TextPair(*(rng.integers(4, 60, n).tolist() for n in (3, k))) for k in lengths]
    cls, sep = base.special
    for window, found in zip(windows, encoder.scores(windows), strict=True):
        ids = torch.tensor([[cls, *window.question, sep, *window.text, sep]])
        types = torch.tensor([[0] * window.first + [1] * (len(window) - window.first)])
        with torch.no_grad():
            spans, labels = trained(ids, types, torch.ones_like(ids))
        assert np.abs(found["span"] - spans[0].numpy()).max() < 1e-5
        assert np.abs(found["label"] - labels[0].numpy()).max() < 1e-5


def test_a_quantised_graph_is_a_base(tmp_path: Path) -> None:
    """The weights of a cross-encoder in 8 bits come back under their names, within rounding."""
    torch.manual_seed(0)
    made: Any = AutoModelForSequenceClassification
    model = made.from_config(network("bert", 80).config)
    model.eval()
    for parameter in model.parameters():  # the exporter writes equal ones once
        parameter.data += 0.05 * torch.randn_like(parameter)
    ids = torch.ones((1, 8), dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model, (ids, ids, ids), str(tmp_path / "plain.onnx"), dynamo=False, opset_version=17
        )
    quantize_dynamic(tmp_path / "plain.onnx", tmp_path / "model.onnx")
    vocabulary = {word: number for number, word in enumerate(["[UNK]", "[CLS]", "[SEP]", "a"])}
    Tokenizer(WordPiece(vocabulary)).save(str(tmp_path / "tokenizer.json"))
    settings = AnswersSettings(
        str(tmp_path / "model.onnx"), (Path("unread"),), (PHASE,), attention_heads=2,
        tokenizer=str(tmp_path / "tokenizer.json"),
    )  # fmt: skip
    base = load_base(settings)
    assert (base.special, base.longest) == ((1, 2), 128)
    for name, value in base.encoder.state_dict().items():
        wanted = model.bert.state_dict()[name]
        assert (value - wanted).abs().max() < 0.01 * wanted.abs().max()


def test_other_settings_do_not_go_on_with_a_training(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was begun with another seed is neither gone on with nor removed unasked."""

    def stop(self: Progress, failed: bool = False) -> None:  # noqa: ARG001 -- as the method's own
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "example", stop)
    with pytest.raises(KeyboardInterrupt):
        run_recipe("answers", folder / "settings.json", folder / "made")
    (folder / "settings.json").write_text(json.dumps({**SETTINGS, "seed": 2}))
    with pytest.raises(UserError, match="--update starts over"):
        run_recipe("answers", folder / "settings.json", folder / "made")
