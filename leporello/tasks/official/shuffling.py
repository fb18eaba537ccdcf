"""Sentences and shuffles of the Shuffle Test, as its authors' code makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal, TypeAlias

from leporello.text.sentences import sentence_spans

Unit: TypeAlias = Literal["sentence", "line"]


def sentences_of(text: str, unit: Unit) -> list[str]:
    """Returns the sentences, or the lines, of a text: without blanks around them, none empty."""
    if unit == "line":
        return [line.strip() for line in text.split("\n") if line.strip()]
    return [text[start:end] for start, end in sentence_spans(text)]


def shuffles(
    sentences: Sequence[str], block_size: int, count: int, chance: Random
) -> Iterator[list[str]]:
    """Yields orders of the sentences in which blocks are shuffled, none of them the original's.

    The same order can come several times. Nothing can be shuffled in a single block: then each is
    the original. `chance` is asked as the authors ask the module `random`, so that the same seed
    gives the same shuffles.

    Args:
        sentences: Sentences in the document's order.
        block_size: Sentences that stay together; the last block may have fewer.
        count: Number of orders.
        chance: Generator that the orders are drawn with.
    """
    starts = range(0, len(sentences), block_size)
    blocks = [sentences[start : start + block_size] for start in starts]
    for _ in range(count):
        order = list(range(len(blocks)))
        while len(blocks) > 1 and order == sorted(order):
            chance.shuffle(order)
        yield [sentence for index in order for sentence in blocks[index]]


def beginning(text: str, sentences: Sequence[str], count: int) -> str:
    """Returns a text up to the end of its first `count` sentences; 0 stands for all of it.

    Raises:
        ValueError: A sentence does not stand in the text behind those before it.
    """
    if not 0 < count < len(sentences):
        return text
    end = 0
    for number, sentence in enumerate(sentences[:count], 1):
        start = text.find(sentence, end)
        if start < 0:
            raise ValueError(f"sentence {number}, {sentence!r:.60}, does not stand in the text")
        end = start + len(sentence)
    return text[:end]
