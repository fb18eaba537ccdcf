"""The recipes `plots` and `polarity`, which learn word weights, and their command line."""

import runpy
from pathlib import Path

import pytest
from command_line import write_files

from leporello.readers import Polarity, Precedence
from recipes.command import run_recipe


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
    settings = {"data": [str(folder / "train.jsonl")], "exclude": str(folder / "apart.py")}
    apart = "def is_apart(text):\n    return 'Secret' in text\n"
    write_files(folder, {"train.jsonl": rows, "apart.py": apart, "settings.json": [settings]})
    return folder / "settings.json"


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
    settings = {"data": str(folder), "exclude": str(folder / "apart.py")}
    apart = "def is_apart(text):\n    return 'secret' in text\n"
    write_files(folder, {**files, "apart.py": apart, "settings.json": [settings]})
    return folder / "settings.json"
