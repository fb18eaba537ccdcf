__all__: list[str]

from .contextual_chunks import ContextualChunks as ContextualChunks
from .gists import Gists as Gists
from .parent_chunks import ParentChunks as ParentChunks
from .propositions import Propositions as Propositions
from .questions import Questions as Questions
from .section_tree import SectionTree as SectionTree
from .summary_tree import SummaryTree as SummaryTree
