"""Tests of words, Hugging Face tokenizers and their offsets, and errors while loading."""

import pickle
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from leporello import Document
from leporello.core.errors import UserError
from leporello.text.tokens import _PIECE, HuggingFace, Words, pieces, terms, tokenizer


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level BPE that was saved with truncation, padding and trimmed offsets."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        ["one two three one two three"] * 9,
        trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet, show_progress=False),
    )
    bpe.enable_truncation(4)
    bpe.enable_padding(length=16)
    place = tmp_path_factory.mktemp("bpe")
    bpe.save(str(place / "tokenizer.json"))
    return place


def texts(name: str, text: str) -> list[str]:
    """Returns the characters of each token."""
    return [text[start:end] for start, end in tokenizer(name).offsets(text).tolist()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \u3000\x1c", []),
        ("It's  a\tword.\r\n", ["It's", "a", "word."]),
        ("你好 wide世", ["你", "好", "wide", "世"]),
        ("ก\u0e31น e\u0301a", ["ก\u0e31", "น", "e\u0301a"]),
        ("👩‍👧 \ud800", ["👩‍👧", "\ud800"]),
        ("a " + "b" * 40 + " " + "c" * 41, ["a", "b" * 40, *["c" * 8] * 5, "c"]),
        ("e\u0301" * 41, ["e\u0301e\u0301e\u0301e\u0301"] * 10 + ["e\u0301"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    """Words are runs without white space, divided if long; characters if a script has no spaces."""
    assert texts("words", text) == expected


def test_tokens_of_a_model(folder: Path) -> None:
    """Tokens leave out the space before them, are not truncated or padded, and keep newlines."""
    expected = ["one", "two", "three", "one", "two", "\n", "three"]
    assert texts(str(folder), "one two three one two\n three") == expected


def test_lone_surrogates_count_as_characters(folder: Path) -> None:
    """Half a surrogate pair, which tokenizers reject, does not shift later offsets."""
    assert tokenizer(str(folder)).offsets("\ud800 one").tolist()[-1] == [2, 5]


def test_offsets_refer_to_the_original_text(tmp_path: Path) -> None:
    vocabulary = {"[UNK]": 0, "fi": 1, "##x": 2, "a": 3}
    word_piece = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106 -- a token of text
    word_piece.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents()])
    word_piece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    word_piece.save(str(tmp_path / "tokenizer.json"))
    assert texts(str(tmp_path), "a\u0301 ﬁx á zzz") == ["a", "ﬁ", "x", "á", "zzz"]


@given(st.lists(st.sampled_from(["x" * 5000, "ab ", "\n", " ", "\t", "🦄", "y" * 700])))
def test_pieces_are_bounded_and_end_at_white_space(parts: list[str]) -> None:
    text = "".join(parts)
    cuts = pieces(text)
    assert (cuts[0], cuts[-1]) == (0, len(text))
    for start, end in pairwise(cuts[:-1]):
        assert 0 < end - start <= _PIECE
        newline = text.rfind("\n", start, end)
        assert newline in (-1, end - 1)
        if newline < 0 and not text[end].isspace():
            assert len(text[start + 1 : end].split()) == 1


def test_long_texts_have_the_tokens_of_their_words(folder: Path) -> None:
    tokens = texts(str(folder), " one two three\n" * 10_000)
    assert tokens == ["one", "two", "three", "\n"] * 10_000


def test_a_tokenizer_is_identified_by_its_model(folder: Path) -> None:
    """Loading changes neither equality nor hash; a copy finds a document's cached tokens."""
    first, second = HuggingFace(str(folder)), HuggingFace(str(folder))
    document = Document("d", "one two")
    cached = document.tokens(first)
    assert (first, hash(first), repr(first)) == (second, hash(second), repr(second))
    assert document.tokens(second) is cached
    assert pickle.loads(pickle.dumps(first)) == first  # noqa: S301 -- a trusted object
    assert tokenizer(str(folder)) is tokenizer(str(folder))
    assert tokenizer("words") == Words()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing", None, "there is no such file or folder"),
        ("broken.json", "{", "cannot be loaded"),
        ("notes.txt", "a", "use 'words', the hub id of a model"),
    ],
)
def test_tokenizers_that_cannot_be_loaded(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=message):
        tokenizer(str(tmp_path / name)).offsets("")


def test_a_hub_id_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=r"no/such-model.*the path of a folder"):
        tokenizer("no/such-model").offsets("text")


@pytest.mark.integration
def test_slow_tokenizers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "canine"}')
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "CanineTokenizer"}')
    with pytest.raises(UserError, match="has no offsets"):
        tokenizer(str(tmp_path)).offsets("text")


def test_terms() -> None:
    """Terms are case-folded; scripts without spaces give pairs of characters."""
    assert terms("Straße, it's X_1 你好世 é") == ["strasse", "it", "s", "x_1", "你好", "好世", "é"]


def test_the_fast_ways_to_terms_agree_with_the_general_way() -> None:
    """A further character that needs a slower way changes no term beside it."""
    for character in [*map(chr, range(0x250)), *map(chr, range(0x2000, 0x2070))]:
        text = f"a{character}b {character}"
        assert terms(f"{text} ő") == [*terms(text), "ő"], hex(ord(character))
        assert terms(f"{text} ☃") == terms(text), hex(ord(character))


@given(st.text("aBé\u0301ßıİÅ\u00ad\u200b ²½ª™’_-…œﬁőǰ١がか\u3099中", max_size=9))
def test_terms_do_not_depend_on_the_form_of_accents(text: str) -> None:
    for form in ("NFC", "NFD"):
        assert terms(unicodedata.normalize(form, text)) == terms(text)
