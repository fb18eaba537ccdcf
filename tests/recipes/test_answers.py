"""The recipes `answers` and `verdicts`: train networks of readers from files of questions."""

import json
import warnings
from dataclasses import replace
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
from recipes.answers.network import AnswerNetwork, collate, hardest
from recipes.answers.settings import AnswersSettings, Phase
from recipes.answers.ship import ship
from recipes.answers.windows import LabelledWindow
from recipes.command import run_recipe
from recipes.settings import read_settings
from recipes.verdicts.claims import claim
from recipes.verdicts.recipe import VerdictsSettings, _pairs_of

PHASE = Phase(tokens=100, learning_rate=1e-3)


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    save_base("bert", tmp_path / "base")
    write_files(tmp_path, {"questions.jsonl": rows()})
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS))
    return tmp_path


def test_the_reader_answers_with_the_trained_model(folder: Path) -> None:
    phase = {**SETTINGS["phases"][0], "tokens": 30_000, "learning_rate": 0.003}
    settings = {**SETTINGS, "phases": [phase], "batch": 300, "average": 1}
    settings |= {"checkpoint_seconds": 60, "snapshot_steps": 300}
    write_files(folder, {"questions.jsonl": rows(200)})
    (folder / "settings.json").write_text(json.dumps(settings))
    summary = run_recipe("answers", folder / "settings.json", folder / "made")
    assert (summary["parameter"], summary["folder"]) == ("reader.model", str(folder / "made"))
    assert not (folder / "made.unfinished").exists()
    document = Document("d", "w1 w2 w3 w4 w5 green w6 w7")
    read = Read((document.chunk(0, len(document.text)),), "what colour is it ?")
    [output] = Embedded(model=str(folder / "made")).read([read])
    assert output.text == "green"
    assert "colours | " in (folder / "made/answers/card.md").read_text()
    with pytest.raises(UserError, match="--update replaces it"):
        run_recipe("answers", folder / "settings.json", folder / "made")


def test_a_resumed_training_ends_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = folder / "settings.json"
    result = run_recipe("answers", settings, folder / "whole")
    count = 0

    def stop(self: Progress, failed: bool = False) -> None:  # noqa: ARG001 -- the signature of the method
        nonlocal count
        count += 1
        if count == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Progress, "example", stop)
        with pytest.raises(KeyboardInterrupt):
            run_recipe("answers", settings, folder / "parts")
    [log] = folder.glob("parts.unfinished/*/log.jsonl")
    assert len(read_lines(log)) == 5
    run_recipe("answers", settings, folder / "parts")
    expected, resumed = (
        (folder / name / "answers/weights.safetensors").read_bytes() for name in ("whole", "parts")
    )
    assert resumed == expected
    lines = read_lines(folder / "parts/log.jsonl")
    assert [line["steps"] for line in lines] == list(range(1, result["steps"] + 1))


def shipped(base: Base, folder: Path) -> AnswerNetwork:
    """Ships a network with random heads, and returns it with the shipped weights."""
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
def test_shipped_networks_give_the_logits_of_torch(name: str, tmp_path: Path) -> None:
    save_base(name, tmp_path / "base")
    settings = AnswersSettings(str(tmp_path / "base"), (Path("unread"),), (PHASE,))
    base = load_base(settings)
    trained = shipped(base, tmp_path / "shipped")
    encoder = Encoder(tmp_path / "shipped", precision="float32")
    assert encoder.longest == 128
    rng = np.random.default_rng(0)
    lengths = (1, 9, 30, 4, base.longest - 6)
    segments = [TextPair(*(rng.integers(4, 60, n).tolist() for n in (3, k))) for k in lengths]
    cls, sep = base.special
    for segment, logits in zip(segments, encoder.scores(segments), strict=True):
        ids = torch.tensor([[cls, *segment.question, sep, *segment.text, sep]])
        types = torch.tensor([[0] * segment.first + [1] * (len(segment) - segment.first)])
        with torch.no_grad():
            spans, labels = trained(ids, types, torch.ones_like(ids))
        assert np.abs(logits["span"] - spans[0].numpy()).max() < 1e-5
        assert np.abs(logits["label"] - labels[0].numpy()).max() < 1e-5


def test_a_shipped_folder_is_a_base(tmp_path: Path) -> None:
    save_base("bert", tmp_path / "base")
    settings = AnswersSettings(str(tmp_path / "base"), (Path("unread"),), (PHASE,))
    trained = shipped(load_base(settings), tmp_path / "shipped")
    base = load_base(replace(settings, base=str(tmp_path / "shipped")))
    continued = AnswerNetwork(base.encoder)
    continued.load_state_dict(base.trained)
    for name, value in trained.state_dict().items():
        assert torch.equal(continued.state_dict()[name], value)


def test_hardest_keeps_answers_and_the_others_with_the_highest_scores() -> None:
    lacking = LabelledWindow([5], [6, 7, 8])
    answered = LabelledWindow([5], [6, 7, 8], (1,), (2,), label=1)
    batch = collate([(answered, lacking, lacking), (lacking, lacking)], (1, 2))
    spans = torch.zeros((*batch.ids.shape, 2))
    spans[2, 3] = spans[4, 3] = 1
    spans[1, 1] = 9  # the question's tokens do not count
    kept = hardest(batch, spans, 1)
    assert kept.groups.tolist() == [0, 0, 1]
    assert kept.labels.tolist() == [1, 0, 0]
    assert kept.starts[0].nonzero().tolist() == batch.starts[0].nonzero().tolist()
    chosen = torch.arange(5)[:, None].expand_as(batch.ids)
    rows = hardest(replace(batch, ids=chosen), spans, 1).ids[:, 0]
    assert rows.tolist() == [0, 2, 4]


def test_a_training_in_bfloat16_on_the_hardest_windows_learns(folder: Path) -> None:
    phase = {**SETTINGS["phases"][0], "negatives": [0.0, 0.0, 1.0], "hardest": 1}
    settings = {**SETTINGS, "phases": [phase], "precision": "bfloat16"}
    (folder / "settings.json").write_text(json.dumps(settings))
    run_recipe("answers", folder / "settings.json", folder / "made")
    losses = [line["group"] for line in read_lines(folder / "made/log.jsonl")]
    assert sum(losses[-5:]) < sum(losses[:5])


def test_a_quantised_graph_is_a_base(tmp_path: Path) -> None:
    torch.manual_seed(0)
    factory: Any = AutoModelForSequenceClassification
    model = factory.from_config(network("bert", 80).config)
    model.eval()
    for parameter in model.parameters():  # the exporter writes equal parameters only once
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
        expected = model.bert.state_dict()[name]
        assert (value - expected).abs().max() < 0.01 * expected.abs().max()


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("Who signed the treaty?", "Ann", "Ann signed the treaty."),
        ("When was the mill built?", "1871", "The mill was built in 1871."),
        ("Where did Bo go?", "to Lyon", "Bo go to Lyon."),
        ("What are they playing?", "chess", "They are playing chess."),
        ("What was painted red?", "the boat", "The boat was painted red."),
        ("In which city is the museum?", "Lyon", "The museum is Lyon."),
        ("How many boats did Ann have?", "two", "Ann have two boats."),
        ("Why did it rain?", "clouds", None),
        ("Who is older, Ann or Bo?", "Ann", None),
        ("Who?", "Ann", None),
    ],
)
def test_question_and_answer_make_a_claim(question: str, answer: str, expected: str | None) -> None:
    assert claim(question, answer) == expected


def facts(count: int = 40) -> list[dict[str, object]]:
    """Returns two questions on each passage: one for a year, and one for yes or no."""
    questions: list[dict[str, object]] = []
    for i in range(count):
        passage = f"W{i} was built in {1000 + i}. W{i + 1} was sold in {2000 + i}."
        row = {"set": "plain", "document_id": f"d{i % 20}", "passage": passage}
        year = str(1000 + i)
        answers = [[passage.index(year), year]]
        questions.append({**row, "question": f"When was W{i} built?", "answers": answers})
        questions.append({**row, "set": "asked", "question": f"was W{i} built?", "yes_no": "yes"})
    return questions


def test_a_judge_is_trained_and_read_as_a_difference(tmp_path: Path) -> None:
    """The recipe writes the changed upper layers; train and validation share no document."""
    save_base("bert", tmp_path / "base")
    base = load_base(AnswersSettings(str(tmp_path / "base"), (Path("rows"),), (PHASE,)))
    ship(AnswerNetwork(base.encoder), base, tmp_path / "answers", "card")
    write_files(tmp_path, {"rows.jsonl": facts()})
    settings = {"encoder": "answers", "questions": ["rows.jsonl"], "frozen": 1, "validation": 0.3}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    train, validation = _pairs_of(read_settings(VerdictsSettings, tmp_path / "settings.json"))
    assert train
    assert {pair.document for pair in train}.isdisjoint(pair.document for pair in validation)
    summary = run_recipe("verdicts", tmp_path / "settings.json", tmp_path / "made")
    assert summary["pairs"] > 20
    encoder = Encoder(tmp_path / "answers")
    judge = Encoder(tmp_path / "answers", tmp_path / "made/verdicts")
    pair = TextPair([5, 6], [7, 8, 9])
    before, after = (network.scores([pair])[0]["label"] for network in (encoder, judge))
    assert before.shape == after.shape == (4,)
    assert not np.allclose(before, after)
