"""Retrievers with token vectors, late chunks and sparse vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from retrieval import chunked, examples_of
from tiny_models import save_classifier, save_sparse, save_token_vectors

from leporello.core.calls.stage_calls import retrieve
from leporello.core.errors import UserError
from leporello.retrievers import ColBERT, Dense, LateChunks, Splade
from leporello.retrievers.encoders import colbert as module
from leporello.retrievers.encoders import late_chunks as late
from leporello.retrievers.index.embedders import (
    count,
    load_embedder,
    load_multi_vector,
    load_sparse,
)

TEXT = (
    "The miller had three sons. The eldest took the mill. The youngest got only the cat. "
    "The boots were made of red leather. The king loved rabbits."
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny ColBERT."""
    place = tmp_path_factory.mktemp("token-vectors")
    save_token_vectors(place)
    return str(place / "colbert")


def test_scores_are_those_of_the_library(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """MaxSim of the library, whatever number of vectors is compared at once."""
    chunks, questions = chunked(TEXT), ["Who got the cat?", "Red boots?"]
    model: Any = load_multi_vector(tiny)
    documents = [chunk.text for chunk in chunks]
    wanted = model.similarity(model.encode_query(questions), model.encode_document(documents))
    retriever = ColBERT(k=9, model=tiny, batch_size=2)
    for block in (1, 2**15):
        monkeypatch.setattr(module, "_BLOCK", block)
        for row, hits in zip(wanted, retriever.retrieve(questions, chunks), strict=True):
            for hit in hits:
                expected = row[chunks.index(hit.chunk)].item()
                assert hit.score == pytest.approx(expected, abs=0.01)


def test_nothing_of_long_texts_is_cut(tiny: str) -> None:
    """A question beyond its places and a chunk beyond the window count to their ends."""
    [chunk] = chunked("The cat wore red boots " * 40, mark="@")
    model: Any = load_multi_vector(tiny)
    retriever, question = ColBERT(model=tiny), "The cat wore red boots"
    vectors: Any = retriever.index([chunk])["vectors"]
    assert len(vectors) > count(model, [chunk.text])[0] > model.max_seq_length
    [[once]] = retriever.retrieve([question], [chunk])
    [[more]] = retriever.retrieve([f"{question} " * 9], [chunk])
    assert more.score > 1.5 * once.score


def test_a_plain_encoder_is_refused(tmp_path: Path) -> None:
    """Its token vectors would go through a projection with random weights."""
    save_classifier("bert", tmp_path, ["near"])
    with pytest.raises(UserError, match="not trained to give a vector a token"):
        ColBERT(model=str(tmp_path)).load()


# -- late chunks -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny BERT with a window of 130 tokens."""
    place = tmp_path_factory.mktemp("bert")
    save_classifier("bert", place, ["near"])
    return str(place)


def vectors_of(retriever: LateChunks | Dense, chunks: Any) -> Any:
    """Returns an index's vectors."""
    return retriever.index(chunks)["vectors"]


def test_a_document_in_one_window_is_pooled_by_chunk(bert: str) -> None:
    """A lone chunk has the mean of its own tokens; among others it has what stands around it."""
    lone, chunks = chunked("The boots were red", mark="@"), chunked("The boots. Were red. Here.")
    model: Any = load_embedder(bert)
    states = model.encode(lone[0].text, output_value="token_embeddings").numpy()[1:-1]
    mean = states.mean(axis=0)
    assert vectors_of(LateChunks(model=bert), lone)[0] == pytest.approx(
        mean / np.linalg.norm(mean), abs=1e-5
    )
    late, alone = vectors_of(LateChunks(model=bert), chunks), vectors_of(Dense(model=bert), chunks)
    assert np.abs(late - alone).max() > 0.01


def test_late_chunks_know_whom_a_pronoun_means() -> None:
    """With MiniLM `the river is long` is the Danube's, which an early chunk cannot tell."""
    text = "The Danube rises in Germany. It is 2850 km long. The Alps are high. They are old."
    chunks = chunked(text)
    ask = "How long is the Danube?"
    scores = []
    for retriever in (LateChunks(k=9), Dense(k=9)):
        [hits] = retriever.retrieve([ask], chunks)
        scores.append({hit.chunk.text: hit.score for hit in hits}["It is 2850 km long. "])
    assert scores[0] > scores[1]


# -- sparse vectors --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def splade(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny masked language model with SPLADE's pooling."""
    place = tmp_path_factory.mktemp("splade")
    save_sparse(place)
    return str(place)


def test_sparse_scores_are_those_of_the_library(splade: str) -> None:
    """The product of both vectors; of what is longer than the window, the greatest weights."""
    chunks, questions = chunked(TEXT), ["Who got the cat?", " "]
    model: Any = load_sparse(splade)
    documents = model.encode_document([chunk.text for chunk in chunks])
    wanted = model.similarity(model.encode_query(questions[:1]), documents)[0]
    [hits, blank] = Splade(splade, k=9).retrieve(questions, chunks)
    for hit in hits:
        assert hit.score == pytest.approx(wanted[chunks.index(hit.chunk)].item(), rel=1e-4)
    assert {hit.score for hit in blank} == {0}
    long = chunked(f"{TEXT} " * 9, mark="@")
    [[hit]] = Splade(splade).retrieve(questions[:1], long)
    assert hit.score > 0


def test_an_encoder_without_words_is_refused(bert: str) -> None:
    """The library would add a layer with random weights."""
    with pytest.raises(UserError, match="gives no weights of words"):
        Splade(bert).load()


@pytest.mark.slow
def test_the_wheel_finds_what_words_do_not() -> None:
    """The default model: converted from 8 bits, with its marks; questions have 32 tokens."""
    chunks = chunked(TEXT)
    [[hit, *_]] = retrieve(
        ColBERT(), examples_of(["Which colour had the footwear?"], chunks), chunks
    )
    assert "boots" in hit.chunk.text
    model: Any = load_multi_vector("answerai-colbert-small")
    [vectors] = model.encode_query(["Who?"], convert_to_numpy=True)
    assert vectors.shape == (32, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(32), abs=1e-5)


@pytest.mark.parametrize("overlap", [0, 0.3, 1])
def test_every_token_of_a_long_document_counts_once(bert: str, overlap: float) -> None:
    """Windows share the tokens among them, without a gap and in order."""
    windows = late._OverlappingWindows(load_embedder(bert), "", overlap)
    for tokens in (1, windows.room, windows.room + 1, 5 * windows.room + 3):
        parts = [*windows._parts(tokens)]
        assert [low for _, low, _ in parts] == [0, *(high for *_, high in parts[:-1])]
        assert parts[-1][2] == tokens
        assert all(begin <= low <= high <= begin + windows.room for begin, low, high in parts)
