"""Labelled opinions from the files of their authors, all CC BY 4.0."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from leporello.core.errors import UserError

SOURCES = ("sentences", "snippets", "products", "pros_cons")
_TAG = re.compile(r"<[^>]+>")
_STRENGTH = re.compile(r"\[([+-])\d\]")


@dataclass(frozen=True, slots=True)
class Opinion:
    """A sentence or so with its label.

    Attributes:
        text: Text of the opinion.
        is_positive: Whether it is positive.
        source: Name of where it is from.
    """

    text: str
    is_positive: bool
    source: str


def read_opinions(folder: Path) -> list[Opinion]:
    """Returns the opinions of a folder with the corpora as they are distributed.

    Args:
        folder: Folder with NLTK's `sentence_polarity`, `product_reviews_1`, `product_reviews_2` and
            `pros_cons`, and UCI's `sentiment labelled sentences`, each unpacked.

    Raises:
        UserError: A file is missing.
    """
    opinions = [*_sentences(folder), *_snippets(folder), *_products(folder), *_pros_cons(folder)]
    return [opinion for opinion in opinions if opinion.text]


def _sentences(folder: Path) -> Iterator[Opinion]:
    for site in ("amazon_cells", "imdb", "yelp"):
        for line in _lines(folder / "sentiment labelled sentences" / f"{site}_labelled.txt"):
            text, _, label = line.rpartition("\t")
            if label in ("0", "1"):
                yield Opinion(text.strip(), label == "1", f"sentences/{site}")


def _snippets(folder: Path) -> Iterator[Opinion]:
    for name in ("pos", "neg"):
        for line in _lines(folder / "sentence_polarity" / f"rt-polarity.{name}"):
            yield Opinion(line.strip(), name == "pos", "snippets")


def _products(folder: Path) -> Iterator[Opinion]:
    for name in ("product_reviews_1", "product_reviews_2"):
        for file in sorted((folder / name).glob("*.txt")):
            for line in _lines(file):
                told, _, text = line.partition("##")
                signs = set(_STRENGTH.findall(told))
                if len(signs) == 1:  # of one mind
                    yield Opinion(text.strip(), signs == {"+"}, "products")


def _pros_cons(folder: Path) -> Iterator[Opinion]:
    for name in ("Pros", "Cons"):
        for line in _lines(folder / "pros_cons" / f"Integrated{name}.txt"):
            yield Opinion(html.unescape(_TAG.sub("", line)).strip(), name == "Pros", "pros_cons")


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
