__all__: list[str]

from .json_lines import JsonLines as JsonLines
from .json_lines import Table as Table
from .long_context.babilong import Babilong as Babilong
from .long_context.helmet import Helmet as Helmet
from .long_context.infinite_bench import InfiniteBench as InfiniteBench
from .long_context.longbench import LongBench as LongBench
from .long_context.longbench import LongBenchV2 as LongBenchV2
from .long_context.loogle import LooGLE as LooGLE
from .long_context.needles import GraphWalks as GraphWalks
from .long_context.needles import Mrcr as Mrcr
from .long_context.nolima import NoLiMa as NoLiMa
from .long_context.ruler import Ruler as Ruler
from .muld import ContraPro as ContraPro
from .muld import Muld as Muld
from .pan21 import Pan21 as Pan21
from .sample import Sample as Sample
from .scientific_papers import ScientificPapers as ScientificPapers
from .scrolls import Scrolls as Scrolls
from .shuffle_test import ShuffleTest as ShuffleTest
from .zero_scrolls import ReportSumSort as ReportSumSort
from .zero_scrolls import ZeroScrolls as ZeroScrolls
