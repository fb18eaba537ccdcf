"""Opinions judged by their words: with the shipped weights, and how these are learnt."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.errors import UserError
from leporello.core.records import Read
from leporello.readers import Polarity
from leporello.text.english.polarity import opinion_words
from leporello.training.recipes import run_recipe

CHOICES = ("good", "bad")
GOOD = "The staff were friendly and the room was lovely, clean and quiet. I highly recommend it."
BAD = "A boring, predictable mess: the plot makes no sense and the jokes are not funny at all."


def test_opinions_are_told_apart() -> None:
    """The shipped weights know a good hotel from a bad film; scores are log-probabilities."""
    outputs = checked_read(Polarity(), [Read((text,), choices=CHOICES) for text in (GOOD, BAD)])
    assert [output.text for output in outputs] == ["good", "bad"]
    assert all(sum(map(math.exp, output.scores)) == pytest.approx(1) for output in outputs)


def test_a_negation_turns_words() -> None:
    """Up to three words behind it, in tokenised text too."""
    assert opinion_words("It is n't very good, really.") == {
        "it", "isn't", "not very", "not good", "really",
    }  # fmt: skip
    reader = Polarity()
    assert reader.log_odds("This is not good.") < 0 < reader.log_odds("This is good.")


def test_two_choices_are_needed() -> None:
    """A question without choices is refused."""
    with pytest.raises(ValueError, match="two choices"):
        Polarity().read([Read((GOOD,))])


def test_the_recipe_leaves_out_what_is_apart(tmp_path: Path) -> None:
    """Texts that `exclude` knows teach nothing; the same data give the same bytes."""
    settings = _corpora(tmp_path)
    told = run_recipe("polarity", settings, tmp_path / "one")
    assert told["excluded"] == 3
    assert "secret" not in (tmp_path / "one/polarity/words.txt").read_text()
    run_recipe("polarity", settings, tmp_path / "two")
    files = [sorted((tmp_path / name / "polarity").iterdir()) for name in ("one", "two")]
    assert [f.read_bytes() for f in files[0]] == [f.read_bytes() for f in files[1]]
    reader = Polarity(str(tmp_path / "one"))
    assert reader.log_odds("good") > reader.log_odds("awful")


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    """Its checksum is another."""
    run_recipe("polarity", _corpora(tmp_path), tmp_path / "made")
    (tmp_path / "made/polarity/words.txt").write_text("other")
    with pytest.raises(UserError, match="is damaged"):
        Polarity(str(tmp_path / "made")).load()


def _corpora(folder: Path) -> Path:
    """Writes corpora of a few words, as their authors distribute them, and the settings."""
    files = {
        **{
            f"sentiment labelled sentences/{site}_labelled.txt": "a good one\t1\nan awful one\t0\n"
            * 4
            for site in ("amazon_cells", "imdb", "yelp")
        },
        "sentence_polarity/rt-polarity.pos": "good stuff\n" * 4,
        "sentence_polarity/rt-polarity.neg": "awful stuff\n" * 4,
        "product_reviews_1/phone.txt": "[t]a phone\nsound[+2]##good sound\nsize[-1]##awful size\n",
        "pros_cons/IntegratedPros.txt": "<Pros>good &amp; small</Pros>\n" * 4,
        "pros_cons/IntegratedCons.txt": "<Cons>awful</Cons>\n" * 4
        + "<Cons>awful, secret</Cons>\n" * 3,
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    (folder / "product_reviews_2").mkdir()
    (folder / "apart.py").write_text("def is_apart(text):\n    return 'secret' in text\n")
    settings = folder / "settings.json"
    told = {"data": str(folder), "exclude": str(folder / "apart.py")}
    settings.write_text(json.dumps(told))
    return settings
