"""The recipes that fit a few weights: `plots`, `polarity`, `style`, `summaries`, `confidence`."""

import json
import runpy
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pytest
from command_line import write_files

from leporello.core.errors import UserError
from leporello.core.records import Read
from leporello.models.weights import ModelFolder
from leporello.readers import Embedded, PairClassifier, Polarity, Precedence
from leporello.readers.embedded.summaries import Summariser, text_of
from recipes.command import run_recipe
from recipes.style.recipe import glued, read_works

Content = str | Iterable[Mapping[str, Any]]


def _written(folder: Path, apart: str, files: Mapping[str, Content], **settings: Any) -> Path:
    """Writes data and settings that exclude texts with a word; returns the settings' path."""
    code = f"def is_apart(text):\n    return {apart!r} in text\n"
    settings["exclude"] = str(folder / "apart.py")
    write_files(folder, {**files, "apart.py": code, "settings.json": [settings]})
    return folder / "settings.json"


def test_a_recipe_is_a_module_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, folder = _stories(tmp_path), tmp_path / "made"
    monkeypatch.setattr("sys.argv", ["recipes.plots", str(settings), "--out", str(folder)])
    runpy.run_module("recipes.plots", run_name="__main__")
    assert capsys.readouterr().out == f"to use it: --set reader.model={folder}\n"
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("recipes.plots", run_name="__main__")
    assert ended.value.code == 2
    assert "--update replaces it" in capsys.readouterr().err


def test_plots_are_learnt_from_summaries(tmp_path: Path) -> None:
    summary = run_recipe("plots", _stories(tmp_path), tmp_path / "made")
    assert (summary["stories"], summary["excluded"]) == (4, 1)
    words = (tmp_path / "made/plots/words.txt").read_text().splitlines()
    assert {"one", "five", "one begins"} <= {*words}
    assert not {"secret", "zora"} & {*words}
    reader = Precedence(str(tmp_path / "made"))
    assert reader.place("One begins.") < reader.place("Five ends.")


def _stories(folder: Path) -> Path:
    plot = "One begins. Two goes on. Three goes on. Four goes on. Five ends."
    texts = [plot] * 3 + [f"{plot} Zora.", f"{plot} Secret."]
    rows = [
        {
            "metadata": {"passage_id": str(number)},
            "document": text,
            "questions": [{"responses": [{"response_text": text}]}],
        }
        for number, text in enumerate(texts)
    ]
    return _written(folder, "Secret", {"train.jsonl": rows}, data=[str(folder / "train.jsonl")])


def test_polarity_is_learnt_from_labelled_opinions(tmp_path: Path) -> None:
    settings = _corpora(tmp_path)
    summary = run_recipe("polarity", settings, tmp_path / "one")
    assert summary["excluded"] == 3
    assert "secret" not in (tmp_path / "one/polarity/words.txt").read_text()
    run_recipe("polarity", settings, tmp_path / "two")
    files = [sorted((tmp_path / name / "polarity").iterdir()) for name in ("one", "two")]
    assert [f.read_bytes() for f in files[0]] == [f.read_bytes() for f in files[1]]
    reader = Polarity(str(tmp_path / "one"))
    assert reader.log_odds("good") > reader.log_odds("awful")


def _corpora(folder: Path) -> Path:
    sites = ("amazon_cells", "imdb", "yelp")
    labelled = (f"sentiment labelled sentences/{site}_labelled.txt" for site in sites)
    files = {
        **dict.fromkeys(labelled, "a good one\t1\nan awful one\t0\n" * 4),
        "sentence_polarity/rt-polarity.pos": "good stuff\n" * 4,
        "sentence_polarity/rt-polarity.neg": "awful stuff\n" * 4,
        "product_reviews_1/phone.txt": "[t]a phone\nsound[+2]##good sound\nsize[-1]##awful size\n",
        "pros_cons/IntegratedPros.txt": "<Pros>good &amp; small</Pros>\n" * 4,
        "pros_cons/IntegratedCons.txt": "<Cons>awful</Cons>\n" * 4
        + "<Cons>awful, secret</Cons>\n" * 3,
    }
    (folder / "product_reviews_2").mkdir()
    return _written(folder, "secret", files, data=str(folder))


def _works(folder: Path, authors: int) -> Path:
    chance, rows = Random(0), []
    for number in range(authors):
        words = [f"{letter}{number}w" for letter in "abcdefgh"]
        lines = [" ".join(chance.choices(words, k=60)) for _ in range(12)]
        rows.append({"author": f"author {number}", "text": "\n".join(lines)})
    works = str(folder / "works.jsonl")
    return _written(folder, f"a{authors - 1}w", {"works.jsonl": rows}, works=works)


def test_documents_of_style_have_segments_of_two_to_four_authors(tmp_path: Path) -> None:
    _works(tmp_path, 6)
    works, _ = read_works(tmp_path / "works.jsonl")
    for example in glued(works, 8, seed=1):
        gold = json.loads(example.references[0])
        assert len(gold) == len(example.document.parts)
        assert [*dict.fromkeys(gold)] == [*range(1, max(gold) + 1)]
        assert 2 <= max(gold) <= 4
        assert len([*groupby(gold)]) <= 6


@pytest.mark.integration
def test_the_reader_loads_the_model_of_style(tmp_path: Path) -> None:
    summary = run_recipe("style", _works(tmp_path, 7), tmp_path / "made")
    assert (summary["authors"], summary["excluded"]) == (6, 1)
    PairClassifier(str(tmp_path / "made/style")).load()
    (few := tmp_path / "few").mkdir()  # another folder, since a Python file is imported only once
    with pytest.raises(UserError, match="there are 3 authors"):
        run_recipe("style", _works(few, 4), tmp_path / "other")


SETTINGS = """
exclude: apart.py
seed: 0
questions: 20
kinds:
  report:
    penalty: 0.1
    redundancy: 1
    words: 12
    sets:
      - {source: gov_report, path: reports.jsonl, share: 1}
"""


def report(name: str, summary: str) -> dict[str, str]:
    """Returns a report whose last sentences are its summary."""
    filler = [f"Nobody {name} knows number {i} of many quiet pages here." for i in range(8)]
    text = " ".join([*filler, summary, summary.upper()])
    return {"id": name, "input": text, "output": summary}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with settings and two reports, one of which is excluded."""
    rows = [
        report("alpha", "This report finds that wolves eat sheep, farmers, and rye."),
        report("beta", "This report finds that rivers carry salt, timber, and mail."),
    ]
    code = "def is_apart(text):\n    return 'beta' in text\n"
    write_files(tmp_path, {"reports.jsonl": rows, "settings.yaml": SETTINGS, "apart.py": code})
    return tmp_path


def test_the_summariser_loads_the_fitted_weights(folder: Path) -> None:
    fit = run_recipe("summaries", folder / "settings.yaml", folder / "out")
    assert fit["questions"] == {"report": {"gov_report": 1}}
    run_recipe("summaries", folder / "settings.yaml", folder / "again")
    files = [folder / out / "summaries" / "weights.json" for out in ("out", "again")]
    assert files[0].read_bytes() == files[1].read_bytes()
    text = report("gamma", "This report finds that owls hear mice, voles, and shrews.")["input"]
    units, _ = Summariser(ModelFolder(folder / "out" / "summaries")).select([text])
    assert "owls hear mice" in text_of([text], units).lower()


def test_mistakes_in_settings_of_summaries_are_reported(folder: Path) -> None:
    settings = folder / "settings.yaml"
    for right, wrong, message in (
        ("source: gov_report", "source: gov_reports", "no source 'gov_reports'; did you mean"),
        ("path: reports.jsonl", "path: absent.jsonl", "absent.jsonl cannot be read"),
        ("report:\n", "meeting:\n", "no usable rows of the kind 'meeting'"),
    ):
        settings.write_text(SETTINGS.replace(right, wrong), encoding="utf-8")
        with pytest.raises(UserError, match=message):
            run_recipe("summaries", settings, folder / "out")


KEEPERS = ("Ann Dunning", "Grigor Sande", "Otto Kern", "Greta Holm", "Wanda Pohl", "Ned Frack")


def _row(source: str, place: str, keeper: str, answer: str) -> Mapping[str, Any]:
    passage = f"The ferry at {place} was kept by {keeper} for nine years."
    return {
        "set": source, "document_id": place, "question": f"Who kept the ferry at {place}?",
        "passage": passage, "answers": [[passage.index(answer), answer]],
    }  # fmt: skip


@pytest.fixture(name="settings")
def _settings(tmp_path: Path) -> Path:
    """Settings with questions of which every second one has another answer than the reader's."""
    rows = [
        _row(source, f"Quern{n}", keeper, "nine years" if n % 2 else keeper)
        for source in ("ferries", "locks")
        for n, keeper in enumerate(KEEPERS)
    ]
    question = {"id": "1", "document": "Ann Lee kept it.", "references": ["Ann Lee"]}
    config = {"tasks": {"mine": {"class": "JsonLines", "path": "task.jsonl"}}}
    settings = {
        "questions": ["rows.jsonl"], "sets": {"ferries": 6, "locks": 4}, "passages": 3,
        "config": "config.json", "tasks": ["mine"],
    }  # fmt: skip
    task = [{**question, "question": "Who kept the lock?"}]
    write_files(tmp_path, {"rows.jsonl": rows, "config.json": [config], "task.jsonl": task})
    write_files(tmp_path, {"settings.json": [settings]})
    return tmp_path / "settings.json"


def test_the_copy_of_the_model_has_the_fitted_confidence(settings: Path, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    record = run_recipe("confidence", settings, folder)
    assert (record["answers"], record["parameter"]) == (11, "reader.model")
    assert {"ece", "auc of ferries", "ece of mine", "sure_share"} < {*record["validation"]}
    config = json.loads((folder / "answers" / "config.json").read_text())
    assert config["confidence"] == record["confidence"]
    passage = "The ferry at Quern7 was kept by Lena Voss for nine years."
    [output] = Embedded(model=str(folder)).read([Read((passage,), "Who kept the ferry?")])
    assert output.text == "Lena Voss"
    assert output.probability == pytest.approx(0.5, abs=0.3)


def test_a_set_without_questions_is_reported(settings: Path, tmp_path: Path) -> None:
    """A misspelt name must not leave a set out."""
    values = json.loads(settings.read_text())
    settings.write_text(json.dumps({**values, "sets": {"fery": 6}}))
    with pytest.raises(UserError, match="no file has answered questions of the set 'fery'"):
        run_recipe("confidence", settings, tmp_path / "made")
    assert not (tmp_path / "made").exists()
