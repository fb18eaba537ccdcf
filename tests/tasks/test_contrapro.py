"""Tests of ContraPro's contrastive choice on MuLD's subtitles."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from row_files import write_rows

from leporello.api import run
from leporello.core.errors import ConfigError
from leporello.tasks import ContraPro

ENGLISH = ["Look at the moon.", 'It is "bright".', "I see it.", "Go home."]
GERMAN = ["Sieh den Mond.", "Er ist hell.", "Ich sehe ihn.", "Geh heim."]


def entry(number: int, wrong: list[str], distance: int = 1, **more: Any) -> dict[str, Any]:
    """Returns an annotation in the form of contrapro.json, for a line from 1."""
    return {
        "src segment": ENGLISH[number - 1].replace('"', " "),
        "ref segment": GERMAN[number - 1],
        "errors": [{"contrastive": text, "type": "pronominal coreference"} for text in wrong],
        "segment id": number,
        "ante distance": distance,
        "src pronoun": "it",
        **more,
    }


def put(data: Path, *entries: dict[str, Any], metadata: object = None, german: Any = None) -> None:
    film = {"input": "\n".join(ENGLISH), "output": german or GERMAN}
    film["metadata"] = metadata or json.dumps(entries)
    unmarked = {"input": "A film.\nNo marks.", "output": "Ein Film.", "metadata": ""}
    write_rows(data / "muld/opensubtitles_test.json.bz2", unmarked, film)


def test_each_annotation_is_a_choice_of_translations(tmp_path: Path) -> None:
    put(tmp_path, entry(2, ["Sie ist hell.", "Es ist hell."]), entry(3, ["Ich sehe sie."], 7))
    first, second = ContraPro(data=tmp_path, context=1).examples()
    assert (first.id, second.id) == ("test-1-0", "test-1-1")
    assert first.document.text == "Look at the moon.\nIt is  bright ."
    assert first.choices == tuple(
        f"Sieh den Mond.\n{text} ist hell." for text in ("Er", "Es", "Sie")
    )
    assert first.references == ("Sieh den Mond.\nEr ist hell.",)
    assert (first.group, second.group) == ("distance 1", "distance >3")
    [alone, _] = ContraPro(data=tmp_path, context=0).examples()
    assert alone.choices == ("Er ist hell.", "Es ist hell.", "Sie ist hell.")


@pytest.mark.parametrize(
    ("broken", "german", "fault"),
    [
        ({"src segment": "No line."}, None, "`src segment` 'No line.' is not a line of `input`"),
        ({"errors": []}, None, "`errors` has no translation that differs from `ref segment`"),
        ({}, GERMAN[:3], "`input` has 4 lines, but `output` has 3"),
    ],
)
def test_a_faulty_annotation_fails_alone(
    tmp_path: Path, broken: dict[str, Any], german: Any, fault: str
) -> None:
    put(tmp_path, entry(2, ["Sie ist hell."]) | broken, german=german)
    [example] = ContraPro(data=tmp_path).examples()
    assert example.fault == f"opensubtitles_test.json.bz2:2: {fault}"


def test_metadata_of_another_form_is_refused_with_its_line(tmp_path: Path) -> None:
    for metadata in ("{", [3]):
        put(tmp_path, metadata=metadata)
        with pytest.raises(ConfigError, match=r"bz2:2: field .metadata. must be a list of objects"):
            list(ContraPro(data=tmp_path).examples())


def test_a_pipeline_chooses_a_translation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Callable[[str], str]
) -> None:
    monkeypatch.setenv("LEPORELLO_DATA", str(tmp_path))
    put(tmp_path, entry(2, ["Sie ist hell."]), entry(3, ["Ich sehe sie."]))
    sets = [f"reader.model={tiny('t5')}", "reader.device=cpu"]
    finished = run(["muld-contrapro"], overrides=sets, out=tmp_path / "out", workers=0)
    assert finished.results[0].failures == 0
    examples = ContraPro(data=tmp_path).examples()
    predictions = finished.predictions("muld-contrapro", "muld/contrapro")
    for example, prediction in zip(examples, predictions, strict=True):
        assert prediction.prediction in example.choices
