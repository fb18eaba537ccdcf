"""Tests all retrievers with the kit for authors of plug-ins."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tiny_models import save_classifier, save_sparse, save_token_vectors

from leporello import readers, retrievers
from leporello.retrievers import BM25, TfIdf
from leporello.testing import RetrieverContract
from leporello.testing.texts import long_text

# Retrievers that search for something specific, or return chunks from all over a document.
NOT_FROM_THE_START: tuple[type, ...] = (
    retrievers.Compress, retrievers.Evenly, retrievers.Fusion, retrievers.Mentions,
    retrievers.Mixed, retrievers.Oracle, retrievers.OracleAnswer, retrievers.Random,
)  # fmt: skip
NOT_BY_WORDS: tuple[type, ...] = (
    retrievers.All, retrievers.Ends, retrievers.First, retrievers.RankBM25, retrievers.Selected,
)  # fmt: skip
NETWORKS = ("ColBERT", "Dense", "LateChunks", "Rerank", "Splade")
MAKERS: Mapping[str, Callable[[str], Any]] = {
    "All": lambda _: retrievers.All(),
    "BM25": lambda _: BM25(k=3),
    "ByQuestion": lambda _: retrievers.ByQuestion(BM25(k=3)),
    "Compress": lambda _: retrievers.Compress(BM25(k=5), BM25(k=1000)),
    "ColBERT": lambda model: retrievers.ColBERT(k=3, model=f"{model}/colbert", batch_size=2),
    "Dense": lambda model: retrievers.Dense(k=3, model=model, batch_size=2),
    "Ends": lambda _: retrievers.Ends(k=3),
    "EntityGraph": lambda _: retrievers.EntityGraph(BM25(k=9), k=3),
    "Evenly": lambda _: retrievers.Evenly(k=3),
    "First": lambda _: retrievers.First(k=3),
    "Fusion": lambda _: retrievers.Fusion(
        (TfIdf(k=5), retrievers.Neighbours(BM25(k=5)), retrievers.Random(k=5)),  # type: ignore[arg-type]  # retrieves for examples
        k=3,
    ),
    "MMR": lambda _: retrievers.MMR(BM25(k=9), k=3),
    "LateChunks": lambda model: retrievers.LateChunks(k=3, model=model, batch_size=2),
    "Mentions": lambda _: retrievers.Mentions(),
    "Mixed": lambda _: retrievers.Mixed((BM25(k=3), TfIdf(k=3))),
    "Neighbours": lambda _: retrievers.Neighbours(BM25(k=3)),
    "Oracle": lambda _: retrievers.Oracle(),
    "OracleAnswer": lambda _: retrievers.OracleAnswer(),
    "Random": lambda _: retrievers.Random(k=3),
    "RankBM25": lambda _: retrievers.RankBM25(k=3),
    "Rerank": lambda model: retrievers.Rerank(TfIdf(k=5), model=model, k=3, batch_size=2),
    "RerankByReader": lambda _: retrievers.RerankByReader(TfIdf(k=5), readers.BestSentence(), k=3),
    "Selected": lambda _: retrievers.Selected(),
    "Splade": lambda model: retrievers.Splade(f"{model}/splade", k=3, batch_size=2),
    "TfIdf": lambda _: TfIdf(k=3),
    "TreeSearch": lambda _: retrievers.TreeSearch(BM25(k=1000), k=3),
    "TwoSteps": lambda _: retrievers.TwoSteps(BM25(k=3)),
}


class TestRetrievers(RetrieverContract):
    """Retrievers without a model."""

    huge = 300_000

    @pytest.fixture(params=[name for name in retrievers.__all__ if name not in NETWORKS])
    def maker(self, request: pytest.FixtureRequest) -> Callable[[], Any]:
        """Maker of each exported retriever."""
        return lambda: MAKERS[request.param]("")

    def test_a_blank_question_returns_the_beginning_and_other_words_nothing_or_a_short_text(
        self, maker: Callable[[], Any]
    ) -> None:
        """This applies to retrievers that prefer the start of a document.

        A document without a word of the question is returned completely by retrievers that do not
        search by words.
        """
        retriever = maker()
        if not isinstance(retriever, NOT_FROM_THE_START):
            [hits] = self.results(retriever, self.case(long_text(900), " \n"))
            assert [start for start, *_ in hits] == sorted(start for start, *_ in hits)
            assert hits[0][0] == 0
            [hits] = self.results(retriever, self.case("One cat. " * 12, "dogs"))
            covered = {n for start, end, _ in hits for n in range(start, end)}
            assert covered == (set(range(108)) if isinstance(retriever, NOT_BY_WORDS) else set())


@pytest.mark.integration
class TestNetworks(RetrieverContract):
    """Retrievers with a tiny BERT."""

    tolerance = 2e-5
    threads = 1  # tokenizers store settings of the last call
    huge = 4_000

    @pytest.fixture(params=NETWORKS)
    def maker(
        self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> Callable[[], Any]:
        """Maker of each retriever with a model."""
        model: Path = tmp_path_factory.getbasetemp() / "tiny-bert"
        if not model.exists():
            save_classifier("bert", model, ["near"])
            save_token_vectors(model)
            save_sparse(model / "splade")
        return lambda: MAKERS[request.param](str(model))
