"""A text is tokenised once, however often it is measured, counted and read; the memo is bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import tiny_encoders
from tiny_models import STORY, save, save_classifier
from transformers import PreTrainedTokenizerFast

from leporello.core.records import Document, Read
from leporello.readers import (
    CausalLM,
    Classifier,
    Extractive,
    LogLikelihood,
    PairClassifier,
    Seq2Seq,
)
from leporello.readers.batching.memo import TokenMemo
from leporello.readers.prompting.template import passage_text

DOCUMENT = Document("story", " ".join([STORY] * 4))
COUNT = 300  # reads: more than a window has
SHORT: dict[str, Any] = {"max_new_tokens": 1, "device": "cpu"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with tiny models."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("t5", "gpt2", "chat"):
        save(name, folder / name)
    save_classifier("bert", folder / "bert", ("same", "different"))
    tiny_encoders.save("bert", folder / "marks")
    return folder


@pytest.fixture
def tokenised(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[object, ...]]:
    """Returns how often tokenizers were given each text, alone and beside another."""
    seen: Counter[tuple[object, ...]] = Counter()
    tokenise: Any = PreTrainedTokenizerFast.__call__
    told = ("text_pair", "text_target", "add_special_tokens", "return_offsets_mapping")

    def counted(self: Any, *texts: Any, **options: Any) -> Any:
        seen[(*texts, *(options.get(name) for name in told))] += 1
        return tokenise(self, *texts, **options)

    monkeypatch.setattr(PreTrainedTokenizerFast, "__call__", counted)
    return seen


def alone(n: int) -> Read:
    """Returns a passage: of the document, or a text of its own."""
    if n % 2:
        return Read((DOCUMENT.chunk(n, n + 40 + n % 50),))
    return Read((f"{n} {STORY[: 20 + n % 60]}",))


def asked(n: int) -> Read:
    """Returns a question about a few passages, of which some are too long together."""
    passages = [passage for k in range(n % 3 + 1) for passage in alone(n + 7 * k).passages]
    return Read(tuple(passages), f"Who is number {n}?")


def chosen(n: int) -> Read:
    """Returns the same with choices, which all questions share."""
    read = asked(n)
    return Read(read.passages, read.question, choices=("the cat", "the king"))


def paired(n: int) -> Read:
    """Returns two texts, of which each stands in many pairs; some do not fit the window."""
    texts = [f"{k} {STORY[: 30 + 9 * k]}" for k in (n % 20, n // 20)]
    return Read((), pair=(texts[0], texts[1]))


Kind = tuple[Callable[[Path], Any], Callable[[int], Read]]
KINDS: Mapping[str, Kind] = {
    "Seq2Seq": (lambda at: Seq2Seq(str(at / "t5"), max_input_tokens=90, **SHORT), asked),
    "Seq2Seq that splits": (
        lambda at: Seq2Seq(str(at / "t5"), max_input_tokens=70, on_overflow="split", **SHORT),
        asked,
    ),
    "Seq2Seq that chooses": (lambda at: Seq2Seq(str(at / "t5"), **SHORT), chosen),
    "CausalLM": (lambda at: CausalLM(str(at / "gpt2"), max_input_tokens=120, **SHORT), chosen),
    "CausalLM that chats": (
        lambda at: CausalLM(str(at / "chat"), max_input_tokens=120, system="Be brief.", **SHORT),
        asked,
    ),
    "Classifier": (
        lambda at: Classifier(str(at / "bert"), question=True, max_input_tokens=80, device="cpu"),
        asked,
    ),
    "PairClassifier": (
        lambda at: PairClassifier(str(at / "bert"), max_input_tokens=80, device="cpu"),
        paired,
    ),
    "Extractive": (lambda at: Extractive(str(at / "marks"), 80, 20, device="cpu"), asked),
    "LogLikelihood": (
        lambda at: LogLikelihood(str(at / "gpt2"), max_input_tokens=80, device="cpu"),
        alone,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_tokenised_once(
    kind: str, models: Path, tokenised: Counter[tuple[object, ...]]
) -> None:
    """Between fit, count, packing and reading, though a call has more texts than a window."""
    build, make = KINDS[kind]
    reader, reads = build(models), [make(n) for n in range(COUNT)]
    for read in reads:
        reader.fit(read)
    for _ in range(2):
        reader.count([passage_text(passage) for read in reads for passage in read.passages])
    outputs = reader.read(reads)
    assert len(outputs) == COUNT
    assert len(tokenised) > COUNT // 2
    [(text, most), *_] = tokenised.most_common(1)
    assert most == 1, text


def test_the_memo_is_bounded_and_forgets_what_was_not_used_for_longest() -> None:
    """By characters and tokens; what is larger than all of it is not kept."""
    memo, asked = TokenMemo(most=30), []

    def get(text: str) -> tuple[int, ...]:
        def encode() -> list[int]:
            asked.append(text)
            return list(map(ord, text))

        return memo.get((1, text), encode)

    for text in ("ninechars", "six   ", "ninechars", "eight   ", "six   ", "ninechars"):
        assert get(text) == tuple(map(ord, text))
    assert asked == ["ninechars", "six   ", "eight   ", "six   ", "ninechars"]
    get("x" * 100)
    get("x" * 100)
    assert asked[-2:] == ["x" * 100] * 2
