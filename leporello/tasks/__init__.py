"""Tasks: files of questions on documents, as examples. A task's own class is named in the YAML.

One file a benchmark, each a class whose `examples` yields what the official file says, faults
included; it may read the data directory and write layouts to the cache. Begin with `sample`, then
`json_lines` (the user's own questions) or `official/benchmark` (what the benchmarks share);
`generated` are made here.
"""

from __future__ import annotations

from leporello.tasks.generated.babilong import Babilong
from leporello.tasks.generated.ruler import Ruler
from leporello.tasks.json_lines import JsonLines
from leporello.tasks.long_context.infinite_bench import InfiniteBench
from leporello.tasks.long_context.longbench import LongBench, LongBenchV2
from leporello.tasks.long_context.loogle import LooGLE
from leporello.tasks.muld import Muld
from leporello.tasks.pan21 import Pan21
from leporello.tasks.report_sum_sort import ReportSumSort
from leporello.tasks.sample import Sample
from leporello.tasks.scientific_papers import ScientificPapers
from leporello.tasks.scrolls import Scrolls
from leporello.tasks.shuffle_test import ShuffleTest
from leporello.tasks.tables import Table, WebDataset
from leporello.tasks.zero_scrolls import ZeroScrolls

__all__ = [
    "Babilong",
    "InfiniteBench",
    "JsonLines",
    "LongBench",
    "LongBenchV2",
    "LooGLE",
    "Muld",
    "Pan21",
    "ReportSumSort",
    "Ruler",
    "Sample",
    "ScientificPapers",
    "Scrolls",
    "ShuffleTest",
    "Table",
    "WebDataset",
    "ZeroScrolls",
]
