"""Retrievers: questions + chunks -> hits.

All questions of one document come in one call. A retriever worth caching offers `index(chunks)`
and `search(index, questions, chunks)` besides, and names in `search_only` the parameters that do
not change the index: one index then serves a sweep over them. One that offers `segment(chunks)` and
`join(segments)` too has its index of a collection put together of its files'. Begin with `bm25`.
"""

from leporello.retrievers.baselines import All, Ends, Evenly, First, Random
from leporello.retrievers.bm25 import BM25
from leporello.retrievers.by_question import ByQuestion
from leporello.retrievers.dense import Dense
from leporello.retrievers.encoders.colbert import ColBERT
from leporello.retrievers.encoders.late_chunks import LateChunks
from leporello.retrievers.encoders.splade import Splade
from leporello.retrievers.fusion import Fusion
from leporello.retrievers.mentions import Mentions
from leporello.retrievers.mixed import Mixed
from leporello.retrievers.neighbours import Neighbours
from leporello.retrievers.oracle import Oracle, OracleAnswer
from leporello.retrievers.passages.compress import Compress
from leporello.retrievers.passages.entity_graph import EntityGraph
from leporello.retrievers.passages.mmr import MMR
from leporello.retrievers.passages.tree_search import TreeSearch
from leporello.retrievers.rank_bm25 import RankBM25
from leporello.retrievers.rerank import Rerank
from leporello.retrievers.rerank_by_reader import RerankByReader
from leporello.retrievers.selected import Selected
from leporello.retrievers.tfidf import TfIdf
from leporello.retrievers.two_steps import TwoSteps

__all__ = [
    "BM25",
    "MMR",
    "All",
    "ByQuestion",
    "ColBERT",
    "Compress",
    "Dense",
    "Ends",
    "EntityGraph",
    "Evenly",
    "First",
    "Fusion",
    "LateChunks",
    "Mentions",
    "Mixed",
    "Neighbours",
    "Oracle",
    "OracleAnswer",
    "Random",
    "RankBM25",
    "Rerank",
    "RerankByReader",
    "Selected",
    "Splade",
    "TfIdf",
    "TreeSearch",
    "TwoSteps",
]
