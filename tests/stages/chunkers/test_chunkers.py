"""Tests of all chunkers: properties on random texts, and examples."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from leporello import Document, chunkers
from leporello.chunkers import (
    FixedTokens,
    Lines,
    Paragraphs,
    Recursive,
    Rows,
    Sections,
    Sentences,
    Whole,
    Windows,
)
from leporello.core.errors import UserError
from leporello.core.protocols import Chunker
from leporello.text.sentences import sentence_starts
from leporello.text.tokens import tokenizer


@dataclass(frozen=True)
class Entry:
    """Chunker to test: its constructor, and properties that it guarantees."""

    build: Callable[[int, int, str], Chunker]
    bounded: bool = True
    overlaps: bool = False
    keeps_blanks: bool = False


ENTRIES: Mapping[str, tuple[Entry, ...]] = {
    "FixedTokens": (Entry(FixedTokens), Entry(FixedTokens, overlaps=True)),
    "Lines": (Entry(lambda size, _, model: Lines(size, model)),),
    "MentionWindows": (),  # depends on the question: see test_mention_windows.py
    "Paragraphs": (Entry(lambda size, _, model: Paragraphs(size, model)),
     Entry(lambda _size, _overlap, model: Paragraphs(0, model), bounded=False)),
    "Parts": (),  # returns the parts of a document: see tests/stages/combiners/test_authors.py
    "Recursive": (Entry(Recursive), Entry(Recursive, overlaps=True),
     Entry(lambda size, _, model: Recursive(size, 0, model, ("。", "ab", "\r", "👩"))),
     Entry(lambda size, _, model: Recursive(size, 0, model, language="markdown"))),
    "Rows": (Entry(lambda size, _, model: Rows(size, model), bounded=False),),
    "Sections": (Entry(lambda size, _, model: Sections(size, model), bounded=False),
     Entry(lambda size, _, model: Sections(size, model, split_long=True))),
    "Sentences": (Entry(Sentences), Entry(Sentences, overlaps=True)),
    "Whole": (Entry(lambda *_: Whole(), bounded=False),),
    "Windows": (Entry(lambda size, _, model: Windows(size, size, model), keeps_blanks=True),),
}  # fmt: skip
NAMED = {f"{name}-{n}": e for name in chunkers.__all__ for n, e in enumerate(ENTRIES[name])}
CASES = [pytest.param(entry, id=name) for name, entry in NAMED.items()]
BOUNDED = [pytest.param(entry, id=name) for name, entry in NAMED.items() if entry.bounded]
MODELS = ("words", "byte_bpe", "byte_bpe_trimmed", "word_piece", "unigram")
FRAGMENTS = (
    *("a", "b", "ab", "Dr. ", "word ", "The end. ", "No! ", "“What?” ", "e.g. ", "3.14", " ", "  "),
    *("\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\t", "\u2028", "\u2029", "\x85", "\x1c", "\u3000"),
    *("你好。", "「行く。」と", "！？", "한국어 ", "ไทย", "กำ", "👩‍👩‍👧"),
    *("👍🏽", "🇫🇷", "é", "e\u0301", "\u0301", "\x00", "\u202e", "\u200b", "\ufeff", "ﷺ", "ﬁ"),
    *("\ud800", ".", "...", "[1]", "[UNK]", "x" * 120),
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=40).map("".join)
SAMPLE = [
    "Hello world, this is the end. 👩‍👩‍👧 of e\u0301mo 你好世界。\r\n\n\n  word\x00 No! ab a b "
] * 20


def _train(name: str) -> Tokenizer:
    if name == "word_piece":
        trained = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106 -- a token of text
        trained.normalizer = normalizers.BertNormalizer()
        trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer: Any = trainers.WordPieceTrainer(vocab_size=90, special_tokens=["[UNK]"])
    elif name == "unigram":
        trained = Tokenizer(models.Unigram())
        trained.normalizer = normalizers.NFKC()
        trained.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=80,
            special_tokens=["<unk>"],
            unk_token="<unk>",  # noqa: S106 -- a token of text
            show_progress=False,
        )
    else:
        trained = Tokenizer(models.BPE())
        trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trained.post_processor = processors.ByteLevel(trim_offsets=name.endswith("trimmed"))
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=300, initial_alphabet=alphabet, show_progress=False
        )
    trained.train_from_iterator(SAMPLE, trainer)
    return trained


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Values of the parameter `tokenizer` by kind of tokenizer."""
    places: dict[str, str] = {"words": "words"}
    for name in MODELS[1:]:
        folder: Path = tmp_path_factory.mktemp(name)
        _train(name).save(str(folder / "tokenizer.json"))
        places[name] = str(folder)
    return places


def largest_cluster(tokens: list[tuple[int, int]]) -> int:
    """Returns the length of the longest sequence of tokens in which neighbours share characters."""
    largest = count = last_end = 0
    for start, end in tokens:
        count = count + 1 if start < last_end else 1
        last_end = max(last_end, end)
        largest = max(largest, count)
    return largest


def check(entry: Entry, text: str, size: int, overlap: int, model: str) -> None:
    document = Document("d", text)
    chunker = entry.build(size, overlap if entry.overlaps else 0, model)
    spans = list(chunker.chunk(document))
    assert spans == list(chunker.chunk(Document("again", text)))
    assert all(type(span.start) is int and type(span.end) is int for span in spans)
    chunks = [document.chunk(span.start, span.end) for span in spans]  # raises if out of bounds
    assert all(chunk.text for chunk in chunks)
    assert entry.keeps_blanks or all(chunk.text == chunk.text.strip() for chunk in chunks)
    for before, after in pairwise(spans):
        assert before.start < after.start
        assert before.end < after.end
        assert entry.overlaps or before.end <= after.start
    covered = {place for span in spans for place in range(span.start, span.end)}
    has_tokens = bool(spans) or not entry.keeps_blanks  # `Windows` needs a token
    assert not has_tokens or all(place in covered or c.isspace() for place, c in enumerate(text))
    if entry.bounded:
        tokens = [(int(start), int(end)) for start, end in document.tokens(tokenizer(model))]
        cluster = largest_cluster(tokens)
        bound = size + 2 * (cluster - 1) if entry.keeps_blanks else max(size, cluster)
        starts = np.array([start for start, _ in tokens], dtype=np.int64)
        for span in spans:
            assert np.count_nonzero((starts >= span.start) & (starts < span.end)) <= bound


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("entry", CASES)
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(text=TEXTS, size=st.integers(1, 12), share=st.floats(0, 0.99))
def test_properties_of_all_chunkers(
    entry: Entry, model: str, folders: dict[str, str], *, text: str, size: int, share: float
) -> None:
    """Spans ascend, cover all but white space, are not blank or too long, and are reproducible."""
    check(entry, text, size, int(size * share), folders[model])


def test_a_token_that_starts_in_white_space_is_in_one_chunk(folders: dict[str, str]) -> None:
    """The tab and the `D` are one token, which starts between two chunks of one token."""
    text = "x" * 120 + "\tDr. "
    assert texts(Recursive(1, 0, folders["unigram"]), text)[-3:] == ["x" * 8, "Dr", "."]


def texts(chunker: Chunker, text: str) -> list[str]:
    document = Document("d", text)
    return [document.chunk(span.start, span.end).text for span in chunker.chunk(document)]


RUNS = (
    "x" * 2000,
    "function(a){return b.c(d);}" * 70,
    "https://x.example/a%20b?c=d&" * 70,
    "e\u0301" * 1000,
    *("船停在第七号码头" * 250, "船停在第七号码头。" * 250, "カメラは七番埠頭にあります" * 150),
    *("เรือจอดอยู่ที่ท่าเรือ" * 100, "ភាសាខ្មែរ" * 200, "བོད་ཡིག་" * 250),
    ("x" * 39 + " ") * 50,
)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("entry", BOUNDED)
def test_runs_without_blanks_are_divided_at_characters(
    entry: Entry, model: str, folders: dict[str, str]
) -> None:
    for run in RUNS:
        document = Document("d", f"The lamp.\n\n{run}\n\nThe end.")
        spans = list(entry.build(30, 0, folders[model]).chunk(document))
        assert max(len(span) for span in spans) <= 30 * 41, run[:20]
        if model == "words":
            assert not any(document.text[span.start] == "\u0301" for span in spans)


EXAMPLES: tuple[tuple[Chunker, str, list[str]], ...] = (
    (Whole(), " \n a b \n", ["a b"]),
    (FixedTokens(2), " a b  c\nd\te ", ["a b", "c\nd", "e"]),
    (FixedTokens(3, 1), "a b c d e", ["a b c", "c d e"]),
    (FixedTokens(3, 2), "a b c d e", ["a b c", "b c d", "c d e"]),
    (FixedTokens(3, 1), "a b c d", ["a b c", "c d"]),
    (FixedTokens(2), "你好 wide 世", ["你好", "wide 世"]),
    (Lines(3), "a b\nc\nd e f g\nh", ["a b\nc", "d e f", "g\nh"]),
    (Lines(2), "\r\n\r\na\rb\r\n\r\nc d", ["a\rb", "c d"]),
    (Lines(1), "a\u2028b\r\rc", ["a", "b", "c"]),
    (Paragraphs(), "a\nb\n \t\nc\r\n\r\n\r\nd\n", ["a\nb", "c", "d"]),
    (Paragraphs(4), "a b\n\nc d\n\ne", ["a b\n\nc d", "e"]),
    (Paragraphs(3), "One two. Three four.\n\nFive", ["One two.", "Three four.\n\nFive"]),
    (Paragraphs(2), "a b c d e", ["a b", "c d", "e"]),
    (Paragraphs(4), "a\tb. C\nc\td. E\nf\tg\n", ["a\tb. C", "c\td. E", "f\tg"]),
    (Sentences(4), "One two. Three four. Five.", ["One two. Three four.", "Five."]),
    (Sentences(4, 1), "Aa bb. Cc dd. Ee ff.", ["Aa bb. Cc dd.", "Cc dd. Ee ff."]),
    (Sentences(3, 1), "Aa bb. Cc dd. Ee ff.", ["Aa bb.", "Cc dd.", "Ee ff."]),
    (Sentences(2), "One two three. Four", ["One two", "three. Four"]),
    (Recursive(3), "a b c\n\nd e f. g h\ni", ["a b c", "d e f.", "g h", "i"]),
    (Recursive(4), "x x\n\nx x\n\nx x", ["x x\n\nx x", "x x"]),
    (Recursive(2), "x x x x x", ["x x", "x x", "x"]),
    (Recursive(3, 1), "a b c d e", ["a b", "b c d", "d e"]),
    (Recursive(2, 0, "words", ("|",)), "a| b c d|", ["a|", "b c", "d|"]),
)


@pytest.mark.parametrize(
    ("chunker", "text", "expected"), EXAMPLES, ids=lambda value: repr(value)[:60]
)
def test_chunkers_divide_as_people_do(chunker: Chunker, text: str, expected: list[str]) -> None:
    assert texts(chunker, text) == expected


# Texts with a bar after each sentence.
SENTENCES = (
    "Dr. Smith paid $3.50 to J. K. Rowling, e.g. in the U.S. Army. |He left at 5 p.m. |The end.",
    "“What?” he said. |“No!” |She wept... and slept… |Then—“Go.” |(He went.) |Ok.",
    "We saw it.[12] |Mr. and Mrs. Jones of Smith Inc. went. |3.14 is pi. |No. 5 is Plan B. |He is.",
    "He said no. |John left. |See Fig. 3 and pp. 4-5 vs. Jones et al. 2010.",
    "今天很好。|你好吗？|「行く。」と言った。|さようなら！|終わり",
    "A title\n\n|Body. |Two\nlines.\r\n\r\n|1. First. |Done",
    "Yes!! |Is it? |“Is it?” asked she. |هل هذا؟ |نعم",
    "No stop at all",
)


@pytest.mark.parametrize("marked", SENTENCES)
def test_sentences_end_where_a_person_ends_them(marked: str) -> None:
    text = marked.replace("|", "")
    bounds = [0, *sentence_starts(text), len(text)]
    assert [text[a:b] for a, b in pairwise(bounds) if a < b] == marked.split("|")


def test_characters_of_several_tokens_are_not_divided(folders: dict[str, str]) -> None:
    assert texts(FixedTokens(1, tokenizer=folders["byte_bpe"]), "👍🦄") == ["👍", "🦄"]


CODE = "".join(
    f"class C{n}:\n    def f(self):\n\n        return {n} if self else 'a'\n\n{'x = 1' * (n % 3)}\n"
    f"def g{n}(x):\n\tdef h(y):\n\t\treturn y\n\treturn h(x)\n"
    for n in range(9)
)


@pytest.mark.parametrize("size", [3, 8, 20])
@pytest.mark.parametrize("language", ["python", "go", "markdown"])
def test_code_is_divided_at_the_same_places_as_by_langchain(language: Any, size: int) -> None:
    from langchain_text_splitters import Language, RecursiveCharacterTextSplitter

    token = len(CODE) + 2
    splitter = RecursiveCharacterTextSplitter.from_language(
        Language(language),
        chunk_size=token * (size + 1) - 1,
        chunk_overlap=0,
        strip_whitespace=False,
        length_function=lambda piece: token * len(piece.split()) + len(piece),
    )
    expected = [piece.strip() for piece in splitter.split_text(CODE) if piece.strip()]
    suffix = {"python": "py", "go": "go", "markdown": "md"}[language]
    explicit = Recursive(size, language=language).chunk(Document("d", CODE))
    recognised = Recursive(size, language="auto").chunk(Document(f"src/a.{suffix}", CODE))
    for spans in (explicit, recognised):
        assert [CODE[span.start : span.end] for span in spans] == expected


@pytest.mark.parametrize("chunker", [FixedTokens, Recursive])
def test_overlap_must_be_less_than_size(chunker: type[FixedTokens | Recursive]) -> None:
    with pytest.raises(ValueError, match=r"overlap \(5\) must be less than size \(5\)"):
        chunker(5, 5)


def test_only_a_language_needs_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_text_splitters", None)
    assert texts(Recursive(1), "a b") == ["a", "b"]
    chunker, document = Recursive(language="python"), Document("d", "a b")
    chunker.check_files("")
    for work in (lambda: chunker.check_files("data"), lambda: [*chunker.chunk(document)]):
        with pytest.raises(UserError, match=r"pip install 'leporello\[langchain\]'"):
            work()
