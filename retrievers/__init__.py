"""Retrievers: questions + chunks -> hits.

All questions of one document come in one call. A retriever worth caching offers `index(chunks)`
and `search(index, questions, chunks)` besides, and names in `search_only` the parameters that do
not change the index: one index then serves a sweep over them.
"""

from retrievers.baselines import All, First, Random
from retrievers.bm25 import BM25
from retrievers.dense import Dense
from retrievers.fusion import Fusion
from retrievers.mentions import Mentions
from retrievers.mixed import Mixed
from retrievers.neighbours import Neighbours
from retrievers.oracle import Oracle, OracleAnswer
from retrievers.rerank import Rerank
from retrievers.selected import Selected
from retrievers.tfidf import TfIdf

__all__ = [
    "BM25",
    "All",
    "Dense",
    "First",
    "Fusion",
    "Mentions",
    "Mixed",
    "Neighbours",
    "Oracle",
    "OracleAnswer",
    "Random",
    "Rerank",
    "Selected",
    "TfIdf",
]
