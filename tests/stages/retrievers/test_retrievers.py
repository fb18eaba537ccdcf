"""What every retriever promises, and what each one computes."""

from __future__ import annotations

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
from retrieval import chunked, examples_of

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
from leporello.retrievers.index.embedders import count, cut, load_cross_encoder, load_embedder, room
from leporello.retrievers.index.postings import best_chunks
from leporello.text.tokens import long_words, terms

STORY = (
    "The miller had three sons. The eldest got the mill. The second got the donkey. "
    "The youngest got only the cat. The cat asked for a pair of boots. "
    "The boots were made of red leather. The king loved rabbits. The ogre lived in a castle."
)
QUESTIONS = ("Who got the donkey?", "What were the boots made of?", "Where did the ogre live?")
CHINESE = "老磨坊主有三个儿子。大儿子得到了磨坊。二儿子得到了驴。小儿子只得到了猫。"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny BERT with random weights, one label and a window of 24 tokens."""
    import torch
    from tiny_encoders import wordpieces
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    tokenizer = wordpieces([STORY], 120)
    tokenizer.model_max_length = 24
    shape: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    shape |= {"intermediate_size": 32, "max_position_embeddings": 24, "initializer_range": 0.5}
    shape |= {"vocab_size": len(tokenizer), "num_labels": 1}
    config = BertConfig(**shape)
    folder = tmp_path_factory.mktemp("tiny-bert")
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def found(retriever: Any, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
    """Retrieves as the engine does."""
    return retrieve(retriever, examples_of(questions, chunks), chunks)


def spans(hits: Sequence[Hit]) -> list[tuple[int, int]]:
    """Says where hits stand, in rank order."""
    return [(hit.chunk.start, hit.chunk.end) for hit in hits]


@pytest.mark.parametrize(
    "retriever",
    [TfIdf(k=1), BM25(k=1), Fusion((TfIdf(), BM25()), k=1), Neighbours(BM25(k=1), 0, 0)],
)
def test_chinese_is_found_by_its_words(retriever: Any) -> None:
    """Text without spaces is found by the words of the question."""
    hits = found(retriever, ["谁得到了驴?"], chunked(CHINESE, mark="。"))[0]
    assert [hit.chunk.text for hit in hits] == ["二儿子得到了驴。"]


def test_everything_first_and_random() -> None:
    """All gives all, First the first k, and Random depends on its seed and on the document."""
    chunks, others = chunked(STORY), chunked(STORY, name="another")
    assert found(All(), ["x"], chunks) == [[Hit(chunk, 0.0) for chunk in chunks]]
    assert found(First(k=2), ["x"], chunks) == [[Hit(chunk, 0.0) for chunk in chunks[:2]]]
    draws = [
        spans(found(retriever, ["x"], given)[0])
        for retriever, given in ((Random(), chunks), (Random(seed=1), chunks), (Random(), others))
    ]
    assert len(set(map(tuple, draws))) == 3
    assert all(sorted(draw) == spans([Hit(chunk, 0) for chunk in chunks]) for draw in draws)


@settings(max_examples=60)
@given(
    texts=st.lists(st.text("ab c.é中か\u0301", max_size=16), min_size=1, max_size=8),
    question=st.text("ab cd中か", max_size=16),
    sublinear=st.booleans(),
    ngrams=st.integers(1, 3),
    own=st.booleans(),
)
@example(texts=[STORY[:70], STORY[70:]], question=QUESTIONS[0], sublinear=True, ngrams=2, own=True)
def test_tfidf_is_scikit_learns(
    texts: list[str], question: str, sublinear: bool, ngrams: int, own: bool
) -> None:
    """Scores are the cosines of scikit-learn's TfidfVectorizer, on our terms or on its own."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    assume(any(map(terms if own else long_words, texts)))  # it raises where there is no term
    chunks = joined(texts)
    by = {"tokenizer": terms, "token_pattern": None} if own else {}
    vectorizer = TfidfVectorizer(ngram_range=(1, ngrams), sublinear_tf=sublinear, **by)
    weights = vectorizer.fit_transform(texts)
    [expected] = (vectorizer.transform([question]) @ weights.T).toarray()
    kind: Literal["leporello", "scikit-learn"] = "leporello" if own else "scikit-learn"
    retriever = TfIdf(k=99, sublinear=sublinear, ngrams=ngrams, terms=kind)
    [hits] = found(retriever, [question], chunks)
    scores = {hit.chunk: hit.score for hit in hits}
    assert [scores[chunk] for chunk in chunks] == pytest.approx(expected, abs=1e-12)


def joined(texts: Sequence[str]) -> list[Chunk]:
    """Returns the chunks of a document that has these texts one after the other."""
    document = Document("d", "\t".join(texts))
    ends = np.cumsum([len(text) + 1 for text in texts]).tolist()
    return [document.chunk(e - len(t) - 1, e - 1) for t, e in zip(texts, ends, strict=True)]


@settings(max_examples=60)
@given(
    texts=st.lists(st.text("ab c.", min_size=1, max_size=12), min_size=1, max_size=8),
    question=st.text("ab cd", max_size=12),
    k1=st.floats(0.1, 3),
    b=st.floats(0, 1),
)
def test_bm25_is_rank_bm25s(texts: list[str], question: str, k1: float, b: float) -> None:
    """Scores equal rank_bm25's, its floor for terms in most chunks and repeated terms included.

    So does their order; `RankBM25` gives each variant's very numbers.
    """
    bags = [terms(text) for text in texts]
    chunks = joined(texts)
    numbers: dict[str, list[float]] = {}
    for variant, scorer in (("okapi", BM25Okapi), ("plus", BM25Plus), ("l", BM25L)):
        numbers[variant] = [0.0] * len(chunks)
        if any(bags):  # else rank_bm25 divides by zero
            with np.errstate(invalid="ignore"):  # as for a chunk without terms if b is 1
                scores = scorer(bags, k1=k1, b=b).get_scores(terms(question))
            numbers[variant] = np.nan_to_num(scores).tolist()
        [hits] = found(RankBM25(99, variant, k1, b), [question], chunks)  # type: ignore[arg-type]  # a Literal
        assert [(hit.chunk.start, hit.score) for hit in hits] == [
            (chunks[i].start, numbers[variant][i])
            for i in sorted(range(len(chunks)), key=lambda i: -numbers[variant][i])
        ]
    [hits] = found(BM25(k=99, k1=k1, b=b), [question], chunks)
    scores = {hit.chunk: hit.score for hit in hits}
    assert [scores[chunk] for chunk in chunks] == pytest.approx(numbers["okapi"], abs=1e-9)
    [reference] = found(RankBM25(k=99, k1=k1, b=b), [question], chunks)
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in reference], abs=1e-9)


@dataclass(frozen=True)
class Fixed:
    """Returns the chunks of these numbers, in this order."""

    numbers: tuple[int, ...]

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Scores fall with the rank."""
        return [[Hit(chunks[n], -float(r)) for r, n in enumerate(self.numbers)] for _ in questions]


def test_fusion_adds_reciprocal_ranks() -> None:
    """A chunk's score is the sum of 1 / (constant + rank) over the retrievers that returned it."""
    chunks = chunked(STORY)
    [hits] = found(Fusion((Fixed((2, 0)), Fixed((1, 2))), k=3), ["x"], chunks)
    assert hits == [
        Hit(chunks[2], 1 / 61 + 1 / 62),
        Hit(chunks[1], 1 / 61),
        Hit(chunks[0], 1 / 62),
    ]
    [few] = found(Fusion((Fixed((2, 0)),), k=1, constant=1), ["x"], chunks)
    assert few == [Hit(chunks[2], 1 / 2)]


def test_fusion_of_nothing_is_refused() -> None:
    """Fusion says that it needs a retriever when it is made."""
    with pytest.raises(ValueError, match="at least one retriever"):
        Fusion(())


def test_neighbours_join_what_touches() -> None:
    """Hits are widened; those that overlap or touch become one, with the best score."""
    document = Document("d", "aa bb cc dd ee ff gg hh")
    chunks = [document.chunk(i, i + 2) for i in range(0, 23, 3)]  # blanks belong to no chunk
    [hits] = found(Neighbours(Fixed((6, 0, 3)), before=1, after=1), ["x"], chunks)
    assert [(hit.chunk.text, hit.score) for hit in hits] == [("aa bb cc dd ee ff gg hh", 0.0)]
    [hits] = found(Neighbours(Fixed((6, 0)), before=1, after=0), ["x"], chunks)
    assert [(hit.chunk.text, hit.score) for hit in hits] == [("ff gg", 0.0), ("aa", -1.0)]
    [hits] = found(Neighbours(Fixed((2, 0)), before=0, after=0), ["x"], chunks)
    assert [(hit.chunk.text, hit.score) for hit in hits] == [("cc", 0.0), ("aa", -1.0)]
    [hits] = found(Neighbours(Neighbours(Fixed((4,)), 1, 0), 0, 9), ["x"], chunks)  # type: ignore[arg-type]  # takes examples
    assert [(hit.chunk.text, hit.score) for hit in hits] == [("dd ee ff gg hh", 0.0)]


def test_texts_are_cut_to_the_window(model: str) -> None:
    """Pieces fit the window, are written in order, and lose nothing but blanks."""
    encoder = load_cross_encoder(model)
    for text in (
        STORY * 5,
        CHINESE * 9,
        "x" * 400,
        STORY.replace(" ", ""),
        "a" + " " * 999 + STORY,
    ):
        [pieces] = cut(encoder, [text], 17)
        assert max(count(encoder, pieces)) <= 17
        assert "".join("".join(pieces).split()) == "".join(text.split())
        assert len(pieces) <= 2 * math.ceil(count(encoder, [text])[0] / 17) + 1
    assert cut(encoder, ["", "cat", " "], 17) == [[""], ["cat"], [" "]]


def test_dense_scores_a_long_chunk_by_its_best_piece(model: str) -> None:
    """The score is the best cosine over pieces that the model reads whole, prefixes included."""
    retriever = Dense(model=model, query_prefix="The king: ", passage_prefix="cat: ")
    document = Document("d", STORY)
    [[hit]] = found(retriever, ["boots"], [document.chunk(0, len(STORY))])
    embedder = load_embedder(model)
    left = room(embedder, "", "cat: ")
    [pieces] = cut(embedder, [STORY], left)
    texts = ["cat: " + piece for piece in pieces]
    assert len(pieces) > 3
    assert all(len(ids) <= 24 for ids in embedder.tokenizer(texts)["input_ids"])
    passages = embedder.encode(texts, normalize_embeddings=True)
    question = embedder.encode("The king: boots", normalize_embeddings=True)
    assert hit.score == pytest.approx(float((passages @ question).max()), abs=2e-5)


def test_embeddings_of_a_collection_are_put_together_of_files(model: str, tmp_path: Path) -> None:
    """Products of files' vectors are those of all; so are those that a graph finds, kept or not."""
    texts = [f"{word} and a fish" for word in dict.fromkeys(STORY.split()[:9])]
    files = [Document(f"{number}.txt", text) for number, text in enumerate(texts)]
    questions = ["the fish", "cat"]
    for exact in (200, 3, 3):  # the last one has the graph from the cache
        whole = join(files, "all")
        whole.use_cache(Cache(tmp_path))
        chunks = tuple(whole.chunk(member.start, member.end) for member in whole.members)
        dense = Dense(k=4, model=model, exact=exact)
        for hits, best in zip(
            found(dense, questions, chunks), dense.retrieve(questions, chunks), strict=True
        ):
            assert spans(hits) == spans(best)
            scores = [hit.score for hit in best]
            assert [hit.score for hit in hits] == pytest.approx(scores, abs=2e-5)


def test_a_prefix_as_long_as_the_window_is_refused(model: str) -> None:
    """A prefix that leaves no room for text is the user's mistake, and is told so."""
    with pytest.raises(UserError, match="leaves no room"):
        found(Dense(model=model, passage_prefix=STORY), ["x"], chunked(STORY))


def test_minilm_finds_what_no_word_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packaged model finds a paraphrase, also far behind its window, without a hub."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    filler = "The weather was dull and nothing happened. " * 60
    text = f"Rabbits eat carrots.\t{filler}He passed away in the spring. {filler}\tShips sail."
    [[hit]] = found(Dense(k=1), ["When did the man die?"], chunked(text, mark="\t"))
    assert "passed away" in hit.chunk.text


def test_rerank_orders_by_the_cross_encoder(model: str) -> None:
    """Scores are the model's logits of question and passage, the best over a passage's pieces."""
    document = Document("d", STORY)
    half = STORY.index("The cat asked")
    chunks = [document.chunk(0, 26), document.chunk(27, half), document.chunk(half, len(STORY))]
    [hits] = found(Rerank(All(), model=model, k=2), ["Who got it?"], chunks)
    encoder = load_cross_encoder(model)
    left = room(encoder, ("", "")) - count(encoder, ["Who got it?"])[0]
    expected = []
    for chunk in chunks:
        pairs = [("Who got it?", piece) for piece in cut(encoder, [chunk.text], left)[0]]
        inputs = encoder.tokenizer(*map(list, zip(*pairs, strict=True)))["input_ids"]
        assert all(len(ids) <= 24 for ids in inputs)
        logits = encoder.predict(pairs, activation_fn=lambda x: x)
        expected.append((float(logits.max()), chunk))
    expected.sort(key=lambda scored: -scored[0])
    assert [hit.chunk for hit in hits] == [chunk for _, chunk in expected[:2]]
    assert [hit.score for hit in hits] == pytest.approx([s for s, _ in expected[:2]], abs=2e-5)


def test_a_reader_without_scores_cannot_order() -> None:
    """`Lead` answers with the first words, whatever is asked."""
    chunks = chunked(STORY)
    with pytest.raises(ValueError, match="gives no scores"):
        retrieve(RerankByReader(TfIdf(k=5), Lead()), examples_of(QUESTIONS, chunks), chunks)


@given(
    rows=st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0, float("nan")]), min_size=9, max_size=9), max_size=5
    ),
    k=st.integers(1, 10),
)
def test_the_best_are_those_of_a_full_sort(rows: list[list[float]], k: int) -> None:
    """Of equal scores the first ones are taken, wherever the k-th one stands among them."""
    chunks = joined([*"abcdefghi"])
    scores = np.array(rows).reshape(-1, 9)
    expected = (-scores).argsort(axis=1, kind="stable")[:, :k]
    hits = best_chunks((scores[:2], scores[2:]), chunks, k)
    assert [[hit.chunk.start // 2 for hit in one] for one in hits] == expected.tolist()


@pytest.mark.parametrize("retriever", [TfIdf(), BM25()])
def test_many_questions_are_searched_in_blocks(
    retriever: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How much is in memory at once changes no bit of a score."""
    chunks = chunked(STORY)
    questions = [*QUESTIONS, "", *STORY.split()] * 9
    expected = found(retriever, questions, chunks)
    for block in (1, 40, 1000):
        monkeypatch.setattr("leporello.retrievers.index.postings._BLOCK", block)
        assert found(retriever, questions, chunks) == expected
