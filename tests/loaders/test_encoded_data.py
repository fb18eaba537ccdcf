"""Tests of encoded data in texts, which are left out and reported as furniture."""

import base64
import json
import random
import textwrap
from collections.abc import Callable, Mapping

import pytest
from contents import read

from leporello.core.errors import UserError

BYTES = random.Random(1).randbytes(30_000)
DATA = base64.b64encode(BYTES).decode()
URI = f"data:image/png;base64,{DATA}"
LAMP = "The lamp holds 40 litres of oil."


def notebook(text: str) -> str:
    cells = [
        {"cell_type": "markdown", "source": text},
        {"cell_type": "code", "source": "x", "outputs": [{"data": {"text/html": f"<p>{text}"}}]},
    ]
    return json.dumps({"nbformat": 4, "cells": cells})


FORMS: Mapping[str, Callable[[str], str]] = {
    "a.txt": str,
    "a.md": lambda text: f"# Log\n\n{text}",
    "a.html": lambda text: f"<html><body><pre>{text}</pre>",
    "a.eml": lambda text: f"From: a@x.example\nSubject: Oil\n\n{text}\n",
    "a.ipynb": notebook,
    "a.json": lambda text: json.dumps({"note": text, "list": [text]}),
    "a.csv": lambda text: f'name,note\nlamp,"{text}"\n',
    "a.srt": lambda text: f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n",
    "a.tex": lambda text: f"\\documentclass{{a}}\n{text.replace('%', chr(92) + '%')}\n",
    "a.py": lambda text: f"x = '''{text}'''\n",
}
TEXTS = {
    "URI": f"Before {URI} after. {LAMP}",
    "image of Markdown": f"![map]({URI}) {LAMP}",
    "percent signs": f"Before data:image/svg+xml,{'%3Csvg' * 40} after. {LAMP}",
    "base64": f"Before {DATA} after. {LAMP}",
    "base64 for addresses": f"Before {base64.urlsafe_b64encode(BYTES).decode()} after. {LAMP}",
    "base64 in lines": "Before\n" + "\n".join(textwrap.wrap(DATA, 76)) + f"\nafter. {LAMP}",
    "hexadecimal digits": f"Before {BYTES[:900].hex()} after. {LAMP}",
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("name", FORMS)
def test_encoded_data_are_furniture(name: str, kind: str) -> None:
    content = FORMS[name](TEXTS[kind])
    document = read(content, name)
    assert LAMP in document.text
    assert len(document.text) < 600
    losses = [loss for loss in document.losses if loss.what == "encoded data"]
    assert all(loss.furniture for loss in losses)
    shown = sum(loss.characters for loss in losses)
    assert shown > 200
    assert len(content) - shown < 1000 or name in ("a.ipynb", "a.json")


@pytest.mark.parametrize(
    "text",
    [
        "ACGT" * 900,
        "antidisestablishment" * 100,
        "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ" * 60,
        "The address is https://x.example/a/b?c=" + "d1E" * 40,
        "data:image/png;base64,iVBORw0KGgo=",
        "日本語のテキスト" * 300,
        "\n".join(["word", "Another1", "third"] * 400),
    ],
)
def test_other_long_texts_stay(text: str) -> None:
    document = read(f"x {text} y", "a.txt")
    assert document.text == f"x {text} y"
    assert not document.losses


def test_sections_and_places_fit_the_text_that_is_left() -> None:
    text = f"# One\n\na {URI} b\n\n# Two\n\n{DATA}\n\n# Three {URI}\nc"
    document = read(text, "a.md")
    shown = [document.text[s.start : s.end] for s in document.sections]
    assert shown == ["# One\n\na  b\n\n", "# Two\n\n\n\n", "# Three \nc"]
    table = read(json.dumps([["Ann", 1], DATA, URI, ["Bo", 2]]), "a.json")
    places = [(p.name, table.text[p.start : p.end]) for p in table.places]
    assert places[0] == ("[0]", "[0][0]: Ann\n[0][1]: 1\n")
    assert places[-1] == ("[3]", "[3][0]: Bo\n[3][1]: 2")


def test_a_file_of_encoded_data_has_no_text() -> None:
    with pytest.raises(UserError, match=r"the file has no text \(encoded data"):
        read(DATA, "a.txt")
