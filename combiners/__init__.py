"""Combiners: hits -> reader inputs -> one answer (the "recombine" of divide, select, solve)."""

from combiners.assign_authors import AssignAuthors
from combiners.cluster_authors import ClusterAuthors
from combiners.line_by_line import LineByLine
from combiners.map_reduce import MapReduce
from combiners.mean import Mean
from combiners.read_each import ReadEach
from combiners.refine import Refine
from combiners.stuff import Stuff
from combiners.truncate import Truncate

__all__ = [
    "AssignAuthors",
    "ClusterAuthors",
    "LineByLine",
    "MapReduce",
    "Mean",
    "ReadEach",
    "Refine",
    "Stuff",
    "Truncate",
]
