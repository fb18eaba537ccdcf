"""Retrievers with token vectors, late chunks and sparse vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from retrieval import asked, chunked
from tiny_models import save_classifier, save_token_vectors

from leporello.core.calls.stage_calls import retrieve
from leporello.core.errors import UserError
from leporello.core.passages import Passage
from leporello.retrievers import ColBERT
from leporello.retrievers.encoders import colbert as module
from leporello.retrievers.index.embedders import count, load_multi_vector

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


def test_a_passage_is_found_by_its_own_text(tiny: str) -> None:
    """What it stands for is not what is searched."""
    chunks = chunked(TEXT)
    passages = [
        Passage.of("summary", [text], [chunk])
        for text, chunk in zip(("boots", "rabbits"), chunks, strict=False)
    ]
    found = ColBERT(k=2, model=tiny).retrieve(["rabbits"], passages)[0]
    alone = ColBERT(k=2, model=tiny).retrieve(["rabbits"], chunked("boots@rabbits", mark="@"))[0]
    assert found[0].chunk is passages[1]
    assert found[0].score == pytest.approx(alone[0].score, abs=2)


def test_a_plain_encoder_is_refused(tmp_path: Path) -> None:
    """Its token vectors would go through a projection with random weights."""
    save_classifier("bert", tmp_path, ["near"])
    with pytest.raises(UserError, match="not trained to give a vector a token"):
        ColBERT(model=str(tmp_path)).load()


@pytest.mark.slow
def test_the_wheel_finds_what_words_do_not() -> None:
    """The default model: converted from 8 bits, with its marks; questions have 32 tokens."""
    chunks = chunked(TEXT)
    [[hit, *_]] = retrieve(ColBERT(), asked(["Which colour had the footwear?"], chunks), chunks)
    assert "boots" in hit.chunk.text
    model: Any = load_multi_vector("answerai-colbert-small")
    [vectors] = model.encode_query(["Who?"], convert_to_numpy=True)
    assert vectors.shape == (32, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(32), abs=1e-5)
