"""Tests of the scores and hits of retrievers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25L, BM25Okapi, BM25Plus
from retrieval import chunked, examples_of, joined

from leporello import Chunk, Document, Hit
from leporello.cache.store import Cache
from leporello.core.calls.stage_calls import retrieve
from leporello.core.errors import UserError
from leporello.core.members import join
from leporello.readers import Lead
from leporello.retrievers import (
    BM25,
    All,
    Dense,
    First,
    Fusion,
    Neighbours,
    Random,
    RankBM25,
    Rerank,
    RerankByReader,
    TfIdf,
)
from leporello.retrievers.embedders import count, cut, load_encoder, room
from leporello.text.tokens import terms

STORY = (
    "The miller had three sons. The eldest got the mill. The second got the donkey. "
    "The youngest got only the cat. The cat asked for a pair of boots. "
    "The boots were made of red leather. The king loved rabbits. The ogre lived in a castle."
)
QUESTIONS = ("Who got the donkey?", "What were the boots made of?", "Where did the ogre live?")
CHINESE = "老磨坊主有三个儿子。大儿子得到了磨坊。二儿子得到了驴。小儿子只得到了猫。"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Folder of a tiny BERT with random weights, one label and an input window of 24 tokens."""
    import torch
    from tiny_encoders import wordpieces
    from tiny_models import encoder

    torch.manual_seed(0)
    tokenizer, folder = wordpieces([STORY], 120), tmp_path_factory.mktemp("tiny-bert")
    tokenizer.model_max_length = 24
    bert = encoder("bert", "SequenceClassification", len(tokenizer), num_hidden_layers=1,
                   max_position_embeddings=24, initializer_range=0.5, num_labels=1)  # fmt: skip
    bert.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def lists_of(retriever: Any, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
    """Returns the hits of each question, as in the engine."""
    return retrieve(retriever, examples_of(questions, chunks), chunks)


def spans(hits: Sequence[Hit]) -> list[tuple[int, int]]:
    return [(hit.chunk.start, hit.chunk.end) for hit in hits]


@pytest.mark.parametrize(
    "retriever",
    [TfIdf(k=1), BM25(k=1), Fusion((TfIdf(), BM25()), k=1), Neighbours(BM25(k=1), 0, 0)],
)
def test_chinese_is_searched_by_words(retriever: Any) -> None:
    hits = lists_of(retriever, ["谁得到了驴?"], chunked(CHINESE, mark="。"))[0]
    assert [hit.chunk.text for hit in hits] == ["二儿子得到了驴。"]


def test_all_first_and_random_return_chunks_by_their_definition() -> None:
    chunks, others = chunked(STORY), chunked(STORY, name="another")
    assert lists_of(All(), ["x"], chunks) == [[Hit(chunk, 0.0) for chunk in chunks]]
    assert lists_of(First(k=2), ["x"], chunks) == [[Hit(chunk, 0.0) for chunk in chunks[:2]]]
    cases = ((Random(), chunks), (Random(seed=1), chunks), (Random(), others))
    draws = [spans(lists_of(retriever, ["x"], document)[0]) for retriever, document in cases]
    assert len(set(map(tuple, draws))) == 3
    assert all(sorted(draw) == spans([Hit(chunk, 0) for chunk in chunks]) for draw in draws)


@settings(max_examples=60)
@given(
    texts=st.lists(st.text("ab c.é中か\u0301", max_size=16), min_size=1, max_size=8),
    question=st.text("ab cd中か", max_size=16),
    ngrams=st.integers(1, 3),
    is_own=st.booleans(),
)
@example(texts=[STORY[:70], STORY[70:]], question=QUESTIONS[0], ngrams=2, is_own=True)
def test_scores_of_tfidf_equal_those_of_scikit_learn(
    texts: list[str], question: str, ngrams: int, is_own: bool
) -> None:
    """They are cosines of TfidfVectorizer, with terms of this project or of scikit-learn.

    Chunks whose cosine is 0 are not hits, unless the question has no terms.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    split = terms if is_own else TfidfVectorizer().build_analyzer()
    assume(any(map(split, texts)))  # it raises an error without terms
    chunks = joined(texts)
    tokenizer = {"tokenizer": terms, "token_pattern": None} if is_own else {}
    vectorizer = TfidfVectorizer(ngram_range=(1, ngrams), **tokenizer)
    weights = vectorizer.fit_transform(texts)
    [expected] = (vectorizer.transform([question]) @ weights.T).toarray()
    kind: Literal["leporello", "scikit-learn"] = "leporello" if is_own else "scikit-learn"
    retriever = TfIdf(k=99, ngrams=ngrams, terms=kind)
    [hits] = lists_of(retriever, [question], chunks)
    scores = {hit.chunk: hit.score for hit in hits}
    assert [scores.get(chunk, 0.0) for chunk in chunks] == pytest.approx(expected, abs=1e-12)
    has_terms = bool(split(question))
    assert len(hits) == (np.count_nonzero(expected) if has_terms else len(chunks))


@settings(max_examples=60)
@given(
    texts=st.lists(st.text("ab c.", min_size=1, max_size=12), min_size=1, max_size=8),
    question=st.text("ab cd", max_size=12),
    k1=st.floats(0.1, 3),
    b=st.floats(0, 1),
)
def test_rank_bm25_equals_its_library(texts: list[str], question: str, k1: float, b: float) -> None:
    """The scores and the order of each variant are exactly the same, with zero scores."""
    bags = [terms(text) for text in texts]
    chunks = joined(texts)
    for variant, scorer in (("okapi", BM25Okapi), ("plus", BM25Plus), ("l", BM25L)):
        numbers = [0.0] * len(chunks)
        if any(bags):  # otherwise rank_bm25 divides by zero
            with np.errstate(invalid="ignore"):  # a chunk without terms, if b is 1
                scores = scorer(bags, k1=k1, b=b).get_scores(terms(question))
            numbers = np.nan_to_num(scores).tolist()
        [hits] = lists_of(RankBM25(99, variant, k1, b), [question], chunks)  # type: ignore[arg-type]  # a Literal
        assert [(hit.chunk.start, hit.score) for hit in hits] == [
            (chunks[i].start, numbers[i])
            for i in np.argsort([-number for number in numbers], kind="stable").tolist()
        ]


@settings(max_examples=60)
@given(
    texts=st.lists(st.text("ab c.", min_size=1, max_size=12), min_size=1, max_size=14),
    question=st.text("ab cd", max_size=12),
    k1=st.floats(0, 3),
    b=st.floats(0, 1),
)
def test_scores_of_bm25_follow_the_formula_with_the_idf_of_lucene(
    texts: list[str], question: str, k1: float, b: float
) -> None:
    """Chunks without a term of the question are not hits, unless the question has no terms."""
    bags, chunks = [terms(text) for text in texts], joined(texts)
    mean = sum(map(len, bags)) / len(bags) or 1.0
    expected = [
        sum(
            math.log(1 + (len(bags) - n + 0.5) / (n + 0.5))
            * (bag.count(term) * (k1 + 1))
            / (bag.count(term) + k1 * (1 - b + b * len(bag) / mean))
            for term in terms(question)
            if (n := sum(term in terms for terms in bags)) and term in bag
        )
        for bag in bags
    ]
    [hits] = lists_of(BM25(k=99, k1=k1, b=b), [question], chunks)
    scores = {hit.chunk: hit.score for hit in hits}
    assert [scores.get(chunk, 0.0) for chunk in chunks] == pytest.approx(expected, abs=1e-9)
    assert len(hits) == (np.count_nonzero(expected) if terms(question) else len(chunks))


@pytest.mark.parametrize("count", [3, 30])
@pytest.mark.parametrize("retriever", [BM25(k=1), TfIdf(k=1), RankBM25(k=1)])
@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("\u00c5benr\u00e5", "A\u030abenra\u030a"),
        ("\ud55c\uad6d", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
        ("harbour", "har\u00adbour"),
        ("harbour", "har\u200bbo\u2060ur\ufeff"),
        ("می\u200cخواهم", "میخواهم"),
        ("Kyoto25", "\uff2b\uff59\uff4f\uff54\uff4f\uff12\uff15"),
        ("1871", "١٨٧١"),
        ("1871", "१८७१"),
        ("fixture", "\ufb01xture"),
        ("km2", "km²"),
    ],
)
def test_words_are_found_whatever_code_points_write_them(
    retriever: Any, count: int, word: str, other: str
) -> None:
    for written, queried in ((word, other), (other, word)):
        chunks = joined([*(f"Line {n} is dull." for n in range(count)), f"See {written} there."])
        [[hit]] = lists_of(retriever, [f"Where, {queried}?"], chunks)
        start = chunks[-1].document.text.index(written)
        assert (hit.chunk.start, hit.chunk.text) == (start - 4, f"See {written} there.")


@dataclass(frozen=True)
class Fixed:
    """Retriever that returns the chunks with these numbers, in this order."""

    numbers: tuple[int, ...]

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns hits whose scores fall with the rank."""
        return [[Hit(chunks[n], -float(r)) for r, n in enumerate(self.numbers)] for _ in questions]


def test_fusion_adds_reciprocal_ranks() -> None:
    """A chunk's score is the sum of 1 / (60 + rank) over the retrievers that returned it."""
    chunks = chunked(STORY)
    [hits] = lists_of(Fusion((Fixed((2, 0)), Fixed((1, 2))), k=3), ["x"], chunks)
    assert hits == [Hit(chunks[2], 1 / 61 + 1 / 62), Hit(chunks[1], 1 / 61), Hit(chunks[0], 1 / 62)]
    with pytest.raises(ValueError, match="at least one retriever"):
        Fusion(())


@pytest.mark.parametrize(
    ("retriever", "expected"),
    [
        (Neighbours(Fixed((6, 0, 3)), before=1, after=1), [("aa bb cc dd ee ff gg hh", 0.0)]),
        (Neighbours(Fixed((6, 0)), before=1, after=0), [("ff gg", 0.0), ("aa", -1.0)]),
        (Neighbours(Fixed((2, 0)), before=0, after=0), [("cc", 0.0), ("aa", -1.0)]),
        (Neighbours(Neighbours(Fixed((4,)), 1, 0), 0, 9), [("dd ee ff gg hh", 0.0)]),  # type: ignore[arg-type]  # retrieves for examples
    ],
)
def test_neighbours_joins_hits_that_touch(retriever: Any, expected: Any) -> None:
    document = Document("d", "aa bb cc dd ee ff gg hh")
    chunks = [document.chunk(i, i + 2) for i in range(0, 23, 3)]  # blanks belong to no chunk
    [hits] = lists_of(retriever, ["x"], chunks)
    assert [(hit.chunk.text, hit.score) for hit in hits] == expected


def test_texts_are_divided_into_segments_that_fit_the_input_window(model: str) -> None:
    encoder = load_encoder("CrossEncoder", model)
    texts = (STORY * 5, CHINESE * 9, "x" * 400, STORY.replace(" ", ""), f"a{' ' * 999}{STORY}")
    for text in texts:
        [segments] = cut(encoder, [text], 17)
        assert max(count(encoder, segments)) <= 17
        assert "".join("".join(segments).split()) == "".join(text.split())
        assert len(segments) <= 2 * math.ceil(count(encoder, [text])[0] / 17) + 1
    assert cut(encoder, ["", "cat", " "], 17) == [[""], ["cat"], [" "]]


def test_dense_scores_a_long_chunk_by_its_best_segment(model: str) -> None:
    retriever = Dense(model=model, query_prefix="The king: ", passage_prefix="cat: ")
    document = Document("d", STORY)
    [[hit]] = lists_of(retriever, ["boots"], [document.chunk(0, len(STORY))])
    embedder = load_encoder("SentenceTransformer", model)
    [segments] = cut(embedder, [STORY], room(embedder, "", "cat: "))
    texts = ["cat: " + segment for segment in segments]
    assert len(segments) > 3
    assert all(len(ids) <= 24 for ids in embedder.tokenizer(texts)["input_ids"])
    passages = embedder.encode(texts, normalize_embeddings=True)
    question = embedder.encode("The king: boots", normalize_embeddings=True)
    assert hit.score == pytest.approx(float((passages @ question).max()), abs=2e-5)


def test_embeddings_of_a_collection_are_those_of_its_files(model: str, tmp_path: Path) -> None:
    texts = [f"{word} and a fish" for word in dict.fromkeys(STORY.split()[:9])]
    files = [Document(f"{number}.txt", text) for number, text in enumerate(texts)]
    questions = ["the fish", "cat"]
    for _ in range(2):  # the second retriever reads the vectors from the cache
        collection = join(files, "all")
        collection.use_cache(Cache(tmp_path))
        chunks = tuple(collection.chunk(member.start, member.end) for member in collection.members)
        dense = Dense(k=4, model=model)
        lists, best = lists_of(dense, questions, chunks), dense.retrieve(questions, chunks)
        assert [*map(spans, lists)] == [*map(spans, best)]
        scores, expected = ([hit.score for hits in a for hit in hits] for a in (lists, best))
        assert scores == pytest.approx(expected, abs=2e-5)


def test_a_prefix_as_long_as_the_input_window_is_refused(model: str) -> None:
    with pytest.raises(UserError, match="leaves no room"):
        lists_of(Dense(model=model, passage_prefix=STORY), ["x"], chunked(STORY))


def test_minilm_finds_paraphrases_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    filler = "The weather was dull and nothing happened. " * 60
    text = f"Rabbits eat carrots.\t{filler}He passed away in the spring. {filler}\tShips sail."
    [[hit]] = lists_of(Dense(k=1), ["When did the man die?"], chunked(text, mark="\t"))
    assert "passed away" in hit.chunk.text


def test_rerank_orders_hits_by_scores_of_a_cross_encoder(model: str) -> None:
    document = Document("d", STORY)
    half = STORY.index("The cat asked")
    chunks = [document.chunk(0, 26), document.chunk(27, half), document.chunk(half, len(STORY))]
    [hits] = lists_of(Rerank(All(), model=model, k=2), ["Who got it?"], chunks)
    encoder = load_encoder("CrossEncoder", model)
    length = room(encoder, ("", "")) - count(encoder, ["Who got it?"])[0]
    expected = []
    for chunk in chunks:
        pairs = [("Who got it?", segment) for segment in cut(encoder, [chunk.text], length)[0]]
        inputs = encoder.tokenizer(*map(list, zip(*pairs, strict=True)))["input_ids"]
        assert all(len(ids) <= 24 for ids in inputs)
        logits = encoder.predict(pairs, activation_fn=lambda x: x)
        expected.append((float(logits.max()), chunk))
    expected.sort(key=lambda scored: -scored[0])
    assert [hit.chunk for hit in hits] == [chunk for _, chunk in expected[:2]]
    assert [hit.score for hit in hits] == pytest.approx([s for s, _ in expected[:2]], abs=2e-5)


def test_a_reader_without_scores_cannot_rerank() -> None:
    chunks = chunked(STORY)
    with pytest.raises(ValueError, match="a reader that returns scores"):
        retrieve(RerankByReader(TfIdf(k=5), Lead()), examples_of(QUESTIONS, chunks), chunks)


@pytest.mark.parametrize("retriever", [TfIdf(), BM25()])
def test_scores_do_not_depend_on_other_questions(retriever: Any) -> None:
    """A question has the same scores, to the last bit, alone and among others."""
    chunks = chunked(STORY)
    questions = [*QUESTIONS, "", *STORY.split()] * 9
    alone = [hits for q in questions for hits in lists_of(retriever, [q], chunks)]
    assert lists_of(retriever, questions, chunks) == alone
