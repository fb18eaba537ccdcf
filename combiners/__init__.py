"""Combiners: hits -> reader inputs -> one answer (the "recombine" of divide, select, solve).

A combiner is a generator: it yields rounds of reads and returns the answer. It may touch `core` and
`text`, and knows no reader. Begin with `stuff`, then `map_reduce`.
"""

from leporello.combiners.assign_authors import AssignAuthors
from leporello.combiners.chains.chain_of_agents import ChainOfAgents
from leporello.combiners.chains.chain_of_notes import ChainOfNotes
from leporello.combiners.chains.plan_then_read import PlanThenRead
from leporello.combiners.chains.self_consistency import SelfConsistency
from leporello.combiners.chains.structured_map_reduce import StructuredMapReduce
from leporello.combiners.chains.walk import Walk
from leporello.combiners.cluster_authors import ClusterAuthors
from leporello.combiners.count import Count
from leporello.combiners.deciding.best_of import BestOf
from leporello.combiners.deciding.by_role import ByRole
from leporello.combiners.deciding.cascade import Cascade
from leporello.combiners.deciding.route import LearntRoute, Route, When
from leporello.combiners.deciding.verify import Verify
from leporello.combiners.line_by_line import LineByLine
from leporello.combiners.map_reduce import MapReduce
from leporello.combiners.mean import Mean
from leporello.combiners.multi_hop import MultiHop
from leporello.combiners.order_by_coherence import OrderByCoherence
from leporello.combiners.order_by_match import OrderByMatch
from leporello.combiners.order_by_pairs import OrderByPairs
from leporello.combiners.percentage import Percentage
from leporello.combiners.read_each import ReadEach
from leporello.combiners.refine import Refine
from leporello.combiners.rewriting.decompose import Decompose
from leporello.combiners.rewriting.hyde import HyDE
from leporello.combiners.rewriting.iterative import Iterative
from leporello.combiners.rewriting.multi_query import MultiQuery
from leporello.combiners.stuff import Stuff
from leporello.combiners.truncate import Truncate, TruncateMiddle
from leporello.combiners.union import Union

__all__ = [
    "AssignAuthors",
    "BestOf",
    "ByRole",
    "Cascade",
    "ChainOfAgents",
    "ChainOfNotes",
    "ClusterAuthors",
    "Count",
    "Decompose",
    "HyDE",
    "Iterative",
    "LearntRoute",
    "LineByLine",
    "MapReduce",
    "Mean",
    "MultiHop",
    "MultiQuery",
    "OrderByCoherence",
    "OrderByMatch",
    "OrderByPairs",
    "Percentage",
    "PlanThenRead",
    "ReadEach",
    "Refine",
    "Route",
    "SelfConsistency",
    "StructuredMapReduce",
    "Stuff",
    "Truncate",
    "TruncateMiddle",
    "Union",
    "Verify",
    "Walk",
    "When",
]
