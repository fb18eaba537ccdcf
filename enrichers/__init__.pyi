__all__: list[str]

from .summarising import Gists as Gists
from .summarising import SectionTree as SectionTree
from .summary_tree import SummaryTree as SummaryTree
from .written import ContextualChunks as ContextualChunks
from .written import ParentChunks as ParentChunks
from .written import Propositions as Propositions
from .written import Questions as Questions
