"""Combiners: hits -> reader inputs -> one answer (the "recombine" of divide, select, solve)."""

from combiners.assign_authors import AssignAuthors
from combiners.cluster_authors import ClusterAuthors
from combiners.count import Count
from combiners.line_by_line import LineByLine
from combiners.map_reduce import MapReduce
from combiners.mean import Mean
from combiners.multi_hop import MultiHop
from combiners.order_by_coherence import OrderByCoherence
from combiners.order_by_match import OrderByMatch
from combiners.order_by_pairs import OrderByPairs
from combiners.percentage import Percentage
from combiners.read_each import ReadEach
from combiners.refine import Refine
from combiners.stuff import Stuff
from combiners.truncate import Truncate
from combiners.union import Union

__all__ = [
    "AssignAuthors",
    "ClusterAuthors",
    "Count",
    "LineByLine",
    "MapReduce",
    "Mean",
    "MultiHop",
    "OrderByCoherence",
    "OrderByMatch",
    "OrderByPairs",
    "Percentage",
    "ReadEach",
    "Refine",
    "Stuff",
    "Truncate",
    "Union",
]
